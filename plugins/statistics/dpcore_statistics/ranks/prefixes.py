r"""Rank prefixes: all quantiles at once, from the noisy number of values up to every grid point.

Counts of values at the points of a public grid are measured by the best strategy for prefix sums,
in every group; groups do not overlap. Let N(t) be the number of values up to the point t, n of all
of them, and :math:`D_q(t)=N(t)-qn`, a linear function of the counts. The joint distribution of the
noise says that :math:`|\tilde D_q(t)-D_q(t)|\le z_q(t)` for all t, q and groups together. As D
rises with
t, then:

* where :math:`\tilde D_q(t)+z_q(t)<0`, t and all points before lie below the quantile;
* where :math:`\tilde D_q(t)-z_q(t)>0`, more than qn values are up to t, so that no point beyond t
  is a quantile.

What is left between is the interval, whatever the values, ties included; its ends lie at most 2z
ranks from qn. The quantile itself is where the rising function nearest to :math:`\tilde D_q`
crosses 0: the point t for which the sum of :math:`\tilde D_q` before t is least.

Theorem: with A the strategy, a record that comes or goes moves what is measured by a column of A, a
replaced one by the distance of two columns within a group, and between two groups by at most
:math:`\sqrt2` times the longest column (l2), or twice (l1). Both groups move then, and n of a group
is private even where the number of records is public.

Where n is public, and no one is left out, it is no answer: N(t) is joined with it by least squares.
"""

import math
from functools import lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.columns import MOST_CELLS, number_column
from dpcore_statistics.groups import Grouped
from dpcore_statistics.population.inversion import quantile_points
from dpcore_statistics.population.sampling import (
    NOTHING,
    Ends,
    Sampling,
    expected_width,
    nothing_unless,
    population_intervals,
    sampling_of,
)
from dpcore_statistics.statistic import ROOT_TWO
from dpcore_statistics.strategies import (
    Lengths,
    Strategy,
    joint_half_widths_of,
    longest_columns,
    rank_strategy,
)

MOST_POINTS = 2048
COVERS = (
    "noise only: where the quantile of the values lies, each clipped to its declared range and "
    "missing ones left out. It does not include sampling error"
)


@attrs.frozen(kw_only=True)
class RankPrefixes(Grouped):
    """Quantiles of one column, in every group, by prefix counts on a grid.

    Total: as every statistic.

    Args:
        column: A declared range; missing values are left out.
        quantiles: In (0, 1), increasing.
        points: Of the grid, equally spaced over the range, both ends included.
        guess: For what `check` expects of the population only: `records`, the number of values.
    """

    by: tuple[str, ...] = ()
    column: str
    quantiles: tuple[float, ...]
    points: int
    guess: dict[str, float] = attrs.field(factory=dict)

    def unsampled(self, public: Public) -> str:
        """Return "": every quantile has an interval about the population."""
        return ""

    def strategy(self, public: Public) -> Strategy:
        """Return the strategy measured in every group: prefixes up to every point.

        Raises:
            ParameterError: there are too many points, or cells in all groups together.
        """
        cells = self.groups(public).size * self.points
        # Beyond, a strategy takes too long to solve.
        fault = f"at most {MOST_POINTS} by prefixes, and {MOST_CELLS} in all groups together"
        fits = self.points <= MOST_POINTS and cells <= MOST_CELLS
        need(fits, "quantiles", fault, "points", self.points)
        n_is_public = self._public_total(public) is not None
        return rank_strategy(self.points, self.norm(public) is Distance.L1, n_is_public)

    def query(self, public: Public) -> SumQuery:
        """Return the measured sums of every group: shape (groups, rows of A)."""
        number_column(public.domain, self.column)
        strategy = self.strategy(public)
        clip = 1.0 if self.norm(public) is Distance.L1 else strategy.longest_column
        shape = (self.groups(public).size, len(strategy.measured))
        return SumQuery(name="ranks", shape=shape, distance=self.norm(public), sum=Sum(clip=clip))

    def entries(self, query: SumQuery) -> int:
        """Return the number of entries that a record fills: a column of A, in one group."""
        return query.shape[1]

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above; a record that does not count has a column of 0."""
        if query.distance is Distance.L1:
            return ByRelation(add_remove=1.0, replace_one=2.0)
        longest, diameter = longest_columns(self.strategy(public))
        # Between two groups the columns are orthogonal.
        if query.shape[0] > 1:
            diameter = max(diameter, up(ROOT_TWO * longest, roundings=2))
        return ByRelation(add_remove=longest, replace_one=diameter)

    def _places(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """PRIVATE: return every record's group, -1 if it does not count, and its nearest point."""
        column = number_column(public.domain, self.column)
        points = np.rint((column.scaled(block) + 1) / 2 * (self.points - 1)).astype(np.intp)
        return np.where(column.present(block), self.group_of(block, public), -1), points

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return the column of the record's point, in the record's group."""
        group, point = self._places(block, public)
        vectors, rows = np.zeros((len(block), *query.shape)), np.flatnonzero(group >= 0)
        vectors[rows, group[rows]] = self.strategy(public).measured.T[point[rows]]
        return vectors

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum from counts: entries of A are whole numbers of units."""
        group, point = self._places(block, public)
        mask, measured = group >= 0, self.strategy(public).measured
        flat = group[mask] * self.points + point[mask]
        counts = np.bincount(flat, minlength=query.shape[0] * self.points)
        integers = np.ldexp(measured, -query.sum.unit).astype(np.int64)
        return Exact.of(counts.reshape(query.shape[0], -1) @ integers.T, query.sum.unit)

    def _public_total(self, public: Public) -> int | None:
        """Return n if it is public and every record of the domain counts; else None."""
        column = number_column(public.domain, self.column)
        # By group n is private even then: a replaced record leaves one and enters another.
        counts_all = not self.by and not self.where and not column.may_miss
        return public.domain.exact if counts_all else None

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, public: Public
    ) -> NDArray[np.float64]:
        """Return z of every quantile and point, jointly over groups. Shape (quantiles, points)."""
        if noise_distribution is None:
            return np.full((len(self.quantiles), self.points), np.inf)
        proportions = None if self._public_total(public) is not None else self.quantiles
        # Groups are independent and have one law, so that each has the same proportion of the miss.
        miss = apart(self.miss, self.groups(public).size)
        half = _half_widths(self.strategy(public), proportions, noise_distribution, miss)
        return np.broadcast_to(half, (len(self.quantiles), self.points))

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return a table with a row for each group and quantile; the intervals hold together."""
        strategy, groups = self.strategy(public), self.groups(public)
        counts = strategy.estimates(np.asarray(answer.value, dtype=np.float64))
        totals, n = counts[:, -1:], self._public_total(public)
        if n is not None:
            counts = counts - _slopes(strategy) * (totals - n)
            totals = np.full((1, 1), float(n))
        # D of every group, quantile and point.
        distances = counts[:, None, :] - np.array(self.quantiles)[:, None] * totals[:, None]
        rows = _crossings(distances, self.half_widths(answer.noise_distribution, public))
        middle, first, last = (row.reshape(-1) for row in rows)
        column, count = number_column(public.domain, self.column), len(self.quantiles)
        step = column.column.half_width / (self.points - 1)  # half a step of the grid
        grid = column.value(np.linspace(-1.0, 1.0, self.points))
        ends, intervals = (column.column.low, column.column.high), None
        low, high = np.maximum(grid[first] - step, ends[0]), np.minimum(grid[last] + step, ends[1])
        if self.samples(public):
            miss = apart(self.miss, middle.size)
            distribution = sampling_of(answer.noise_distribution, miss, public.domain)
            wider = (
                NOTHING
                if distribution is None
                else self._hulls(distances, totals, distribution, public)
            )
            # What the records have lies in its interval too; of the whole range nothing is
            # reported.
            points = np.minimum(wider[0], middle), np.maximum(wider[1], middle)
            is_inside = (points[0] > 0) | (points[1] < self.points - 1)
            hull = (grid[points[k].clip(0, self.points - 1).astype(np.intp)] for k in (0, 1))
            first_end, last_end = hull
            spans = np.maximum(first_end - step, ends[0]), np.minimum(last_end + step, ends[1])
            subject = "the quantile of the population, each value clipped to its declared range"
            intervals = population_intervals(
                nothing_unless(is_inside, *spans),
                self.level,
                subject,
                public.domain,
                distribution,
                joint=True,
            )
        repeated = {
            name: tuple(value for value in values for _ in range(count))
            for name, values in groups.about.items()
        }
        return Statistics.of(
            Figures(
                about={**repeated, "quantile": tuple(self.quantiles) * groups.size},
                estimate=grid[middle],
                low=low,
                high=high,
                level=self.level,
                joint=True,
                covers=COVERS,
                population=intervals,
                dates=column.date_rows(low.size),
            )
        )

    def _hulls(
        self,
        distances: NDArray[np.float64],
        totals: NDArray[np.float64],
        sampling: Sampling,
        public: Public,
    ) -> Ends:
        """Return the points between which the population quantiles lie, flattened."""
        proportions = None if self._public_total(public) is not None else self.quantiles
        rows = [row.l2 for row in _rows(self.strategy(public), proportions)]
        points = quantile_points(
            distances, np.array(rows), np.array(self.quantiles), totals[:, 0], sampling
        )
        return points[0].reshape(-1).astype(np.float64), points[1].reshape(-1).astype(np.float64)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the precision of all ranks, and the error of an interval's ends in ranks."""
        half, count = float(self.half_widths(noise_distribution, public).max()), len(self.quantiles)
        groups = f" in each of {self.groups(public).size} groups" if self.by else ""
        lines = (
            f"{count} quantile{'s' * (count > 1)} of {self.column}{groups}: every rank known "
            f"within {half:.4g}, all together; an interval ends within {2 * half:.4g} ranks",
        )
        if not self.samples(public):
            return lines
        # Of each quantile the test at its own rank, with the noise where that is widest.
        proportions = None if self._public_total(public) is not None else self.quantiles
        rows = _rows(self.strategy(public), proportions) * (count if proportions is None else 1)
        miss, n = apart(self.miss, self.groups(public).size * count), self.guess.get("records")
        std = Sampling(width=0.0, miss=miss).z * noise_distribution.std
        wider = []
        for q, row in zip(self.quantiles, rows, strict=True):
            name = f"rank of the population quantile {q:g}{groups}, over n,"
            sd = math.sqrt(q * (1 - q))
            wider.append(expected_width(name, std * float(row.l2.max()), sd, miss, n))
        return (*lines, *wider)


@lru_cache(maxsize=16)
def _slopes(strategy: Strategy) -> NDArray[np.float64]:
    """Return the regression slopes of all prefixes on the last: covariance over its variance."""
    last = strategy.answers[-1]
    return np.asarray((strategy.answers * last).sum(axis=1) / (last * last).sum())


def _factors(
    strategy: Strategy, proportions: tuple[float, ...] | None
) -> list[NDArray[np.float64]]:
    """Return the multiple of the last prefix to subtract: q, or a slope if n is public."""
    size = len(strategy.answers)
    return [_slopes(strategy)] if proportions is None else [np.full(size, q) for q in proportions]


@lru_cache(maxsize=64)
def _rows(strategy: Strategy, proportions: tuple[float, ...] | None) -> list[Lengths]:
    """Return the row lengths of N(t) minus its factor times the last prefix, by factor."""
    answers, last = strategy.answers, strategy.answers[-1]
    factors = _factors(strategy, proportions)
    return [Lengths.of(answers - factor[:, None] * last) for factor in factors]


@lru_cache(maxsize=64)
def _half_widths(
    strategy: Strategy,
    proportions: tuple[float, ...] | None,
    noise_distribution: NoiseDistribution,
    miss: float,
) -> NDArray[np.float64]:
    """Return z of N(t) - q N(B) for every q; of N(t) fitted to a public n without `proportions`."""
    answers, factors, rows = (
        strategy.answers,
        _factors(strategy, proportions),
        _rows(strategy, proportions),
    )
    # A prefix that is known without noise, as the last one with a public n, needs no bar.
    floor = 1e-9 * max(float(row.l2.max()) for row in rows)
    lengths = Lengths(
        l1=np.concatenate([row.l1 for row in rows]),
        l2=np.maximum(np.concatenate([row.l2 for row in rows]), floor),
        size=rows[0].size,
    )

    def errors(noise: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = strategy.estimates(noise)
        return np.hstack([np.abs(counts - factor * counts[:, -1:]) for factor in factors])

    tree = strategy.tree
    work = answers.size // 2 if tree is None else 10 * tree.size
    work += 40 * lengths.l2.size  # elementwise, and slower than products of matrices
    half = joint_half_widths_of(lengths, errors, work, noise_distribution, miss, even=True)
    return half.reshape(len(factors), -1)


def _crossings(
    distances: NDArray[np.float64], half: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the points of every quantile and of its interval's ends: (groups, quantiles)."""
    last = distances.shape[-1] - 1
    below, above = distances + half < 0, distances - half > 0
    # After the last point that is surely below, and up to the first that is surely above.
    first = np.where(below.any(axis=-1), last - np.argmax(below[..., ::-1], axis=-1) + 1, 0)
    beyond = np.where(above.any(axis=-1), np.argmax(above, axis=-1), last)
    # Where the band fails they may cross, or lie beyond the grid.
    first = np.minimum(first, last)
    low, high = np.minimum(first, beyond), np.maximum(first, beyond)
    # The least sum before a point is where the nearest rising function crosses 0.
    before = np.cumsum(distances, axis=-1) - distances
    middle = np.clip(np.argmin(before, axis=-1), low, high)
    return middle, low, high
