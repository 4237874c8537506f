"""Scores of exported staged models. Python and numpy only: its text is a part of exported files.

The map is that of `dpcore_linear.staged_features`, with the same operations in the same order.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_INTERCEPT, _PAIRS, _CENTRE, _STEP, _STEEPNESS, _LIMIT = 0.5, 0.7, 0.7, 0.7, 3.0, 1.5


def features(rows: Any, values: Mapping[str, Any]) -> Any:
    """Compute feature rows of length at most 1, shape (n, width)."""
    numeric, owner = np.array(values["numeric"], dtype=np.intp), np.array(values["owner"])
    means, variances = np.array(values["means"]), np.array(values["variances"])
    scales, z = np.array(values["scales"]), np.array(rows.T, dtype=np.float64, order="C")
    noise_distributions = 2.0 * np.sqrt(variances)
    standard = (z[numeric] - means[:, None]) / noise_distributions[:, None]
    numbers = z[numeric] = np.clip(standard, -_LIMIT, _LIMIT)
    main = z * scales[:, None]
    # The constant and main effects, then pairs of columns, squares, steps and their products.
    factors = _PAIRS * math.sqrt(2) * main
    pairs = [
        factors[i] * main[j]
        for i in range(len(z))
        for j in range(i + 1, len(z))
        if owner[i] != owner[j]
    ]
    squares = (_PAIRS * scales[numeric] ** 2)[:, None] * (2 * numbers**2 - _CENTRE)
    steps = (_STEP * scales[numeric])[:, None] * np.clip(_STEEPNESS * numbers, -1, 1)
    groups = factors[np.setdiff1d(np.arange(len(z)), numeric)]
    products = [step * group for step in steps for group in groups]
    columns = np.vstack(
        [np.full((1, len(rows)), _INTERCEPT), main, *pairs, squares, steps, *products]
    )
    # Squares are added in halves, in one order.
    squared, rows_left = columns * columns, len(columns)
    while rows_left > 1:
        half = rows_left // 2
        squared[:half] += squared[rows_left - half : rows_left]
        rows_left -= half
    columns /= np.maximum(1.0, np.sqrt(squared[0]))
    return np.ascontiguousarray(columns.T)


def score(rows: Any, values: Mapping[str, Any]) -> Any:
    """Predict centred labels of encoded rows, clipped to the label range, shape (n,)."""
    bound = values["bound"]
    found = features(rows, values) @ np.array(values["coefficients"])
    return np.clip((2 * found - 1) * bound, -bound, bound)
