"""Fit: how many records of which column break which rule. For the operator only, never published.

A cell that does not fit is *empty*, or it holds something: no number, a number outside the declared
range, none of the categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Dates, Range
from dpcore.domain.domain import Domain, Table
from dpcore.domain.people import ID, People
from dpcore.errors import MisfitError, SourceError
from dpcore.records.cells import empty, named

EMPTY = "empty"
_NO_ID = "no id"


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


def fit(domain: Domain, batches: Iterable[Table]) -> Fit:
    """Look at every cell of every batch, in order."""
    rules: dict[str, Any] = {**domain.read}
    found: dict[tuple[str, str], Misfit] = {}
    records = 0
    for batch in batches:
        table = named(batch)
        for name, rule in rules.items():
            for broken, places in _broken(rule, table[name]):
                new = Misfit(
                    column=name,
                    rule=broken,
                    needed=rule.describe(),
                    count=int(places.size),
                    first=records + int(places[0]) + 1,
                )
                old = found.get((name, broken))
                found[name, broken] = (
                    new if old is None else attrs.evolve(old, count=old.count + new.count)
                )
        records += len(table[list(rules)[-1]])
    order = {name: place for place, name in enumerate(rules)}
    listed = sorted(found.values(), key=lambda one: (order[one.column], -one.count, one.first))
    return Fit(records=records, misfits=tuple(listed))


def _broken(rule: Any, cells: Any) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Every rule that some cells break, and where they stand."""
    wrong = rule.misfits(cells)
    if not wrong.any():
        return
    hollow = wrong & empty(cells)
    kinds = {EMPTY: hollow}
    if isinstance(rule, Range):
        none = wrong & ~hollow & np.isnan(rule.numbers(cells))
        what = "date" if isinstance(rule, Dates) else "number"
        kinds[f"no {what}"] = none
        kinds["outside the range"] = wrong & ~hollow & ~none
    elif isinstance(rule, People):
        kinds[_NO_ID] = wrong & ~hollow
    else:
        kinds["none of the categories"] = wrong & ~hollow
    for broken, mask in kinds.items():
        if mask.any():
            yield broken, np.flatnonzero(mask)


def require_fit(domain: Domain, table: Table) -> None:
    """Raise `SourceError` at the first column with a cell that does not fit; no cell is shown."""
    found = fit(domain, [table])
    wrong = [one for one in found.misfits if one.column == found.misfits[0].column]
    if wrong:
        raise SourceError(refusal(min(wrong, key=lambda one: one.first), found.records))


def require_fit_of_batch(domain: Domain, table: Table) -> None:
    """Raise `MisfitError` at a record of a batch that does not fit; no cell is shown."""
    for one in fit(domain, [table]).misfits:
        what = "and is empty" if one.rule == EMPTY else f"({one.rule})"
        raise MisfitError(one.column, one.first - 1, f"{one.needed} {what}")


def refusal(misfit: Misfit, records: int) -> str:
    """Why a run stops, and the way out."""
    where = f"column {misfit.column!r}, record {misfit.first}: needs {misfit.needed}"
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
        f"`dpcore check --data` lists every misfit"
    )
