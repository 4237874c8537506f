"""Coefficients of a model that is a line in its columns, in the units of the file."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain
from dpcore.learner import Published
from dpcore.models.features.base import Features


@attrs.frozen(kw_only=True, eq=False)
class Line:
    """f(x) = intercept + values . x, before predictions are clipped; of two classes their score.

    Args:
        values: One number for each of `encoded_names`: what one unit of a range adds, or being of a
            category. A value outside its declared range counts as the range's end, and a missing
            one as the middle of it.
    """

    values: NDArray[np.float64]
    intercept: float


def line_of(model: Published) -> Line | None:
    """Return the line that a model is, or None where it is none.

    A norm in the domain scales long rows down, so that its models are no lines.
    """
    inner: Any = getattr(model, "model", model)  # the chosen one of several
    features = getattr(inner, "features", None)
    if not isinstance(features, Features) or not features.linear:
        return None
    if (domain := inner.domain).norm is not None:
        return None
    # An affine function is known by its values at 0 and at the unit vectors.
    at_zero = inner.score(np.zeros((1, domain.width)))[0]
    steps = inner.score(np.eye(domain.width)) - at_zero
    # Scores of numbers are centred: predictions add the middle of the range.
    intercept = at_zero if domain.classes else at_zero + domain.labels.centre
    return _in_units(domain, steps, float(intercept))


def _in_units(domain: Domain, steps: NDArray[np.float64], intercept: float) -> Line:
    """Encoded coefficients as those of the file's own columns: see `Domain` for the encoding."""
    values, place = steps.copy(), 0
    for column in domain.columns.values():
        span = slice(place, place + column.width)
        place += column.width
        if isinstance(column, Range):
            # Encoded as 2(x - low)/(high - low) - 1: its slope, and its value at x = 0.
            unit = 2 / (column.high - column.low)
            values[span.start] = unit * steps[span.start]
            intercept -= steps[span.start] * (column.low * unit + 1)
        elif isinstance(column, Categories) and column.width == 1:
            # Encoded as -1 and +1: the first category is the base, and the second is a step of 2.
            values[span.start] = 2 * steps[span.start]
            intercept -= steps[span.start]
    return Line(values=values, intercept=intercept)
