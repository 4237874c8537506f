"""Calibration: the least noise that meets a budget, for any number of queries with shares."""

import math
from collections.abc import Callable, Sequence

import attrs

from dpcore.accountant import Accountant
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.mechanism import Mechanism
from dpcore.query import Query
from dpcore.sensitivity import Sensitivity

_LOWEST, _HIGHEST = -80.0, 80.0  # log2 of the scale factor t


@attrs.frozen(kw_only=True, eq=False)
class Ask:
    """One planned query with its bound and mechanism; `share` is relative to all others.

    A mechanism whose free field is set is explicit: composed as it is.
    """

    query: Query
    sensitivity: Sensitivity
    mechanism: Mechanism
    share: float

    def event(self) -> Event:
        """What one ask costs."""
        return self.mechanism.event(self.query, self.sensitivity)


def compose(asks: Sequence[Ask], accountant: Accountant) -> Accountant:
    """Every ask, as often as it may be asked."""
    for ask in asks:
        accountant = accountant.compose(ask.event(), ask.query.at_most)
    return accountant


def calibrate(
    asks: Sequence[Ask], accountant: Accountant, epsilon: float, delta: float
) -> tuple[Ask, ...]:
    r"""Set every free mechanism so that the whole composition meets (epsilon, delta).

    An ask of query q gets scale :math:`t\sqrt{\text{at\_most}_q / w_q}`, with w the shares
    normalised over the free ones, for the least t found by bisection (to the last bit of log2 t)
    at which the composed upper end is at most epsilon. For Gaussians the composition then has
    mu = 1/t whatever the shares.

    Args:
        asks: All queries of all releases.
        accountant: Empty, or with what is already spent.
        epsilon, delta: The target.

    Raises:
        NoClaimError: no noise meets the budget, or explicit noise alone exceeds it.
    """
    weights = [ask.share for ask in asks if not ask.mechanism.calibrated]
    total = math.fsum(weights)

    def at(log_t: float) -> tuple[Ask, ...]:
        t = 2.0**log_t
        placed = []
        for ask in asks:
            if ask.mechanism.calibrated:
                placed.append(ask)
                continue
            scale = t * math.sqrt(ask.query.at_most * total / ask.share)
            mechanism = ask.mechanism.at(scale, ask.query, ask.sensitivity)
            placed.append(attrs.evolve(ask, mechanism=mechanism))
        return tuple(placed)

    def meets(placed: Sequence[Ask]) -> bool:
        try:
            return compose(placed, accountant).epsilon(delta).upper <= epsilon
        except NoClaimError:
            return False

    if not weights:
        return _explicit(asks, meets, accountant, epsilon, delta)
    below, above = _LOWEST, _HIGHEST
    if not meets(at(above)):
        raise NoClaimError(
            f"no noise meets the budget epsilon={epsilon!r}, delta={delta!r}"
            + _reason(at(above), accountant, delta)
        )
    while True:
        middle = 0.5 * (below + above)
        if not below < middle < above:
            return at(above)
        if meets(at(middle)):
            above = middle
        else:
            below = middle


def _explicit(
    asks: Sequence[Ask],
    meets: Callable[[Sequence[Ask]], bool],
    accountant: Accountant,
    epsilon: float,
    delta: float,
) -> tuple[Ask, ...]:
    """All noise is given: the budget is a check."""
    if not meets(asks):
        raise NoClaimError(
            f"the explicit noise exceeds the budget epsilon={epsilon!r}, delta={delta!r}"
            + _reason(asks, accountant, delta)
        )
    return tuple(asks)


def _reason(asks: Sequence[Ask], accountant: Accountant, delta: float) -> str:
    """What the composition does cost, or why it has no price."""
    try:
        cost = compose(asks, accountant).epsilon(delta).upper
    except NoClaimError as refusal:
        return f": {refusal}"
    return f": it costs epsilon={cost!r} at that delta"
