r"""Group errors: how wrong a release's predictions are in every group, and how far groups differ.

It is read from evaluated records: a release `of` the model's. Each record has an error
:math:`e=\min(1,|prediction-label|^p/cap)`, or of classes 1 where they differ, and t = 2e - 1.

Theorem: groups do not overlap. A record adds (w, t) to its own group, so that it moves all groups
by at most :math:`\sqrt{1+w^2}` when it comes or goes. Replaced, it moves them by at most 2 within
a group, where the counts cancel, and by :math:`\sqrt2\sqrt{1+w^2}` between two: group sizes are
free up to w = 1. In l1: 1 + w, and twice that. Two groups cost what fifty cost.

No error is divided by a private count: S and n are both released, and an interval of S/n is
Fieller's set of their noise. A group with few records, or none, has an interval that says so. One
group of a public number of records needs no count: S by itself moves by at most 2 (replaced).
"""

import itertools
import math
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import positive
from dpcore.errors import need
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, PopulationIntervals, Statistics
from dpcore.rounding import up
from dpcore.shown import in_digits
from dpcore_statistics.bars import Estimated, around, cut, gaps, ratio
from dpcore_statistics.columns import CategoryColumn, NumberColumn, declared
from dpcore_statistics.groups import Paired
from dpcore_statistics.histogram import counted, public_total
from dpcore_statistics.mean import count_ends, with_count
from dpcore_statistics.population.comparisons import mean_difference
from dpcore_statistics.population.moments import MORE, free_moments, mean_interval, moments_of
from dpcore_statistics.population.sampling import (
    NOTHING,
    broadcast_ends,
    population_intervals,
    sampling_of,
    stacked_ends,
)
from dpcore_statistics.statistic import ROOT_TWO

PREDICTED = "predicted"


@attrs.frozen(kw_only=True)
class GroupErrors(Paired):
    """The error of a release's predictions in every group, the groups' sizes and differences.

    Total: as every statistic.

    Args:
        by: Columns whose combinations are the groups: categories, or ranges cut by `edges` or
            `bins`; one group of all records if left out.
        power: p of |prediction - label|^p; of no use for classes.
        cap: The public size at which an error counts in full: a smaller one means less noise, and
            hides how large larger errors are. If left out, the largest that is possible.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
    """

    by: tuple[str, ...] = ()
    power: Literal[1, 2] = 2
    cap: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))

    def largest(self, public: Public) -> float:
        """Return the cap on one record's error.

        Raises:
            ParameterError: there are no predictions, or the cap is more than an error can be.
        """
        predicted = _predicted(public)
        need(self.power in (1, 2), "group_errors", "1 or 2", "power", self.power)
        if isinstance(predicted, CategoryColumn):
            need(
                self.cap is None and self.power == 2,
                "group_errors",
                "neither cap nor power: a class is wrong or not",
                "cap",
                self.cap,
            )
            return 1.0
        # The widest error of two values of the range; a larger cap would only add noise.
        upper_bound = float((2 * predicted.column.half_width) ** self.power)
        need(
            self.cap is None or self.cap <= upper_bound,
            "group_errors",
            f"at most {upper_bound:g}",
            "cap",
            self.cap,
        )
        return upper_bound if self.cap is None else self.cap

    def is_counted(self, public: Public) -> bool:
        """Return whether sizes of groups are private, and released next to their sums of t."""
        return bool(self.by or self.where) or public_total(self, public) is None

    def query(self, public: Public) -> SumQuery:
        """Return a query for (w n, sum of t) of every group; for the sum only if n is public."""
        self.largest(public)
        size, norm, counted = self.groups(public).size, self.norm(public), self.is_counted(public)
        clip = with_count(norm, self.count_weight(public), 1.0) if counted else 1.0
        # By the lemma of moments they lengthen nothing.
        numbers = 1 + counted + (MORE if self.samples(public) else 0)
        return SumQuery(name="errors", shape=(size, numbers), distance=norm, sum=Sum(clip=clip))

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: the model has seen part of a finite one."""
        independent = "sampled: independent (of a finite population the model has seen a part)"
        return "" if public.domain.sampled == "independent" else independent

    def entries(self, query: SumQuery) -> int:
        """Return the number of entries that a record fills: those of one group."""
        return query.shape[1]

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above; in a single group a replaced record may only stay or leave."""
        length = query.sum.clip
        if not self.is_counted(public):
            return ByRelation(add_remove=length, replace_one=2.0)
        # The two pairs are orthogonal in l2; in l1 both count in full.
        between_groups = (
            2 * length if query.distance is Distance.L1 else up(ROOT_TWO * length, roundings=2)
        )
        if query.shape[0] == 1:
            between_groups = length  # a record that counts, or does not
        return ByRelation(add_remove=length, replace_one=max(2.0, between_groups))

    def _pairs(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """PRIVATE: return every record's group, and its (w, t) with the released moments."""
        places = self._places(block, public)
        pairs = places[:, None]
        if self.is_counted(public):
            pairs = np.column_stack([np.full(len(block), self.count_weight(public)), places])
        if self.samples(public):
            pairs = np.hstack([pairs, free_moments(places)])
        return self.group_of(block, public), pairs

    def _places(self, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: compute t by entrywise operations on one row. Shape (n,)."""
        predicted, truth = _predicted(public), declared(public.domain, public.domain.target)
        if isinstance(predicted, CategoryColumn):
            assert isinstance(truth, CategoryColumn), "classes are predicted of classes"
            # t = 2e - 1: wrong is 1, right is -1.
            return np.where(predicted.codes(block) == truth.codes(block), -1.0, 1.0)
        assert isinstance(truth, NumberColumn), "numbers are predicted of numbers"
        distances = (
            np.abs(predicted.scaled(block) - truth.scaled(block)) * predicted.column.half_width
        )
        sizes = distances * distances if self.power == 2 else distances
        return 2 * np.minimum(sizes / self.largest(public), 1.0) - 1

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables `count` if it is private, `error`, and `gap` of several groups.

        The intervals of each table hold together.
        """
        groups, value = self.groups(public), np.asarray(answer.value, dtype=np.float64)
        w, noise_distribution, has_count = (
            self.count_weight(public),
            answer.noise_distribution,
            self.is_counted(public),
        )
        cap, miss = self.largest(public), apart(self.miss, groups.size)
        figures, estimates = dict[str, Figures](), []
        if has_count:
            # The count was released as w n: its noise in records is narrower by w.
            width, sizes = (
                None if noise_distribution is None else noise_distribution.over(w),
                value[:, 0] / w,
            )
            figures["count"] = counted(groups.about, sizes, width, self.level, public.domain)
        for row in value.tolist():
            total, n = row[has_count], max(1.0, row[0] / w if has_count else public.domain.records)
            position = min(max(total / n, -1.0), 1.0)
            if has_count:
                ends = ratio(total, row[0], w, noise_distribution, miss, 1.0)
            else:
                low, high = around(total, noise_distribution, miss)
                ends = cut((low / n, high / n), -1.0, 1.0)
            estimates.append(
                Estimated(
                    estimate=_error(position, cap),
                    low=_error(ends[0], cap),
                    high=_error(ends[1], cap),
                    count=n,
                    # First order: noise on the sum, and on the count, times the position over w.
                    std=cap / 2 * math.hypot(1.0, position / w if has_count else 0.0) / n,
                )
            )
        figures["error"] = self._errors(groups.about, estimates)
        if not self.by:
            figures = dict(reversed(figures.items()))  # who scores a model reads the error first
        differences = gaps(
            groups.about, estimates, noise_distribution, 1 / w, self.miss, cap, self.level
        )
        figures |= {} if differences is None else {"gap": differences}
        if not self.samples(public):
            return Statistics(tables=figures)
        intervals = self._population(answer, public)
        return Statistics(
            tables={
                name: attrs.evolve(table, population=intervals[name])
                for name, table in figures.items()
            }
        )

    def _population(self, answer: Answer, public: Public) -> dict[str, PopulationIntervals]:
        """Return population intervals, jointly for each table of groups and for all pairs."""
        domain, w, half = public.domain, self.count_weight(public), self.largest(public) / 2
        size = self.groups(public).size
        pairs = [*itertools.combinations(range(size), 2)]
        distribution = sampling_of(answer.noise_distribution, apart(self.miss, size), domain)
        of_pairs = sampling_of(answer.noise_distribution, apart(self.miss, len(pairs) or 1), domain)
        errors, gap_ends = broadcast_ends(NOTHING, (size,)), [NOTHING] * len(pairs)
        exact = public_total(self, public)
        # Where n is public the sums have no count next to them.
        moments = moments_of(answer.value, distribution.width if distribution else 0.0, w, exact)
        if distribution is not None and of_pairs is not None:
            low, high = mean_interval(moments, distribution)
            errors = half * (1 + low), half * (1 + high)
            groups = [
                moments_of(row, distribution.width, w, None) for row in np.asarray(answer.value)
            ]
            ends = (mean_difference(groups[a], groups[b], of_pairs) for a, b in pairs)
            gap_ends = [(half * low, half * high) for low, high in ends]
        subject = (
            "the mean error in each group of the population, for this model, each error capped"
        )
        tables = {
            "count": (
                broadcast_ends(count_ends(moments, domain, distribution), (size,)),
                "expected counts",
            ),
            "error": (errors, subject),
            "gap": (stacked_ends(gap_ends or [NOTHING]), f"differences; {subject}"),
        }
        return {
            name: population_intervals(ends, self.level, words, domain, distribution, joint=True)
            for name, (ends, words) in tables.items()
        }

    def _errors(self, about: Any, estimates: list[Estimated]) -> Figures:
        return Figures(
            about=about,
            estimate=np.array([group_error.estimate for group_error in estimates]),
            low=np.array([group_error.low for group_error in estimates]),
            high=np.array([group_error.high for group_error in estimates]),
            level=self.level,
            joint=True,
            covers="noise only: where the mean error in each group lies, each error capped; a "
            "group with few records may have an interval that says nothing",
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of every count, and about that of an error."""
        count, w = self.groups(public).size, self.count_weight(public)
        half = noise_distribution.within(apart(self.miss, count))
        if not self.is_counted(public):
            error_half = in_digits(half * self.largest(public) / 2 / public.domain.records)
            return (f"mean error +- {error_half}",)
        error_half = in_digits(half * self.largest(public) / 2 * math.hypot(1.0, 1 / w))
        return (
            f"each of {count} counts +- {half / w:.4g}, all together",
            f"each error at most about +- {error_half}/n for n records in the group; it says "
            f"nothing below {half / w:.3g} records",
        )


def _error(place: float, cap: float) -> float:
    return cap * (1 + place) / 2


def _predicted(public: Public) -> NumberColumn | CategoryColumn:
    """Return the column of predictions.

    Raises:
        ParameterError: the records are not evaluated ones.
    """
    need(
        PREDICTED in public.domain.columns and public.domain.labelled,
        "a statistic of predictions",
        "evaluated records",
        "of",
        None,
        message="it is about another release's predictions: name that release under `of`",
    )
    column = declared(public.domain, PREDICTED)
    # Predictions must be of the target's own kind: classes of classes, numbers of numbers.
    need(
        isinstance(column, NumberColumn) != bool(public.domain.classes),
        "group_errors",
        "predictions of the target",
        "column",
        PREDICTED,
    )
    return column
