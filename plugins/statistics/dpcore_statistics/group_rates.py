r"""Group rates: errors, positive rates, equalized odds and calibration of two classes by group.

It is read from evaluated records: a release `of` the model's. What is released is one table of
counts: group by true class by predicted class, or by cells of the score. All rates are quotients of
its sums.

Theorem: its cells do not overlap. A record moves one cell by 1 when it comes or goes, and two cells
by 1 each when it is replaced: 1; :math:`\sqrt2` (l2) or 2 (l1). Two groups cost what fifty cost.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import positive_integer
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, PopulationIntervals, Statistics
from dpcore_statistics.bars import Estimated, gaps, proportion
from dpcore_statistics.columns import (
    MOST_CELLS,
    CategoryColumn,
    Cells,
    declared,
    one_hot,
)
from dpcore_statistics.group_errors import PREDICTED
from dpcore_statistics.groups import Grouped
from dpcore_statistics.histogram import ONE_CELL_NORMS, counted, counts_moved
from dpcore_statistics.population.comparisons import proportion_difference
from dpcore_statistics.population.sampling import (
    NOTHING,
    Ends,
    Sampling,
    population_intervals,
    sampling_of,
    stacked_ends,
)
from dpcore_statistics.population.shares import noisy_fraction

SCORE = "score"
ERROR, POSITIVE = "error", "positive rate"
TRUE_POSITIVE, FALSE_POSITIVE = "true positive rate", "false positive rate"

_Sums = tuple[tuple[float, int], tuple[float, int]]
"""A noisy sum with the number of its cells, of what counts and of the rest."""


@attrs.frozen(kw_only=True)
class GroupRates(Grouped):
    """Error, positive rate, true and false positive rate of two classes in every group.

    Total: as every statistic.

    Args:
        by: Columns whose combinations are the groups: categories, or ranges cut by `edges` or
            `bins`.
        calibration: Into how many equal cells scores are cut, an even number; then the proportion
            of the second class in each is reported too. It needs a model with scores.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
    """

    calibration: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: the model has seen part of a finite one."""
        independent = "sampled: independent (of a finite population the model has seen a part)"
        return "" if public.domain.sampled == "independent" else independent

    def leanings(self, public: Public) -> int:
        """Return the number of cells of the prediction; the second half predicts the second class.

        Raises:
            ParameterError: the records are no evaluated ones of two classes, the model has no
                scores, or there are too many cells.
        """
        domain, count = public.domain, 2 if self.calibration is None else self.calibration
        need(
            PREDICTED in domain.columns and domain.classes == 2,
            "group_rates",
            "evaluated records of two classes",
            "of",
            None,
            message="it is about another release's predictions of two classes: name that "
            "release under `of`; of numbers, take group_errors",
        )
        # An odd number would put the boundary of the two classes inside a cell.
        need(
            self.calibration is None or (count % 2 == 0 and SCORE in domain.columns),
            "group_rates",
            "an even number, and a model with scores",
            "calibration",
            count,
        )
        need(
            2 * count * self.groups(public).size <= MOST_CELLS,
            "group_rates",
            f"at most {MOST_CELLS} cells",
            "by",
            self.by,
        )
        return count

    def query(self, public: Public) -> SumQuery:
        """Return the query for one integer per group, true class and cell of the prediction."""
        return SumQuery(
            name="rates",
            shape=(self.groups(public).size, 2, self.leanings(public)),
            distance=self.norm(public),
            norms=ONE_CELL_NORMS,
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above: cells are disjoint, so a record moves one cell or two."""
        return counts_moved(query.distance)

    def _cell(self, block: Records, public: Public) -> NDArray[np.intp]:
        """PRIVATE: return every record's cell, -1 if it does not count or has no known class."""
        domain, count = public.domain, self.leanings(public)
        truth = declared(domain, domain.target)
        assert isinstance(truth, CategoryColumn), "there are classes"
        name, bins = (PREDICTED, None) if self.calibration is None else (SCORE, count)
        leaning_cell = Cells.of(domain, name, None, bins).index(block)
        group, true_class = self.group_of(block, public), truth.codes(block)
        # A record without a group, a class or a prediction is in no cell and adds nothing.
        mask = (group >= 0) & (true_class >= 0) & (leaning_cell >= 0)
        return np.where(mask, (group * 2 + true_class) * count + leaning_cell, -1)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return 1 in the record's cell."""
        rows = one_hot(self._cell(block, public), query.real_size)
        return rows.reshape(len(block), *query.shape)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum by counting."""
        cell = self._cell(block, public)
        counts = np.bincount(cell[cell >= 0], minlength=query.real_size)
        return Exact.of(counts.reshape(query.shape), 0)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables `count`, `rate`, `gap` and, if requested, `calibration`."""
        value = np.asarray(answer.value, dtype=np.float64)
        about = self.groups(public).about
        classes = declared(public.domain, public.domain.target)
        assert isinstance(classes, CategoryColumn), "there are classes"
        names = [*zip(*about.values(), strict=True)] if about else [()]
        rows = [(*name, str(true_class)) for name in names for true_class in classes.values]
        columns = dict(zip((*about, "class"), zip(*rows, strict=True), strict=True))
        figures = {
            "count": _of_cells(value, columns, answer.noise_distribution, self.level, public),
            **self._rates(value, answer.noise_distribution, public),
        }
        if self.calibration is not None:
            figures["calibration"] = self._calibration(value, answer.noise_distribution, public)
        return Statistics(tables=figures)

    def _rates(
        self,
        value: NDArray[np.float64],
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> dict[str, Figures]:
        about = self.groups(public).about
        group_sums = [_sums(cells) for cells in value]
        # Four rates in every group, and all their intervals hold together.
        miss = apart(self.miss, 4 * len(group_sums))
        proportions = {
            rate: [_estimated(sums[rate], noise_distribution, miss) for sums in group_sums]
            for rate in (ERROR, POSITIVE, TRUE_POSITIVE, FALSE_POSITIVE)
        }
        estimates = [
            rate_estimate for by_group in proportions.values() for rate_estimate in by_group
        ]
        intervals: PopulationIntervals | None = None
        wider_gaps: dict[str, PopulationIntervals] = {}
        if self.samples(public):
            intervals, wider_gaps = self._population(group_sums, noise_distribution, public)
        rows = {name: values * len(proportions) for name, values in about.items()}
        kinds = tuple(rate for rate, by_group in proportions.items() for _ in by_group)
        figures = {
            "rate": Figures(
                about={"rate": kinds, **rows},
                estimate=np.array([rate_estimate.estimate for rate_estimate in estimates]),
                low=np.array([rate_estimate.low for rate_estimate in estimates]),
                high=np.array([rate_estimate.high for rate_estimate in estimates]),
                level=self.level,
                joint=True,
                covers="noise only: where each rate of these records lies; of few records it may "
                "say nothing",
                population=intervals,
            )
        }
        for rate, by_group in proportions.items():
            # Each family of gaps has its proportion of the miss, next to the rates themselves.
            narrow = math.sqrt(value[0].size)  # of the largest count that a rate is divided by
            gap = gaps(
                about,
                by_group,
                noise_distribution,
                narrow,
                self.miss / len(proportions),
                1.0,
                self.level,
            )
            if gap is not None:
                gap = attrs.evolve(gap, population=wider_gaps.get(rate))
                figures[f"gap-{rate.replace(' ', '-')}"] = gap
        return figures

    def _population(
        self,
        group_sums: list[dict[str, _Sums]],
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> tuple[PopulationIntervals, dict[str, PopulationIntervals]]:
        """Return joint population intervals of all rates, and those of each rate's gaps."""
        kinds = (ERROR, POSITIVE, TRUE_POSITIVE, FALSE_POSITIVE)
        domain, count = public.domain, len(group_sums)
        pairs = [*itertools.combinations(range(count), 2)]
        distribution = sampling_of(noise_distribution, apart(self.miss, len(kinds) * count), domain)
        subject = "each rate in the population, for this model"
        rows = stacked_ends(
            _wider(sums[rate], distribution) for rate in kinds for sums in group_sums
        )
        intervals = population_intervals(
            rows, self.level, subject, domain, distribution, joint=True
        )
        # Each family of gaps has its proportion of the miss, as next to the noise.
        distribution = sampling_of(
            noise_distribution, apart(self.miss / len(kinds), len(pairs) or 1), domain
        )
        gap_intervals = {
            rate: population_intervals(
                stacked_ends(
                    _gap(group_sums[a][rate], group_sums[b][rate], distribution) for a, b in pairs
                ),
                self.level, f"gaps; {subject}", domain, distribution, joint=True,
            )
            for rate in (kinds if pairs else ())
        }  # fmt: skip
        return intervals, gap_intervals

    def _calibration(
        self,
        value: NDArray[np.float64],
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> Figures:
        """Return the proportion of the second class in every cell of the score."""
        about, count = self.groups(public).about, value.shape[2]
        miss = apart(self.miss, len(value) * count)
        # Each cell of each group: records of the second class over all records.
        estimates = [
            _estimated(
                ((float(cells[1, cell]), 1), (float(cells[0, cell]), 1)), noise_distribution, miss
            )
            for cells in value
            for cell in range(count)
        ]
        rows = _repeated(about, count)
        labels = tuple(f"[{cell / count:g}, {(cell + 1) / count:g})" for cell in range(count))
        return Figures(
            about={**rows, SCORE: labels * len(value)},
            estimate=np.array([rate_estimate.estimate for rate_estimate in estimates]),
            low=np.array([rate_estimate.low for rate_estimate in estimates]),
            high=np.array([rate_estimate.high for rate_estimate in estimates]),
            level=self.level,
            joint=True,
            covers="noise only: the share of the second class among these records with such scores",
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of every cell's count, and about that of a rate."""
        cells = self.groups(public).size * 2 * self.leanings(public)
        half = noise_distribution.within(apart(self.miss, cells))
        rate_half = half * math.sqrt(self.leanings(public) / 2)
        return (
            f"each of {cells} counts +- {half:.4g}, all together",
            f"each rate about +- {rate_half:.4g}/n for n records that it is a proportion of",
        )


def _sums(cells: NDArray[np.float64]) -> dict[str, _Sums]:
    """Return the sums behind every rate of one group, from its cells: true class by prediction."""
    # The second half of the leanings is a prediction of the second class.
    half = cells.shape[1] // 2
    no, yes = cells[:, :half].sum(axis=1), cells[:, half:].sum(axis=1)
    return {
        ERROR: ((float(yes[0] + no[1]), 2 * half), (float(no[0] + yes[1]), 2 * half)),
        POSITIVE: ((float(yes.sum()), 2 * half), (float(no.sum()), 2 * half)),
        TRUE_POSITIVE: ((float(yes[1]), half), (float(no[1]), half)),
        FALSE_POSITIVE: ((float(yes[0]), half), (float(no[0]), half)),
    }


def _estimated(sums: _Sums, noise_distribution: NoiseDistribution | None, miss: float) -> Estimated:
    """Return the proportion of a sum, with its interval."""
    (top, of_top), (remainder, of_remainder) = sums
    n = max(1.0, top + remainder)
    rate = min(max(top / n, 0.0), 1.0)
    low, high = proportion(top, remainder, (of_top, of_remainder), noise_distribution, miss)
    # The delta method for S/(S + R) with unit noise on every cell, at the estimated rate.
    std = math.sqrt(of_top * (1 - rate) ** 2 + of_remainder * rate**2) / n
    return Estimated(estimate=rate, low=low, high=high, count=n, std=std)


def _wider(sums: _Sums, sampling: Sampling | None) -> Ends:
    """Return population ends for one rate."""
    (top, of_top), (remainder, of_remainder) = sums
    return (
        NOTHING
        if sampling is None
        else noisy_fraction(top, remainder, sampling, (of_top, of_remainder))
    )


def _gap(first: _Sums, second: _Sums, sampling: Sampling | None) -> Ends:
    """Return population ends for a difference of two rates."""
    (top, of_top), (remainder, of_remainder) = first
    (other_top, of_other), (other_remainder, of_rest) = second
    cells = ((of_top, of_remainder), (of_other, of_rest))
    if sampling is None:
        return NOTHING
    return proportion_difference((top, remainder), (other_top, other_remainder), sampling, cells)


def _repeated(about: Mapping[str, tuple[Any, ...]], times: int) -> dict[str, tuple[Any, ...]]:
    """Return every row so many times in a row."""
    return {name: tuple(v for v in values for _ in range(times)) for name, values in about.items()}


def _of_cells(
    value: NDArray[np.float64],
    about: dict[str, tuple[str, ...]],
    noise_distribution: NoiseDistribution | None,
    level: float,
    public: Public,
) -> Figures:
    """Return the counts of every cell, labelled by group, class and prediction."""
    leanings = value.shape[2]
    rows = _repeated(about, leanings)
    count = math.prod(value.shape[:2])
    label = PREDICTED if leanings == 2 else SCORE
    classes = declared(public.domain, PREDICTED)
    assert isinstance(classes, CategoryColumn), "there are classes"
    cells = (
        tuple(map(str, classes.values))
        if leanings == 2
        else tuple(f"[{cell / leanings:g}, {(cell + 1) / leanings:g})" for cell in range(leanings))
    )
    return counted(
        {**rows, label: cells * count}, value.ravel(), noise_distribution, level, public.domain
    )
