"""`sums`: add what a `SummingLearner`'s records contribute, clipped and rounded to integers.

What fails is handed over record by record, so that whether a record counts depends on it alone.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import UNREADABLE, ContractError, need
from dpcore.exact import Exact
from dpcore.learner import Public
from dpcore.learners.clipping import IntegerRows, Integers, clipped_integers
from dpcore.query import Query, SumQuery
from dpcore.records import Records
from dpcore.sensitivity import Distance
from dpcore.summing import SummingLearner, require_sum

Value = TypeVar("Value")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SumPart:
    """What a block of records adds to one query of a summing learner; an engine may look inside."""

    learner: SummingLearner
    query: SumQuery
    public: Public

    def __call__(self, block: Records) -> tuple[Exact]:
        """PRIVATE: return the sum over the block."""
        if not self.learner.isolate:
            return (self._add(block),)
        total = Exact.zeros(self.query.shape, self.query.sum.unit)
        # With one record a call, no contribution can look at another record.
        for record in block.singles():
            total += self._add(record)
        return (total,)

    def _add(self, block: Records) -> Exact:
        """Return a block's sum; where that fails, of the records that do not fail only."""
        block_sum = self._try(block)
        if block_sum is not None:
            return block_sum
        total = Exact.zeros(self.query.shape, self.query.sum.unit)
        # Which records count is decided one by one, not by the block that they share.
        for record in block.singles():
            record_sum = self._try(record)
            total = total if record_sum is None else total + record_sum
        return total

    def _try(self, block: Records) -> Exact | None:
        """Return the author's sum of a block; None if the call fails or returns another shape or
        unit.
        """
        query = self.query

        def fitting() -> Exact | None:
            block_sum = self.learner.partial(query, block, self.public)
            fits = block_sum.shape == query.shape and block_sum.exponent == query.sum.unit
            return block_sum if fits else None

        return _attempt(fitting)


def sum_records(learner: SummingLearner, query: Query, records: Records, public: Public) -> Exact:
    """PRIVATE: add up the exact sum over the records.

    Raises:
        ContractError: the query declares no sum.
    """
    query = require_sum(query, learner)
    # Clipping a person needs each record's integers, which the sum of a block would hide.
    if query.sum.person is not None:
        from dpcore.learners.by_person import total_of_persons

        integers = partial(round_records, learner, query, public)
        of_persons = (
            partial(turn_persons, learner, query, public) if learner.turns_persons else None
        )
        return total_of_persons(integers, query, records, learner.block_rows(query), of_persons)
    # Integers are added, so that no order of blocks changes a bit.
    zero = (Exact.zeros(query.shape, query.sum.unit),)
    part = SumPart(learner=learner, query=query, public=public)
    (total,) = records.fold(part, zero, learner.block_rows(query))
    return total


def sum_block(learner: SummingLearner, query: SumQuery, block: Records, public: Public) -> Exact:
    """PRIVATE: add the block's contributions in the query's unit."""
    total = _clip(learner, query, block, public).sum(axis=0, dtype=np.int64)
    return Exact.of(total.reshape(query.shape), query.sum.unit)


def round_records(
    learner: SummingLearner, query: SumQuery, public: Public, block: Records
) -> Integers:
    """PRIVATE: return every record's integers, shape (rows, size); zeros of those that fail."""
    sums = None if learner.isolate else _attempt(partial(_clip, learner, query, block, public))
    if sums is not None:
        return sums
    # A record that fails by itself adds zeros, which depends on that record only.
    integers: Integers = np.zeros((len(block), query.real_size), dtype=np.int64)
    for place, record in enumerate(block.singles()):
        row = _attempt(partial(_clip, learner, query, record, public))
        integers[place] = 0 if row is None else row[0]
    return integers


def _clip(learner: SummingLearner, query: SumQuery, block: Records, public: Public) -> Integers:
    """Return every record's contribution, clipped, in the query's unit. Shape (rows, size)."""
    contributions = learner.contributions(query, block, public)
    rows = np.asarray(contributions)
    # Another shape would leave open which record a row belongs to.
    if rows.shape != (len(block), *query.shape) or rows.dtype.kind not in "biuf":
        raise ContractError(f"contributions to {query.name!r} must be real, one for each row")
    if isinstance(contributions, IntegerRows):
        need(
            query.clip_norm is Distance.L2 and query.sum.sign == "any",
            ContractError,
            f"proposed rows of {query.name!r} are checked in l2, of any sign",
        )
        return contributions.accepted(query.sum.clip, query.sum.unit)
    return clipped_integers(
        rows.reshape(len(block), -1).astype(np.float64),
        query.sum.clip,
        query.sum.unit,
        query.clip_norm,
        positive=query.sum.sign == "non_negative",
    )


def turn_persons(
    learner: SummingLearner, query: SumQuery, public: Public, sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PRIVATE: return what persons add, shape (persons, size); NaN of those that fail only."""
    with suppress(Exception, SystemExit):
        vectors = np.asarray(learner.of_persons(query, sums.copy(), public), dtype=np.float64)
        if vectors.shape == sums.shape:
            return vectors
    # One by one, as records are: a person who fails by itself adds zeros.
    if len(sums) == 1:
        return np.full(sums.shape, np.nan)
    return np.vstack([turn_persons(learner, query, public, row[None]) for row in sums])


def _attempt(call: Callable[[], Value]) -> Value | None:
    """Return what an author's call returns; None where it fails, but for records that cannot be
    read.
    """
    try:
        return call()
    except UNREADABLE:
        raise
    except (Exception, SystemExit):
        return None
