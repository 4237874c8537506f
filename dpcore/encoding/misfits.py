"""Fit: how many records of which column break which rule. For the operator only, never published.

A cell that does not fit is *empty*, or it holds something: no number, a number outside the declared
range, none of the categories.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Dates, Range
from dpcore.domain.domain import ID, Domain, People, Table
from dpcore.encoding.cells import columns_by_name, empty, numbers
from dpcore.encoding.columns import find_misfits, read_numbers
from dpcore.encoding.tables import derive_columns, parse_table, rows_that_count
from dpcore.errors import MisfitError, SourceError

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
    # One pass holds counts and first places alone, however many records there are.
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
    """Every rule that some cells break, and where they stand.

    Args:
        parsed: The cells as `parse_table` leaves them; the texts alone tell why one does not fit.
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
    # No default can stand for an id: such a record belongs to nobody.
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
