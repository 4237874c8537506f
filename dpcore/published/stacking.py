"""Answers as few arrays: those of one query, alike in shape and type, are stacked in one.

`RELEASE.FIRST.QUERY` holds one answer, `RELEASE.FIRSTxCOUNT.QUERY` holds many along its first axis;
FIRST is the place of its first answer among the release's. Where the answers of an array do not
follow each other, `RELEASE.order` gives, for every answer in order of asking, the number of its
array among the release's. So an archive is about as large as its numbers, however many were asked.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ReplayError, need, shown

_NAME = re.compile(r"([^.]+)\.([0-9]{6,9})(?:x([0-9]{1,9}))?\.(.+)\Z", re.DOTALL)
_ORDER = re.compile(r"([^.]+)\.order\Z")


@attrs.frozen(eq=False)
class Transcript:
    """One release's answers in order of asking, with the query of each."""

    queries: Sequence[str]
    values: Sequence[NDArray[Any]]


def stacked(answers: Mapping[str, Transcript]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive, by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for release, transcript in answers.items():
        # Answers alike in query, shape and type share an array, and so one header.
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, (query, value) in enumerate(
            zip(transcript.queries, transcript.values, strict=True)
        ):
            groups.setdefault((query, value.shape, value.dtype.str), []).append(place)
        order = np.empty(len(transcript.queries), dtype=np.min_scalar_type(max(0, len(groups) - 1)))
        for number, ((query, *_), places) in enumerate(groups.items()):
            order[places] = number
            if len(places) == 1:
                arrays[f"{release}.{places[0]:06d}.{query}"] = transcript.values[places[0]]
            else:
                name = f"{release}.{places[0]:06d}x{len(places)}.{query}"
                arrays[name] = np.stack([transcript.values[place] for place in places])
        # Written only where needed: without it, arrays follow each other in the order of asking.
        if (order[1:] < order[:-1]).any():
            arrays[f"{release}.order"] = order
    return arrays


def unstacked(arrays: Mapping[str, NDArray[Any]], limit: int) -> dict[str, Transcript]:
    """Return each release's answers, from the arrays that `stacked` made of them.

    Args:
        limit: How many answers there may be in all; empty arrays of any number take no room.

    Raises:
        ReplayError: they are more, or a name or an order is none of `stacked`'s.
    """
    groups: dict[str, list[tuple[str, Sequence[NDArray[Any]]]]] = {}
    orders: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if order := _ORDER.match(name):
            orders[order[1]] = array
        elif (fields := _NAME.match(name)) and _fits(fields[3], array):
            # Counted before it is unpacked: an empty array could represent any number of answers.
            limit -= int(fields[3] or 1)
            need(limit >= 0, ReplayError, "answers.npz: more answers than the plan may publish")
            parts: Sequence[NDArray[Any]] = [array] if fields[3] is None else list(array)
            groups.setdefault(fields[1], []).append((fields[4], parts))
        else:
            raise ReplayError(f"answers.npz: damaged (an answer called {shown(name)})")
    if orphans := {*orders} - {*groups}:
        raise ReplayError(
            f"answers.npz: damaged (an order of {shown(min(orphans))}, which has no answers)"
        )
    return {name: _ordered(group, orders.get(name)) for name, group in groups.items()}


def _fits(count: str | None, array: NDArray[Any]) -> bool:
    return count is None or (array.ndim > 0 and len(array) == int(count) > 1)


def _ordered(
    groups: Sequence[tuple[str, Sequence[NDArray[Any]]]], order: NDArray[Any] | None
) -> Transcript:
    """Return one release's answers, array by array or in the given order."""
    sizes = [len(parts) for _, parts in groups]
    numbers: Iterable[int] = np.repeat(np.arange(len(groups)), sizes).tolist()
    if order is not None:
        has_form = order.ndim == 1 and order.dtype.kind == "u" and order.size == sum(sizes)
        # The order must use up every array exactly.
        need(
            has_form
            and int(order.max()) < len(groups)
            and np.bincount(order.astype(np.intp), minlength=len(groups)).tolist() == sizes,
            ReplayError,
            "answers.npz: damaged (the order of the answers)",
        )
        numbers = order.tolist()
    iterators = [iter(parts) for _, parts in groups]
    pairs = [(groups[number][0], next(iterators[number])) for number in numbers]
    return Transcript([query for query, _ in pairs], [value for _, value in pairs])
