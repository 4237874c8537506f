r"""SummingLearner: a learner whose statistics are sums over records, added as integers.

The author writes what one record contributes. The core clips every contribution to the length that
the query declares, rounds it to a public unit and adds integers, so that a sum is a function of the
multiset of records: no order, block or machine changes a bit of it, and what one record moves is
exactly its own contribution (`dpcore.learning.bounds.sum`).

What the author answers for is that row i of `contributions` depends on row i of the block and on
public facts alone. The guarantee prints that as a premise, unless `isolate` hands over one record a
call. Whoever writes `partial` too proves that one record's partial is at most `clip` long.

Where a query clips persons (`Sum.person`), `contributions` of all records of one person are added
and clipped together (`dpcore.learning.learners.by_person`), whatever `partial` says. In between,
`of_persons` may make another vector of each sum: that it does so person by person is a premise.
A learner says whether it does (`turns_persons`); where it says no, `of_persons` is never called.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.distance import Distance
from dpcore.errors import UNREADABLE, ContractError, need
from dpcore.exact import Exact
from dpcore.learner import Learner, Public
from dpcore.query import Query, SumQuery
from dpcore.randomness import LearnerCoins
from dpcore.records.records import Records

if TYPE_CHECKING:
    from dpcore.learning.learners.clipping import IntegerRows, Integers
    from dpcore.learning.learners.tallies import Tally

Value = TypeVar("Value")


@attrs.frozen(kw_only=True)
class SummingLearner(Learner):
    """A learner whose planned queries are all `SumQuery`.

    Total: a contribution that is not finite is zero. Where a call fails or returns another shape,
    its records are handed over one by one, each in a fresh copy, and those that fail again
    contribute zero. Records that cannot be read contribute nothing of the kind: they end the run.

    Args:
        isolate: Hand over one record a call, each in a fresh copy: slow, and no contribution can
            see another record.
    """

    bounds: ClassVar[tuple[Any, ...]] = ("sum",)
    total: ClassVar[bool] = True

    rows_at_once: ClassVar[int] = 1024
    """Most records of a block; at most 2^20, so that sums of what the core rounds fit 64 bits."""

    isolate: bool = False

    @abstractmethod
    def contributions(
        self, query: SumQuery, block: Records, public: Public
    ) -> "NDArray[Any] | IntegerRows":
        """PRIVATE, pure: what each record adds, before any clipping. Shape (rows, *query.shape).

        Args:
            query: With its `args`.
            block: Some of the records, in no particular order.

        Returns:
            Numbers, which the core clips and rounds; or integers, of which it checks the length.
        """

    def block_rows(self, query: SumQuery) -> int:
        """Most records of one block of a query: fewer where what each adds is large."""
        return self.rows_at_once

    def of_persons(
        self, query: SumQuery, sums: NDArray[np.float64], public: Public
    ) -> NDArray[np.float64]:
        """PRIVATE, pure: what each person adds, before it is clipped to `Sum.person`: by default
        the sum of what their records add. Shape (persons, size).

        Args:
            sums: Of each person's contributions, shape (persons, size).
        """
        return sums

    @property
    def turns_persons(self) -> bool:
        """Whether what a person adds is another vector than the sum of what their records add."""
        return type(self).of_persons is not SummingLearner.of_persons

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE, pure: the sum of the block's contributions in the query's unit.

        An override is additive, and of one record never longer than `clip`: the author's proof.
        """
        integers = self._clipped(query, block, public)
        total = integers.sum(axis=0, dtype=np.int64)
        return Exact.of(total.reshape(query.shape), query.sum.unit)

    def tallies(self, query: SumQuery, public: Public) -> "tuple[Tally, ...]":
        """Public: what a server adds in place of `partial`; none where it has no words for it."""
        return ()

    def from_tallies(
        self, query: SumQuery, sums: Sequence[NDArray[np.object_]], public: Public
    ) -> Exact:
        """PRIVATE: the sum of all records, from that of each tally: integers, by cell and term.

        Args:
            sums: Shape (cells, terms), one for each of `tallies`; Python's integers.
        """
        return Exact.of(sums[0].reshape(query.shape), query.sum.unit)

    @final
    def _clipped(self, query: SumQuery, block: Records, public: Public) -> "Integers":
        """Every record's contribution, clipped, in the query's unit. Shape (rows, size)."""
        contributions = self.contributions(query, block, public)
        from dpcore.learning.learners.clipping import IntegerRows, clipped_integers

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

    @final
    def total_of(self, query: Query, records: Records, public: Public) -> Exact:
        """PRIVATE: the exact sum over the records.

        Raises:
            ContractError: the query declares no sum.
        """
        query = require_sum(query, self)
        # Clipping a person needs each record's integers, which the sum of a block would hide.
        if query.sum.person is not None:
            integers_of_block = partial(self._own, query, public)
            of_persons = partial(self._persons, query, public) if self.turns_persons else None
            from dpcore.learning.learners.by_person import total_of_persons

            return total_of_persons(
                integers_of_block, query, records, self.block_rows(query), of_persons
            )
        # Integers are added, so that no order of blocks changes a bit.
        zero = (Exact.zeros(query.shape, query.sum.unit),)
        part = SumPart(learner=self, query=query, public=public)
        (total,) = records.fold(part, zero, self.block_rows(query))
        return total

    def _part(self, query: SumQuery, public: Public, block: Records) -> tuple[Exact]:
        """What a block adds."""
        if not self.isolate:
            return (self._of(query, block, public),)
        total = Exact.zeros(query.shape, query.sum.unit)
        # With one record a call, no contribution can look at another record.
        for record in block.alone():
            total += self._of(query, record, public)
        return (total,)

    def _own(self, query: SumQuery, public: Public, block: Records) -> "Integers":
        """Every record's integers, shape (rows, size); zeros of those that fail alone."""
        whole = None if self.isolate else _attempt(partial(self._clipped, query, block, public))
        if whole is not None:
            return whole
        # A record that fails alone adds zeros, which depends on that record alone.
        integers: Integers = np.zeros((len(block), query.real_size), dtype=np.int64)
        for place, record in enumerate(block.alone()):
            row = _attempt(partial(self._clipped, query, record, public))
            integers[place] = 0 if row is None else row[0]
        return integers

    def _persons(
        self, query: SumQuery, public: Public, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What persons add, shape (persons, size); not a number of those that fail alone."""
        with suppress(Exception, SystemExit):
            vectors = np.asarray(self.of_persons(query, sums.copy(), public), dtype=np.float64)
            if vectors.shape == sums.shape:
                return vectors
        # One by one, as records are: a person who fails alone adds zeros.
        if len(sums) == 1:
            return np.full(sums.shape, np.nan)
        return np.vstack([self._persons(query, public, row[None]) for row in sums])

    def _of(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """A block's sum; where that fails, of the records that do not fail alone."""
        block_sum = self._tried(query, block, public)
        if block_sum is not None:
            return block_sum
        total = Exact.zeros(query.shape, query.sum.unit)
        # Which records count is decided one by one, not by the block that they share.
        for record in block.alone():
            record_sum = self._tried(query, record, public)
            total = total if record_sum is None else total + record_sum
        return total

    def _tried(self, query: SumQuery, block: Records, public: Public) -> Exact | None:
        """The author's sum of a block; None if the call fails or returns another shape or unit."""

        def fitting() -> Exact | None:
            block_sum = self.partial(query, block, public)
            fits = block_sum.shape == query.shape and block_sum.exponent == query.sum.unit
            return block_sum if fits else None

        return _attempt(fitting)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any] | Exact:
        """PRIVATE: the exact sum over the records."""
        return self.total_of(query, records, public)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SumPart:
    """What a block of records adds to one ask of a summing learner; an engine may look inside."""

    learner: SummingLearner
    query: SumQuery
    public: Public

    def __call__(self, block: Records) -> tuple[Exact]:
        """PRIVATE: the sum over the block."""
        return self.learner._part(self.query, self.public, block)


def _attempt(call: Callable[[], Value]) -> Value | None:
    """What an author's call returns; None where it fails, but for records that cannot be read."""
    try:
        return call()
    except UNREADABLE:
        raise
    except (Exception, SystemExit):
        return None


def require_sum(query: Query, learner: object) -> SumQuery:
    """The query of a learner that plans sums alone, known to be one.

    Raises:
        ContractError: it is none.
    """
    if not isinstance(query, SumQuery):
        raise ContractError(f"{type(learner).__name__} plans {query.name!r} without `sum`")
    return query


def sums_exactly(learner: object) -> TypeGuard[SummingLearner]:
    """Whether a learner's statistics are the core's exact sums, and nothing else."""
    # A subclass that overrides one of these may add something that the bound does not cover.
    core = SummingLearner
    return isinstance(learner, core) and all(
        getattr(type(learner), name) is getattr(core, name)
        for name in (
            "statistic",
            "total_of",
            "_part",
            "_of",
            "_tried",
            "_own",
            "_persons",
            "_clipped",
        )
    )
