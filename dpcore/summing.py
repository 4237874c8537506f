r"""`summing`: learners whose statistics are sums over records, which the core adds as integers.

The author writes what one record contributes. The core clips every contribution to the length that
the query declares, rounds it to a public unit and adds integers, so that a sum is a function of the
multiset of records: no order, block or machine changes a bit of it, and what one record moves is
exactly its own contribution (`dpcore.learners.bounds.sum`).

What the author answers for is that row i of `contributions` depends on row i of the block and on
public facts only. The guarantee prints that as a premise, unless `isolate` hands over one record a
call. Anyone who writes `partial` too proves that one record's partial is at most `clip` long.

Where a query clips persons (`Sum.person`), `contributions` of all records of one person are added
and clipped together (`dpcore.learners.by_person`), whatever `partial` says. In between,
`of_persons` may make another vector of each sum: that it does so person by person is a premise.
A learner says whether it does (`turns_persons`); where it says no, `of_persons` is never called.

A learner that declares tallies (`Tally`: a sum in words that a database can say) answers for it
that their sums are those of its `partial`, record by record. An engine that adds them where the
rows are compares both on synthetic rows before anything is spent (the law `sql.same-integer`): a
wrong declaration, or a server that computes otherwise, ends a run before a ledger is charged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError
from dpcore.exact import Exact
from dpcore.learner import Learner, Public
from dpcore.query import Query, SumQuery
from dpcore.randomness import LearnerRandomness

if TYPE_CHECKING:
    from dpcore.learners.clipping import IntegerRows
    from dpcore.records import Records

ROW_WISE = "what a record contributes to a sum depends on that record alone, as the learner says"

MOST_RECORDS = 1 << 20
"""Of one person, so that their sum fits 64 bits."""


@attrs.frozen(kw_only=True)
class Cut:
    """A declared column, cut into cells that do not overlap.

    A range is cut at numbers of the file's units (`dpcore.encoding.columns.cells_of`). Every cell
    holds its lower edge, and the last one both.

    Args:
        column: Its name; the target's too.
        size: How many cells there are.
        edges: Of a range: increasing numbers, one more than cells. None: a cell a category.
        rest: Whether the records in none of the cells are in one more, the last.
    """

    column: str
    size: int
    edges: tuple[float, ...] | None = None
    rest: bool = False

    @property
    def places(self) -> int:
        """How many numbers a cell may have: `size`, and one more with `rest`."""
        return self.size + self.rest


@attrs.frozen(kw_only=True, eq=False)
class Tally:
    """By cell of some columns, the integers that the records there add.

    Args:
        cuts: The cells are their product, the last cut's fastest; one cell if there are none. A
            record in no cell adds nothing.
        where: Only records in these cells of these cuts add anything.
        columns: The ranges whose positions `terms` is called with; a record that lacks a number in
            one of them adds nothing.
        terms: The numbers that a record adds, from its positions: clipped to the query's length and
            rounded to its unit together. Sums, products, quotients, `abs` and `.clip(low, high)`
            only, so that it computes on arrays and on a server's expressions alike. None: a record
            adds 1.
    """

    cuts: tuple[Cut, ...] = ()
    where: tuple[tuple[Cut, tuple[int, ...]], ...] = ()
    columns: tuple[str, ...] = ()
    terms: Callable[..., tuple[Any, ...]] | None = None


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
    ) -> NDArray[Any] | IntegerRows:
        """PRIVATE, pure: return what each record adds, before any clipping.

        Shape (rows, *query.shape).

        Args:
            query: With its `args`.
            block: Some of the records, in no particular order.

        Returns:
            Numbers, which the core clips and rounds; or integers, of which it checks the length.
        """

    def block_rows(self, query: SumQuery) -> int:
        """Return the most records that a block of a query holds: fewer if each adds much data."""
        return self.rows_at_once

    def of_persons(
        self, query: SumQuery, sums: NDArray[np.float64], public: Public
    ) -> NDArray[np.float64]:
        """PRIVATE, pure: return what each person adds, before it is clipped to `Sum.person`.

        By default the sum of what their records add. Shape (persons, size).

        Args:
            sums: Of each person's contributions, shape (persons, size).
        """
        return sums

    @property
    def turns_persons(self) -> bool:
        """Whether what a person adds is another vector than the sum of what their records add."""
        return type(self).of_persons is not SummingLearner.of_persons

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE, pure: return the sum of the block's contributions in the query's unit.

        An override is additive, and of one record never longer than `clip`: the author's proof.
        """
        from dpcore.learners.sums import sum_block

        return sum_block(self, query, block, public)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the public sums that a server adds in place of `partial`, if there are any."""
        return ()

    def from_tallies(
        self, query: SumQuery, sums: Sequence[NDArray[np.object_]], public: Public
    ) -> Exact:
        """PRIVATE: return the sum of all records from each tally's integers, by cell and term.

        Args:
            sums: Shape (cells, terms), one for each of `tallies`; Python's integers.
        """
        return Exact.of(sums[0].reshape(query.shape), query.sum.unit)

    @final
    def total_of(self, query: Query, records: Records, public: Public) -> Exact:
        """PRIVATE: return the exact sum over the records.

        Raises:
            ContractError: the query declares no sum.
        """
        from dpcore.learners.sums import sum_records

        return sum_records(self, query, records, public)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any] | Exact:
        """PRIVATE: return the exact sum over the records."""
        return self.total_of(query, records, public)


def proves_partial(learner: SummingLearner) -> bool:
    """Return whether the author answers for the sum of a block by a proof."""
    return type(learner).partial is not SummingLearner.partial


def require_sum(query: Query, learner: object) -> SumQuery:
    """Return the query of a learner that plans sums only, known to be one.

    Raises:
        ContractError: it is none.
    """
    if not isinstance(query, SumQuery):
        raise ContractError(f"{type(learner).__name__} plans {query.name!r} without `sum`")
    return query


def sums_exactly(learner: object) -> TypeGuard[SummingLearner]:
    """Return whether a learner's statistics are the core's exact sums, and nothing else."""
    # A subclass that overrides one of these may add something that the bound does not cover.
    core = SummingLearner
    return (
        isinstance(learner, core)
        and type(learner).statistic is core.statistic
        and type(learner).total_of is core.total_of
    )
