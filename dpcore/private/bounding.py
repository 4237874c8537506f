r"""Bounding: of each person at most k records are kept, by a secret choice.

Every record gets a secret word as its tag, and of each person the k records with the smallest tags
stay. The tags are independent of the records, so that for every value of them a person's choice
depends on that person's records only. Datasets that differ in one person's records therefore
differ in at most k records of that person after the choice, and in nothing else: whatever holds for
every such pair holds for the mixture over tags, by joint convexity.

The choice is associative: the k smallest of a person's k smallest of each block are the k smallest
of all. So blocks, parts and their order change nothing, and one choice serves a whole run.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.encoding.cells import persons
from dpcore.errors import ContractError, SourceError, need
from dpcore.randomness import Words

NO_PERSON = -1


def smallest(
    codes: NDArray[np.int32], tags: NDArray[np.uint64], places: NDArray[np.int64], limit: int
) -> NDArray[np.intp]:
    """Return the rows of each person's `limit` smallest tags, in ascending order; ties by place.

    Args:
        codes: Whose each record is, shape (n,); `NO_PERSON`'s are left out.
        tags, places: Of each record, shape (n,).
    """
    # Sorted by person, then tag; ties of tags, which are unlikely, go by place.
    order = np.lexsort((places, tags, codes))
    sorted_codes = codes[order]
    numbers = np.arange(order.size)
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = sorted_codes[1:] != sorted_codes[:-1]
    # A record's rank among its person's: its position less that of the person's first.
    rank = numbers - np.maximum.accumulate(np.where(first, numbers, 0))
    rows: NDArray[np.intp] = np.sort(order[(rank < limit) & (sorted_codes != NO_PERSON)])
    return rows


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PersonCodes:
    """PRIVATE: which records of a source a run uses, and whose they are.

    Args:
        codes: The person's number for each place of the source, `NO_PERSON` where it is not used.
            Shape (places,). Persons are numbered in the order in which they appear.
        persons: How many persons there are.
    """

    codes: NDArray[np.int32]
    persons: int

    def only(self, mask: NDArray[np.bool_] | None) -> "PersonCodes":
        """Keep only the places where `mask` is true; all of them if there is no mask.

        Raises:
            SourceError: it is about another number of places.
        """
        if mask is None:
            return self
        need(mask.size == self.codes.size, SourceError, "the columns are not equally long")
        return attrs.evolve(self, codes=np.where(mask, self.codes, np.int32(NO_PERSON)))

    @property
    def rows(self) -> NDArray[np.intp]:
        """The places of the used records, ascending."""
        return np.flatnonzero(self.codes != NO_PERSON)


class Bounding:
    """PRIVATE: reads whose records are, block by block, and chooses at the end.

    Memory: the ids of all persons, 20 bytes for each record that may be kept, and 4 bytes a record.

    Args:
        most: k.
        tags: Secret words by place, for nothing else.
    """

    def __init__(self, limit: int, tags: Words) -> None:
        self._limit, self._tags = limit, tags
        self._numbers: dict[str, int] = {}
        self._candidates: list[tuple[NDArray[Any], ...]] = []
        self._places = self._merged_count = self._candidate_count = 0

    def add(self, column: Any) -> None:
        """Add the next records, by the cells of their person's column."""
        codes = self._number_persons(persons(column))
        # Words belong to places in the source, so that the cut into blocks changes no tag.
        tags = self._tags.at(self._places, codes.size)
        places = np.arange(self._places, self._places + codes.size, dtype=np.int64)
        rows = smallest(codes, tags, places, self._limit)
        self._candidates.append((codes[rows], tags[rows], places[rows]))
        self._places += codes.size
        self._candidate_count += rows.size
        # Merging at twice the last size keeps memory in proportion to the records kept.
        if self._candidate_count > 2 * self._merged_count + (1 << 16):
            self._merge()

    def _number_persons(self, ids: list[str | None]) -> NDArray[np.int32]:
        numbers_by_id = self._numbers
        # Ids become numbers in order of appearance, and never leave this object.
        numbers = (
            NO_PERSON if person is None else numbers_by_id.setdefault(person, len(numbers_by_id))
            for person in ids
        )
        return np.fromiter(numbers, dtype=np.int32, count=len(ids))

    def _merge(self) -> None:
        """Cut all candidates so far to k a person."""
        codes, tags, places = map(np.concatenate, zip(*self._candidates, strict=True))
        rows = smallest(codes, tags, places, self._limit)
        self._candidates = [(codes[rows], tags[rows], places[rows])]
        self._merged_count = self._candidate_count = rows.size

    @property
    def places(self) -> int:
        """How many records were read so far."""
        return self._places

    def person_codes(self, places: int) -> PersonCodes:
        """Return the records in use and their persons, once all `places` were added.

        Raises:
            ContractError: an engine has read other records than these.
        """
        # Codes by place are right only for the very records that were counted here.
        need(
            places == self._places,
            ContractError,
            "whose records are was not read together with the records",
        )
        codes = np.full(self._places, NO_PERSON, dtype=np.int32)
        if self._candidates:
            self._merge()
            owners, _, rows = self._candidates[0]
            codes[rows] = owners
        return PersonCodes(codes=codes, persons=len(self._numbers))

    def __reduce__(self) -> Any:
        raise SourceError("an engine with other processes cannot distinguish persons : use local")


def bounded(column: Any, limit: int, tags: Words) -> PersonCodes:
    """PRIVATE: return the choice of a whole table."""
    bounding = Bounding(limit, tags)
    bounding.add(column)
    return bounding.person_codes(bounding.places)
