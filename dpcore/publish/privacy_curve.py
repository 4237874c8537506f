"""The certified privacy curve of a whole run, from the sensitivities and the noise in its lock."""

from __future__ import annotations

from dpcore.accounting.certainty import Curve
from dpcore.running.plan import Plan


def curve_of(plan: Plan) -> Curve:
    """As `Plan.curve`.

    Raises: as `Plan.curve`.
    """
    return plan.curve()
