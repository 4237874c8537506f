"""Number: a double that a server computes, one IEEE operation after the other.

Every constant is written as the text of a double and cast, as a literal with a decimal point is a
decimal to most servers. Nothing here relies on what a server calls the least or the greatest of
numbers, one of which is null or none: every bound is a comparison.
"""

from __future__ import annotations

from typing import Any

import attrs
from sqlglot import exp

DOUBLE, INTEGER, TEXT = "DOUBLE", "BIGINT", "TEXT"


def constant(value: float) -> Number:
    """Return a double, to the last bit."""
    return Number(exp.cast(exp.Literal.string(repr(float(value))), DOUBLE))


def integer(value: int) -> exp.Expression:
    """Return an integer of at least 0."""
    return exp.Literal.number(str(value))


def chosen(*cases: tuple[exp.Expression, exp.Expression], rest: Any = None) -> exp.Expression:
    """Return the value of the first condition that holds; `rest`, or null, where none does."""
    branches = [exp.If(this=condition, true=value) for condition, value in cases]
    return exp.Case(ifs=branches, default=rest)


@attrs.frozen(eq=False, repr=False)
class Number:
    """An expression whose value is a double or null; its operators are those of `Tally.terms`."""

    tree: exp.Expression

    def __add__(self, other: Operand) -> Number:
        return _binary(exp.Add, self, other)

    def __radd__(self, other: Operand) -> Number:
        return _binary(exp.Add, other, self)

    def __sub__(self, other: Operand) -> Number:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: Operand) -> Number:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: Operand) -> Number:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: Operand) -> Number:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: Operand) -> Number:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: Operand) -> Number:
        return _binary(exp.Div, other, self)

    def __abs__(self) -> Number:
        return Number(exp.Abs(this=self.tree.copy()))

    def __lt__(self, other: Operand) -> exp.Expression:
        return self.tree < tree_of(other)

    def __le__(self, other: Operand) -> exp.Expression:
        return self.tree <= tree_of(other)

    def __gt__(self, other: Operand) -> exp.Expression:
        return self.tree > tree_of(other)

    def __ge__(self, other: Operand) -> exp.Expression:
        return self.tree >= tree_of(other)

    def clip(self, low: Operand, high: Operand) -> Number:
        """Into [low, high]; null stays null."""
        cases = ((self < low, tree_of(low)), (self > high, tree_of(high)))
        return Number(chosen(*cases, rest=self.tree.copy()))

    def flushed(self, least: float) -> Number:
        """Return the same, and 0 where it is smaller in size than `least`.

        PostgreSQL refuses products and quotients that underflow, so a record could end a run.
        """
        return Number(chosen((abs(self) < least, tree_of(0.0)), rest=self.tree.copy()))

    def rounded(self) -> Number:
        """Return the nearest integer, ties to even: what a cast to integers is. At most 2^53 in
        size.
        """
        return Number(exp.cast(exp.cast(self.tree.copy(), INTEGER), DOUBLE))

    def root(self) -> Number:
        """Return its square root, correctly rounded."""
        return Number(exp.Sqrt(this=self.tree.copy()))


Operand = Number | float


def _binary(kind: type[exp.Binary], left: Operand, right: Operand) -> Number:
    """In parentheses: sqlglot's own operators leave those out that numbers of one kind need not,
    and of doubles a + (b + c) is not a + b + c."""
    return Number(exp.Paren(this=kind(this=tree_of(left), expression=tree_of(right))))


def tree_of(operand: Operand) -> exp.Expression:
    """Return its expression: a copy, as sqlglot moves an expression to where it is put."""
    return (operand if isinstance(operand, Number) else constant(operand)).tree.copy()


def named(name: str) -> Number:
    """Return a column of a layer."""
    return Number(exp.column(name, quoted=True))
