r"""Bounds found in private: how large the values of a column are, and a mean clipped to that.

Let g run over powers of two. r(g), the number of values above g in size, moves by at most 1 when a
record comes, goes or is replaced, and for all g one way: a larger value raises some of them, a
smaller one lowers some. So a monotone sparse vector finds the first g beyond which few values lie.

A bound that was found is an answer, not a premise. What uses it holds for every g: values are
clipped to g and divided by g, and (w, x/g) moves as `mean` says, whatever g is.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    AnyLearner,
    Distance,
    Exact,
    LearnerCoins,
    Public,
    Query,
    Reads,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SumQuery,
)
from dpcore.checks import fraction
from dpcore.errors import ContractError
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.learners.clipping import clipped_integers
from dpcore.learning.learners.conversation import Transcript
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import around, cut_count, ratio
from dpcore_statistics.columns import number_column, require_conditions, selected
from dpcore_statistics.mean import default_weight, with_count
from dpcore_statistics.mechanisms.sparse_vector import SparseVector
from dpcore_statistics.statistic import ROWS, Folding, norm_in_use

BOUND, MEAN = "bound", "mean"


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
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an error bar holds.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.bounded_mean",)
    total: ClassVar[bool] = True

    column: str
    finest: float = 2.0**-10
    share: float = attrs.field(default=0.2, validator=fraction)
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=fraction)

    def grid(self, public: Public) -> NDArray[np.float64]:
        """The bounds that may be found: powers of two up to the end of the range."""
        column = number_column(public.domain, self.column).column
        largest = max(abs(column.low), abs(column.high))
        # Powers of two from `finest` to the first one beyond the range's end.
        first = math.frexp(self.finest)[1] - 1
        last = max(first + 1, math.frexp(largest)[1])
        return np.asarray(2.0 ** np.arange(first, last + 1))

    def weight(self, public: Public) -> float:
        """w, the weight of the count beside the sum of clipped values."""
        return default_weight(norm_in_use(public, None), public.domain.exact is not None)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """`bound` once, then `mean` once, with the bound as its argument.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        norm = norm_in_use(public, None)
        shape = (len(self.grid(public)),)
        clip = with_count(norm, self.weight(public), 1.0)
        return (
            # Counts of larger values: integers, moved by at most 1 in the largest norm.
            Query(
                name=BOUND,
                shape=shape,
                distance=Distance.LINF,
                values="integers",
                share=self.share,
                reads=Reads.FOLDS,
                usual=SparseVector(),
            ),
            SumQuery(
                name=MEAN, shape=(2,), distance=norm, share=1 - self.share, sum=Sum(clip=clip)
            ),
        )

    def ask(self, state: Transcript) -> Query | None:
        """The bound, then the mean within it."""
        bound, mean = state.queries
        if not state.answers:
            return bound
        if len(state.answers) == 1:
            # The bound is a released number, so the second query may depend on it.
            return attrs.evolve(mean, args={BOUND: self._bound(state)})
        return None

    def _bound(self, state: Transcript) -> float:
        """g, of the first answer."""
        return float(self.grid(state.public)[int(np.argmax(state.answers[0].value))])

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any] | Exact:
        """PRIVATE: counts of larger values, or the exact sums."""
        if not isinstance(query, SumQuery):
            zero = (Exact.zeros((self.grid(public).size,), 0),)
            (larger,) = records.fold(partial(self._larger, public), zero, ROWS)
            return larger.floats()
        zero = (Exact.zeros((2,), query.sum.unit),)
        (total,) = records.fold(partial(self._within, query, public), zero, ROWS)
        return total

    def _values(self, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: the values of a block that count."""
        column = number_column(public.domain, self.column)
        mask = selected(public.domain, self.where, block) & column.present(block)
        return column.value(column.scaled(block))[mask]

    def _larger(self, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: how many of a block's values are above each bound, in size."""
        # Only how many values are above each bound is kept of a block, never the values.
        sizes = np.sort(np.abs(self._values(block, public)))
        # "right": a value equal to g is not above it.
        below = np.searchsorted(sizes, self.grid(public), side="right")
        return (Exact.of((sizes.size - below).astype(np.int64), 0),)

    def _within(self, query: SumQuery, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: (w, x/g), x clipped to g, summed over a block."""
        # The theorem holds for every g > 0, so anything else is a broken contract.
        bound = float((query.args or {}).get(BOUND, 0.0))
        if not (math.isfinite(bound) and bound > 0):
            raise ContractError("a bound is a finite number above 0")
        positions = np.clip(self._values(block, public) / bound, -1.0, 1.0)
        rows = np.column_stack([np.full(positions.size, self.weight(public)), positions])
        clip, unit = query.sum.clip, query.sum.unit
        # Each record's pair is clipped and rounded before the sum: the sensitivity is about these.
        integers = clipped_integers(rows, clip, unit, query.distance, positive=False)
        return (Exact.of(integers.sum(axis=0), unit),)

    def model(self, state: Transcript) -> Statistics:
        """The mean, the count and the bound."""
        # The interval is of the mean within the bound: what clipping cuts off is not covered.
        bound, w, miss = self._bound(state), self.weight(state.public), 1 - self.level
        answer = state.answers[1]
        weighted, total = (float(number) for number in answer.value)
        ends = ratio(total, weighted, w, answer.spread, miss, 1.0)
        estimate = min(max(total / max(1.0, weighted / w), -1.0), 1.0)
        counts = around(weighted, answer.spread, miss)
        count = cut_count((counts[0] / w, counts[1] / w), state.public.domain)
        rows = [
            (f"mean of {self.column}", bound * estimate, bound * ends[0], bound * ends[1]),
            ("count", weighted / w, *count),
            (f"bound on {self.column}", bound, bound, bound),
        ]
        tables = Statistics.of(
            Figures(
                about={"statistic": tuple(row[0] for row in rows)},
                estimate=np.array([row[1] for row in rows]),
                low=np.array([row[2] for row in rows]),
                high=np.array([row[3] for row in rows]),
                level=self.level,
                covers="noise only: where the mean of the values lies, each clipped to the bound "
                "that was found (itself released) and missing ones left out",
            )
        )
        return tables if answer.spread is not None else tables.unstated()

    def forecast(self, public: Public, spreads: Mapping[str, NoiseLaw]) -> tuple[str, ...]:
        """In units of the bound that will be found."""
        if MEAN not in spreads:
            return ()
        half = spreads[MEAN].within(1 - self.level)
        return (
            f"mean of {self.column} about +- {half:.4g} bounds / n for n values "
            f"({100 * self.level:g} %)",
        )


@attrs.frozen
class BoundedMeanBound(SensitivityBound):
    """1, all one way, for the counts; the theorem of `mean` for the sums, at every bound found."""

    learner: ClassVar[type[AnyLearner]] = BoundedMean

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """1 for the counts; for the sums (w, x/g) the theorem of `mean`, and what rounding adds."""
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
        longest = query.sum.clip
        rounding = 4 * 2.0 * 2.0**query.sum.unit  # two coordinates, rounded on either side
        movement = ByRelation(add_remove=longest, replace_one=max(2.0, longest))
        claim, value = movement.under(adjacency)
        return Sensitivity(
            value=up(value + rounding, roundings=4),
            distance=query.distance,
            adjacency=claim,
            source=f"a count and a sum of values in [-1, 1] times any bound ({claim})",
        )
