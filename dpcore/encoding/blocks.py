"""`blocks`: the columns of a table, or of batches of a source, to records, one by one.

Fit: how many records of which column break which rule. For the operator only, never published.

A cell that does not fit is *empty*, or it holds something: no number, a number outside the declared
range, none of the categories.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Dates, Range
from dpcore.domain.domain import ID, Domain, People, Table
from dpcore.encoding.cells import cells, columns_by_name, empty, numbers
from dpcore.encoding.columns import find_misfits, read_numbers
from dpcore.encoding.pieces import Pieces
from dpcore.encoding.tables import derive_columns, parse_table, project_table, rows_that_count
from dpcore.errors import MisfitError, SourceError, need, unpassed
from dpcore.records import Records
from dpcore.source import Columns, Part, Source

EMPTY = "empty"
_ZERO_OF_SAS = 2.0**-260


@attrs.frozen(kw_only=True)
class Misfit:
    """PRIVATE: the records whose cells in one column break one rule.

    Args:
        column: A declared column.
        rule: What is wrong with them: `empty`, `no number`, ...
        needed: What the column's cells must be.
        count: How many.
        first: The first of them, from 1.
    """

    column: str
    rule: str
    needed: str
    count: int
    first: int


@attrs.frozen(kw_only=True)
class Fit:
    """PRIVATE: what does not fit among the records of a source.

    Args:
        records: How many there are.
        misfits: In the order of the columns; of a column, the most frequent first.
    """

    records: int
    misfits: tuple[Misfit, ...]


def fit(domain: Domain, batches: Iterable[Table], parsed: Table | None = None) -> Fit:
    """Look at every cell of every batch, in order.

    Args:
        parsed: Of a single batch, what `parse_table` made of it, where that is known.
    """
    rules: dict[str, Any] = {**domain.read}
    misfits_by_rule: dict[tuple[str, str], Misfit] = {}
    records = 0
    # One pass holds counts and first places only, however many records there are.
    for batch in batches:
        table = columns_by_name(batch)
        # What was parsed was derived before.
        table = derive_columns(domain, table) if parsed is None else table
        numbers = parse_table(domain, table) if parsed is None else parsed
        mask = rows_that_count(domain.only, domain.rules, table)
        for name, rule in rules.items():
            for breach, places in _broken_rules(
                rule, table[name], numbers.get(name, table[name]), mask
            ):
                new = Misfit(
                    column=name,
                    rule=breach,
                    needed=rule.describe(),
                    count=int(places.size),
                    first=records + int(places[0]) + 1,
                )
                old = misfits_by_rule.get((name, breach))
                misfits_by_rule[name, breach] = (
                    new if old is None else attrs.evolve(old, count=old.count + new.count)
                )
        # Places go on from batch to batch, so that a record has its number in the source.
        records += len(table[list(rules)[-1]])
    listed = sorted(
        misfits_by_rule.values(),
        key=lambda misfit: ([*rules].index(misfit.column), -misfit.count, misfit.first),
    )
    return Fit(records=records, misfits=tuple(listed))


def _broken_rules(
    rule: Any, cells: Any, parsed: Any, mask: NDArray[np.bool_] | None
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield every rule that some cells break, and where they stand.

    Args:
        parsed: The cells as `parse_table` leaves them; the texts only say why one does not fit.
        mask: Of the rows that count; None where every row does.
    """
    # Nothing is computed from a row that is left out, so that it may hold anything.
    is_misfit = find_misfits(rule, parsed) & (True if mask is None else mask)
    if not is_misfit.any():
        return
    # Kinds are disjoint, so that every misfit is counted once.
    is_empty = is_misfit & empty(cells)
    kinds = {EMPTY: is_empty}
    if isinstance(rule, Range):
        is_no_number = is_misfit & ~is_empty & np.isnan(read_numbers(rule, parsed))
        kind = "date" if isinstance(rule, Dates) else "number"
        kinds[f"no {kind}"] = is_no_number
        kinds["outside the range"] = is_misfit & ~is_empty & ~is_no_number
    else:
        kind = "no id" if isinstance(rule, People) else "none of the categories"
        if (numbers(cells)[is_misfit] == _ZERO_OF_SAS).any():
            kind += "; 5.4e-79 is what pandas.read_sas makes of 0: read the file with pyreadstat"
        kinds[kind] = is_misfit & ~is_empty
    for broken, mask in kinds.items():
        if mask.any():
            yield broken, np.flatnonzero(mask)


def require_fit(domain: Domain, table: Table, parsed: Table | None = None) -> None:
    """Raise `SourceError` at the first column with a cell that does not fit; no cell is shown."""
    # Errors name a column, a record's number and a rule; no cell goes into a message.
    report = fit(domain, [table], parsed)
    misfits_of_column = [
        misfit for misfit in report.misfits if misfit.column == report.misfits[0].column
    ]
    if misfits_of_column:
        raise SourceError(
            refusal(min(misfits_of_column, key=lambda misfit: misfit.first), report.records)
        )


def require_fit_of_batch(domain: Domain, table: Table, parsed: Table) -> None:
    """Raise `MisfitError` at a record of a batch that does not fit; no cell is shown."""
    for misfit in fit(domain, [table], parsed).misfits:
        reason = "and is empty" if misfit.rule == EMPTY else f"({misfit.rule})"
        # The number is counted from 0 within this batch; the caller adds where it begins.
        raise MisfitError(misfit.column, misfit.first - 1, f"{misfit.needed} {reason}")


def refusal(misfit: Misfit, records: int) -> str:
    """Why a run stops, and the way out."""
    where = f"column {misfit.column!r}, record {misfit.first}: needs {misfit.needed}"
    # No default can represent an id: such a record belongs to no one.
    if misfit.needed == ID:
        return (
            f"{where}; {misfit.count} of {records} records have none ({misfit.rule}): give them "
            f"one, or set on_invalid: project, which leaves them out"
        )
    if misfit.rule == EMPTY:
        return (
            f"{where} and is empty; {misfit.count} of {records} records are empty there: declare "
            f"a default for the column, or set on_invalid: project"
        )
    return (
        f"{where}; {misfit.count} of {records} records do not fit there ({misfit.rule}): "
        f"declare what the column holds, or set on_invalid: project"
    )


@attrs.frozen(kw_only=True, eq=False)
class Encoding:
    """Columns to records, row by row.

    Args:
        refuse: Whether a record that does not fit is refused, or mapped into the domain.
        numbers: Ranges whose numbers records have next to what is encoded; all, if None.
    """

    domain: Domain
    refuse: bool
    numbers: tuple[str, ...] | None = None

    def __call__(self, batch: Columns) -> Records:
        """PRIVATE: return the batch's records.

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
        """Yield the part's own batches.

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
    """Return every column in the pieces that it was read in: nothing is converted."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        for batch in part.batches():
            for name, column in columns_by_name(batch).items():
                columns.setdefault(str(name), []).append(column)
    return {
        name: pieces[0] if len(pieces) == 1 else Pieces(tuple(pieces))
        for name, pieces in columns.items()
    }
