"""The certified privacy curve of a whole run, from the sensitivities and the noise in its lock."""

import contextlib
from collections.abc import Mapping

import numpy as np

from dpcore.accountant import Accountant
from dpcore.bound import Components
from dpcore.claims.accounting.certainty import Curve
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.renyi import ZcdpAccountant
from dpcore.claims.plan.planned_query import compose, failure_over_randomness
from dpcore.claims.plan.schedule import Schedule
from dpcore.errors import NoClaimError, ReplayError, need, shown
from dpcore.guarantee import Guarantee, Status

_SMALL = [float(f"{digit}e-{power}") for power in range(12, 2, -1) for digit in (1, 3)]
_LARGE = [hundredths / 100 for hundredths in range(1, 100, 3)]
_ROUNDING = 1e-6  # of a stated epsilon: another processor composes as much more at most
_CORRECTION = "dpcore check on the spec says what is right"


def require_covered(
    schedule: Schedule, guarantee: Guarantee, components: Components, versions: Mapping[str, str]
) -> str:
    """Compose the locked events at the stated delta, and compare epsilon with the stated one.

    Args:
        guarantee: What the lock states; nothing is compared where that is no guarantee.
        components: What the schedule is made of here.
        versions: What wrote the lock.

    Returns:
        Why the stated epsilon cannot be confirmed, in words; empty where it is.

    Raises:
        ReplayError: `guarantee` is less than the noise costs at least; or, where these versions of
            accountant and mechanisms wrote it, less than what they compose now.
    """
    if guarantee.status is Status.NONE:
        return ""
    request, queries = schedule.request, schedule.queries
    budget, claim, limit = request.budget, "epsilon", guarantee.epsilon
    try:
        composed, delta = _compose_covered(schedule, guarantee)
        upper_end = composed.epsilon(delta).upper
        # Of a sweep each point meets the target by itself.
        if budget.rho is not None and len(request.groups) == 1 and upper_end <= limit:
            claim, limit = f"rho = {budget.rho:.6g}, which implies epsilon", budget.epsilon
            upper_end = compose(queries, ZcdpAccountant(request.adjacency)).epsilon(delta).upper
        if upper_end <= limit * (1 + _ROUNDING):
            return ""
        reason = f"its noise is composed to epsilon = {upper_end:.6g}"
    except NoClaimError as refusal:
        reason = f"no epsilon can be composed from its noise ({refusal.message})"
    reason = f"the lock states {claim} = {limit:.6g}, and {reason}"
    # Sensitivities are the lock's: no version of a bound moves what is composed from them.
    parts = (
        request.accountant,
        *((planned_query.mechanism, planned_query.query.sampling) for planned_query in queries),
    )
    here = components.distributions(parts)
    packages = [
        f"{name} {shown(versions.get(name))}" for name in here if here[name] != versions.get(name)
    ]
    need(packages, ReplayError, f"{reason}: {_CORRECTION}")
    return f"not priced here: {reason} by other versions than wrote it ({', '.join(packages)})"


def certified(schedule: Schedule, guarantee: Guarantee) -> Curve:
    """Return upper ends of epsilon over delta, as this version composes the locked events.

    The probability that a bound fails over the public randomness is part of every delta.

    Raises:
        ReplayError: `guarantee` is less than the noise costs at least.
        NoClaimError: no epsilon can be stated at any delta.
    """
    composed, remaining_delta = _compose_covered(schedule, guarantee)
    gamma = failure_over_randomness(schedule.queries)
    upper_ends = {}
    for delta in sorted({*_SMALL, *_LARGE, *([remaining_delta] if remaining_delta > 0 else [])}):
        # `nextafter` twice, on gamma and on the sum, so the float is above the real delta + gamma.
        total_delta = (
            delta if gamma == 0.0 else float(np.nextafter(delta + np.nextafter(gamma, 1.0), 1.0))
        )
        # At very small delta some events state no epsilon at all; the curve then begins later.
        with contextlib.suppress(NoClaimError):
            if total_delta < 1.0:
                upper_ends[guarantee.delta if delta == remaining_delta else total_delta] = (
                    composed.epsilon(delta).upper
                )
    need(upper_ends, NoClaimError, "no epsilon can be stated at any delta")
    return Curve(deltas=np.array([*upper_ends]), epsilons=np.array([*upper_ends.values()]))


def _compose_covered(schedule: Schedule, guarantee: Guarantee) -> tuple[Accountant, float]:
    """Return the locked events composed, and delta less the failures over the randomness.

    Raises:
        ReplayError: `guarantee` is less than the noise costs at least.
        NoClaimError: no epsilon can be stated there.
    """
    request = schedule.request
    accountant = request.accountant
    # Without a named accountant each delta takes the tightest bound that any method certifies.
    composed = compose(
        schedule.queries, AutoAccountant(request.adjacency) if accountant is None else accountant
    )
    # Sensitivity bounds may fail over the public randomness with probability gamma in all, and a
    # union bound adds gamma to every delta.
    remaining_delta = request.budget.delta_with(failure_over_randomness(schedule.queries))
    # A certified lower end above the stated epsilon proves the lock wrong, whatever the rounding.
    lower_bound = composed.epsilon(remaining_delta).lower
    need(
        lower_bound <= guarantee.epsilon,
        ReplayError,
        f"the lock states epsilon = {guarantee.epsilon:.6g}, and its noise costs at least "
        f"{lower_bound:.6g}: {_CORRECTION}",
    )
    return composed, remaining_delta
