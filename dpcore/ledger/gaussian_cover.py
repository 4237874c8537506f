r"""`gaussian_cover`: state charges of any kind as one Gaussian, or as claims, which a ledger adds.

A ledger whose notion is `gaussian` and that keeps a part of delta for failures has room for leaks.
A charge with events that are not Gaussian (counts with discrete noise, sampled training runs,
choices by Rényi divergences) is then stored as one Gaussian, and the leak is one of its failures.
The Gaussian is what the list costs a budget of which more is left (`smoothed_cost`); at the end,
where little is left, the one that covers the list by itself (`gaussian_cover`). The list of one
charge is fixed before its records are opened; charges may be chosen from earlier answers, as for
every Gaussian (Smith & Thakurta 2022, arXiv:2210.17520).

What is left is divided by powers of sqrt 2, and leaks are powers of 4, so that equal charges are
computed once. Where a ledger keeps a part of delta for tilted leaks, a list costs less, but no less
than its divergence says (`dpcore.ledger.tilted_leak`).

Claims (epsilon, delta) are added up plainly. A ledger has some epsilon e and some delta d left, and
a charge is chosen from all earlier answers. If it is (e_1, d_1)-DP with e_1 <= e and d_1 <= d, then
it and whatever the ledger lets through after it are (e, d)-DP. *Proof*, by induction over what
follows. Let M be the charge with laws P, Q on neighbours, S a set of histories, S_y those that go
on after the answer y, and

.. math:: f(y) = \min\{1,\; e^{e-e_1} Q_y(S_y)\} \in [0, 1].

What follows y has e - e_1 and d - d_1 left, so that P_y(S_y) <= f(y) + d - d_1: this is the claim
for one charge less, and where nothing follows, it is trivial. Hence

.. math:: P(S) \le E_P[f] + d - d_1 \le e^{e_1} E_Q[f] + d_1 + d - d_1 \le e^{e}\,Q(S) + d.

The middle step is the claim of M, which holds for functions into [0, 1] as it does for sets. Which
M, e_1 and d_1 are asked for may depend on the history, and so may the end (Rogers, Roth, Ullman &
Vadhan 2016, arXiv:1605.08294, state it as a filter).

A charge without a claim of its own has one at every delta_1: the epsilon_1 at which the core's
accountants state it. The rule is public: **the charge takes the same share t of the epsilon and of
the delta that are left**, by the least t for which it is (t e, t d)-DP. So n releases, each of them
calibrated to a part 1/n of a ledger's epsilon and delta, all fit. Any other t would be as sound.
"""

import contextlib
import functools
import math

import attrs
import scipy

from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.randomized_response import ApproximateEvent
from dpcore.errors import NoClaimError
from dpcore.event import Event, label_of
from dpcore.ledger.charge import Charge
from dpcore.ledger.dyadic import dyadic
from dpcore.ledger.event_cover import gaussian_cover
from dpcore.ledger.filters import BudgetExceededError, GaussianFilter
from dpcore.ledger.marginal_cost import smoothed_cost
from dpcore.ledger.tilted_leak import Tilt, least_squares
from dpcore.ledger.total import Spent
from dpcore.rounding import up
from dpcore.shown import in_digits

FRACTIONS = (256, 16, 4)
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
    """Return what is spent after a charge, and the charge as it is added up.

    Raises:
        BudgetExceededError: it does not fit, as it is or covered by a Gaussian.
    """
    cover = covered(charge, spent)
    # The cover keeps the sum open to every kind of event, so it is tried first. Where it does not
    # fit, the charge itself still may: by pure epsilons, or as the only one.
    if cover != charge:
        with contextlib.suppress(BudgetExceededError):
            return spent.spend(cover), cover
    try:
        return spent.spend(charge), charge
    except BudgetExceededError as refusal:
        # The sum of pure epsilons and leaks takes any charge as an (epsilon, delta) claim.
        claim = claimed(charge, spent)
        if claim != charge:
            with contextlib.suppress(BudgetExceededError):
                return spent.spend(claim), claim
        raise BudgetExceededError(f"{_explain_refusal(spent, charge, claim)}{refusal}") from None


def _explain_refusal(spent: Spent, charge: Charge, claim: Charge) -> str:
    """Return what a refusal should add on events that a Gaussian or a claim might have covered."""
    if spent.composed is None and spent.pure is not None:
        return _explain_claim(spent, charge, claim)
    labels = {label_of(event) for event, _ in charge.events if event.claims.approximate is None}
    uncovered = sorted(labels - {label_of(event) for event, _ in charge.events if event.claims.mu})
    if not uncovered or not isinstance(spent.composed, GaussianFilter):
        return ""
    return ", ".join(uncovered) + (
        ": the Gaussian that covers it is more than what is left; "
        if spent.failures < spent.total.failures
        else " could be covered if delta were left for failures; "
    )


def _explain_claim(spent: Spent, charge: Charge, claim: Charge) -> str:
    """Why a charge is no (epsilon, delta) claim that is left, and what to set; or nothing."""
    if claim != charge:
        event = claim.events[-1][0]
        epsilon, delta = event.claims.approximate or (math.inf, 0.0)
        return (
            f"as an (epsilon, delta) claim the charge needs epsilon="
            f"{in_digits(epsilon, direction=1)} at delta={in_digits(delta, direction=1)}; "
        )
    if all(event.claims.approximate is not None for event, _ in charge.events):
        return ""
    way_out = (
        "a new ledger keeps more of it with the notion basic, or with more failures"
        if spent.total.delta > 0
        else "create a ledger with a delta > 0 for them"
    )
    return (
        f"what has no pure epsilon is charged at a delta of its own, and none is left; {way_out}; "
    )


def covered(charge: Charge, spent: Spent) -> Charge:
    """Return the charge as one Gaussian where that keeps the ledger's sum open; else the charge
    itself.

    A ledger of the notion `basic` keeps its sum open by a claim instead.
    """
    composed_filter = spent.composed
    if spent.total.notion == "basic":
        return claimed(charge, spent)
    adjacencies = {event.adjacency for event, _ in charge.events}
    if not isinstance(composed_filter, GaussianFilter) or len(adjacencies) > 1:
        return charge
    # Gaussians add up as they are; pure events stay within the sum of pure epsilons too.
    if all(event.claims.mu is not None for event, _ in charge.events) or (
        spent.pure is not None and all(event.claims.pure is not None for event, _ in charge.events)
    ):
        return charge
    # A cover costs a leak. Without room for one, the list cannot be covered.
    room = float(dyadic(spent.total.failures) - spent.failures)
    if not room > 0:
        return charge
    # An (epsilon_0, delta_0) claim is a pure event from here on, and its delta_0 is a leak.
    terms = [(*spent.total.lowered(event), count) for event, count in charge.events]
    events = tuple((event, count) for event, _, count in terms)
    claim_leaks = math.fsum(failure * count for _, failure, count in terms) * _KEEPS
    (adjacency,) = adjacencies
    tilt = _Tilting.of(spent, events)
    tilts = (
        [None] if tilt is None or not tilt.room > 0 else [tilt.room / option for option in TILTED]
    )
    candidates: list[tuple[float, _Way]] = []
    # A larger leak buys a smaller Gaussian. Sizes are tried in order until more leak hardly helps.
    for tilted in tilts:
        previous_mu = math.inf
        for fraction in FRACTIONS:
            way = _Way(room / fraction, tilted)
            if (mu := _covering_mu(events, way, composed_filter, adjacency, tilt)) is None:
                continue
            candidates.append((mu, way))
            if mu > previous_mu * _ALIKE:
                break  # a still larger leak would hardly cost less
            previous_mu = mu
    if not candidates:
        return charge

    def weigh(option: tuple[float, _Way]) -> float:
        mu, way = option
        tilted_use = 0.0 if tilt is None or way.tilted is None else _WORTH * way.tilted / tilt.room
        return (mu / composed_filter.mu_left()) ** 2 + way.leak / room + tilted_use

    # All candidates are sound: which one is taken is a matter of economy only.
    mu, way = min(candidates, key=weigh)
    return attrs.evolve(
        charge,
        events=((GaussianEvent(mu=mu, adjacency=adjacency), 1),),
        failures=(charge.failures + claim_leaks + way.leak) * _KEEPS,
        tilted=way.tilted or 0.0,
    )


def _power(upper_bound: float) -> float:
    """Return the largest power of 4 that is no larger than the bound."""
    return 4.0 ** math.floor(math.log(upper_bound, 4.0))


@attrs.frozen
class _Way:
    """How large leaks may be, as powers of 4."""

    leak: float = attrs.field(converter=_power)
    tilted: float | None = attrs.field(converter=attrs.converters.optional(_power))


@attrs.frozen
class _Tilting:
    """A ledger's tilted leaks, the delta left for them, and the least squares a list costs."""

    tilt: Tilt
    room: float
    lower_bound: float

    @classmethod
    def of(cls, spent: Spent, events: Events) -> "_Tilting | None":
        """Return a ledger's tilted leaks; None where it has none.

        The lower bound holds for events also where nothing is left for further tilted leaks.
        """
        tilt, room = spent.total.tilt, float(dyadic(spent.total.tilted) - spent.tilted)
        return None if tilt is None else cls(tilt, room, least_squares(events, tilt.slope))


def _covering_mu(
    events: Events,
    way: _Way,
    budget: GaussianFilter,
    adjacency: Adjacency,
    tilting: _Tilting | None,
) -> float | None:
    """mu of the Gaussian that the events are charged as; None where no cover is known."""
    total, squares = budget.start().mu_left() ** 2, budget.mu_left() ** 2 * _SAFE
    lower_bound = 0.0 if tilting is None else tilting.lower_bound
    # The more is assumed to stay after the list, the less the list costs; but so much must stay.
    # Levels go down from a large remainder until cost and remainder fit together.
    for level in range(1, _LEVELS + 1):
        remainder = total * 2.0 ** (-level / 2)
        if remainder >= squares:
            continue
        # No cost that fits suffices for tilted leaks. The plain cover needs no such bound.
        if not lower_bound <= squares:
            break
        tilted = (
            None
            if tilting is None or way.tilted is None
            else tilting.tilt.leak(way.tilted, remainder)
        )
        try:
            cost = smoothed_cost(events, way.leak, remainder, adjacency=adjacency, tilted=tilted)
        except NoClaimError:
            return None  # nor for a smaller rest
        mu = up(math.sqrt(max(cost, lower_bound)), roundings=4)
        if remainder + mu * mu <= squares:
            return mu
        if mu * mu > squares:
            return None  # a smaller rest would only cost more
    # At the end of a budget the list is covered by itself, whatever follows it.
    with contextlib.suppress(NoClaimError):
        return gaussian_cover(events, way.leak, adjacency=adjacency)
    return None


_LEAST = 2.0**-60  # an epsilon, and a share: a claim needs some of both
_CUTOFF = 1e9  # nats: where there is no claim


def claimed(charge: Charge, spent: Spent) -> Charge:
    """Return the charge with one claim for all events that have none; itself where that is
    impossible.

    Events with a pure epsilon or a claim of their own stay as they are. The claim is at the delta
    that the module's rule names. Whether it fits is for the sums to say.
    """
    unclaimed = tuple(pair for pair in charge.events if pair[0].claims.approximate is None)
    adjacencies = {event.adjacency for event, _ in unclaimed}
    if len(adjacencies) != 1 or spent.pure is None:
        return charge
    # What the other events take is taken whatever the share.
    lowered = [(*spent.total.lowered(event), count) for event, count in charge.events]
    epsilon = math.fsum((event.claims.pure or 0.0) * count for event, _, count in lowered)
    delta = charge.failures + math.fsum(failure * count for _, failure, count in lowered)
    epsilon_left = float(dyadic(spent.total.epsilon) - spent.pure.spent_epsilon)
    delta_left = float(dyadic(spent.total.failures) - spent.failures)
    if not (delta_left > delta and epsilon_left > epsilon):
        return charge
    try:
        claim = _claim(unclaimed, *adjacencies, (epsilon_left, delta_left), (epsilon, delta))
    except NoClaimError:
        return charge
    events = tuple(pair for pair in charge.events if pair not in unclaimed)
    return attrs.evolve(charge, events=(*events, (claim, 1)))


@functools.lru_cache(maxsize=64)  # a pure function: a charge is priced before it is spent
def _claim(
    events: tuple[tuple[Event, int], ...],
    adjacency: Adjacency,
    budget: tuple[float, float],
    fixed: tuple[float, float],
) -> ApproximateEvent:
    """Return the events as one claim, at the least fraction of the budget that holds it and
    `fixed`.
    """
    accountant = AutoAccountant(adjacency).compose_all(events)

    # The delta is rounded as it may be: the epsilon is what holds at that very delta.
    def delta_at(fraction: float) -> float:
        return fraction * budget[1] - fixed[1]

    def excess(fraction: float) -> float:
        if not delta_at(fraction) > 0:
            return _CUTOFF
        try:
            epsilon = accountant.epsilon(delta_at(fraction)).upper
        except NoClaimError:
            return _CUTOFF
        return min(_CUTOFF, fixed[0] + epsilon - fraction * budget[0])

    # Where all that is left does not suffice, or just does, the claim is at all of it.
    fraction = 1.0
    if excess(1.0) < 0:
        below = _LEAST if excess(_LEAST) > 0 else 0.0
        fraction = scipy.optimize.brentq(excess, below, 1.0, rtol=2.0**-50) if below else _LEAST
    epsilon = accountant.epsilon(delta_at(fraction)).upper
    return ApproximateEvent(
        epsilon=max(epsilon, _LEAST), delta=delta_at(fraction), adjacency=adjacency
    )
