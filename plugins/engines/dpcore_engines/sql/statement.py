"""Statements: a tally, and what is checked of all records, as one SELECT each.

A statement reads a relation called `records`. Its layers are nested, one derived table in another,
so that each expression is written once. There is no WHERE and no JOIN: a record that adds nothing
is in the cell null, which no one reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from sqlglot import exp

from dpcore.query import SumQuery
from dpcore.summing import Cut, Tally
from dpcore_engines.sql.clipped import Clipping
from dpcore_engines.sql.columns import CLIPPED, Columns
from dpcore_engines.sql.number import TEXT, Number, chosen, integer, named, tree_of

RECORDS = "records"

Layer = Mapping[str, exp.Expression]


def tally_statement(tally: Tally, query: SumQuery, columns: Columns) -> list[Layer]:
    """Return the layers of a tally: from what is stored to numbers and codes, to positions, to
    integers.

    Numbers that are cut only, and not added, need no positions.

    Raises:
        RequestError: a column cannot be read exactly.
    """
    cuts = [*tally.cuts, *(cut for cut, _ in tally.where)]
    ranges = [*dict.fromkeys([*(cut.column for cut in cuts if cut.edges), *tally.columns])]
    names = dict.fromkeys([*(cut.column for cut in cuts), *tally.columns])
    layers = _read(columns, names)
    steps = {
        name: columns.steps(name)[: None if name in tally.columns else CLIPPED] for name in ranges
    }
    # Each step reads what the layer below made of the same column.
    for number in range(max(map(len, steps.values()), default=0)):
        places = {name: columns.value(name, number) for name in ranges if number < len(steps[name])}
        trees = [steps[name][number](named(place)).tree for name, place in places.items()]
        values = [columns.value(name, number + 1) for name in places]
        layers.append(dict(zip(values, trees, strict=True)))
    positions = [named(columns.value(name, len(steps[name]))) for name in tally.columns]
    terms = () if tally.terms is None else tally.terms(*positions)
    rows = {f"t{i}": tree_of(term) for i, term in enumerate(terms)}
    layers.append({"cell": _cell(tally, columns, positions), **rows})
    totals: list[exp.Expression] = [exp.Count(this=exp.Star())]
    if terms:
        layers += Clipping(query=query, size=len(terms)).layers()
        totals = [exp.Sum(this=named(f"i{i}").tree) for i in range(len(terms))]
    return [*layers, {"cell": named("cell").tree, **_texts(totals)}]


def check_statement(columns: Columns, names: Iterable[str]) -> list[Layer]:
    """The layers of how many records there are, and how many of them do not fit each column.

    Raises:
        RequestError: a column cannot be read exactly.
    """
    names = list(names)
    misfits = [(columns.misfit(name), integer(1)) for name in names]
    sums = [exp.Sum(this=chosen(misfit, rest=integer(0))) for misfit in misfits]
    return [*_read(columns, names), _texts([exp.Count(this=exp.Star()), *sums])]


@attrs.frozen(kw_only=True)
class Dialect:
    """How a server writes a statement.

    Args:
        name: As sqlglot calls it.
        fenced: Whether layers end with OFFSET 0, so that the server does not write one into
            another: it would compute what is used twice twice, in each of a dozen layers.
    """

    name: str
    fenced: bool

    def write(self, layers: list[Layer], pretty: bool = False) -> str:
        """Return one SELECT: by cell, where there are cells."""
        first, *inner, last = layers
        select = exp.select(*_aliases(first or {"one": integer(1)})).from_(RECORDS)
        for layer in inner:
            if layer:
                select = exp.select(exp.Star(), *_aliases(layer)).from_(self._derived(select))
        select = exp.select(*_aliases(last)).from_(self._derived(select))
        if "cell" in last:
            select = select.group_by(named("cell").tree)
        return str(select.sql(self.name, pretty=pretty))

    def _derived(self, select: exp.Select) -> exp.Subquery:
        return (select.offset(0) if self.fenced else select).subquery("l")


def _cell(tally: Tally, columns: Columns, positions: Iterable[Number]) -> exp.Expression:
    """Return the number of a record's cell among all; null where it adds nothing."""

    def cell_of(cut: Cut) -> exp.Expression:
        return columns.cell(cut, named(columns.value(cut.column, CLIPPED)) if cut.edges else None)

    cell: exp.Expression = integer(0)
    for cut in tally.cuts:
        cell = cell * integer(cut.places) + cell_of(cut)
    met: list[exp.Expression] = [
        exp.In(this=cell_of(cut), expressions=[*map(integer, cells)]) for cut, cells in tally.where
    ]
    met += [position.tree.is_(exp.Null()).not_() for position in positions]
    return chosen((exp.and_(*met), cell)) if met else cell


def _read(columns: Columns, names: Iterable[str]) -> list[Layer]:
    """Two layers: cells, and numbers and codes."""
    raw = {columns.cell_of(name): columns.raw(name) for name in names}
    return [raw, {columns.value(name): columns.read(name) for name in names}]


def _texts(totals: Iterable[exp.Expression]) -> Layer:
    """Totals as texts: whatever integers a driver knows."""
    return {f"s{i}": exp.cast(total, TEXT) for i, total in enumerate(totals)}


def _aliases(layer: Layer) -> list[exp.Expression]:
    return [tree.as_(name, quoted=True) for name, tree in layer.items()]
