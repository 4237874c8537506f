"""Clipped integers of a record's terms, by the operations of `dpcore.learners.clipping`.

The same comparisons, products and roundings in the same order, one row at a time: so the same
integers on any machine whose doubles are IEEE's. What is smaller than 2^-60 units counts as 0:
alone it is rounded to 0 in any case, and next to a row's largest entry it changes no bit of a sum
of squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import attrs
from sqlglot import exp

from dpcore import Distance, SumQuery
from dpcore.rounding import down, up
from dpcore_engines.sql.number import INTEGER, Number, chosen, constant, named

_CUTOFF, _EXACT = 2.0**44, 1 << 53
_EXPONENTS = (
    8  # of the largest entry above the clip, of the largest entry of a row: terms are near the clip
)


@attrs.frozen(kw_only=True)
class Clipping:
    """The layers from terms to integers: each reads columns of the one before.

    Args:
        query: What declares the clipping.
        size: How many terms a record has.
    """

    query: SumQuery
    size: int

    def layers(self) -> list[dict[str, exp.Expression]]:
        """From columns t0, t1, ... to i0, i1, ...: integers. Each adds columns to those before."""
        raw, terms, rows, units = ([named(f"{x}{i}") for i in range(self.size)] for x in "tvru")
        long, scale, length = named("long").tree, named("scale"), named("length")
        largest = _greatest([abs(term) for term in terms])
        # What is used more than once has a layer of its own, or it would be computed as often; and
        # what only long rows need is computed for them alone.
        return [
            _columns("v", map(self._flush, raw)),
            _columns("r", map(self._round, terms)),
            {"total": self._length_of([abs(row) for row in rows]).tree},
            {"long": exp.Not(this=exp.Paren(this=self._fits(named("total"))))},
            {"largest": chosen((long.copy(), largest.tree))},
            {"scale": chosen((long.copy(), self._scale(named("largest")).tree))},
            _columns("u", (term * scale for term in terms)),
            {"length": chosen((long.copy(), self._length(units).tree))},
            {
                f"i{i}": exp.cast(
                    chosen((long.copy(), self._scaled(unit, length).tree), rest=row.tree), INTEGER
                )
                for i, (row, unit) in enumerate(zip(rows, units, strict=True))
            },
        ]

    @property
    def _limit(self) -> float:
        return math.ldexp(self.query.sum.clip, -self.query.sum.unit)

    @property
    def _depth(self) -> int:
        return max(1, self.size).bit_length()

    def _flush(self, term: Number) -> Number:
        term = term.flushed(math.ldexp(1.0, self.query.sum.unit - 60))
        return term.clip(0.0, math.inf) if self.query.sum.sign == "non_negative" else term

    def _round(self, term: Number) -> Number:
        return (term * math.ldexp(1.0, -self.query.sum.unit)).clip(-_CUTOFF, _CUTOFF).rounded()

    def _length_of(self, sizes: Sequence[Number]) -> Number:
        """Return the length of a row of sizes; its square, in l2."""
        if self.query.clip_norm is Distance.LINF:
            return _greatest(sizes)
        return _sum_halves(
            sizes if self.query.clip_norm is Distance.L1 else [size * size for size in sizes]
        )

    def _fits(self, total: Number) -> exp.Expression:
        """Return whether a row of integers is surely at most the limit long."""
        limit = self._limit
        if self.query.clip_norm is not Distance.L2:
            return total <= (
                limit if self.query.clip_norm is Distance.LINF else min(limit, float(_EXACT))
            )
        exact = float(min(_EXACT, math.floor(Fraction(limit) ** 2)))
        raised = total * up(1.0, roundings=self._depth + 1)
        rounded = raised <= down(limit * limit, roundings=1)
        return chosen((total < float(_EXACT), total <= exact), rest=rounded)

    def _scale(self, largest: Number) -> Number:
        """Return the power of two that brings the largest entry into [1/2, 1)."""
        power = math.frexp(self.query.sum.clip)[1]
        powers = range(power - 2 - self.size.bit_length(), power + _EXPONENTS)
        cases = [(largest < 2.0**power, constant(2.0**-power).tree) for power in powers]
        return Number(chosen(*cases, rest=constant(2.0 ** -powers[-1]).tree))

    def _length(self, scaled: Sequence[Number]) -> Number:
        total = self._length_of([abs(entry) for entry in scaled])
        return total.root() if self.query.clip_norm is Distance.L2 else total

    def _scaled(self, entry: Number, length: Number) -> Number:
        margin = {Distance.LINF: 0.5, Distance.L1: self.size / 2}.get(
            self.query.clip_norm, up(math.sqrt(self.size), roundings=1) / 2
        )
        room = down(max(self._limit - margin, 0.0), roundings=1)
        factor = room / (length * up(1.0, roundings=self._depth + 6))
        return (entry * factor).rounded()


def _columns(letter: str, numbers: Iterable[Number]) -> dict[str, exp.Expression]:
    return {f"{letter}{i}": number.tree for i, number in enumerate(numbers)}


def _greatest(sizes: Sequence[Number]) -> Number:
    greatest = sizes[0]
    for size in sizes[1:]:
        greatest = Number(chosen((size > greatest, size.tree), rest=greatest.tree))
    return greatest


def _sum_halves(entries: Sequence[Number]) -> Number:
    """Sums in the order of the core: the entries are halved and added."""
    terms = [*entries]
    while len(terms) > 1:
        half, odd = divmod(len(terms), 2)
        pairs = zip(terms[:half], terms[half : 2 * half], strict=True)
        terms = [*(a + b for a, b in pairs), *terms[len(terms) - odd :]]
    return terms[0]
