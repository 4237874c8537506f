"""Answers as few arrays: those of one query, alike in shape and type, are stacked in one.

`RELEASE.FIRST.QUERY` holds one answer, `RELEASE.FIRSTxCOUNT.QUERY` holds many along its first axis;
FIRST is the place of its first answer among the release's. Where the answers of an array do not
follow each other, `RELEASE.order` gives, for every answer in order of asking, the number of its
array among the release's. So an archive is about as large as its numbers, however many were asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ReplayError, shown

_NAME = re.compile(r"([^.]+)\.([0-9]{6,9})(?:x([0-9]{1,9}))?\.(.+)\Z", re.DOTALL)
_ORDER = re.compile(r"([^.]+)\.order\Z")


@attrs.frozen(eq=False)
class Asked:
    """One release's answers in order of asking, with the query of each."""

    queries: Sequence[str]
    values: Sequence[NDArray[Any]]


def stacked(answers: Mapping[str, Asked]) -> dict[str, NDArray[Any]]:
    """The arrays of an archive, by name."""
    found: dict[str, NDArray[Any]] = {}
    for release, asked in answers.items():
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, (query, value) in enumerate(zip(asked.queries, asked.values, strict=True)):
            groups.setdefault((query, value.shape, value.dtype.str), []).append(place)
        order = np.empty(len(asked.queries), dtype=np.min_scalar_type(max(0, len(groups) - 1)))
        for number, ((query, *_), places) in enumerate(groups.items()):
            order[places] = number
            if len(places) == 1:
                found[f"{release}.{places[0]:06d}.{query}"] = asked.values[places[0]]
            else:
                name = f"{release}.{places[0]:06d}x{len(places)}.{query}"
                found[name] = np.stack([asked.values[place] for place in places])
        if (order[1:] < order[:-1]).any():
            found[f"{release}.order"] = order
    return found


def unstacked(arrays: Mapping[str, NDArray[Any]], most: int) -> dict[str, Asked]:
    """The same back, by release.

    Args:
        most: How many answers there may be in all; empty arrays of any number take no room.

    Raises:
        ReplayError: they are more, or a name or an order is none of `stacked`'s.
    """
    groups: dict[str, list[tuple[str, Sequence[NDArray[Any]]]]] = {}
    orders: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if order := _ORDER.match(name):
            orders[order[1]] = array
        elif (found := _NAME.match(name)) and _fits(found[3], array):
            most -= int(found[3] or 1)
            if most < 0:
                raise ReplayError("answers.npz: more answers than the plan may publish")
            parts: Sequence[NDArray[Any]] = [array] if found[3] is None else list(array)
            groups.setdefault(found[1], []).append((found[4], parts))
        else:
            raise ReplayError(f"answers.npz: damaged (an answer called {shown(name)})")
    if unknown := {*orders} - {*groups}:
        raise ReplayError(
            f"answers.npz: damaged (an order of {shown(min(unknown))}, which has no answers)"
        )
    return {name: _ordered(given, orders.get(name)) for name, given in groups.items()}


def _fits(count: str | None, array: NDArray[Any]) -> bool:
    return count is None or (array.ndim > 0 and len(array) == int(count) > 1)


def _ordered(
    groups: Sequence[tuple[str, Sequence[NDArray[Any]]]], order: NDArray[Any] | None
) -> Asked:
    """One release's answers, array by array or in the given order."""
    sizes = [len(parts) for _, parts in groups]
    numbers: Iterable[int] = np.repeat(np.arange(len(groups)), sizes).tolist()
    if order is not None:
        whole = order.ndim == 1 and order.dtype.kind == "u" and order.size == sum(sizes)
        if not whole or int(order.max()) >= len(groups):
            raise ReplayError("answers.npz: damaged (the order of the answers)")
        if np.bincount(order.astype(np.intp), minlength=len(groups)).tolist() != sizes:
            raise ReplayError("answers.npz: damaged (the order of the answers)")
        numbers = order.tolist()
    left = [iter(parts) for _, parts in groups]
    pairs = [(groups[number][0], next(left[number])) for number in numbers]
    return Asked([query for query, _ in pairs], [value for _, value in pairs])
