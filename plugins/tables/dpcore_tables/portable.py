"""Scores of exported models of shapes. Python and numpy only: exported files hold its text.

Functions are those of `dpcore_tables.dictionary`, with the same operations in the same order.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_LIMIT, _CELLS, _BINS, _PARTS, _HIGHEST, _INTERCEPT, _CLIP = 1.5, 768, 24, 64, 16, 0.5, 0.5


def cells(z: Any) -> Any:
    """Which of the equal cells every standardised number is in."""
    indices = np.floor((z + _LIMIT) * (_CELLS / (2 * _LIMIT))).astype(np.intp)
    return np.clip(indices, 0, _CELLS - 1)


def parts(z: Any, proportions: Any, count: int = _PARTS) -> Any:
    """Which of so many parts of equal rank standardised numbers of one column are in, (n,)."""
    ends = np.concatenate([np.zeros(1), np.cumsum(proportions)])
    middles = (np.arange(_CELLS) + 0.5) * (_BINS / _CELLS)
    bins = middles.astype(np.intp)
    ranks = np.clip(ends[bins] + proportions[bins] * (middles - bins), 0, 1)
    return np.minimum(np.floor(ranks * count).astype(np.intp), count - 1)[cells(z)]


def number_of(values: Mapping[str, Any], column: int) -> Any:
    """Of a declared number, its encoded column and its place among the numbers."""
    return values["starts"][column], sum(levels == 0 for levels in values["levels"][:column])


def function(rows: Any, values: Mapping[str, Any], column: int, level: int) -> Any:
    """Return one function of one declared column, shape (n,)."""
    categories, start = values["levels"][column], values["starts"][column]
    if categories:
        indicator = rows[:, start + level]
        root = math.sqrt(categories)
        return indicator if categories == 2 else root * (indicator - 1 / categories)
    _, place = number_of(values, column)
    standard = (rows[:, start] - values["means"][place]) / values["widths"][place]
    z = np.clip(standard, -_LIMIT, _LIMIT)
    if level == 0:
        return 2 * z
    ramp = level - _HIGHEST - _PARTS
    if ramp >= 0:  # 0 for the upper tail, 1 for the lower one
        mean, begin = values["means"][place], _LIMIT * values["widths"][place]
        distances = (rows[:, start] - mean) * (1.0 - 2.0 * ramp)
        end = 1 + mean if ramp else 1 - mean
        return np.clip((distances - begin) / (end - begin), 0.0, 1.0)
    if level > _HIGHEST:
        step = level - _HIGHEST
        above = 1 - step / _PARTS
        proportions = np.array(values["shares"][place])
        return ((parts(z, proportions) >= step) - above) / math.sqrt(above * (1 - above))
    # cos(pi t) of the cell, and higher levels by their recurrence.
    first = np.array(values["waves"][place])[cells(z)]
    previous, wave = np.ones_like(first), first
    for _ in range(level - 1):
        previous, wave = wave, 2 * first * wave - previous
    return math.sqrt(2) * wave


def table_cells(rows: Any, values: Mapping[str, Any], column: int, count: int) -> Any:
    """Which of a column's cells in tables each row is in, shape (n,)."""
    categories, start = values["levels"][column], values["starts"][column]
    if categories == 2:
        return (rows[:, start] > 0).astype(np.intp)
    if categories:
        return np.argmax(rows[:, start : start + categories], axis=1)
    _, place = number_of(values, column)
    standard = (rows[:, start] - values["means"][place]) / values["widths"][place]
    z = np.clip(standard, -_LIMIT, _LIMIT)
    return parts(z, np.array(values["shares"][place]), count)


def features(rows: Any, values: Mapping[str, Any]) -> Any:
    """Columns at most 1 long, shape (d, n)."""
    keys = {(c, k) for c, k, _, _ in values["terms"]}
    keys |= {(c, k) for _, _, c, k in values["terms"] if c >= 0}
    functions = {place: function(rows, values, *place) for place in keys}
    found = np.empty((1 + len(values["terms"]), len(rows)))
    found[0] = _INTERCEPT
    squares = np.full(len(rows), _INTERCEPT**2)
    for row, term, size in zip(found[1:], values["terms"], values["sizes"], strict=True):
        column, level, second, second_level = term
        value = functions[column, level]
        if second >= 0:
            value = value * functions[second, second_level]
        np.multiply(value, size, out=row)
        squares += row * row
    found /= np.maximum(np.sqrt(squares), 1.0)
    return found


def score(rows: Any, values: Mapping[str, Any]) -> Any:
    """Centred predictions of encoded rows, shape (n,); of several classes the class's code."""
    weights, offset = np.array(values["weights"]), np.array(values["offset"])
    scores = features(rows, values).T @ weights + offset
    for curve in values["curves"]:
        start, place = number_of(values, curve["column"])
        standard = (rows[:, start] - values["means"][place]) / values["widths"][place]
        z = np.clip(standard, -_LIMIT, _LIMIT)
        scores[:, 0] += np.array(curve["values"])[cells(z)]
    for table in values["tables"]:
        first, second = (
            table_cells(rows, values, column, count)
            for column, count in zip(table["pair"], table["shape"], strict=True)
        )
        scores[:, 0] += np.array(table["values"])[first * table["shape"][1] + second]
    for edit in values["edits"]:
        for index, low, high in edit["cells"]:
            scores[:, 0] += edit["score"] * ((low <= rows[:, index]) & (rows[:, index] <= high))
    if values["kind"] == "several":
        return np.argmax(scores, axis=1).astype(np.float64)
    first = scores[:, 0]
    if values["kind"] == "number":
        if values.get("link"):  # the score is a logarithm: m, its scale, and where 0 is
            mean, scale, shift = values["link"]
            first = mean * np.exp(np.clip(scale * first, -50.0, 50.0)) - shift
        return (2 * np.clip(first, 0.0, 1.0) - 1) * values["bound"]
    # Clipped residuals biased the score of two classes in the fit: this inverts it.
    found = 0.5 + 0.5 * np.tanh(first / 2)
    up, down = np.minimum(found, _CLIP), np.minimum(1 - found, _CLIP)
    return 2 * (up / (up + down)) - 1
