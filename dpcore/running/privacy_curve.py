"""The certified privacy curve of a whole run, from the sensitivities and the noise in its lock."""

import contextlib

import numpy as np

from dpcore.accounting.certainty import Curve
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.errors import NoClaimError, ReplayError, need
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
    accountant = request.accountant
    # Without a named accountant each delta takes the tightest bound that any method certifies.
    composed = compose(
        schedule.asks, AutoAccountant(request.adjacency) if accountant is None else accountant
    )
    # Sensitivity bounds may fail over the public coins with probability gamma in all, and a union
    # bound adds gamma to every delta.
    gamma = failure_over_coins(schedule.asks)
    remaining_delta = request.budget.delta_beside(gamma)
    # A certified lower end above the stated epsilon proves the lock wrong, whatever the rounding.
    lower_bound = composed.epsilon(remaining_delta).lower
    need(
        lower_bound <= stated.epsilon,
        ReplayError,
        f"the lock states epsilon = {stated.epsilon:.6g}, and its noise costs at least "
        f"{lower_bound:.6g}: dpcore check on the spec tells what is right",
    )
    upper_ends = {}
    for delta in sorted({*_SMALL, *_LARGE, *([remaining_delta] if remaining_delta > 0 else [])}):
        # `nextafter` twice, on gamma and on the sum, so the float is above the real delta + gamma.
        total_delta = (
            delta if gamma == 0.0 else float(np.nextafter(delta + np.nextafter(gamma, 1.0), 1.0))
        )
        # At very small delta some events state no epsilon at all; the curve then begins later.
        with contextlib.suppress(NoClaimError):
            if total_delta < 1.0:
                upper_ends[stated.delta if delta == remaining_delta else total_delta] = (
                    composed.epsilon(delta).upper
                )
    need(upper_ends, NoClaimError, "no epsilon can be stated at any delta")
    return Curve(deltas=np.array([*upper_ends]), epsilons=np.array([*upper_ends.values()]))
