"""Tallies: a sum over records in words that a database can say, to be added where the rows are.

A learner that declares tallies answers for it that their sums are those of its `partial`, record by
record. An engine that adds them compares both on synthetic rows before anything is spent (the law
`sql.same-integer`), so that a wrong declaration, or a server that computes otherwise, ends a run
before a ledger is charged.
"""

from collections.abc import Callable
from typing import Any

import attrs


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
            alone, so that it computes on arrays and on a server's expressions alike. None: a record
            adds 1.
    """

    cuts: tuple[Cut, ...] = ()
    where: tuple[tuple[Cut, tuple[int, ...]], ...] = ()
    columns: tuple[str, ...] = ()
    terms: Callable[..., tuple[Any, ...]] | None = None
