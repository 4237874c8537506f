r"""Sums whose every person adds a bounded amount: :math:`\sum_p \mathrm{clip}_P(\sum_{i\in p}c_i)`.

Each record's contribution is clipped to C and rounded to the query's unit; a person's integers are
added, and their sum is clipped to P and rounded again. So what a person adds is a function of the
multiset of their records, and at most P long, however many those are (of one number, by cutting it
off; of a vector, by scaling it: `dpcore.learners.clipping`). Where each number is cut off
at E first, no entry of what a person adds is larger. A learner may turn each person's sum into
another vector before it is clipped (`SummingLearner.of_persons`), which is then at most P long too.

Records are sorted by person before anything is asked of them, so that no block, part or order cuts
a person in two: all of them are in one memory.
"""

import math
from collections.abc import Callable, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.errors import ContractError, ParameterError
from dpcore.exact import Exact
from dpcore.learners.clipping import Integers, clipped_integers
from dpcore.query import SumQuery
from dpcore.records import Records
from dpcore.summing import MOST_RECORDS

_NUMBERS = 1 << 22  # of a block

RecordIntegers = Callable[[Records], Integers]
"""PRIVATE: every record's integers, shape (rows, size), each row at most C long."""

PersonVectors = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""PRIVATE: what persons add, of the sums of what their records add; shape (persons, size)."""


def of_whole_persons(query: SumQuery, counts_for: float, domain: Domain) -> SumQuery:
    """Return the same query with persons clipped, unless k records are never longer than the clip.

    Args:
        counts_for: P, in lengths of one record's clip.

    Raises:
        ParameterError: the domain does not say whose a record is.
    """
    if domain.people is None:
        raise ParameterError(query.name, "record, or a domain with people", "clip", "person")
    if counts_for >= domain.people.records:
        return query
    return attrs.evolve(query, sum=attrs.evolve(query.sum, person=counts_for * query.sum.clip))


def total_of_persons(
    integers: RecordIntegers,
    query: SumQuery,
    records: Records,
    rows: int,
    of_persons: PersonVectors | None = None,
) -> Exact:
    """PRIVATE: return the exact sum over persons.

    Args:
        integers: What records add.
        rows: Most records of a block, unless one person has more.
        of_persons: What persons add, of several numbers; if left out what their records add.

    Raises:
        ContractError: whose the records are is not known, or a person has more than 2^20.
    """
    persons = getattr(records, "persons", None)
    if persons is None:
        raise ContractError(f"{query.name!r} clips persons, and whose the records are is not known")
    # Sorted by person, so that a block holds all records of each person in it.
    order = np.argsort(persons, kind="stable")
    total = Exact.zeros(query.shape, query.sum.unit)
    for block, first in _person_blocks(persons[order], min(rows, _NUMBERS // query.real_size + 1)):
        # At most 2^20 integers of at most 2^42 a person: the sums fit 64 bits.
        sums = np.add.reduceat(integers(records.take(order[block])), first, axis=0, dtype=np.int64)
        clipped = clipped_sums(sums, query, of_persons)
        total += Exact.of(clipped.sum(axis=0).reshape(query.shape), query.sum.unit)
    return total


def clipped_sums(
    sums: NDArray[np.int64], query: SumQuery, of_persons: PersonVectors | None = None
) -> NDArray[np.int64]:
    """Return each row, at most P long in the query's distance. Shape (persons, size)."""
    declaration = query.sum
    assert declaration.person is not None, "persons are clipped"
    # One number is cut off at P, several at E, rounded down to the unit: no one adds more.
    bound = declaration.person if sums.shape[1] == 1 else declaration.each
    if bound is not None:
        limit = math.floor(math.ldexp(bound, -declaration.unit))
        sums = np.clip(sums, -limit, limit)
    if sums.shape[1] == 1:
        return sums
    vectors = np.ldexp(sums.astype(np.float64), declaration.unit)
    # Whatever becomes of the sums is clipped: what a person adds is at most P long.
    return clipped_integers(
        vectors if of_persons is None else of_persons(vectors),
        declaration.person,
        declaration.unit,
        query.clip_norm,
        positive=declaration.sign == "non_negative",
    )


def _person_blocks(
    persons: NDArray[np.int32], rows: int
) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Blocks of sorted records, and where each person begins in them."""
    changes = np.flatnonzero(persons[1:] != persons[:-1]) + 1
    begins = np.concatenate([[0], changes]) if persons.size else changes
    ends = np.append(begins, persons.size)
    if int(np.diff(ends).max(initial=0)) > MOST_RECORDS:
        raise ContractError(f"sums by person take at most {MOST_RECORDS} records of one person")
    # A block takes as many whole persons as fit `rows`, and at least one.
    index = 0
    while index < begins.size:
        last = max(index + 1, int(np.searchsorted(ends, ends[index] + rows, side="right")) - 1)
        yield slice(int(ends[index]), int(ends[last])), begins[index:last] - begins[index]
        index = last
