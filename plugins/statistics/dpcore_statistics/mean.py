r"""Mean: with the number of records public, or private and released next to it.

Theorem (private n). Let t = (x - c)/(R/2) in [-1, 1], R the width of the range and c its middle. A
record that counts contributes (w, t), others nothing. Then in l2 a record that comes or goes moves
the sum by at most :math:`\sqrt{1+w^2}`, and a replaced one by at most
:math:`\max(2,\sqrt{1+w^2})` (two values of t differ by 2 at most; a record may be left out). In l1
it is 1 + w, and max(2, 1 + w).

So under replacement w costs nothing up to :math:`\sqrt3` (l2) or 1 (l1). Under add/remove the mean
has, to first order, a standard deviation of :math:`\frac{R}{2n\mu}\sqrt{(1+w^2)(1+t^2/w^2)}`, least
at :math:`w^2=|t|`: the default is :math:`w^2=1/2`. It is no more than with n public, R/(n mu).

n public (replacement, and every record counts): the sum of t moves by at most 2.
"""

import math
from typing import Any, ClassVar, Self, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Refused, Sum, SumQuery
from dpcore.checks import positive
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, PopulationIntervals, Statistics
from dpcore.rounding import up
from dpcore.shown import in_digits
from dpcore_statistics.bars import around, cut, cut_count, ratio
from dpcore_statistics.by_group import OfValues, group_weight, inside
from dpcore_statistics.columns import NumberColumn, number_column
from dpcore_statistics.population.moments import (
    Moments,
    SampledMean,
    free_terms,
    mean_interval,
    moments_of,
)
from dpcore_statistics.population.persons import (
    FREE,
    PersonMoments,
    free_in_groups,
    person_vectors,
)
from dpcore_statistics.population.sampling import (
    NOTHING,
    Ends,
    Sampling,
    check_guess,
    expected_width,
    nothing_unless,
    population_intervals,
    stacked_ends,
)
from dpcore_statistics.population.shares import counts_in


def default_weight(norm: Distance, replaces: bool) -> float:
    """Return the default w: the weight free under replacement, and sqrt(1/2) under add/remove."""
    if not replaces:
        return math.sqrt(0.5)
    return 1.7320508 if norm is Distance.L2 else 1.0  # just below sqrt(3)


def with_count(norm: Distance, weight: float, rest: float) -> float:
    """Bound the length of (w, v), for v of length at most `rest`."""
    return weight + rest if norm is Distance.L1 else up(math.hypot(weight, rest), roundings=3)


@attrs.frozen(kw_only=True)
class Averaged(OfValues):
    """Sums over the values of one column, and how many they are where that is private.

    Args:
        column: A declared range; missing values are left out.
        weight: w of the count next to the sums; by the relation if left out.
        guess: Public guesses, for what `check` expects of the population only: `records`, the
            number of values, and `sd`, their standard deviation in the file's units.
    """

    weight: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    guess: dict[str, float] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        check_guess("a mean", self.guess, ("records", "sd"))

    def unsampled(self, public: Public) -> str:
        """Return "": every mean has an interval about the population."""
        return ""

    def counted(self, public: Public) -> bool:
        """Return whether the number of values is private, and released next to their sums."""
        # Each makes the number of values private: an unknown n, a condition, missing values.
        column = number_column(public.domain, self.column)
        return public.domain.exact is None or bool(self.where) or column.may_miss

    def one_group(self, public: Public) -> Self:
        """Return the statistic of one group, with the count's weight that is best across groups."""
        weight = self.weight or group_weight(self.norm(public), public.domain.exact is not None)
        return attrs.evolve(super().one_group(public), weight=weight)

    def moments(self, answer: Answer, public: Public) -> tuple[Moments, Sampling | None]:
        """Return the sums of one answer with their law; None if the noise is not normal."""
        sampling, weight = (
            self.sampling(answer.noise_distribution, self.miss, public),
            self.count_weight(public),
        )
        width, exact, norm = (
            0.0 if sampling is None else sampling.width,
            public.domain.exact,
            self.norm(public),
        )
        return moments_of(answer.value, width, weight, exact, norm), sampling

    def count_weight(self, public: Public) -> float:
        """Return w, the count's weight next to the sums; a larger one means a better count."""
        if self.weight is not None:
            return self.weight
        return default_weight(self.norm(public), public.domain.exact is not None)


@attrs.frozen(kw_only=True)
class Mean(Averaged):
    """The mean of a column's values, and their number where it is private.

    Total: as every statistic.
    """

    distinguishes_laplace: ClassVar[bool] = True

    def query(self, public: Public) -> SumQuery:
        """Return the query for [w n if private,] the sum of t, and moments."""
        # (w, t) has length sqrt(1 + w^2) in l2; t by itself is at most 1.
        norm, counted = self.norm(public), self.counted(public)
        clip = with_count(norm, self.count_weight(public), 1.0) if counted else 1.0
        # By the lemma of moments they lengthen nothing.
        size = (2 if counted else 1) + self._free_numbers(public)
        total = Sum(clip=clip)
        if (k := self._records_of_each(public)) > 1:
            # As long as k records: by the lemma of persons their moments lengthen nothing.
            total = Sum(clip=clip, person=k * clip)
        return SumQuery(name="mean", shape=(size,), distance=norm, sum=total)

    def _free_numbers(self, public: Public) -> int:
        """Return the number of moments next to the sum and the count."""
        return len(free_terms(0.0, self.norm(public))) if self.samples(public) else 0

    def _records_of_each(self, public: Public) -> int:
        """Return k, the records of a person, if persons are the draws; else 1."""
        people = public.domain.people
        return people.records if people is not None and self.samples(public) else 1

    def draws_persons(self, public: Public) -> bool:
        """Return True: means are ratios of persons' sums, of all records or in every group."""
        return True

    def one_group(self, public: Public) -> Self:
        """Return the statistic of one of the groups that a person's records lie in."""
        fields = attrs.asdict(super().one_group(public), recurse=False)
        return cast(Self, MeanOfGroup(**fields))

    def free(self, public: Public) -> float:
        """Return c of the lemma of persons."""
        return FREE

    def pays_for_population(self, public: Public) -> bool:
        """Return whether persons have several records: replacing one may then move sums more."""
        people = public.domain.people
        return people is not None and people.records > 1

    def of_persons(
        self, query: SumQuery, sums: NDArray[np.float64], public: Public
    ) -> NDArray[np.float64]:
        """PRIVATE: return the sums of each person, and second moments of these."""
        learner, facts = (self.one_group(public), inside(public)) if self.by else (self, public)
        if (k := learner._records_of_each(facts)) == 1:
            return sums
        # A person is in several groups at once: each has its own vector.
        of_groups = sums.reshape(-1, query.shape[-1])
        vectors = person_vectors(of_groups, k, learner.count_weight(facts), learner.free(facts))
        return vectors.reshape(sums.shape)

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above; refuse a mean without a count if n is private."""
        sum_only = query.real_size == 1 + self._free_numbers(public)
        # Without a count the mean is a sum over n, which must then be public.
        if sum_only and public.domain.exact is None:
            return Refused("a mean without a count needs a public number of records")
        return ByRelation(
            add_remove=query.sum.clip, replace_one=2.0 if sum_only else max(2.0, query.sum.clip)
        )

    def terms(self, query: SumQuery, public: Public, *positions: Any) -> tuple[Any, ...]:
        """Return t, preceded by w if the number of values is private, and moments."""
        (position,) = positions
        free = self._free_numbers(public)
        moments = free_terms(position, self.norm(public)) if free else ()
        if self._records_of_each(public) > 1:
            # Of persons they follow from the sums of their records.
            moments = tuple(0.0 * moment for moment in moments)
        # With a public n every record counts: `counted` would be true otherwise.
        weight = () if query.real_size == 1 + free else (self.count_weight(public),)
        return *weight, position, *moments

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the mean, and the number of values if it is private."""
        column = number_column(public.domain, self.column)
        name = f"mean of {self.column}"
        if answer.query.real_size == 1 + self._free_numbers(public):
            # n is public: an interval of the sum over n is exact, and no count is published.
            count = float(public.domain.records)
            total = float(answer.value[0])
            ends = around(total, answer.noise_distribution, self.miss)
            mean_ends = cut((ends[0] / count, ends[1] / count), -1.0, 1.0)
            rows = [(name, *in_units(column, total / count, mean_ends))]
        else:
            # n is private: both numbers are noisy, and `ratio` covers their quotient.
            weight = self.count_weight(public)
            weighted, total = (float(number) for number in answer.value[:2])
            mean_ends = ratio(total, weighted, weight, answer.noise_distribution, self.miss, 1.0)
            ends = around(weighted, answer.noise_distribution, self.miss)
            counts = cut_count((ends[0] / weight, ends[1] / weight), public.domain)
            # At least one value: a noisy count near 0 or below would give no estimate at all.
            position = total / max(1.0, weighted / weight)
            rows = [(name, *in_units(column, position, mean_ends))]
            if self.publishes_count:
                rows.append(("count", weighted / weight, *counts))
        intervals = None
        if self.samples(public):
            intervals = self._population(column, answer, public, len(rows) > 1)
        return Statistics.of(
            Figures(
                about={"statistic": tuple(row[0] for row in rows)},
                estimate=np.array([row[1] for row in rows]),
                low=np.array([row[2] for row in rows]),
                high=np.array([row[3] for row in rows]),
                level=self.level,
                covers="noise only: where the mean of the values lies, each clipped to its "
                "declared range and missing ones left out. It does not include sampling error",
                population=intervals,
                dates=column.date_rows(1),
            )
        )

    def _population(
        self, column: NumberColumn, answer: Answer, public: Public, has_count: bool
    ) -> PopulationIntervals:
        """Return population intervals of the mean, and of the count if it is published."""
        (moments, distribution), domain = self.moments(answer, public), public.domain
        subject = "the mean of the population, each value clipped to its declared range"
        mean: SampledMean = moments
        count, units = count_ends(moments, domain, distribution), "records"
        if (k := self._records_of_each(public)) > 1:
            width, weight = (
                0.0 if distribution is None else distribution.width,
                self.count_weight(public),
            )
            mean = persons = PersonMoments.of(answer.value, width, weight, k, self.free(public))
            count, units = persons.count_ends(domain, distribution), "persons"
            subject = f"{subject}, over at most {k} records of each person"
        wider = [
            NOTHING
            if distribution is None
            else column_ends(column, mean_interval(mean, distribution))
        ]
        ends = stacked_ends([*wider, count] if has_count else wider)
        return population_intervals(ends, self.level, subject, domain, distribution, units=units)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the half-width: exact with a public n, else rough, for values near mid-range."""
        return expected_mean(self, public, noise_distribution)


@attrs.frozen(kw_only=True)
class MeanOfGroup(Mean):
    """The mean in one of several groups, which a person's records may all lie in.

    Total: as every statistic.
    """

    def free(self, public: Public) -> float:
        """Return c of the lemma of groups."""
        return free_in_groups(self.count_weight(public))


def expected_mean(
    learner: Averaged, public: Public, noise_distribution: NoiseDistribution
) -> tuple[str, ...]:
    """Forecast the half-width of a mean, and of the count next to it."""
    column = number_column(public.domain, learner.column)
    half = column.column.half_width * noise_distribution.within(learner.miss)
    people, wider = public.domain.people, tuple[str, ...]()
    # Of persons with several records sampling error depends on how these agree.
    if learner.samples(public) and (people is None or people.records == 1):
        name, guess = f"population mean of {learner.column}", learner.guess
        sd, n = guess.get("sd", "sd"), guess.get("records")
        wider = (expected_width(name, half, sd, learner.miss, n),)
    if not learner.counted(public):
        return (f"mean of {learner.column} +- {in_digits(half / public.domain.records)}", *wider)
    count = noise_distribution.within(learner.miss) / learner.count_weight(public)
    lines = (f"mean of {learner.column} about +- {in_digits(half)}/n for n values", *wider)
    return (*lines, f"count +- {count:.4g}") if learner.publishes_count else lines


def in_units(
    column: NumberColumn, at: float, ends: tuple[float, float]
) -> tuple[float, float, float]:
    """Convert a position with its interval to the file's units, clipped to the range."""
    low, high = column.column.low, column.column.high
    positions = (at, *ends)
    # Clipping to the declared range is free: the true mean lies in it.
    estimate, first, last = (
        min(max(float(column.value(np.array(position))), low), high) for position in positions
    )
    return estimate, first, last


def column_ends(column: NumberColumn, ends: Ends) -> Ends:
    """Convert ends of positions to the file's units; unbounded ends stay as they are."""
    is_finite = np.isfinite(ends[0])
    values = (column.value(np.where(is_finite, end, 0.0)) for end in ends)
    return nothing_unless(is_finite, *values)


def count_ends(moments: Moments, domain: Domain, sampling: Sampling | None) -> Ends:
    """Return the expected number of values of a stream, whose noise is that of w n."""
    wider = sampling and attrs.evolve(sampling, width=sampling.width * math.sqrt(moments.of_count))
    return counts_in(domain, moments.n, wider, out_of=None)
