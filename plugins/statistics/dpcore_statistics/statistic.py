"""Statistic: what the learners of this plugin share: one exact sum over records, asked once."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Domain,
    Public,
    Published,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    SummingLearner,
    SumQuery,
)
from dpcore.checks import confidence, one_of, positive
from dpcore.errors import ParameterError, need, need_value
from dpcore.interval import NoiseDistribution
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.bounds.sum import derived_as_sum
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.models.figures import NOISE, POPULATION, Statistics
from dpcore.rounding import up
from dpcore.summing import Tally, sums_exactly
from dpcore_statistics.bars import Ends, cut
from dpcore_statistics.columns import (
    Cutting,
    Marginal,
    conditions,
    require_conditions,
    selected,
)
from dpcore_statistics.population.sampling import Sampling, obstacle, sampling_of

ROOT_TWO = up(2.0**0.5, roundings=1)
ROWS = 1 << 16
"""Records at once: what one of them adds is few numbers."""


def norm_in_use(public: Public, asked: str | None) -> Distance:
    """Return the requested norm; else l2 (Gaussian noise), or l1 (Laplace) if delta is 0."""
    if asked is not None:
        return Distance(asked)
    # Without a delta there is no Gaussian noise (mu is None), and Laplace noise is for l1.
    return Distance.L1 if public.mu is None else Distance.L2


class Folding(Conversation, Cutting):
    """Numbers that are functions of exact sums, each with a theorem of its own."""

    publishes: ClassVar[type[Any]] = Published


@attrs.frozen(kw_only=True)
class Statistic(SummingLearner, Conversation, Cutting):
    """One exact sum over records, asked once, and tables that follow from it.

    Total: as every summing learner; public facts only decide what a record contributes.

    Args:
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an half-width holds.
        distance: The norm of the noise: `l2` for Gaussian mechanisms, `l1` for Laplace ones; by
            default l2 where the budget has a delta, else l1.
        clip: What the noise hides: `record`, k records of a person; `person`, one person whose
            records are added and then clipped to the length of `counts_for` of them, so that k
            costs nothing. For domains with `people`, and for sums and means only: `of: persons`
            counts persons.
        counts_for: How many whole records a person counts for at most, where persons are clipped.
        states_unit: Whether a count is of records or of persons, and its table says of which. A
            spec of before 0.2.0 means false: `clip: person` then counts neither.
        cut_at_zero: Whether intervals of sums and quotients of values of one sign end at 0. A spec
            of before 0.2.1 means false.
        interval: What intervals cover: the `noise` only, or sampling error too (`population`,
            `both`), for which the domain says how records were `sampled`. By default both where it
            does, and where that costs neither epsilon nor noise; of Laplace noise on request.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.sums",)
    total: ClassVar[bool] = True
    publishes: ClassVar[type[Any]] = Published

    distinguishes_laplace: ClassVar[bool] = False
    """Whether intervals about the population are reported of Laplace noise in l1, too."""

    counting_words: ClassVar[str] = "in every number that any of their records is in"
    """Where a person counts, of those who are counted."""

    rows_at_once: ClassVar[int] = ROWS
    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "0.2.0": {"states_unit": False},
        "0.2.1": {"cut_at_zero": False},
    }

    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)
    distance: Literal["l1", "l2"] | None = None
    clip: Literal["record", "person"] = attrs.field(
        default="record", validator=one_of("record", "person")
    )
    counts_for: float = attrs.field(default=1.0, validator=positive)
    states_unit: bool = True
    cut_at_zero: bool = True
    interval: Literal["noise", "population", "both"] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(one_of(NOISE, POPULATION, "both")),
    )

    def __attrs_post_init__(self) -> None:
        need(
            self.distance in (None, "l1", "l2"), "statistics", "l1 or l2", "distance", self.distance
        )
        need(
            self.clip != "record" or self.counts_for == 1,
            "statistics",
            "clip: person",
            "counts_for",
            self.counts_for,
        )
        # A vector of counts that is scaled is neither a number of persons nor one of records.
        is_scaled_count = self.clip == "person" and self.counted_unit and self.states_unit
        needed = "clip: record, or of: persons where it counts cells or groups (sums clip persons)"
        need(not is_scaled_count, "a count", needed, "clip", self.clip)

    def cut_sum(self, ends: Ends, low: float, high: float) -> Ends:
        """Cut an interval to the sums that values in [low, high], or none, may have.

        Where no value is below 0 no sum is, so that what is cut off never held the sum.
        """
        if not self.cut_at_zero:
            return ends
        return cut(ends, 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf)

    @property
    def publishes_count(self) -> bool:
        """Whether a count next to sums is of records: not where persons were scaled with it."""
        return self.clip == "record" or not self.states_unit

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit; None if values are added up or averaged."""
        return None

    def unsampled(self, public: Public) -> str:
        """Return why this statistic has no population interval; empty if it has one."""
        return "interval: noise (this statistic has no interval about the population)"

    def draws_persons(self, public: Public) -> bool:
        """Return whether a person with several records is one draw for population intervals."""
        return self.counted_unit == "persons"

    def sampling(
        self, noise_distribution: NoiseDistribution | None, miss: float, public: Public
    ) -> Sampling | None:
        """Return the law of a population interval; None if the noise has none."""
        return sampling_of(noise_distribution, miss, public.domain, self.norm(public))

    def pays_for_population(self, public: Public) -> bool:
        """Return whether a population interval costs epsilon, or noise on a number."""
        return False

    def samples(self, public: Public) -> bool:
        """Return whether intervals about the population are reported: a function of public facts.

        Raises:
            ParameterError: they are asked for, and cannot be reported.
        """
        if self.interval == NOISE:
            return False
        norm, people = self.norm(public), public.domain.people
        # Second moments of persons' sums are free in l2 only.
        of_persons = people is not None and people.records > 1 and self.counted_unit is None
        any_noise = self.distinguishes_laplace and not of_persons
        draws_persons = self.draws_persons(public)
        reason = obstacle(public.domain, norm, draws_persons, any_noise=any_noise)
        reason = reason or self.unsampled(public)
        # A person that is clipped is scaled: what is left of their values is no independent draw.
        reason = "clip: record" if self.clip == "person" and not reason else reason
        if self.interval is None:
            is_free = norm is Distance.L2 and not self.pays_for_population(public)
            return not reason and is_free
        need(not reason, type(self).__name__.lower(), reason, "interval", self.interval)
        return True

    @property
    def miss(self) -> float:
        """The probability with which an half-width may fail: 1 - level."""
        return 1 - self.level

    @abstractmethod
    def query(self, public: Public) -> SumQuery:
        """Return the statistic's query, in the norm of the release."""

    @abstractmethod
    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem: what one record moves the exact sum by, before rounding to the unit.

        It is the longest contribution where a record comes or goes, and the largest distance of two
        contributions (or of one from none, where records may be left out) where one is replaced.
        """

    @abstractmethod
    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the published tables: a function of the answer and of public facts."""

    def entries(self, query: SumQuery) -> int:
        """Return the number of entries of a contribution that may be nonzero, hence rounded."""
        return query.real_size

    def norm(self, public: Public) -> Distance:
        """Return the norm of clipping, to which the noise is calibrated."""
        return norm_in_use(public, self.distance)

    def chosen(self, records: Records, public: Public) -> NDArray[np.bool_]:
        """Mark the records that count. Shape (n,)."""
        return selected(public.domain, self.where, records)

    def tally(self, cells: Marginal, public: Public, **terms: Any) -> Tally:
        """Return the tally of every cell: 1 for each record that counts, or `terms`."""
        where = conditions(public.domain, self.where)
        return Tally(cuts=cells.cuts, where=where, **terms)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the only query, with persons clipped if `clip` says so.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        # Refuse a wrong condition when the plan is priced, before any record is read.
        require_conditions(public.domain, self.where)
        self.samples(public)  # and a wrong interval
        query = self.planned(public)
        if self.counted_unit == "persons":
            return (self._of_each_person(query, public),)
        return (query if self.clip == "record" else self._of_persons(query, public),)

    def moved_by_person(self, query: SumQuery, records: int, public: Public) -> ByRelation:
        """Bound the movement of counts (0 or 1 per record) by a person with `records` records.

        By default they are counts of disjoint cells, all of which the records may be in; those of
        two persons may all lie in different ones.
        """
        is_l1, numbers = query.distance is Distance.L1, query.real_size
        cells = (float(min(most, numbers)) for most in (records, 2 * records))
        lengths = [cell if is_l1 else rounded_root(cell) for cell in cells]
        return ByRelation(add_remove=lengths[0], replace_one=lengths[1])

    def _of_each_person(self, query: SumQuery, public: Public) -> SumQuery:
        """Let a person count once in every number; with one record they do anyhow.

        Raises:
            ParameterError: the domain does not say whose a record is.
        """
        requirement = (query.name, "of: records, or a domain with people", "of", "persons")
        people = need_value(public.domain.people, ParameterError, *requirement)
        if people.records == 1:
            return query
        moved = self.moved_by_person(query, people.records, public)
        counts = attrs.evolve(query.sum, person=moved.add_remove)
        query = attrs.evolve(query, norms=(query.distance,), sum=counts)
        if not self.turns_persons:
            # Numbers of records are cut off at 1 by the core, which then knows how far they move.
            return attrs.evolve(query, sum=attrs.evolve(counts, each=1.0))
        diameter = moved.replace_one
        if query.values != "integers":
            # As where a record is replaced: twice, for the roundings and for the arithmetic.
            diameter = up(diameter + 2 * _rounding(query, query.real_size), roundings=8)
        return attrs.evolve(query, sum=attrs.evolve(counts, diameter=diameter))

    def _of_persons(self, query: SumQuery, public: Public) -> SumQuery:
        """Clip persons in the query; several integers become reals, since they are scaled."""
        from dpcore.learners.by_person import of_whole_persons

        # What a person's records add has another length in each norm: it is clipped in one.
        query = attrs.evolve(query, norms=(query.distance,))
        query = of_whole_persons(query, self.counts_for, public.domain)
        if query.sum.person is None or query.values != "integers":
            return query
        # Scaled vectors are no integers any more, so their unit is chosen as for other reals.
        if query.real_size > 1:
            return attrs.evolve(query, values="reals", sum=attrs.evolve(query.sum, exponent=None))
        # One integer stays an integer under clipping only if the clip itself is one.
        need(
            float(self.counts_for).is_integer(),
            "a count",
            "a whole number",
            "counts_for",
            self.counts_for,
        )
        return query

    def model(self, state: Transcript) -> Statistics:
        """Return the published tables, from the last answer and from public facts."""
        *_, answer = state.answers
        tables = self.published(answer, state.public)
        # Without the noise distribution every number is possible: an interval would say nothing.
        if answer.noise_distribution is None:
            tables = tables.unstated()
        # A bar must say when it covers clipped persons: clipping is bias, which no bar includes.
        tables = tables if self.clip == "record" else tables.covering(self._clipping())
        unit = self._unit_in_words(state.public.domain)
        tables = tables.covering(unit) if unit else tables
        return tables.of_population() if self.interval == POPULATION else tables

    def _unit_in_words(self, domain: Domain) -> str:
        """State what counts are of, if persons have several records; else empty."""
        unit, people = self.counted_unit, domain.people
        if people is None or unit is None or not self.states_unit:
            return ""
        chosen = f"{people.records} of each person, by a secret choice"
        if unit == "records":
            return f"counts are of records, at most {chosen}"
        return f"counts are of persons: each counts once {self.counting_words} (at most {chosen})"

    def _clipping(self) -> str:
        """State how the records of a person are clipped."""
        length = "1 record" if self.counts_for == 1 else f"{self.counts_for:g} records"
        return f"the records of one person are clipped together, to the length of {length}"

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast the half-widths of the last query by `expected`."""
        *_, query = self.queries(public)
        if query.name not in noise_distributions:
            return ()
        level = f"({100 * self.level:g} %)"
        # Which of the two is counted decides what the number is, and how wide its interval.
        if self._unit_in_words(public.domain):
            level = f"of {self.counted_unit} {level}"
        return tuple(
            f"{line} {level}" for line in self.widths(public, noise_distributions[query.name])
        )

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the half-width of a count.

        With so many records a mean's interval is as wide as its range, and a count's twice as wide.
        """
        *_, query = self.queries(public)
        return (
            noise_distributions[query.name].within(self.miss)
            if query.name in noise_distributions
            else 0.0
        )

    def planned(self, public: Public) -> SumQuery:
        """Return the planned query: `query`, or that of all groups."""
        return self.query(public)

    def movement(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the movement of the planned query by one record."""
        return self.moved(query, public)

    def published(self, answer: Answer, public: Public) -> Statistics:
        """Return the published tables of the planned query."""
        return self.tables(answer, public)

    def widths(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the interval widths of the planned query."""
        return self.expected(public, noise_distribution)

    @abstractmethod
    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the interval widths, such as "count +- 21"."""


@attrs.frozen
class StatisticBound(SensitivityBound):
    """The learner's own theorem (`moved`), and what rounding contributions to the unit adds.

    A contribution is a row with d numbers other than 0, each rounded to a multiple of u and at most
    `clip` long after that. So a record that comes or goes moves the sum by at most `clip`, and a
    replaced one by what is claimed of exact contributions, and u sqrt(d) (l2) or u d (l1) for the
    two roundings; as much again covers the floating-point arithmetic of a contribution. Integers
    are not rounded.
    """

    def is_about(self, learner: AnyLearner) -> bool:
        """Return every statistic of this plugin whose sum the core adds."""
        return isinstance(learner, Statistic) and sums_exactly(learner)

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the learner's movement under the relation, and for reals what rounding adds."""
        if not isinstance(query, SumQuery):
            return Refused(f"{query.name!r} declares no sum")
        movement = learner.movement(query, public)
        if isinstance(movement, Refused):
            return movement
        claim, value = movement.under(adjacency)
        # A sensitivity of 0 needs no noise: the number is public, and no release of records.
        if value == 0:
            return Refused(f"{query.name!r} is public under {claim}: no record moves it")
        if query.values != "integers":
            # Twice: once for the two roundings, once for the arithmetic of a contribution.
            value = up(value + 2 * _rounding(query, learner.entries(query)), roundings=8)
        sensitivity = Sensitivity(
            value=value,
            distance=query.distance,
            adjacency=claim,
            source=f"{type(learner).__name__.lower()} of bounded contributions ({claim})",
        )
        return derived_as_sum(sensitivity, query)


def rounded_root(number: float) -> float:
    """Return a square root, rounded up if it is no integer."""
    root = math.sqrt(number)
    return root if root.is_integer() else up(root, roundings=1)


def _rounding(query: SumQuery, entries: int) -> float:
    """Bound the change of the distance of two contributions by rounding to the unit."""
    size: float = entries
    if query.distance is Distance.L2:
        # The length of d such moves; rounded up, since it enters a sensitivity.
        size = up(size**0.5, roundings=1)
    return size * 2.0**query.sum.unit
