r"""Charges as (epsilon, delta) claims, which a ledger adds up plainly.

A ledger has some epsilon e and some delta d left, and a charge is chosen from all earlier answers.
If it is (e_1, d_1)-DP with e_1 <= e and d_1 <= d, then it and whatever the ledger lets through
after it are (e, d)-DP. *Proof*, by induction over what follows. Let M be the charge with laws P, Q
on neighbours, S a set of histories, S_y those that go on after the answer y, and

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

import functools
import math

import attrs
import scipy

from dpcore.accounting.exact import dyadic
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.events.randomized_response import ApproximateEvent
from dpcore.ledger.charge import Charge
from dpcore.ledger.total import Spent

_LEAST = 2.0**-60  # an epsilon, and a share: a claim needs some of both
_FAR = 1e9  # nats: where there is no claim


def claimed(charge: Charge, spent: Spent) -> Charge:
    """The charge with one claim for all events that have none; itself where that is impossible.

    Events with a pure epsilon or a claim of their own stay as they are. The claim is at the delta
    that the module's rule names. Whether it fits is for the sums to say.
    """
    unclaimed = tuple(pair for pair in charge.events if pair[0].approximate_claim() is None)
    adjacencies = {event.adjacency for event, _ in unclaimed}
    if len(adjacencies) != 1 or spent.pure is None:
        return charge
    # What the other events take is taken whatever the share.
    lowered = [(*spent.total.lowered(event), count) for event, count in charge.events]
    epsilon = math.fsum((event.pure_epsilon() or 0.0) * count for event, _, count in lowered)
    delta = charge.failures + math.fsum(failure * count for _, failure, count in lowered)
    epsilon_left = float(dyadic(spent.total.epsilon) - spent.pure.spent_epsilon)
    delta_left = float(dyadic(spent.total.failures) - spent.failures)
    if not (delta_left > delta and epsilon_left > epsilon):
        return charge
    try:
        claim = _claim(unclaimed, *adjacencies, (epsilon_left, delta_left), (epsilon, delta))
    except NoClaimError:
        return charge
    kept = tuple(pair for pair in charge.events if pair not in unclaimed)
    return attrs.evolve(charge, events=(*kept, (claim, 1)))


@functools.lru_cache(maxsize=64)  # a pure function: a charge is priced before it is spent
def _claim(
    events: tuple[tuple[Event, int], ...],
    adjacency: Adjacency,
    budget: tuple[float, float],
    fixed: tuple[float, float],
) -> ApproximateEvent:
    """The events as one claim, at the least share of the budget that holds it and `fixed`."""
    accountant = AutoAccountant(adjacency).compose_all(events)

    # The delta is rounded as it may be: the epsilon is what holds at that very delta.
    def delta_at(share: float) -> float:
        return share * budget[1] - fixed[1]

    def excess(share: float) -> float:
        if not delta_at(share) > 0:
            return _FAR
        try:
            epsilon = accountant.epsilon(delta_at(share)).upper
        except NoClaimError:
            return _FAR
        return min(_FAR, fixed[0] + epsilon - share * budget[0])

    # Where all that is left does not suffice, or just does, the claim is at all of it.
    share = 1.0
    if excess(1.0) < 0:
        below = _LEAST if excess(_LEAST) > 0 else 0.0
        share = scipy.optimize.brentq(excess, below, 1.0, rtol=2.0**-50) if below else _LEAST
    epsilon = accountant.epsilon(delta_at(share)).upper
    return ApproximateEvent(
        epsilon=max(epsilon, _LEAST), delta=delta_at(share), adjacency=adjacency
    )
