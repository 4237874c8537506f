"""Histogram: how many records fall into each of a list of cells."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of, positive_integer
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, NormalDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore.summing import Tally
from dpcore_models.measurements.plan import joint_width, of_unit_width, plan
from dpcore_models.measurements.workload import Workload
from dpcore_statistics.bars import around, cut, cut_count, proportion
from dpcore_statistics.by_group import ByCategories
from dpcore_statistics.columns import Cells, Marginal, one_hot
from dpcore_statistics.population.sampling import (
    broadcast_ends,
    check_guess,
    expected_proportion,
    population_intervals,
)
from dpcore_statistics.population.shares import counts_in, noisy_fraction, public_fraction
from dpcore_statistics.statistic import ROOT_TWO, Statistic

ONE_CELL_NORMS = (Distance.L1, Distance.L2)
"""Of counts in disjoint cells: one cell of a record is as long in either norm."""


def counts_moved(norm: Distance) -> ByRelation:
    """Return the sensitivity of disjoint counts: one cell moves, or one falls and one rises."""
    return ByRelation(add_remove=1.0, replace_one=2.0 if norm is Distance.L1 else ROOT_TWO)


def shown_counts(estimates: NDArray[np.float64], total: float | None) -> NDArray[np.float64]:
    """Project counts to non-negative ones that add up to a public total (Euclidean projection)."""
    if total is None:
        return np.maximum(estimates, 0.0)
    # The projection on a simplex: subtract one shift, and cut at 0.
    ordered = np.sort(estimates)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    shift = shifts[np.flatnonzero(ordered > shifts)[-1]]
    return np.asarray(np.maximum(estimates - shift, 0.0))


def least_squares(
    about: dict[str, tuple[Any, ...]],
    estimates: NDArray[np.float64],
    half: float,
    level: float,
    domain: Domain,
    display: NDArray[np.float64] | None = None,
    centre: NDArray[np.float64] | None = None,
) -> Figures:
    """Return a table of least squares counts; one below 0 is displayed as 0, and marked.

    Args:
        estimates: Unbiased: what further estimates and sums start from.
        half: The half-width of every cell, such that all hold together.
        centre: What the intervals lie around, where that is not the estimates.
    """
    # The part of each interval that a number of the domain's records may be in.
    most = math.inf if domain.at_most is None else float(domain.at_most)
    centre = estimates if centre is None else centre
    # A number outside of its interval would be refused: the interval is extended to it.
    low, high = np.minimum(centre - half, estimates), np.maximum(centre + half, estimates)
    return Figures(
        about=about,
        estimate=np.maximum(estimates, 0.0),
        low=np.clip(low, 0.0, most),
        high=np.clip(high, 0.0, most),
        level=level,
        joint=True,
        covers="noise only: where the exact counts lie; sums are taken from `unbiased`"
        + (": `display` is biased and has no bar" if display is not None else ""),
        display=display,
        unbiased=estimates,
    )


def public_total(learner: Statistic, public: Public) -> int | None:
    """Return the public sum of counts of disjoint cells that hold all records; else None."""
    # Under a clip of persons, not every record adds 1.
    is_of_records = learner.clip == "record" and public.domain.people is None
    return public.domain.exact if is_of_records else None


def joint_half_width(
    noise_distribution: NoiseDistribution, miss: float, count: int, total: int | None
) -> tuple[bool, float]:
    """Return whether counts are fitted to a total, and their joint half-width.

    It is where that is no wider: always of noise that is normal but for a fine grid.
    """
    half = noise_distribution.within(apart(miss, count))
    if total is None or count == 1:
        return False, half
    # One column and a public total: the residual basis, with the noise of each cell as it is.
    residuals = plan(Workload(sizes=(count,), tables=((0,),), total_known=True)).residuals
    distribution, share = of_unit_width(noise_distribution), 1 - 1 / count
    unit = joint_width(residuals, distribution, miss)
    if distribution == NormalDistribution(width=1.0):
        unit = min(unit, distribution.quantile(apart(miss, count)))
    fitted_half = up(
        unit * noise_distribution.std * share**0.5 + 2 * share * noise_distribution.rounding,
        roundings=16,
    )
    return fitted_half <= half, min(half, fitted_half)


def fitted(
    about: dict[str, tuple[Any, ...]],
    counts: NDArray[np.float64],
    noise_distribution: NoiseDistribution | None,
    level: float,
    domain: Domain,
    total: int | None = None,
) -> Figures:
    """Fit disjoint counts to their total by least squares: subtract the mean excess from each."""
    is_fitted, half = False, math.inf
    if noise_distribution is not None:
        is_fitted, half = joint_half_width(noise_distribution, 1 - level, counts.size, total)
    estimates = counts
    if total is not None:
        estimates = counts + (total - counts.sum()) / counts.size
    # Intervals of the noisy counts themselves hold as well, where they are the narrower ones.
    centre = estimates if is_fitted else counts
    display = shown_counts(estimates, total)
    return least_squares(about, estimates, half, level, domain, display, centre)


@attrs.frozen(kw_only=True)
class Histogram(ByCategories):
    """The number of records in each cell of one column, empty cells too.

    Total: as every statistic.

    Args:
        column: A declared range, or categories.
        edges: Of the cells of a range, increasing: [e0, e1), ..., the last one closed.
        bins: In place of edges: so many equal parts of the range.
        of: What is counted: records, or persons, each of whom counts once in every cell that any of
            their records is in. For domains with `people`.
        shares: Whether proportions of the records in all cells are published in place of their
            counts.
        guess: Public guesses, for what `check` expects of proportions of the population only:
            `records`, the number of all, and `proportion`, of one cell.
        strategy: `basis` publishes least squares estimates: of a public number of records, they add
            up to it; `cells` each noisy count as it is.
    """

    distinguishes_laplace: ClassVar[bool] = True

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"strategy": "cells"}}

    edges: tuple[Any, ...] | None = None
    bins: int | None = None
    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )
    strategy: Literal["basis", "cells"] = attrs.field(
        default="basis", validator=one_of("basis", "cells")
    )
    shares: bool = False
    guess: dict[str, float] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # A person may be in several cells, so that counts of persons add up to no number of them.
        is_fit = self.of == "records" or not self.shares
        need(is_fit, "histogram", "of: records, whose cells are disjoint", "shares", self.shares)
        check_guess("histogram", self.guess, ("records", "share"))

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: a finite population has proportions only."""
        fits = public.domain.sampled == "independent" or self.shares
        return "" if fits else "sampled: independent, or shares: true"

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons."""
        return self.of

    def cells(self, public: Public) -> Cells:
        """Return the cells of the column; raises `ParameterError` as `Cells.of` does."""
        return Cells.of(public.domain, self.column, self.edges, self.bins)

    def query(self, public: Public) -> SumQuery:
        """Return the query for all cells, one exact non-negative integer each."""
        return SumQuery(
            name="counts",
            shape=(len(self.cells(public).labels),),
            distance=self.norm(public),
            norms=ONE_CELL_NORMS,
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return 1 under add/remove; under replacement sqrt(2) (l2) or 2 (l1); 1 for one cell."""
        # With one cell a replaced record cannot move to another one.
        if query.real_size == 1:
            return ByRelation(add_remove=1.0, replace_one=1.0)
        return counts_moved(query.distance)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return 1 in the record's cell."""
        cells = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        return one_hot(cells, query.real_size)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the records of every cell, in every group."""
        return (self.tally(self._table(public), public),)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum by counting."""
        if self.by:
            return super().partial(query, block, public)
        cell = self.cells(public).index(block)
        # Counting is the exact sum of the indicators, without the matrix of them.
        record_cells = cell[self.chosen(block, public) & (cell >= 0)]
        return Exact.of(np.bincount(record_cells, minlength=query.real_size), 0)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one row per cell, after the group's keys; all intervals hold together."""
        table, value = self._table(public), np.asarray(answer.value, dtype=np.float64).ravel()
        total, noise_distribution, domain = (
            self._total(table, public),
            answer.noise_distribution,
            public.domain,
        )
        if self.shares:
            figures = fractions_of(table.about, value, noise_distribution, self.level, total)
        else:
            counts = counted if self.strategy == "cells" else fitted
            figures = counts(
                table.about, value, noise_distribution, self.level, domain, total=total
            )
        if not self.samples(public):
            return Statistics.of(figures)
        # Least squares estimates have no more noise than the cells, whose law is taken for them.
        value = value if figures.unbiased is None else figures.unbiased
        # Šidák's proportion of the miss for each cell: it holds for normal laws of any correlation.
        sampling = self.sampling(noise_distribution, apart(self.miss, value.size), public)
        if sampling is None or not self.shares:
            out_of = None if domain.exact is None else float(domain.exact)
            ends = counts_in(domain, value, sampling, out_of=out_of)
        elif total is not None:
            ends = public_fraction(value, float(total), sampling)
        else:
            ends = noisy_fraction(value, value.sum() - value, sampling, (1, value.size - 1))
        subject = "proportions of the population" if self.shares else "expected counts"
        intervals = population_intervals(
            broadcast_ends(ends, value.shape), self.level, subject, domain, sampling, joint=True
        )
        return Statistics.of(attrs.evolve(figures, population=intervals))

    def published(self, answer: Answer, public: Public) -> Statistics:
        """Return one table of all groups if together they add up to a public number."""
        apart_by_group = self._is_apart(public)
        return super().published(answer, public) if apart_by_group else self.tables(answer, public)

    def _is_apart(self, public: Public) -> bool:
        """Return whether every group has a table of its own: of shares, and of samples."""
        is_own = self.strategy == "cells" or self.shares or self.samples(public)
        return bool(self.by) and is_own

    def _table(self, public: Public) -> Marginal:
        """Return the cells, in every group."""
        return Marginal(name="", columns=(*self.groups(public).columns, self.cells(public)))

    def _total(self, table: Marginal, public: Public) -> int | None:
        """Return the sum of all counts, if every record is in a cell and their number is public."""
        is_partition = all(cells.partition for cells in table.columns) and not self.where
        return public_total(self, public) if is_partition else None

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of every cell, the same whatever the records."""
        table = self._table(public)
        if self.shares:
            half = noise_distribution.within(apart(self.miss, table.size))
            share = f"each of {table.size} shares about +- {half:.4g}/n for n records"
            lines = (f"{share}, all together",)
            if not self.samples(public):
                return lines
            name, miss = "each population share", apart(self.miss, table.size)
            cells = 2 if self._total(table, public) is None else 1
            return (*lines, expected_proportion(name, half, miss, cells, self.guess))
        total = self._total(table, public) if self.strategy == "basis" else None
        _, half = joint_half_width(noise_distribution, self.miss, table.size, total)
        return (f"each of {table.size} counts +- {half:.4g}, all together",)

    def widths(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the forecasts of all groups jointly, or of each group apart."""
        if self._is_apart(public):
            return super().widths(public, noise_distribution)
        return self.expected(public, noise_distribution)


@attrs.frozen(kw_only=True)
class Top(Histogram):
    """The most frequent cells of a column, in all records or in every group, by noisy counts.

    All cells are counted with noise, as `statistics.histogram` does, and their intervals hold
    together, those of cells that are not published too. So they hold however cells are picked, and
    picking them costs nothing. The largest of several noisy counts is too large on average: the
    interval allows for it.

    `certain` says whether fewer than k cells can have more records than this one, by all intervals.

    Total: as every statistic.

    Args:
        k: How many cells are published.
    """

    k: int = attrs.field(default=10, validator=positive_integer)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the rows of the k largest counts, largest first; ties go to the first cell."""
        (figures,) = super().tables(answer, public).tables.values()
        sizes = figures.estimate if figures.unbiased is None else figures.unbiased
        rows = np.argsort(-sizes, kind="stable")[: self.k]
        # Where all intervals hold, a larger count has an upper end above this lower one.
        ahead = figures.high > figures.low[rows, None]
        ahead[np.arange(len(rows)), rows] = False
        certain = ahead.sum(axis=1) < self.k
        return Statistics.of(picked_rows(figures, rows, {"certain": tuple(certain.tolist())}))

    def _is_apart(self, public: Public) -> bool:
        """Return whether groups are published apart: every group has its own largest counts."""
        return bool(self.by)


def picked_rows(
    figures: Figures, rows: NDArray[np.intp], about: Mapping[str, tuple[Any, ...]]
) -> Figures:
    """Select rows of a table, and add columns about each."""
    columns = {name: tuple(values[row] for row in rows) for name, values in figures.about.items()}
    intervals, display, unbiased = figures.population, figures.display, figures.unbiased
    return attrs.evolve(
        figures,
        about={**columns, **about},
        estimate=figures.estimate[rows],
        low=figures.low[rows],
        high=figures.high[rows],
        covers=f"{figures.covers}; the intervals of cells that are not published hold too",
        display=None if display is None else display[rows],
        unbiased=None if unbiased is None else unbiased[rows],
        population=intervals
        and attrs.evolve(intervals, low=intervals.low[rows], high=intervals.high[rows]),
    )


def fractions_of(
    about: dict[str, tuple[Any, ...]],
    counts: NDArray[np.float64],
    noise_distribution: NoiseDistribution | None,
    level: float,
    total: int | None,
) -> Figures:
    """Return a table of proportions with simultaneous intervals.

    Args:
        total: The number of records, where that is public and each is in a cell.
    """
    miss, n = apart(1 - level, counts.size), float(total or max(1.0, counts.sum()))
    tops, rest = counts.tolist(), counts.sum()
    # Out of a public total the noise is of one cell only.
    if total is None:
        cells = (1, counts.size - 1)
        ends = [proportion(top, rest - top, cells, noise_distribution, miss) for top in tops]
    else:
        ends = [around(top, noise_distribution, miss) for top in tops]
        ends = [cut((low / n, high / n), 0.0, 1.0) for low, high in ends]
    return Figures(
        about=about,
        estimate=np.clip(counts / n, 0.0, 1.0),
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        level=level,
        joint=True,
        covers="noise only: where the proportions of these records lie, out of those in all cells",
    )


def counted(
    about: dict[str, tuple[Any, ...]],
    counts: NDArray[np.float64],
    noise_distribution: NoiseDistribution | None,
    level: float,
    domain: Domain,
    total: int | None = None,
) -> Figures:
    """Return a table of counts with simultaneous intervals.

    Args:
        total: What they add up to, where that is public.
    """
    # Šidák's proportion of the miss for each cell, so that all intervals hold together.
    miss = apart(1 - level, counts.size)
    half = float("inf") if noise_distribution is None else noise_distribution.within(miss)
    ends = [cut_count((float(count) - half, float(count) + half), domain) for count in counts]
    return Figures(
        about=about,
        estimate=counts,
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        level=level,
        joint=True,
        covers="noise only: where the exact counts lie",
        display=shown_counts(counts, total),
    )
