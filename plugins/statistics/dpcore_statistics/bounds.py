r"""Bounds found in private: how large the values of a column are, and a mean clipped to that.

Let g run over powers of two. r(g), the number of values above g in size, moves by at most 1 when a
record comes, goes or is replaced, and for all g one way: a larger value raises some of them, a
smaller one lowers some. So a monotone sparse vector finds the first g beyond which few values lie.

A bound that was found is an answer, not a premise. What uses it holds for every g: values are
clipped to g and divided by g, and (w, x/g) moves as `mean` says, whatever g is.

Clipping is bias, so the number of values beyond g is released with the mean: a record adds
(w, t, v (b - 1/2)) with t = x/g clipped to [-1, 1] and b = 1 where \|x\| > g, else 0. In l2 that is
at most :math:`\sqrt{w^2+1+v^2/4}` long, and two of them are at most :math:`\sqrt{4+v^2}` apart; in
l1 w + 1 + v/2 and 2 + v. Centred at 1/2 it costs half of what b itself would: v = 1/2 makes the
mean's noise 2 % (add/remove) or 3 % larger.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Distance,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SumQuery,
)
from dpcore.checks import confidence, fraction
from dpcore.errors import ContractError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.clipping import clipped_integers
from dpcore.learners.conversation import Transcript
from dpcore.models.figures import Figures, Statistics
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore_statistics.bars import around, combined, cut_count, ratio
from dpcore_statistics.by_group import group_weight, groups_moved, groups_of, stacked
from dpcore_statistics.columns import Marginal, number_column, require_conditions, selected
from dpcore_statistics.mean import default_weight, with_count
from dpcore_statistics.mechanisms.sparse_vector import SparseVector
from dpcore_statistics.statistic import ROWS, Folding, norm_in_use

BOUND, MEAN = "bound", "mean"

MANY = 0.01
"""The proportion of values beyond the bound from which on the printed line warns of it."""

COVERS = (
    "noise only: where the mean of the values lies, each clipped to the bound that was found "
    "(itself released) and missing ones left out"
)


@attrs.frozen(kw_only=True)
class BoundedMean(Folding):
    """A mean of values of unknown size: a bound on them found in private, then the mean within it.

    The declared range may be far too wide: it costs the logarithm of its width. Missing values
    are left out; those beyond the bound are clipped to it.

    Total: counts of values are finite whatever the records, and sums of clipped ones too.

    Args:
        column: A declared range, as wide as it may need to be.
        finest: The smallest bound: a power of two, which others are multiples of.
        share: Of the budget, for the bound.
        count_clipped: Whether the number of values beyond the bound is released with the mean.
        by: Columns whose combinations are groups, in each of which the mean is taken, within one
            bound for all; all records are one group if left out.
        edges: Of the cells of a key that is a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an half-width holds.
        interval: `noise` only: the bound is random, and its bias is in no interval.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.bounded_mean",)
    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"count_clipped": False}}
    total: ClassVar[bool] = True

    column: str
    finest: float = 2.0**-10
    share: float = attrs.field(default=0.2, validator=fraction)
    count_clipped: bool = True
    by: tuple[str, ...] = ()
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)
    interval: Literal["noise", "population", "both"] | None = None

    def __attrs_post_init__(self) -> None:
        needed = "noise: a bound found in private is random, and its bias is in no interval"
        need(self.interval in (None, "noise"), "bounded_mean", needed, "interval", self.interval)

    def grid(self, public: Public) -> NDArray[np.float64]:
        """Return the candidate bounds: powers of two up to the end of the range."""
        column = number_column(public.domain, self.column).column
        largest = max(abs(column.low), abs(column.high))
        # Powers of two from `finest` to the first one beyond the range's end.
        first = math.frexp(self.finest)[1] - 1
        last = max(first + 1, math.frexp(largest)[1])
        return np.asarray(2.0 ** np.arange(first, last + 1))

    def weight(self, public: Public) -> float:
        """Return w, the weight of the count next to the sum of clipped values."""
        norm, replaces = norm_in_use(public, None), public.domain.exact is not None
        return group_weight(norm, replaces) if self.by else default_weight(norm, replaces)

    def clipped_weight(self, norm: Distance) -> float:
        """Return v, the weight of the number of values beyond the bound; 0 if not released."""
        return 0.0 if not self.count_clipped else 0.25 if norm is Distance.L1 else 0.5

    def groups(self, public: Public) -> Marginal:
        """Return the groups; a single group of all records if `by` is empty."""
        return groups_of(public.domain, self.by, self.edges, self.bins, "bounded_mean")

    def longest(self, public: Public) -> float:
        """Return the largest norm of one record's contribution to the sums."""
        norm = norm_in_use(public, None)
        pair = with_count(norm, self.weight(public), 1.0)
        return with_count(norm, self.clipped_weight(norm) / 2, pair)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return two queries: `bound`, then `mean` with the bound as its argument.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        norm = norm_in_use(public, None)
        shape = (len(self.grid(public)),)
        numbers = 3 if self.count_clipped else 2
        groups = (self.groups(public).size,) if self.by else ()
        return (
            # Counts of larger values: integers, moved by at most 1 in the largest norm.
            Query(
                name=BOUND,
                shape=shape,
                distance=Distance.LINF,
                values="integers",
                share=self.share,
                reads=Reads.FOLDS,
                mechanism=SparseVector(),
            ),
            SumQuery(
                name=MEAN,
                shape=(*groups, numbers),
                distance=norm,
                share=1 - self.share,
                sum=Sum(clip=self.longest(public)),
            ),
        )

    def ask(self, state: Transcript) -> Query | None:
        """Ask for the bound, then for the mean within it."""
        bound, mean = state.queries
        if not state.answers:
            return bound
        if len(state.answers) == 1:
            # The bound is a released number, so the second query may depend on it.
            return attrs.evolve(mean, args={BOUND: self._bound(state)})
        return None

    def _bound(self, state: Transcript) -> float:
        """Return g, the bound that the first answer selected."""
        return float(self.grid(state.public)[int(np.argmax(state.answers[0].value))])

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any] | Exact:
        """PRIVATE: compute the counts of larger values, or the exact sums."""
        if not isinstance(query, SumQuery):
            zero = (Exact.zeros((self.grid(public).size,), 0),)
            (larger,) = records.fold(partial(self._larger, public), zero, ROWS)
            return larger.floats()
        zero = (Exact.zeros(query.shape, query.sum.unit),)
        (total,) = records.fold(partial(self._within, query, public), zero, ROWS)
        return total

    def _values(
        self, block: Records, public: Public
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """PRIVATE: return the values of a block that count, and the group of each."""
        column, group = number_column(public.domain, self.column), self.groups(public).index(block)
        mask = selected(public.domain, self.where, block) & column.present(block) & (group >= 0)
        return column.value(column.scaled(block))[mask], group[mask]

    def _larger(self, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: count the values of a block whose size exceeds each bound."""
        # Only how many values are above each bound is kept of a block, never the values.
        sizes = np.sort(np.abs(self._values(block, public)[0]))
        # "right": a value equal to g is not above it.
        below = np.searchsorted(sizes, self.grid(public), side="right")
        return (Exact.of((sizes.size - below).astype(np.int64), 0),)

    def _within(self, query: SumQuery, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: sum w, x/g (x clipped to g) and the clipping indicators of a block, by group."""
        # The theorem holds for every g > 0, so anything else is a broken contract.
        bound = float((query.args or {}).get(BOUND, 0.0))
        need(
            math.isfinite(bound) and bound > 0, ContractError, "a bound is a finite number above 0"
        )
        values, group = self._values(block, public)
        positions = np.clip(values / bound, -1.0, 1.0)
        columns = [np.full(positions.size, self.weight(public)), positions]
        if self.count_clipped:
            is_clipped = np.abs(values) > bound
            columns.append(self.clipped_weight(query.distance) * (is_clipped - 0.5))
        rows = np.column_stack(columns)
        clip, unit = query.sum.clip, query.sum.unit
        # Each record's pair is clipped and rounded before the sum: the sensitivity is about these.
        integers = clipped_integers(rows, clip, unit, query.distance, positive=False)
        sums = np.zeros((self.groups(public).size, rows.shape[1]), dtype=np.int64)
        np.add.at(sums, group, integers)
        return (Exact.of(sums.reshape(query.shape), unit),)

    def model(self, state: Transcript) -> Statistics:
        """Return mean, count, values beyond the bound, and the bound itself, by group."""
        public, answer, bound = state.public, state.answers[1], self._bound(state)
        groups = self.groups(public)
        value = np.asarray(answer.value, dtype=np.float64).reshape(groups.size, -1)
        covers = "".join((COVERS, self._left_out(value, bound, answer.noise_distribution, public)))
        miss = apart(1 - self.level, groups.size)
        figures = []
        for sums in value:
            rows = self._rows(sums, bound, answer.noise_distribution, miss, public)
            figures.append(
                Figures(
                    about={"statistic": tuple(row[0] for row in rows)},
                    estimate=np.array([row[1] for row in rows]),
                    low=np.array([row[2] for row in rows]),
                    high=np.array([row[3] for row in rows]),
                    level=self.level,
                    covers=covers,
                )
            )
        table = stacked(groups.about, figures, self.level) if self.by else figures[0]
        return Statistics.of(table if answer.noise_distribution is not None else table.unstated())

    def _rows(
        self,
        sums: NDArray[np.float64],
        bound: float,
        noise_distribution: NoiseDistribution | None,
        miss: float,
        public: Public,
    ) -> list[tuple[str, float, float, float]]:
        """Return the statistics of one group, each with its interval."""
        w, (weighted, total) = self.weight(public), (float(number) for number in sums[:2])
        # The interval is of the mean within the bound: what clipping cuts off is not covered.
        ends = ratio(total, weighted, w, noise_distribution, miss, 1.0)
        estimate = min(max(total / max(1.0, weighted / w), -1.0), 1.0)
        counts = around(weighted, noise_distribution, miss)
        count = cut_count((counts[0] / w, counts[1] / w), public.domain)
        beyond = (
            [self._beyond(sums, noise_distribution, miss, public)] if self.count_clipped else []
        )
        return [
            (f"mean of {self.column}", bound * estimate, bound * ends[0], bound * ends[1]),
            ("count", weighted / w, *count),
            *(("values beyond the bound", *numbers) for numbers in beyond),
            (f"bound on {self.column}", bound, bound, bound),
        ]

    def _beyond(
        self,
        sums: NDArray[np.float64],
        noise_distribution: NoiseDistribution | None,
        miss: float,
        public: Public,
        groups: int = 1,
    ) -> tuple[float, float, float]:
        """Estimate the number of values beyond the bound, with an interval.

        Args:
            sums: Of one group, or the total of so many groups.
        """
        # The third sum is v (C - n/2), the first one w n: C is a combination of both.
        of_clipped = 1 / self.clipped_weight(norm_in_use(public, None))
        of_count = 0.5 / self.weight(public)
        estimate = float(of_clipped * sums[2] + of_count * sums[0])
        half = combined((of_clipped, of_count), groups, noise_distribution, miss)
        return estimate, *cut_count((estimate - half, estimate + half), public.domain)

    def _left_out(
        self,
        value: NDArray[np.float64],
        bound: float,
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> str:
        """Describe what the interval omits, from released numbers and the declared range only."""
        if not self.count_clipped or noise_distribution is None:
            return ""
        sums, groups, miss = value.sum(axis=0), len(value), 1 - self.level
        clipped, low, high = self._beyond(sums, noise_distribution, miss, public, groups)
        column = number_column(public.domain, self.column).column
        # A value beyond the bound counts as the bound, and may be as large as the range allows.
        excess = max(0.0, max(abs(column.low), abs(column.high)) - bound)
        count = max(1.0, float(sums[0]) / self.weight(public))
        farther = min(1.0, high / count) * excess
        few = f"which moves the mean by {farther:.4g} at most"
        if high <= MANY * count:
            return (
                f". It leaves out what clipping cuts off: at most {high:.4g} of about {count:.4g} "
                f"values lie beyond the bound, {few}"
            )
        verdict = "IS NOT" if low > MANY * count else "MAY NOT BE"
        about = f"about {min(max(clipped, 0.0), count):.4g} (at most {min(high, count):.4g})"
        return (
            f". THIS {verdict} THE MEAN OF THE VALUES AS THEY ARE: {about} of about {count:.4g} "
            f"values lie beyond the bound and count as {bound:g}, {few}. Declare a range, or give "
            f"the bound more of the budget (share)"
        )

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the half-width of the sum in bounds: the n whose mean is known to one bound."""
        miss = apart(1 - self.level, self.groups(public).size)
        return noise_distributions[MEAN].within(miss) if MEAN in noise_distributions else 0.0

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast the half-width of the mean, in units of the bound that will be selected."""
        if (half := self.least_records(public, noise_distributions)) == 0:
            return ()
        groups = " of each group, all together" if self.by else ""
        return (
            f"mean of {self.column} about +- {half:.4g} bounds / n for n values{groups} "
            f"({100 * self.level:g} %)",
        )


@attrs.frozen
class BoundedMeanBound(SensitivityBound):
    """1, all one way, for the counts; the theorem of `mean` for the sums, at every bound found."""

    learner: ClassVar[type[AnyLearner]] = BoundedMean

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return 1 for the counts; for the sums (w, x/g) the theorem of `mean`, plus rounding."""
        if not isinstance(query, SumQuery):
            # All scores move one way (see the module), so they also lie at most 1 apart.
            claim, value = ByRelation(add_remove=1.0, replace_one=1.0).under(adjacency)
            return Sensitivity(
                value=value,
                range=1.0,
                distance=Distance.LINF,
                adjacency=claim,
                source="numbers of larger values move by at most 1, all one way",
            )
        norm, longest = query.distance, query.sum.clip
        # Two values within the bound are 2 apart; one of them may be clipped, the other not.
        v = learner.clipped_weight(norm)
        within = max(longest, 2 + v if norm is Distance.L1 else up(math.hypot(2, v), roundings=3))
        movement = ByRelation(add_remove=longest, replace_one=within)
        if learner.by:
            movement = groups_moved(longest, within, query.shape[0], norm)
        claim, value = movement.under(adjacency)
        rounding = 4 * query.shape[-1] * 2.0**query.sum.unit  # each number, on either side
        clipped = ", and of how many it clips" if learner.count_clipped else ""
        return Sensitivity(
            value=up(value + rounding, roundings=4),
            distance=norm,
            adjacency=claim,
            source=f"a count and a sum of values in [-1, 1] times any bound{clipped} ({claim})",
        )
