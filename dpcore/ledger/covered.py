"""Charges of any kind as one Gaussian, so that a ledger adds up mixed releases in one sum.

A ledger whose notion is `gaussian` and that keeps a part of delta for failures has room for leaks.
A charge with events that are not Gaussian (counts with discrete noise, sampled training runs,
choices by Rényi divergences) is then stored as one Gaussian, and the leak is one of its failures.
The Gaussian is what the list costs a budget of which more is left (`smoothed_cost`); at the end,
where little is left, the one that covers the list by itself (`gaussian_cover`). The list of one
charge is fixed before its records are opened; charges may be chosen from earlier answers, as for
every Gaussian (Smith & Thakurta 2022, arXiv:2210.17520).

What is left is divided by powers of sqrt 2, and leaks are powers of 4, so that equal charges are
computed once.
"""

import contextlib
import math

import attrs

from dpcore.accounting.covering import gaussian_cover
from dpcore.accounting.exact import dyadic
from dpcore.accounting.filters import BudgetExceededError, GaussianFilter
from dpcore.accounting.smoothing import smoothed_cost
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.events.gaussian import GaussianEvent
from dpcore.ledger.charge import Charge
from dpcore.ledger.total import Spent
from dpcore.rounding import up

SHARES = (256, 16, 4)
"""A leak is at most one of these parts of what a ledger still keeps for failures.

The one is taken that uses the least of what is left, of the squares and of failures together.
"""

_ALIKE = 0.98  # two mu whose squares differ by a few percent
_LEVELS = 24  # rests that are tried: the last is 2^-12 of the whole budget
_SAFE = 1 - 2.0**-30  # of what is left: its square root was rounded
_KEEPS = (1 + 2.0**-40) * (1 + 2.0**-52)  # a leak is written as a double

Events = tuple[tuple[Event, int], ...]


def settled(spent: Spent, charge: Charge) -> tuple[Spent, Charge]:
    """What is spent after a charge, and the charge as it is added up.

    Raises:
        BudgetExceededError: it does not fit, as it stands or covered by a Gaussian.
    """
    one = covered(charge, spent)
    if one != charge:
        with contextlib.suppress(BudgetExceededError):
            return spent.spend(one), one
    try:
        return spent.spend(charge), charge
    except BudgetExceededError as refusal:
        raise BudgetExceededError(f"{_why(spent, charge)}{refusal}") from None


def _why(spent: Spent, charge: Charge) -> str:
    """What a refusal does not say of events that a Gaussian might have covered."""
    labels = {event.label for event, _ in charge.events if event.approximate_claim() is None}
    uncovered = sorted(labels - {event.label for event, _ in charge.events if event.gaussian_mu()})
    if not uncovered or not isinstance(spent.composed, GaussianFilter):
        return ""
    if spent.failures < spent.total.failures:
        return f"{', '.join(uncovered)}: the Gaussian that covers it is more than what is left; "
    return f"{', '.join(uncovered)} could be covered if delta were left for failures; "


def covered(charge: Charge, spent: Spent) -> Charge:
    """The charge as one Gaussian where that keeps the ledger's sum open; else the charge itself."""
    filtered = spent.composed
    adjacencies = {event.adjacency for event, _ in charge.events}
    if not isinstance(filtered, GaussianFilter) or len(adjacencies) > 1:
        return charge
    if all(event.gaussian_mu() is not None for event, _ in charge.events):
        return charge
    if spent.pure is not None and all(
        event.pure_epsilon() is not None for event, _ in charge.events
    ):
        return charge  # stays within the sum of pure epsilons too
    kept = float(dyadic(spent.total.failures) - spent.failures)
    if not kept > 0:
        return charge
    lowered = [(*spent.total.lowered(event), count) for event, count in charge.events]
    events = tuple((event, count) for event, _, count in lowered)
    claimed = math.fsum(failure * count for _, failure, count in lowered) * _KEEPS
    (adjacency,) = adjacencies
    found: list[tuple[float, float]] = []
    for share in SHARES:
        leak = 4.0 ** math.floor(math.log(kept / share, 4.0))
        mu = _mu(events, leak, filtered, adjacency)
        if mu is not None:
            found.append((mu, leak))
            if len(found) > 1 and mu > found[-2][0] * _ALIKE:
                break  # a still larger leak would hardly cost less
    if not found:
        return charge
    left = filtered.mu_left()
    mu, leak = min(found, key=lambda one: (one[0] / left) ** 2 + one[1] / kept)
    event = GaussianEvent(mu=mu, adjacency=adjacency)
    failures = (charge.failures + claimed + leak) * _KEEPS
    return attrs.evolve(charge, events=((event, 1),), failures=failures)


def _mu(
    events: Events, leak: float, filtered: GaussianFilter, adjacency: Adjacency
) -> float | None:
    """Of the Gaussian that the events cost; None where none is known."""
    whole, left = filtered.start().mu_left() ** 2, filtered.mu_left() ** 2 * _SAFE
    for level in range(1, _LEVELS + 1):
        rest = whole * 2.0 ** (-level / 2)
        if rest >= left:
            continue
        try:
            cost = smoothed_cost(events, leak, rest, adjacency=adjacency)
        except NoClaimError:
            return None  # nor for a smaller rest
        mu = up(math.sqrt(cost), roundings=2)
        if rest + mu * mu <= left:
            return mu
        if mu * mu > left:
            return None  # a smaller rest would only cost more
    with contextlib.suppress(NoClaimError):
        return gaussian_cover(events, leak, adjacency=adjacency)
    return None
