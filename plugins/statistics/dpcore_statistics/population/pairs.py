"""Pairs: the tables of all pairs of groups, whose means differ, or are one a part of the other.

Of both kinds of intervals: of the noise only from the intervals of the two groups, which hold
together; of the population by `comparisons`.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public
from dpcore.errors import need
from dpcore.interval import NoiseDistribution, apart
from dpcore.models.figures import Figures
from dpcore_statistics.bars import MOST_PAIRED, Estimated, gaps, ratio
from dpcore_statistics.columns import Marginal, NumberColumn, number_column
from dpcore_statistics.population.comparisons import (
    mean_difference,
    mean_ratio,
    mean_test,
)
from dpcore_statistics.population.independence import DRAWS, independence
from dpcore_statistics.population.moments import Moments, moments_of
from dpcore_statistics.population.sampling import (
    NOTHING,
    Sampling,
    population_intervals,
    stacked_ends,
)

RATIO = "ratio"
INDEPENDENCE = "independence"
EQUALITY = "equality"


def require_comparable(compare: str, column: NumberColumn, groups: int) -> None:
    """Raise `ParameterError` where pairs cannot be reported, by public facts."""
    fits = 2 <= groups <= MOST_PAIRED
    need(fits, "group_by", f"2 to {MOST_PAIRED} groups, whose pairs are compared", "by", groups)
    is_signed = column.column.low < 0 and compare == RATIO
    need(not is_signed, "group_by", "a range from 0 on, or difference", "compare", compare)


class Compared(Protocol):
    """What a learner of groups says of itself."""

    @property
    def column(self) -> str | None:
        """The column of the means."""

    @property
    def compare(self) -> str | None:
        """The comparison of pairs that is published: `difference`, `ratio` or `equality`."""

    @property
    def level(self) -> float:
        """At which all pairs hold together."""

    def samples(self, public: Public) -> bool:
        """Return whether intervals about the population are reported."""

    def count_weight(self, public: Public) -> float:
        """Return w, the weight of a count next to sums."""

    def norm(self, public: Public) -> Distance:
        """Return the norm in which sums are bounded."""

    def sampling(
        self, noise_distribution: NoiseDistribution | None, miss: float, public: Public
    ) -> Sampling | None:
        """Return the law of an interval about the population."""


def compared(learner: Compared, groups: Marginal, answer: Answer, public: Public) -> Figures:
    """Compare all pairs of groups, the first with the second; the intervals hold together."""
    assert learner.column is not None, "there are means"
    column, w = number_column(public.domain, learner.column), learner.count_weight(public)
    value, miss = np.asarray(answer.value, dtype=np.float64), 1 - learner.level
    # All pairs, so that no pair is picked by what the answers show.
    pairs = [*itertools.combinations(range(len(value)), 2)]
    figures = _of_records(learner.compare, column, groups, answer, w, learner.level)
    intervals = None
    if learner.samples(public):
        distribution = learner.sampling(answer.noise_distribution, apart(miss, len(pairs)), public)
        wider, norm = [NOTHING] * len(pairs), learner.norm(public)
        moments = [
            moments_of(row, distribution.width if distribution else 0.0, w, None, norm)
            for row in value
        ]
        if distribution is not None:
            wider = [
                _population(learner.compare, column, moments[a], moments[b], distribution)
                for a, b in pairs
            ]
        if learner.compare == EQUALITY:
            figures = _with_tests(figures, pairs, moments, distribution)
        word = "ratio" if learner.compare == RATIO else "difference"
        subject = f"the {word} of the means of the population, each value clipped"
        ends_of_all = stacked_ends(wider)
        intervals = population_intervals(
            ends_of_all, learner.level, subject, public.domain, distribution, joint=True
        )
    return attrs.evolve(figures, population=intervals)


def _with_tests(
    figures: Figures,
    pairs: Sequence[tuple[int, int]],
    moments: Sequence[Moments],
    distribution: Any,
) -> Figures:
    """Add the p value of each pair; 1 for noise that is not normal."""
    tests = np.ones(len(pairs))
    if distribution is not None:
        tests = np.array([mean_test(moments[a], moments[b], distribution) for a, b in pairs])
    words = f"p values are of {len(pairs)} tests, each by itself and not corrected for their number"
    about = {**figures.about, "p_value": tuple(tests.tolist())}
    return attrs.evolve(figures, about=about, covers=f"{figures.covers}; {words}")


def _of_records(
    compare: str | None,
    column: NumberColumn,
    groups: Marginal,
    answer: Answer,
    w: float,
    level: float,
) -> Figures:
    """Return the pairs on these records, with intervals of the noise only."""
    low, high, half = column.column.low, column.column.high, column.column.half_width
    estimates = []
    for weighted, total, *_ in np.asarray(answer.value, dtype=np.float64).tolist():
        n, miss = max(1.0, weighted / w), apart(1 - level, groups.size)
        positions = (total / n, *ratio(total, weighted, w, answer.noise_distribution, miss, 1.0))
        values = [min(max(float(column.value(np.array(p))), low), high) for p in positions]
        # Of S/n to first order, at the estimated place.
        std = half * math.hypot(1.0, min(abs(total / n), 1.0) / w) / n
        mean, first, last = values
        estimates.append(Estimated(estimate=mean, low=first, high=last, count=n, std=std))
    cutoff = high - low
    figures = gaps(
        groups.about, estimates, answer.noise_distribution, 1 / w, 1 - level, cutoff, level
    )
    assert figures is not None, "there are pairs, and not too many"
    if compare != RATIO:
        return figures
    # All groups' intervals hold together, and so do the ratios that follow from their ends.
    pairs = [*itertools.combinations(estimates, 2)]
    return attrs.evolve(
        figures,
        estimate=np.array([_quotient(a.estimate, b.estimate, 0.0) for a, b in pairs]),
        low=np.array([_quotient(a.low, b.high, 0.0) for a, b in pairs]),
        high=np.array([_quotient(a.high, b.low, math.inf) for a, b in pairs]),
        covers=figures.covers.replace("difference", "ratio"),
    )


def _quotient(top: float, bottom: float, otherwise: float) -> float:
    """Divide non-negative numbers; return `otherwise` if the denominator may be 0."""
    return top / bottom if bottom > 0 else otherwise


def _population(
    compare: str | None, column: NumberColumn, first: Moments, second: Moments, distribution: Any
) -> Any:
    """Return the population ends of one pair, in the file's units."""
    half = column.column.half_width
    if compare == RATIO:
        return mean_ratio(first, second, column.column.low / half, distribution)
    low, high = mean_difference(first, second, distribution)
    return half * low, half * high


def tested(
    counts: NDArray[np.float64],
    noise_distribution: NoiseDistribution | None,
    public: Public,
    level: float,
) -> Figures:
    """Return the test of a two-way table: T, and its p value, drawn by the published randomness."""
    draws = public.randomness.stream(INDEPENDENCE).generator()
    statistic, p_value, is_stated = independence(counts, noise_distribution, draws)
    verdict = "" if is_stated else "; it says nothing: too few records for this budget"
    nothing = np.full(2, math.inf)
    return Figures(
        about={"test": ("statistic", "p value")},
        estimate=np.array([statistic, p_value]),
        low=-nothing,
        high=nothing,
        level=level,
        kind="test",
        covers=f"one test of independence by {DRAWS} simulated tables with the same noise, of "
        f"records that are independent draws; of several tests divide by their number{verdict}",
    )
