"""Declared columns as expressions: what `project_table` makes of a cell, on a server.

A cell's type is that of its column, so that nothing is inferred. What a server cannot read as the
core does is refused by name: texts that hold numbers, dates with a time of day, categories that
are numbers or dates in a column of texts.

NaN and infinity: `x - x = 0` says that x is finite, in the arithmetic of IEEE. It is not asked
whether x is NaN or larger than a bound before that: a server that knows a least and a greatest
value of a file, among which NaN is not, may answer such questions without looking.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from sqlglot import exp

from dpcore.domain.bins import Binned
from dpcore.domain.cell import key
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Dates, Range, reading
from dpcore.domain.domain import Domain
from dpcore.encoding.columns import read_codes
from dpcore.errors import RequestError, need
from dpcore.summing import Cut
from dpcore_engines.sql.number import DOUBLE, TEXT, Number, chosen, constant, integer, named

CLIPPED = 2  # steps from a number to one inside its range
_TINY = 2.0**-300  # of a position: its powers are no underflow, and round to 0 in any unit
_NEAR = 2.0**-100  # of a distance to the low end, in widths: less is nothing next to 1
_DAYS = ("0001-01-01", "9999-12-31", "1970-01-01")  # the calendar's ends, and what is counted from
_ANY = Range(-1e150, 1e150)
_BEYOND = ("1e300", "1e-300")  # of a decimal: what is larger, or smaller, may be no double


Case = tuple[exp.Expression, exp.Expression]

Steps = tuple[Callable[[Number], Number], ...]
"""As many functions, each of what the one before made."""


class Kind(enum.Enum):
    """What a column's cells are on the server."""

    INTEGERS = enum.auto()
    FLOATS = enum.auto()
    DECIMALS = enum.auto()
    TRUTHS = enum.auto()
    TEXTS = enum.auto()
    DATES = enum.auto()
    CELLS = enum.auto()  # of a text file: each is what its characters say


_TYPED = (Kind.INTEGERS, Kind.FLOATS, Kind.DECIMALS, Kind.TRUTHS)
_NUMBERS = (*_TYPED, Kind.CELLS)
_NUMBER = (  # the grammar of `dpcore.domain.cell`
    r"[+-]?(([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"
)
_TRUTHS = ("true", "True", "TRUE", "false", "False", "FALSE")


@attrs.frozen(kw_only=True, eq=False)
class Columns:
    """The declared columns of a domain, over a relation that holds them.

    Args:
        kinds: What each holds there; None for a type that is not read here.
    """

    domain: Domain
    kinds: Mapping[str, Kind | None]

    def value(self, name: str, step: int = 0) -> str:
        """Where a layer holds what `read` says, or what a step made of it: a name of ours, as a
        column may have any."""
        return f"x{[*self.domain.rules].index(name)}_{step}"

    def cell(self, cut: Cut, number: Number | None) -> exp.Expression:
        """Return the number of a record's cell, or null where it is in none.

        Args:
            number: Its value inside the range, where the cut is of one.
        """
        if number is None:
            cell = named(self.value(cut.column)).tree
        else:
            assert cut.edges is not None, "a range has edges"
            cell = _between(number, cut.edges)
        return exp.func("COALESCE", cell, integer(cut.size)) if cut.rest else cell

    def cell_of(self, name: str) -> str:
        """Where the first layer holds what `raw` says."""
        return f"c{[*self.domain.rules].index(name)}"

    def raw(self, name: str) -> exp.Expression:
        """Return a column's cells: texts trimmed, floats as doubles, others as they are.

        Raises:
            RequestError: they cannot be read as the core reads them.
        """
        cell, kind = named(name).tree, self._kind(name, self.domain.rules[name])
        if kind in (Kind.TEXTS, Kind.CELLS):
            return _trimmed(cell)
        return exp.cast(cell, DOUBLE) if kind in (Kind.FLOATS, Kind.INTEGERS) else cell

    def read(self, name: str) -> exp.Expression:
        """Return a column's number, null for none; or the code of its category, null for none.

        In a layer on one of `raw` cells.
        """
        rule = self.domain.rules[name]
        return self._number(name, rule).tree if isinstance(rule, Range) else self._code(name, rule)

    def steps(self, name: str) -> Steps:
        """From a range's number to its position between the ends, null where it has none.

        Each step has a layer of its own. After the first two, `CLIPPED`, it is inside the range.
        """
        rule = self.domain.rules[name]
        assert isinstance(rule, Range), "numbers have positions"
        low, high = float(rule.low), float(rule.high)

        def fill(number: Number) -> Number:
            # Without a mark for missing values a default represents them.
            if rule.missing:
                return number
            default = rule.centre if rule.default is None else rule.default
            return Number(exp.func("COALESCE", number.tree, constant(default).tree))

        def clip(number: Number) -> Number:
            return number.clip(low, high)

        if self.domain.labelled and name == self.domain.target:
            half, centre = float(rule.half_width), float(rule.centre)
            return (
                fill,
                clip,
                lambda inside: (inside - centre).clip(-half, half),
                lambda centred: centred.flushed(half * _TINY) / half,
                lambda quotient: quotient.clip(-1.0, 1.0),
            )
        width = float(rule.high - rule.low)
        return (
            fill,
            clip,
            lambda inside: (inside - low).flushed(width * _NEAR),
            lambda above: (2.0 * above / width - 1.0).clip(-1.0, 1.0),
            lambda position: position.flushed(_TINY),
        )

    def misfit(self, name: str) -> exp.Expression:
        """Return whether a cell does not fit its declared column, by `Range.misfits` and its like.

        In a layer on one that reads the column.
        """
        rule, read = self.domain.rules[name], named(self.value(name))
        if not isinstance(rule, Range):
            return exp.Is(this=read.tree, expression=exp.Null())
        outside = exp.or_(read < float(rule.low), read > float(rule.high))
        if rule.default is not None or rule.missing:
            return outside
        return exp.or_(outside, exp.Is(this=read.tree.copy(), expression=exp.Null()))

    def _kind(self, name: str, rule: Any) -> Kind:
        kind = self.kinds[name]
        numbers = rule.range if isinstance(rule, Binned) else rule
        allowed: tuple[Kind, ...]
        if isinstance(numbers, Range):
            allowed = (Kind.DATES,) if isinstance(numbers, Dates) else _NUMBERS
        else:
            allowed = (Kind.TEXTS, Kind.CELLS) if rule.as_text else (*_NUMBERS, Kind.TEXTS)
        need(
            getattr(numbers, "zone", None) is getattr(numbers, "offsets", None) is None,
            RequestError,
            f"column {name!r} declares a zone, or offsets: SQL does not read moments by dpcore's "
            f"rules of zones; use the local engine",
        )
        if kind is None or kind not in allowed:
            kinds = " or ".join(k.name.lower() for k in allowed if k is not Kind.CELLS)
            raise RequestError(
                f"column {name!r} is declared as {numbers.describe()}, and is stored as another "
                f"type than {kinds}: SQL reads no other exactly; cast it in the file or in the "
                f"query, or use the local engine"
            )
        return kind

    def _number(self, name: str, rule: Any) -> Number:
        """Return the double that a cell is; null where it is none."""
        kind, cell = self._kind(name, rule), named(self.cell_of(name)).tree
        if kind is Kind.TRUTHS:
            zero, one = constant(0.0).tree, constant(1.0).tree
            return Number(chosen((cell, one), (exp.Not(this=cell.copy()), zero)))
        if kind is Kind.DATES:
            first, last, epoch = (exp.cast(exp.Literal.string(day), "DATE") for day in _DAYS)
            inside = exp.and_(cell >= first, cell <= last)
            return Number(chosen((inside, exp.cast(cell - epoch, DOUBLE))))
        if kind is Kind.DECIMALS:
            return _decimal(cell)
        if kind is Kind.CELLS:
            is_number = exp.func("REGEXP_FULL_MATCH", cell, exp.Literal.string(_NUMBER))
            return Number(
                chosen((is_number, exp.TryCast(this=cell.copy(), to=exp.DataType.build(DOUBLE))))
            )
        double = Number(cell)
        if kind is Kind.INTEGERS:
            return double
        ends = (double.tree.copy().eq(constant(end).tree) for end in (math.inf, -math.inf))
        finite = (double - double).tree.eq(constant(0.0).tree)
        return Number(chosen((exp.or_(finite, *ends), double.tree.copy())))

    def _code(self, name: str, rule: Any) -> exp.Expression:
        """Return the code of a cell's category; null where it is none."""
        kind = self._kind(name, rule)
        if isinstance(rule, Classes):
            rule = rule.categories()
        unknown = int(read_codes(rule, [None])[0])
        rest = exp.Null() if unknown < 0 else integer(unknown)
        if isinstance(rule, Binned):
            number, numbers = self._number(name, rule), rule.range
            inside = exp.and_(number >= float(numbers.low), number <= float(numbers.high))
            absent = exp.Is(this=number.tree.copy(), expression=exp.Null())
            cell = _below(number, rule.edges[1:-1], 0)
            return chosen((inside, cell), (absent, rest))
        listed = [*rule.values, *(cell for cell, _ in rule.spellings)]
        keys = [reading(rule)(value) for value in listed]
        is_counted = kind is Kind.CELLS and all(isinstance(k, float) for k in keys)
        if kind in (Kind.TEXTS, Kind.CELLS) and not is_counted:
            is_plain = all(isinstance(text, str) and "\0" not in text for text in keys)
            need(
                is_plain,
                RequestError,
                f"column {name!r} holds texts, and some of its categories are numbers, dates or "
                f"truths, which one text may spell in many ways: SQL cannot say which; use the "
                f"local engine, or cast the column in the file or in the query",
            )
            return chosen(*self._spelled(name, rule, keys), rest=rest)
        # The rule itself says what numbers and truths count as.
        values: Sequence[Any] = [False, True]
        if kind is not Kind.TRUTHS:
            values = [0.0, 1.0, *(k for value in listed if isinstance(k := key(value), float))]
        counted = self._number(name, _ANY)
        codes = dict(zip(values, read_codes(rule, values).tolist(), strict=True))
        cases = [
            (counted.tree.copy().eq(constant(value).tree), integer(code))
            for value, code in codes.items()
            if code >= 0
        ]
        cases += self._spelled(name, rule, _TRUTHS) if kind is Kind.CELLS else []
        return chosen(*cases, rest=rest) if cases else rest

    def _spelled(self, name: str, rule: Any, texts: Sequence[Any]) -> list[Case]:
        """Return the codes of a cell that is one of some texts, where they have one."""
        cell, codes = named(self.cell_of(name)).tree, read_codes(rule, texts).tolist()
        return [
            (cell.copy().eq(exp.Literal.string(text)), integer(code))
            for text, code in dict(zip(texts, codes, strict=True)).items()
            if code >= 0
        ]


def _decimal(cell: exp.Expression) -> Number:
    """Return a decimal as the nearest double, by its text; beyond the doubles, an end of what they
    hold.

    PostgreSQL refuses to cast a decimal that is no double, so a record could end a run.
    """
    text, zero = exp.cast(cell, TEXT), exp.Literal.number("0")
    huge, tiny = (exp.Literal.number(end) for end in _BEYOND)
    small = exp.and_(cell > zero, cell < tiny), exp.and_(cell < zero, cell > -tiny)
    cases = (
        (text.copy().eq(exp.Literal.string("NaN")), exp.Null()),
        (cell >= huge, constant(math.inf).tree),
        (cell <= -huge, constant(-math.inf).tree),
        (small[0], constant(float(tiny.this)).tree),
        (small[1], constant(-float(tiny.this)).tree),
    )
    return Number(chosen(*cases, rest=exp.cast(text, DOUBLE)))


def _trimmed(cell: exp.Expression) -> exp.Expression:
    """A text without blanks and tabs at its ends, compared byte by byte."""
    text = exp.Collate(this=exp.cast(cell, TEXT), expression=exp.Identifier(this="C", quoted=True))
    return exp.Trim(this=text, expression=exp.Literal.string(" \t"))


def _between(number: Number, edges: Sequence[float]) -> exp.Expression:
    """Return the cell of a number, null outside: each holds its lower edge, the last one both."""
    inside = exp.and_(number >= edges[0], number <= edges[-1])
    return chosen((inside, _below(number, edges[1:-1], 0)))


def _below(number: Number, edges: Sequence[float], first: int) -> exp.Expression:
    """`first`, and one more for every edge that is not above the number: by halves."""
    if not edges:
        return integer(first)
    half = len(edges) // 2
    lower = _below(number, edges[:half], first)
    return chosen(
        (number < edges[half], lower), rest=_below(number, edges[half + 1 :], first + half + 1)
    )
