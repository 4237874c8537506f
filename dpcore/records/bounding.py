r"""Bounding: of each person at most k records are kept, by a secret choice.

Every record gets a secret word as its tag, and of each person the k records with the smallest tags
stay. The tags are independent of the records, so that for every value of them a person's choice
depends on that person's records alone. Datasets that differ in one person's records therefore
differ in at most k records of that person after the choice, and in nothing else: whatever holds for
every such pair holds for the mixture over tags, by joint convexity.

The choice is associative: the k smallest of a person's k smallest of each block are the k smallest
of all. So blocks, parts and their order change nothing, and one choice serves a whole run.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, SourceError
from dpcore.randomness import Words
from dpcore.records.persons import persons

NOBODY = -1


def smallest(
    codes: NDArray[np.int32], tags: NDArray[np.uint64], places: NDArray[np.int64], most: int
) -> NDArray[np.intp]:
    """The rows of each person's `most` smallest tags, in ascending order; ties by place.

    Args:
        codes: Whose each record is, shape (n,); `NOBODY`'s are left out.
        tags, places: Of each record, shape (n,).
    """
    order = np.lexsort((places, tags, codes))
    sorted_codes = codes[order]
    numbers = np.arange(order.size)
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = sorted_codes[1:] != sorted_codes[:-1]
    rank = numbers - np.maximum.accumulate(np.where(first, numbers, 0))
    found: NDArray[np.intp] = np.sort(order[(rank < most) & (sorted_codes != NOBODY)])
    return found


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Used:
    """PRIVATE: which records of a source a run uses, and whose they are.

    Args:
        codes: The person's number for each place of the source, `NOBODY` where it is not used.
            Shape (places,). Persons are numbered in the order in which they appear.
        persons: How many persons there are.
    """

    codes: NDArray[np.int32]
    persons: int

    @property
    def rows(self) -> NDArray[np.intp]:
        """The places of the used records, ascending."""
        return np.flatnonzero(self.codes != NOBODY)


class Bounding:
    """PRIVATE: reads whose records are, block by block, and chooses at the end.

    Memory: the ids of all persons, 20 bytes for each record that may be kept, and 4 bytes a record.

    Args:
        most: k.
        tags: Secret words by place, for nothing else.
    """

    def __init__(self, most: int, tags: Words) -> None:
        self._most, self._tags = most, tags
        self._known: dict[str, int] = {}
        self._candidates: list[tuple[NDArray[Any], ...]] = []
        self._places = self._cut = self._waiting = 0

    def add(self, column: Any) -> None:
        """The next records, by the cells of their person's column."""
        found = self._numbered(persons(column))
        tags = self._tags.at(self._places, found.size)
        places = np.arange(self._places, self._places + found.size, dtype=np.int64)
        kept = smallest(found, tags, places, self._most)
        self._candidates.append((found[kept], tags[kept], places[kept]))
        self._places += found.size
        self._waiting += kept.size
        if self._waiting > 2 * self._cut + (1 << 16):
            self._merge()

    def _numbered(self, found: list[str | None]) -> NDArray[np.int32]:
        known = self._known
        numbers = (NOBODY if one is None else known.setdefault(one, len(known)) for one in found)
        return np.fromiter(numbers, dtype=np.int32, count=len(found))

    def _merge(self) -> None:
        """Cut all candidates so far to k a person."""
        codes, tags, places = map(np.concatenate, zip(*self._candidates, strict=True))
        kept = smallest(codes, tags, places, self._most)
        self._candidates = [(codes[kept], tags[kept], places[kept])]
        self._cut = self._waiting = kept.size

    @property
    def places(self) -> int:
        """How many records were read so far."""
        return self._places

    def used(self, places: int) -> Used:
        """The choice.

        Raises:
            ContractError: an engine has read other records than these.
        """
        if places != self._places:
            raise ContractError("whose records are was not read together with the records")
        codes = np.full(self._places, NOBODY, dtype=np.int32)
        if self._candidates:
            self._merge()
            owners, _, kept = self._candidates[0]
            codes[kept] = owners
        return Used(codes=codes, persons=len(self._known))

    def __reduce__(self) -> Any:
        raise SourceError("an engine with other processes cannot tell persons apart: use local")


def bounded(column: Any, most: int, tags: Words) -> Used:
    """PRIVATE: the choice of a whole table."""
    bounding = Bounding(most, tags)
    bounding.add(column)
    return bounding.used(bounding.places)
