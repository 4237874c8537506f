"""Synthetic rows: cells of every sort that a type may hold, for the law `sql.same-integer`.

They follow from the declared columns, their types and the edges that are asked about: all public,
and no record is looked at. Three tables: one of everything; one without infinities, so that a
file's least and greatest values are finite next to NaN; one of a single value next to what is
empty.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow

from dpcore import Domain, Range
from dpcore.domain.bins import Binned
from dpcore_engines.sql.columns import Kind

ROWS = 768
_SEED = 20_460_000
_RARE = 0.15  # of cells, so that most rows fit columns of narrow types
_EPOCH = datetime.date(1970, 1, 1)
_SPELLINGS = (
    "", "nan", "1_000", "1.", ".5", "+1", "1e0", "1E+00", "01", "1.0", "inf", "-Infinity", "+INF",
    "0x10", "\uff11", "1e400", "-1e400", "1e-400", "2.4703282292062328e-324", "9007199254740993",
    "true", "False", "tRUE", "2020-01-31", "2020-01-31T12:00", "1 2", "\u00a01", "e5", "--1", ".",
)  # fmt: skip
_FINITE = (math.nan, None, -0.0, 0.0, 5e-324, -5e-324, 1e-310, 1e300, -1e300)


def synthetic_tables(
    domain: Domain,
    schema: pyarrow.Schema,
    kinds: Mapping[str, Kind | None],
    edges: Mapping[str, Iterable[float]],
) -> list[pyarrow.Table]:
    """Three tables of the declared columns, the same at every call.

    Args:
        edges: Numbers at which a range is cut, by column: values at them and next to them.
    """
    random, tables = np.random.default_rng(_SEED), []
    for infinite, single in ((True, False), (False, False), (False, True)):
        columns = []
        for field in schema:
            kind = kinds[field.name]
            rule = domain.rules[field.name]
            usual, rare = _cells(rule, kind, edges.get(field.name, ()), random)
            if infinite and kind is Kind.FLOATS:
                rare = [*rare, math.inf, -math.inf]
            if single:
                usual, rare = usual[:1], [None, math.nan] if kind is Kind.FLOATS else [None]
            # Most rows fit every column, or a column of a narrow type would reject them all.
            cells = [
                (rare if is_rare else usual)[place % len(rare if is_rare else usual)]
                for is_rare, place in zip(
                    random.random(ROWS) < _RARE, random.integers(1 << 30, size=ROWS), strict=True
                )
            ]
            columns.append(_array(cells, field.type, kind))
        tables.append(pyarrow.table(dict(zip(schema.names, columns, strict=True))))
    return tables


def _cells(
    rule: Any, kind: Kind | None, edges: Iterable[float], random: np.random.Generator
) -> tuple[list[Any], list[Any]]:
    """Usual cells of a column, and rare ones."""
    numbers = rule.range if isinstance(rule, Binned) else rule
    if isinstance(numbers, Range):
        low, high = float(numbers.low), float(numbers.high)
        # A comparison errs first at an edge, and one double next to it.
        width = high - low
        at = [edge for edge in edges if math.isfinite(edge)]
        at += rule.edges if isinstance(rule, Binned) else ()
        at += [low, high, numbers.centre]
        adjacent = [math.nextafter(x, way) for x in at for way in (-math.inf, math.inf)]
        inner = (low + width * random.random(200)).tolist()
        usual = [*inner, *at, *adjacent, low - width / 3, high + width / 3]
        rare: list[Any] = [*_FINITE, round(low) - 1, round(high) + 1]
    else:
        listed = [*rule.values, *(cell for cell, _ in rule.spellings)]
        if kind in (Kind.TEXTS, Kind.CELLS):
            texts = [str(value) for value in listed]
            changed = [
                f for t in texts for f in (t.upper(), t.lower(), f"{t}x", f"\u00a0{t}", t[:-1])
            ]
            usual = [*texts, *(f" {t}\t " for t in texts)]
            spelled = _SPELLINGS if kind is Kind.CELLS else ()
            return usual, [*spelled, None, "", " ", "\u00e9", "e\u0301", "1", "'", "\\", *changed]
        usual = [float(v) for v in listed if isinstance(v, int | float)] or [0.0, 1.0]
        rare = [*_FINITE, *(v + 0.5 for v in usual)]
    return _typed(usual, kind), _typed(rare, kind)


def _typed(numbers: Sequence[Any], kind: Kind | None) -> list[Any]:
    """Numbers as the cells of a kind; what it cannot hold is empty, or left out."""
    if kind is Kind.FLOATS:
        return [*numbers]
    if kind is Kind.CELLS:
        texts = [repr(x) for x in numbers if x is not None]
        return [*texts, *(f"\t{t} " for t in texts), *(_SPELLINGS if None in numbers else ())]
    finite = [x for x in numbers if x is not None and math.isfinite(x)]
    if kind is Kind.TRUTHS:
        return [True, False, None]
    if kind is Kind.DECIMALS:
        return [*map(Decimal, map(repr, finite)), None]
    integers = [round(x) for x in finite if abs(x) < 2**62]
    if kind is Kind.DATES:
        last = (datetime.date.max - _EPOCH).days
        first = (datetime.date.min - _EPOCH).days
        ends = [first, last]
        return [
            _EPOCH + datetime.timedelta(d) for d in (*integers, *ends) if first <= d <= last
        ] + [None]
    return [*integers, 2**53 + 1, 2**63 - 1, -(2**63), None]


def _array(cells: Sequence[Any], kind: pyarrow.DataType, name: Kind | None) -> pyarrow.Array:
    """Cells as an array of a type; what does not fit there is empty."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return pyarrow.array(cells, kind.value_type).dictionary_encode()
    if name is Kind.FLOATS:
        is_null = np.array([cell is None for cell in cells])
        with np.errstate(over="ignore"):
            numbers = np.array([0.0 if cell is None else cell for cell in cells]).astype(
                kind.to_pandas_dtype()
            )
        return pyarrow.array(numbers, kind, mask=is_null, from_pandas=False)
    if isinstance(kind, pyarrow.OpaqueType):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])
    return pyarrow.array([_fitting(cell, kind) for cell in cells], kind)


def _fitting(cell: Any, kind: pyarrow.DataType) -> Any:
    from pyarrow import types

    if types.is_decimal(kind) and cell is not None:
        # More digits than a decimal of Arrow has, before the point and behind it.
        unit, room = Decimal(1).scaleb(-kind.scale), Context(prec=100)
        cell = cell.quantize(unit, context=room) if abs(cell) < 10**20 else None
    try:
        return pyarrow.scalar(cell, kind).as_py()
    except (pyarrow.ArrowInvalid, OverflowError):
        return None
