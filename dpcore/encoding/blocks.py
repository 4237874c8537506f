"""`blocks`: the columns of a table, or of batches of a source, to records, one by one."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.cells import cells, columns_by_name
from dpcore.encoding.misfits import require_fit_of_batch
from dpcore.encoding.pieces import Pieces
from dpcore.encoding.tables import derive_columns, parse_table, project_table
from dpcore.errors import SourceError, need, unpassed
from dpcore.records import Records
from dpcore.source import Columns, Part, Source


@attrs.frozen(kw_only=True, eq=False)
class Encoding:
    """Columns to records, row by row.

    Args:
        refuse: Whether a record that does not fit is refused, or mapped into the domain.
        numbers: Ranges whose numbers records have beside what is encoded; all, if None.
    """

    domain: Domain
    refuse: bool
    numbers: tuple[str, ...] | None = None

    def __call__(self, batch: Columns) -> Records:
        """PRIVATE: the batch's records.

        Raises:
            MisfitError: a record does not fit.
            SourceError: a column is missing.
        """
        table = derive_columns(self.domain, require_columns(self.domain, batch))
        # Checked and projected from the same numbers.
        parsed = parse_table(self.domain, table)
        if self.refuse:
            require_fit_of_batch(self.domain, table, parsed)
        return project_table(self.domain, parsed, self.numbers)


def require_columns(domain: Domain, table: Columns) -> Table:
    """Return the columns by name.

    Raises:
        SourceError: a declared column is missing.
    """
    columns: Table = columns_by_name(table)
    need(
        hasattr(columns, "__getitem__") and not isinstance(columns, str | bytes),
        SourceError,
        "needs columns by name, or what `dpcore.read_csv(path)` returns, for a table",
    )
    absent = [name for name in domain.raw if name not in columns]
    if absent:
        raise SourceError(f"column {absent[0]!r} is missing: declare what the table holds")
    return columns


def in_memory(source: Source, domain: Domain) -> Table:
    """Return a whole source as one table, for what needs all records at once.

    Raises:
        SourceError: it cannot be read.
    """
    with unpassed("the records cannot be read"):
        table = _gather(bound_parts(source.parts(), domain))
    # A source without records has no batch that could name its columns, and is a dataset too.
    return table or {name: [] for name in domain.raw}


def bound_parts(parts: Sequence[Part], domain: Domain) -> Sequence[Part]:
    """Parts that end where there are more records than the domain declares, if it does."""
    # Where persons are declared, the limit is about the records that are used, known at the end.
    upper_bound = None if domain.people is not None else domain.at_most
    return (
        parts
        if upper_bound is None
        else [_BoundedPart(part, upper_bound, counting_column(domain)) for part in parts]
    )


def counting_column(domain: Domain) -> str:
    """Return a declared column, by whose cells records are counted."""
    return list(domain.raw)[-1]


@attrs.frozen(eq=False, repr=False)
class _BoundedPart(Part):
    """A part that ends where there are more records than are declared of the whole source."""

    part: Part
    upper_bound: int
    column: str

    @property
    def stays(self) -> bool:
        """Whether the part that this one wraps stays in this process."""
        return self.part.stays

    def batches(self) -> Iterator[Columns]:
        """The part's own batches.

        Raises:
            SourceError: they hold more records than are declared.
        """
        count = 0
        for batch in self.part.batches():
            columns = columns_by_name(batch)
            count += len(cells(columns[self.column])) if self.column in columns else 0
            # The declared limit is public and is in the message; by how much the source exceeds it
            # is not.
            if count > self.upper_bound:
                raise SourceError(f"more than the {self.upper_bound} records that are declared")
            yield batch


def _gather(parts: Sequence[Part]) -> Table:
    """Every column in the pieces that it was read in: nothing is converted."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        for batch in part.batches():
            for name, column in columns_by_name(batch).items():
                columns.setdefault(str(name), []).append(column)
    return {
        name: pieces[0] if len(pieces) == 1 else Pieces(tuple(pieces))
        for name, pieces in columns.items()
    }
