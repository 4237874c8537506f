"""The price of pricing itself: how much a plan's calibration computes, counted before it starts.

Calibration composes all events about ten times, and looks at each distinct one's privacy curve at
some thousands of points. All exactly Gaussian events are one event to every accountant. A mixture
costs as much as the curves that it is a mixture of (`Event.atoms`). The count follows from the
public spec alone and is the same on every machine; it is an estimate, to within a small factor.
"""

import contextlib
from collections.abc import Iterable, Sequence

from dpcore.claims.plan.cost_statement import Limits
from dpcore.claims.plan.planned_query import Ask
from dpcore.claims.plan.request import Request
from dpcore.claims.pricing.calibration import at_first_guess
from dpcore.errors import NoClaimError, ParameterError, ResourceError, below
from dpcore.event import Event
from dpcore.shown import in_powers

MOST_PRICING = 2 * 10**9
"""Multiplications that pricing may need where `work` does not allow more: seconds."""
_POINTS = 10_000  # of one event's curve, in all compositions of a calibration
_VALUE = 50  # multiplications of a Gaussian curve at one point
_BESIDE = 32  # what an event costs beside the values of its curve, in these


def require_quick(
    request: Request, groups: Iterable[Sequence[tuple[int, Ask]]], limits: Limits
) -> int:
    """The multiplications, if they are no more than the limit.

    Args:
        groups: What is calibrated together: each ask with the number of its release.

    Raises:
        ResourceError: more than the limit, at the release that reaches it.
    """
    limit, total, culprit = max(MOST_PRICING, limits.work or 0), 0, None
    for group in groups:
        kinds: set[Event | None] = set()
        for number, ask in _scale_group(request, group):
            for kind in _kinds(ask):
                # Equal events are composed as one, so that only distinct ones cost anything.
                if kind not in kinds:
                    kinds.add(kind)
                    total += _POINTS * _VALUE * (_BESIDE + (1 if kind is None else kind.atoms))
            if total > limit and culprit is None:
                culprit = number
    if culprit is None:
        return total
    with below("releases", culprit):
        raise ResourceError(
            f"from here on, pricing needs more than {in_powers(limit)} multiplications, the limit: "
            f"about {in_powers(total)} for all; nothing was opened or spent (noise that is equal "
            "counts once, and so does all Gaussian noise; --work sets another limit)"
        )


def _scale_group(request: Request, group: Sequence[tuple[int, Ask]]) -> list[tuple[int, Ask]]:
    """The asks about where calibration starts; none if it refuses there, as it will."""
    budget, scaled_asks = request.budget, tuple[Ask, ...]()
    with contextlib.suppress(NoClaimError, ParameterError):
        scaled_asks = at_first_guess([ask for _, ask in group], budget.epsilon, budget.delta)
    return [(number, ask) for (number, _), ask in zip(group, scaled_asks, strict=False)]


def _kinds(ask: Ask) -> Iterable[Event | None]:
    """What is composed by itself; None is everything Gaussian."""
    with contextlib.suppress(NoClaimError, ParameterError):
        for part, _ in ask.event().parts():
            # Gaussians of any width add up to one Gaussian before a curve is looked at.
            yield None if part.claims.mu is not None else part
