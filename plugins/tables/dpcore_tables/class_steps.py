"""How long the steps of a descent are: by the curvature of the loss, which of classes becomes flat.

Where fitted classes are clear, residuals hardly change with the scores. By the curvature of the
start a descent of 40 steps then ends far from where it leads, whatever the noise. So that of the
fit takes the curvature anew, at the released weights: a function of answers only.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.classes import step_curvature
from dpcore_tables.descent import Descent
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import Plan
from dpcore_tables.steps.small_classes import CURVATURES

_CLIPPED = 0.25  # of several classes, where there is much signal
_EVALUATIONS = 8  # at the curvature, in a descent


def first_curvature(plan: Plan) -> float:
    """Of the loss at first: what it is at most, but for several classes with much signal."""
    return _CLIPPED if plan.steep else CURVATURES.get(plan.kind, 1.0)


def curved(
    descent: Descent | Plain,
    plan: Plan,
    stage: str,
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
) -> Descent | Plain:
    """Before a step of the fit: now and then with the curvature where the descent is, down to
    the part of the first one that the plan allows. Numbers, the screen and little signal keep the
    first.

    Args:
        offset: Of the scores, shape (m,). shares: Released, of the classes, shape (m,).
    """
    if isinstance(descent, Plain) or stage == "screen" or plan.flattest == 1:
        return descent
    if len(descent.steps) % max(descent.count // _EVALUATIONS, 1):
        return descent
    first = first_curvature(plan)
    curvature = step_curvature(descent.dictionary, descent.weights, offset, proportions)
    return descent.rescaled(min(max(curvature, plan.flattest * first), first))
