"""The certified privacy curve of a whole run, from the sensitivities and the noise in its lock."""

from __future__ import annotations

import numpy as np

from dpcore.accounting.certainty import Curve
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.errors import NoClaimError, ReplayError
from dpcore.guarantee import Guarantee
from dpcore.plan.ask import compose, failure_over_coins
from dpcore.running.schedule import Schedule

_SMALL = [float(f"{digit}e-{power}") for power in range(12, 2, -1) for digit in (1, 3)]
_LARGE = [hundredths / 100 for hundredths in range(1, 100, 3)]


def certified(schedule: Schedule, stated: Guarantee) -> Curve:
    """Upper ends of epsilon over delta, as this version composes the locked events.

    The probability that a bound fails over the public coins is part of every delta.

    Raises:
        ReplayError: `stated` is less than the noise costs at least.
        NoClaimError: no epsilon can be stated at any delta.
    """
    request = schedule.request
    empty = request.accountant
    composed = compose(schedule.asks, AutoAccountant(request.adjacency) if empty is None else empty)
    gamma = failure_over_coins(schedule.asks)
    left = request.budget.left_beside(gamma)
    least = composed.epsilon(left).lower
    if least > stated.epsilon:
        raise ReplayError(
            f"the lock states epsilon = {stated.epsilon:.6g}, and its noise costs at least "
            f"{least:.6g}: dpcore check on the spec tells what is right"
        )
    found = {}
    for one in sorted({*_SMALL, *_LARGE, *([left] if left > 0 else [])}):
        total = one if gamma == 0.0 else float(np.nextafter(one + np.nextafter(gamma, 1.0), 1.0))
        if total >= 1.0:
            continue
        try:
            found[stated.delta if one == left else total] = composed.epsilon(one).upper
        except NoClaimError:
            continue
    if not found:
        raise NoClaimError("no epsilon can be stated at any delta")
    return Curve(deltas=np.array([*found]), epsilons=np.array([*found.values()]))
