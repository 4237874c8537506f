"""Scores of exported linear models: steps from encoded rows to features, and coefficients.

Python and numpy only, for this module's text is a part of exported files.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

# Of cos(pi sqrt(v)) = 1 + v q(v), the constant of q first.
_COSINE = (
    -4.934802200544679, 4.058712126416736, -1.3352627688518803, 0.2353306302721577,
    -0.02580689002587539, 0.001929562652479866, -0.00010458286368326585, 4.166399462726949e-06,
)  # fmt: skip
_BITS = 2.0**26


def cosines(turns: Any) -> Any:
    """cos(2 pi t), by operations that round alike on every machine."""
    rest = turns - np.rint(turns)
    v = rest * rest
    g = v * _COSINE[-1]
    for coefficient in _COSINE[-2::-1]:
        g = (g + coefficient) * v
    g = g + 1.0
    return g * g * 2.0 - 1.0


def lengths(rows: Any) -> Any:
    """Lengths of rows, shape (n, 1): squares are added in halves, in one order."""
    squares, columns_left = rows * rows, rows.shape[1]
    while columns_left > 1:
        half = columns_left // 2
        squares[:, :half] += squares[:, columns_left - half : columns_left]
        columns_left -= half
    return np.sqrt(squares[:, :1])


def waves(rows: Any, step: Mapping[str, Any]) -> Any:
    """Random cosines of rows: with phases each row at most 1 long, or cosines next to sines."""
    integers = np.clip(np.rint(rows * _BITS), -_BITS, _BITS)
    turns = np.hstack([integers, np.ones((len(rows), 1))]) @ np.array(step["turns"])
    if step["phases"]:
        found = cosines(turns) * math.sqrt(2 / turns.shape[1])
        return found / np.maximum(1.0, lengths(found))
    quarter = turns - np.rint(turns) - 0.25
    return np.hstack([cosines(turns), cosines(quarter)]) / math.sqrt(turns.shape[1])


def features(rows: Any, steps: Any) -> Any:
    """Features of encoded rows, step by step."""
    for step in steps:
        if "turns" in step:
            rows = waves(rows, step)
        else:
            constant = np.full((len(rows), 1), step["constant"])
            rows = np.hstack([constant, step["scale"] * rows])
    return rows


def score(rows: Any, values: Mapping[str, Any]) -> Any:
    """Centred predictions of encoded rows, shape (n,)."""
    return features(rows, values["features"]) @ np.array(values["coefficients"])
