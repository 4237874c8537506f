"""Count: how many records meet a condition, and which proportion of the others' number they are."""

from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import need
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.summing import Tally
from dpcore_statistics.bars import around, cut, cut_count, proportion
from dpcore_statistics.by_group import ByRanges, inside
from dpcore_statistics.columns import require_conditions, selected
from dpcore_statistics.histogram import ONE_CELL_NORMS, counts_moved, public_total
from dpcore_statistics.population.sampling import (
    NOTHING,
    check_guess,
    expected_proportion,
    population_intervals,
    stacked_ends,
)
from dpcore_statistics.population.shares import counts_in, noisy_fraction, public_fraction


@attrs.frozen(kw_only=True)
class Count(ByRanges):
    """The number of records or of persons, or of those that meet a condition.

    Total: as every statistic.

    Args:
        of: What is counted: records, or persons, each of whom counts once if any of their records
            meets the condition. For domains with `people`.
        guess: Public guesses, for what `check` expects of a proportion of the population only:
            `records`, the number of all, and `proportion`.
    """

    distinguishes_laplace: ClassVar[bool] = True

    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )

    guess: dict[str, float] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        check_guess("count", self.guess, ("records", "share"))

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons."""
        return self.of

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: a finite population has proportions only."""
        domain = public.domain
        is_fraction = self.of == "records" and bool(self.where)
        if domain.sampled == "independent" or (is_fraction and domain.people is None):
            return ""
        return "sampled: independent, or a condition under where (then a share is reported)"

    def pays_for_population(self, public: Public) -> bool:
        """Return whether population intervals cost privacy: by one group, under replacement."""
        is_replacement = public.domain.exact is not None
        return bool(self.by) and is_replacement and self.groups(public).size == 1

    def _states_rest(self, public: Public) -> bool:
        """Return whether the records that do not meet the condition are counted too."""
        domain = public.domain
        has_rest = self.of == "records" and bool(self.where) and domain.people is None
        return has_rest and domain.exact is None and self.samples(public)

    def query(self, public: Public) -> SumQuery:
        """Return a query for one exact non-negative integer, or for two in disjoint cells."""
        norm, is_pair = self.norm(public), self._states_rest(public)
        # An exponent of 0 is a unit of 1: integers are not rounded, so nothing is added for that.
        return SumQuery(
            name="count",
            shape=(1 + is_pair,),
            distance=norm,
            norms=ONE_CELL_NORMS if is_pair else (norm,),
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def planned(self, public: Public) -> SumQuery:
        """Return the query of all groups; their counts are disjoint: bounded in both norms."""
        query = super().planned(public)
        return attrs.evolve(query, norms=ONE_CELL_NORMS) if self.by else query

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return 1; but 0 under replacement without a condition if n is public.

        Where a person is the unit, or rows are left out, n is private, and a record that is
        replaced is one step of several between datasets of different size: 1 is claimed of it too.
        """
        # A count of all records is public under replacement; `StatisticBound` then refuses it.
        count_is_public = not self.where and public.domain.exact is not None
        # Within a group a replaced record may leave one of two cells for the other one.
        if query.real_size == 2:
            return counts_moved(query.distance)
        return ByRelation(add_remove=1.0, replace_one=0.0 if count_is_public else 1.0)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return 1 for a record that meets the condition, in two cells if needed."""
        chosen = self.chosen(block, public)[:, None]
        cells = np.hstack([chosen, ~chosen]) if query.real_size == 2 else chosen
        return cells.astype(np.float64)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the count by group as a tally; none if the other records are reported too."""
        is_pair = self._states_rest(inside(public) if self.by else public)
        return () if is_pair else (self.tally(self.groups(public), public),)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return a table of the count with its interval, cut to what is possible."""
        domain, noise_distribution = public.domain, answer.noise_distribution
        estimate, *rest = (float(number) for number in answer.value)
        ends = around(estimate, noise_distribution, self.miss)
        rows = [(self._label(public), estimate, *cut_count(ends, domain))]
        # Next to the rest, or out of a public number, a count is a share too.
        out_of, n, intervals = None if domain.exact is None else float(domain.exact), 1.0, None
        if self.samples(public):
            sampling = self.sampling(noise_distribution, self.miss, public)
            wider = [counts_in(domain, estimate, sampling, out_of=out_of)]
            if rest:
                n, ends = (
                    estimate + rest[0],
                    proportion(estimate, rest[0], (1, 1), noise_distribution, self.miss),
                )
                wider.append(
                    NOTHING if sampling is None else noisy_fraction(estimate, rest[0], sampling)
                )
            elif out_of is not None:
                n, ends = out_of, (rows[0][2] / out_of, rows[0][3] / out_of)
                wider.append(
                    NOTHING if sampling is None else public_fraction(estimate, out_of, sampling)
                )
            if len(wider) > 1:
                rows.append(("share", min(max(estimate / max(1.0, n), 0.0), 1.0), *ends))
            subject = (
                "the expected count, and the proportion of the population that meets the condition"
            )
            intervals = population_intervals(
                stacked_ends(wider), self.level, subject, domain, sampling
            )
        return Statistics.of(
            Figures(
                about={"statistic": tuple(row[0] for row in rows)},
                estimate=np.array([row[1] for row in rows]),
                low=np.array([row[2] for row in rows]),
                high=np.array([row[3] for row in rows]),
                level=self.level,
                covers="noise only: where the exact count lies",
                population=intervals,
            )
        )

    def _label(self, public: Public) -> str:
        """Return the row's label; it names the unit if that may be records or persons."""
        is_said = self.states_unit and public.domain.people is not None
        return f"count of {self.of}" if is_said else "count"

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the half-width of the count, exactly, and of a proportion, roughly."""
        half = noise_distribution.within(self.miss)
        line, cells = f"count +- {half:.4g}", 1 + self._states_rest(public)
        # Next to the rest, or out of a public number, a count is a share too.
        if not self.samples(public) or (cells == 1 and public.domain.exact is None):
            return (line,)
        name = "population share"
        return (line, expected_proportion(name, half, self.miss, cells, self.guess))


@attrs.frozen(kw_only=True)
class Share(ByRanges):
    """The proportion of records that meet a condition, out of those that meet `where`; also by
    group.

    Those that meet it are counted next to those that do not: two cells that do not overlap. Where
    the number of records is public, and all count, the first is enough. The interval is Fieller's
    set, exact for normal noise at every size; of few records it may say nothing.

    Total: as every statistic.

    Args:
        meets: The condition, as `where`: by column, values or `{from: low, below: high}`.
    """

    distinguishes_laplace: ClassVar[bool] = True

    meets: dict[str, Any]

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """Records are counted, in one cell or in two."""
        return "records"

    def unsampled(self, public: Public) -> str:
        """Return "": every proportion has an interval about the population."""
        return ""

    def _out_of(self, public: Public) -> int | None:
        """Return the number of all records if it is public and is the denominator; else None."""
        return None if self.where else public_total(self, public)

    def query(self, public: Public) -> SumQuery:
        """Return a query for both cells, exact and non-negative; or for the first cell only."""
        need(self.meets, "share", "a condition", "meets", self.meets)
        require_conditions(public.domain, self.meets)
        return SumQuery(
            name="share",
            shape=(2 if self._out_of(public) is None else 1,),
            distance=self.norm(public),
            norms=ONE_CELL_NORMS,
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return 1 under add/remove; under replacement sqrt(2) (l2) or 2 (l1); 1 for one cell."""
        if query.real_size == 1:
            return ByRelation(add_remove=1.0, replace_one=1.0)
        return counts_moved(query.distance)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return 1 in the cell of records that meet the condition, or in the other."""
        meets = selected(public.domain, self.meets, block)[:, None]
        cells = np.hstack([meets, ~meets]) & self.chosen(block, public)[:, None]
        return cells[:, : query.real_size].astype(np.float64)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return a table with one row: the proportion and its interval, between 0 and 1."""
        noise_distribution, n, intervals = answer.noise_distribution, self._out_of(public), None
        sampling = self.sampling(noise_distribution, self.miss, public)
        top, *products = (float(number) for number in answer.value)
        if n is None:
            estimate = top / max(1.0, top + products[0])
            ends = proportion(top, products[0], (1, 1), noise_distribution, self.miss)
            wider = NOTHING if sampling is None else noisy_fraction(top, products[0], sampling)
        else:
            # One record at least, as a public 0 has no share.
            estimate, low_high = top / max(1, n), around(top, noise_distribution, self.miss)
            ends = cut((low_high[0] / max(1, n), low_high[1] / max(1, n)), 0.0, 1.0)
            wider = (
                NOTHING if sampling is None else public_fraction(top, float(max(1, n)), sampling)
            )
        if self.samples(public):
            subject = "the proportion of the population that meets the condition"
            intervals = population_intervals(wider, self.level, subject, public.domain, sampling)
        return Statistics.of(
            Figures(
                about={"statistic": ("share",)},
                estimate=np.clip([estimate], 0.0, 1.0),
                low=np.array([ends[0]]),
                high=np.array([ends[1]]),
                level=self.level,
                covers="noise only: where the proportion of these records lies",
                population=intervals,
            )
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width, known with a public n; else the largest for n records, about."""
        half, n = noise_distribution.within(self.miss), self._out_of(public)
        # Of two noisy cells it is the share's own noise times sqrt(p^2 + (1 - p)^2): at most 1.
        return (f"share about +- {half:.4g}/n for n records" if n is None
                else f"share +- {half / max(1, n):.4g}",)  # fmt: skip
