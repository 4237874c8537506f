"""Charges of any kind as one Gaussian, so that a ledger adds up mixed releases in one sum.

A ledger whose notion is `gaussian` and that keeps a part of delta for failures has room for leaks.
A charge with events that are not Gaussian (counts with discrete noise, sampled training runs,
choices by Rényi divergences) is then stored as one Gaussian, and the leak is one of its failures.
The Gaussian is what the list costs a budget of which more is left (`smoothed_cost`); at the end,
where little is left, the one that covers the list by itself (`gaussian_cover`). The list of one
charge is fixed before its records are opened; charges may be chosen from earlier answers, as for
every Gaussian (Smith & Thakurta 2022, arXiv:2210.17520).

What is left is divided by powers of sqrt 2, and leaks are powers of 4, so that equal charges are
computed once. Where a ledger keeps a part of delta for tilted leaks, a list costs less, but no less
than its divergence says (`dpcore.accounting.tilted_leak`).
"""

import contextlib
import math

import attrs

from dpcore.accounting.exact import dyadic
from dpcore.accounting.filters import BudgetExceededError, GaussianFilter
from dpcore.accounting.gaussian_cover import gaussian_cover
from dpcore.accounting.marginal_cost import smoothed_cost
from dpcore.accounting.tilted_leak import Tilt, least_squares
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
TILTED = (512, 64, 16)  # the same of tilted leaks
_WORTH = 0.1  # of squares: what the same part of tilted leaks is worth

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
    tilt = _Tilting.of(spent, events)
    tilts = [None] if tilt is None or not tilt.kept > 0 else [tilt.kept / one for one in TILTED]
    found: list[tuple[float, _Way]] = []
    for tilted in tilts:
        before = math.inf
        for share in SHARES:
            way = _Way(kept / share, tilted)
            mu = _mu(events, way, filtered, adjacency, tilt)
            if mu is None:
                continue
            found.append((mu, way))
            if mu > before * _ALIKE:
                break  # a still larger leak would hardly cost less
            before = mu
    if not found:
        return charge
    left = filtered.mu_left()

    def used(one: tuple[float, _Way]) -> float:
        mu, way = one
        more = 0.0 if tilt is None or way.tilted is None else _WORTH * way.tilted / tilt.kept
        return (mu / left) ** 2 + way.leak / kept + more

    mu, way = min(found, key=used)
    event = GaussianEvent(mu=mu, adjacency=adjacency)
    failures = (charge.failures + claimed + way.leak) * _KEEPS
    tilted = 0.0 if way.tilted is None else way.tilted
    return attrs.evolve(charge, events=((event, 1),), failures=failures, tilted=tilted)


def _power(most: float) -> float:
    """The largest power of 4 up to it."""
    return 4.0 ** math.floor(math.log(most, 4.0))


@attrs.frozen
class _Way:
    """How large leaks may be, as powers of 4."""

    leak: float = attrs.field(converter=_power)
    tilted: float | None = attrs.field(converter=attrs.converters.optional(_power))


@attrs.frozen
class _Tilting:
    """A ledger's tilted leaks, what it keeps for them, and the least that a list then costs."""

    tilt: Tilt
    kept: float
    least: float

    @classmethod
    def of(cls, spent: Spent, events: Events) -> "_Tilting | None":
        """None where a ledger has none; the least holds also where none is left."""
        tilt, kept = spent.total.tilt, float(dyadic(spent.total.tilted) - spent.tilted)
        if tilt is None:
            return None
        return cls(tilt, kept, least_squares(events, tilt.slope))


def _mu(
    events: Events,
    way: _Way,
    filtered: GaussianFilter,
    adjacency: Adjacency,
    tilting: _Tilting | None,
) -> float | None:
    """Of the Gaussian that the events cost; None where none is known."""
    whole, left = filtered.start().mu_left() ** 2, filtered.mu_left() ** 2 * _SAFE
    least = 0.0 if tilting is None else tilting.least
    for level in range(1, _LEVELS + 1):
        rest = whole * 2.0 ** (-level / 2)
        if rest >= left:
            continue
        if not least <= left:
            break
        tilted = None
        if tilting is not None and way.tilted is not None:
            tilted = tilting.tilt.leak(way.tilted, rest)
        try:
            cost = smoothed_cost(events, way.leak, rest, adjacency=adjacency, tilted=tilted)
        except NoClaimError:
            return None  # nor for a smaller rest
        mu = up(math.sqrt(max(cost, least)), roundings=4)
        if rest + mu * mu <= left:
            return mu
        if mu * mu > left:
            return None  # a smaller rest would only cost more
    with contextlib.suppress(NoClaimError):
        return gaussian_cover(events, way.leak, adjacency=adjacency)
    return None
