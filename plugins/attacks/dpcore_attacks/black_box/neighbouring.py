"""Neighbours: whether two data sets are what a relation says, before a verdict rests on them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.errors import need

Pair = tuple[Any, Any]
"""Records of two neighbours, in the form that the function under attack takes."""


def check_pair(pair: Pair, relation: Adjacency) -> bool:
    """Return whether a pair could be compared row by row; what can be compared must be neighbours.

    Rows are the items of a list, the entries of an array along its first axis, and what equally
    long columns of a mapping, a frame or a tuple hold at one place.

    Raises:
        ParameterError: the rows are no neighbours under the relation.
    """
    before, after = _rows(pair[0]), _rows(pair[1])
    if before is None or after is None or relation not in (ADD_REMOVE, REPLACE_ONE):
        return False
    first, second = Counter(before), Counter(after)
    gone, new = (first - second).total(), (second - first).total()
    allowed = {(0, 0), (0, 1), (1, 0)} if relation == ADD_REMOVE else {(0, 0), (1, 1)}
    requirement = f"neighbours under {relation}"
    need((gone, new) in allowed, "attack", requirement, "rows gone and new", (gone, new))
    return True


def _rows(records: Any) -> list[str] | None:
    """Return a text for each row, equal for equal rows only; None where rows are unknown."""
    if isinstance(records, np.ndarray):
        return [repr(row) for row in records.tolist()] if records.ndim else None
    if isinstance(records, Mapping):
        return _joined([*records.values()])
    if hasattr(records, "to_numpy"):
        return _rows(np.asarray(records.to_numpy()))
    if isinstance(records, tuple) and any(hasattr(part, "__len__") for part in records):
        return _joined(list(records))
    if isinstance(records, list | tuple):
        return [repr(row.tolist() if isinstance(row, np.ndarray) else row) for row in records]
    return None


def _joined(columns: list[Any]) -> list[str] | None:
    """Return the rows of columns that are equally long."""
    parts = [_rows(column) for column in columns]
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < len(parts) or len({len(part) for part in known_parts}) != 1:
        return None
    return ["; ".join(row) for row in zip(*known_parts, strict=True)]
