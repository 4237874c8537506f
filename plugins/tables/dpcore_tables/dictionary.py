r"""Dictionaries: the features of a round, a public map that earlier answers fixed.

.. math:: \phi=[0.5,\ v_1\psi_1,\ v_2\psi_2,\dots]\ \text{ shortened to length at most 1},
          \qquad v_f=a_f\sqrt{0.75/\textstyle\sum a^2},\quad a=p_f^{1/4}+0.001

with a weight p_f of every term: what earlier answers make of it, or a rule of its simplicity.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.layout import HIGHEST, NONE, PARTS, RAMP, Layout, Term
from dpcore_tables.ranks import Ranks, cells

INTERCEPT = 0.5
_LEAST = 0.001


@attrs.frozen(kw_only=True, eq=False)
class Dictionary:
    """Terms and their sizes, on given ranks.

    Args:
        terms: Columns and levels, shape (d - 1, 4).
        sizes: v, shape (d - 1,).
        weights: p, shape (d - 1,).
    """

    layout: Layout
    ranks: Ranks
    terms: NDArray[np.intp]
    sizes: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(
        cls, layout: Layout, ranks: Ranks, weighed: Sequence[tuple[Term, float]]
    ) -> "Dictionary":
        """Return the terms with their weights, which are > 0."""
        weights = np.array([weight for _, weight in weighed])
        # The lengths are chosen so that the row's planned length is 1 with the intercept. Ramps are
        # small but for few records, whose rows are shortened.
        table = _table([term for term, _ in weighed])
        is_ramp = _are_ramps(layout, table)
        amounts = np.where(is_ramp, 0.0, weights**0.25 + _LEAST)
        sizes = amounts * math.sqrt((1 - INTERCEPT**2) / float(np.sum(amounts**2)))
        sizes[is_ramp] = 1.0
        return cls(
            layout=layout,
            ranks=ranks,
            terms=table,
            sizes=sizes,
            weights=weights,
        )

    @classmethod
    def sized(
        cls, layout: Layout, ranks: Ranks, terms: Sequence[Term], sizes: NDArray[np.float64]
    ) -> "Dictionary":
        """Return the terms with sizes > 0 of their own, which need not fit: rows are shortened."""
        return cls(layout=layout, ranks=ranks, terms=_table(terms), sizes=sizes, weights=sizes**4)

    @property
    def width(self) -> int:
        """d, the number of functions, with the intercept as one of them."""
        return 1 + len(self.sizes)

    @property
    def scales(self) -> NDArray[np.float64]:
        """The size of every function, [0.5, v], the intercept first; shape (d,)."""
        return np.concatenate([[INTERCEPT], self.sizes])

    @property
    def is_ramp(self) -> NDArray[np.bool_]:
        """Which terms are ramps, shape (d - 1,)."""
        return _are_ramps(self.layout, self.terms)

    def ramps(self) -> Iterator[tuple[int, int, bool]]:
        """Of every ramp its place among the terms, its number, and whether it is an upper one."""
        for place in np.flatnonzero(self.is_ramp).tolist():
            column, level = self.terms[place, :2].tolist()
            yield place, self.layout.numeric.index(column), level == RAMP

    @property
    def squares(self) -> NDArray[np.float64]:
        """About the mean squares of the terms, shape (d - 1,)."""
        squares = np.ones(len(self.terms))
        for place, number, above in self.ramps():
            squares[place] = self.ranks.ramp_square(number, above)
        return squares

    def deviations(self) -> NDArray[np.float64]:
        """Maps weights to themselves, but those of ramps to what they differ by from a column's
        straight line, were it to go on beyond the cells; shape (d, d)."""
        deviations = np.eye(self.width)
        for ramp, number, above in self.ramps():
            line = (self.layout.numeric[number], 0, NONE, NONE)
            start, end = self.ranks.tail(number, above)
            # Level 0 is 2 z, which rises by so much from the end of the cells to that of the range.
            rise = 2 * (end - start) / float(self.ranks.widths[number]) * (1 if above else -1)
            for place in np.flatnonzero((self.terms == line).all(axis=1)).tolist():
                deviations[ramp + 1, place + 1] = -rise * self.sizes[place] / self.sizes[ramp]
        return deviations

    def only(self, terms: NDArray[np.bool_]) -> "Dictionary":
        """Return the same with some of its terms only, shape (d - 1,)."""
        return attrs.evolve(
            self, terms=self.terms[terms], sizes=self.sizes[terms], weights=self.weights[terms]
        )

    def groups(self) -> NDArray[np.intp]:
        """Which column or pair of columns every term belongs to, counted from 0, ramps apart; shape
        (d - 1,)."""
        owners = np.column_stack([self.terms[:, [0, 2]], self.is_ramp])
        _, numbers = np.unique(owners, axis=0, return_inverse=True)
        return np.asarray(numbers, dtype=np.intp).reshape(-1)

    def values(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """psi of every term, one row a term: (n, p) to (d - 1, n). Row-wise in the records."""
        return np.array([*self._values(encoded)]).reshape(len(self.terms), len(encoded))

    def _values(self, encoded: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield the same, one term after the other."""
        functions = self._functions(encoded)
        for column, level, second, second_level in self.terms.tolist():
            if second == NONE:
                yield functions[column, level]
            else:
                yield functions[column, level] * functions[second, second_level]

    def rows(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi, one row a coordinate: (n, p) to (d, n); every record's column at most 1 long.

        A function of the record only, to the last bit: squares are added term by term.
        """
        features = np.empty((self.width, len(encoded)))
        features[0] = INTERCEPT
        squares = np.full(len(encoded), INTERCEPT**2)
        part = np.empty(len(encoded))
        entries = zip(features[1:], self._values(encoded), self.sizes.tolist(), strict=True)
        for row, value, size in entries:  # row by row: each fits in a processor's cache
            np.multiply(value, size, out=row)
            np.multiply(row, row, out=part)
            squares += part
        # Shortened, never lengthened: at most 1 long, which is what the sensitivity rests on.
        features /= np.maximum(np.sqrt(squares), 1.0)
        return features

    def _functions(
        self, encoded: NDArray[np.float64]
    ) -> dict[tuple[int, int], NDArray[np.float64]]:
        """Return every function that a term needs, of shape (n,)."""
        # Each function is computed once, however many products it is in.
        terms = self.terms.tolist()
        keys = {(c, k) for c, k, _, _ in terms} | {(c, k) for _, _, c, k in terms if c != NONE}
        place = {column: number for number, column in enumerate(self.layout.numeric)}
        standard = self.ranks.standard(encoded[:, self.layout.encoded])
        functions: dict[tuple[int, int], NDArray[np.float64]] = {}
        # Every branch is row by row, so a record's features depend on no other record.
        for column in sorted({column for column, _ in keys}):
            column_levels = sorted(level for owner, level in keys if owner == column)
            if self.layout.levels[column]:
                for level in column_levels:
                    functions[column, level] = self._category(encoded, column, level)
                continue
            z = standard[place[column]]
            if column_levels[0] == 0:
                functions[column, 0] = 2 * z
            number = encoded[:, [self.layout.starts[column]]]
            for level in [level for level in column_levels if level >= RAMP]:
                ramp = self.ranks.ramp(place[column], level == RAMP, number[:, 0])
                functions[column, level] = ramp
            steps = [level for level in column_levels if HIGHEST < level < RAMP]
            if steps:
                parts = self.ranks.only(place[column]).parts(number, PARTS)[0]
                functions |= {(column, level): _step(parts, level - HIGHEST) for level in steps}
            levels = [level for level in column_levels if level <= HIGHEST]
            if levels and levels[-1] > 0:
                # One gather of cos(pi t), then the recurrence: the same bits anywhere.
                waves = self.ranks.waves[place[column]][cells(z)]
                for level, wave in enumerate(_chebyshev(waves, levels[-1]), start=1):
                    if (column, level) in keys:
                        functions[column, level] = math.sqrt(2) * wave
        return functions

    def _category(
        self, encoded: NDArray[np.float64], column: int, level: int
    ) -> NDArray[np.float64]:
        levels = self.layout.levels[column]
        values = encoded[:, self.layout.starts[column] + level]
        return values if levels == 2 else math.sqrt(levels) * (values - 1 / levels)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that earlier answers fixed."""
        return {
            "terms": self.terms,
            "sizes": self.sizes,
            "term_weights": self.weights,
            "means": self.ranks.means,
            "widths": self.ranks.widths,
            "waves": self.ranks.waves,
            "shares": self.ranks.shares,
        }

    def args(self) -> dict[str, NDArray[Any]]:
        """Return what rows are made of: few and short, as every query of a round carries them."""
        return {"terms": self.terms, "sizes": self.sizes, "ranks": self.ranks.array}

    @classmethod
    def from_args(cls, layout: Layout, args: Mapping[str, Any]) -> "Dictionary":
        """Return the inverse of `args`, but for the terms' weights, which rows do not need."""
        sizes = args["sizes"]
        return cls(
            layout=layout,
            ranks=Ranks.from_array(args["ranks"]),
            terms=args["terms"],
            sizes=sizes,
            weights=np.zeros(len(sizes)),
        )


def _step(parts: NDArray[np.intp], place: int) -> NDArray[np.float64]:
    """0 below the rank q/64 and 1 from there on, standardised as if ranks were spread evenly."""
    # Mean 0 and variance 1 under even ranks, as all other functions have.
    above = 1 - place / PARTS
    return np.asarray(((parts >= place) - above) / math.sqrt(above * (1 - above)))


def _are_ramps(layout: Layout, terms: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Of numbers only: a column of many categories has as high levels."""
    is_number = np.array(layout.levels, dtype=np.intp)[terms[:, 0]] == 0
    return np.asarray(is_number & (terms[:, 1] >= RAMP))


def _table(terms: Sequence[Term]) -> NDArray[np.intp]:
    return np.array([tuple(term) for term in terms], dtype=np.intp).reshape(-1, 4)


def _chebyshev(first: NDArray[np.float64], highest: int) -> list[NDArray[np.float64]]:
    """cos(k t) of k = 1, ..., highest from cos(t)."""
    waves = [first]
    previous = np.ones_like(first)
    for _ in range(highest - 1):
        waves.append(2 * first * waves[-1] - previous)
        previous = waves[-2]
    return waves
