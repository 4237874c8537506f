r"""Quantiles by choices: points of a public grid, likelier the nearer their rank.

Every value is rounded to the nearest grid point. Let :math:`n_<(t),n_\le(t)` count the values
below, and at most, a grid point t. The score of t for the quantile q, shifted by s ranks, is

.. math:: u(t)=-\max(0,\ n_<(t)-(qn+s),\ (qn+s)-n_\le(t)),

zero at the true quantile, ties included. At the first point the second term is left out, and at the
last one the third: nothing lies beyond them.

Theorem: under add/remove u moves by at most max(q, 1-q), and its changes lie at most twice that
apart; under replacement by at most 1, and 2. Proof: adding x moves :math:`n_<,n_\le` by 1[x < t],
1[x <= t] and qn by q, so each term by at most max(q, 1-q), and with them the maximum; replacing
moves each term by at most 1, as n is the same. A record that starts or ceases to count moves them
as one that comes or goes. []

With q = a/b scores are multiplied by b: they are integers.

Interval: with probability 1 - beta a choice scores at least
:math:`-r=-(\Delta_R/\epsilon)\ln(B/\beta)`, as some point scores 0. So the choice at the rank
qn - r has :math:`n_<(t)\le qn` or is the first point, the one at qn + r has
:math:`n_\le(t)\ge qn` or is the last: with beta/2 each, a quantile of the rounded values lies
between them. One choice alone has no interval, and three cost three times as much as one:
`interval: false` asks for the quantile alone, and its interval is then the whole range.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
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
)
from dpcore.checks import fraction
from dpcore.errors import ParameterError
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.learners.conversation import Transcript
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.mechanisms.exponential import MOST
from dpcore_statistics.columns import NumberColumn, number_column, require_conditions, selected
from dpcore_statistics.statistic import ROWS, Folding

_ASKS = 3  # the quantile itself, and a choice on either side for its interval
_COVERS = (
    "noise only: where the quantile of the values lies, each clipped to its declared range and "
    "missing ones left out. It does not include sampling error"
)
_NONE = "none was asked for: the whole range"
_FINEST = 1000  # the denominator of a quantile


@attrs.frozen(kw_only=True)
class Quantiles(Folding):
    """Quantiles of one column, each a point of a public grid chosen by its rank.

    Three choices are asked of every quantile: itself, and the ends of its interval; one, where no
    interval is wanted. Up to about three quantiles this is the best way (`exponential`); for more,
    ask a `workload` of prefixes.

    Total: ranks are finite whatever the records, and of no records all points are equally good.

    Args:
        column: A declared range; missing values are left out.
        quantiles: In (0, 1), increasing, with at most three decimals; 0.5 is the median.
        points: Of the grid, equally spaced over the range, both ends included.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an interval holds.
        interval: Whether two thirds of the budget go into an interval of each quantile; if not, all
            of it goes into the quantile, and nothing is said of how near it is.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.ranks",)
    total: ClassVar[bool] = True

    column: str
    quantiles: tuple[float, ...] = (0.5,)
    points: int = 1025
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=fraction)
    interval: bool = True

    def __attrs_post_init__(self) -> None:
        quantiles = [*self.quantiles]
        all_inside = all(isinstance(q, int | float) and 0 < q < 1 for q in quantiles)
        if not quantiles or not all_inside or any(a >= b for a, b in pairwise(quantiles)):
            raise ParameterError(
                "quantiles", "increasing numbers in (0, 1)", "quantiles", self.quantiles
            )
        # The denominator is the unit of the scores, so it must be small and exact.
        if any(float(_ratio(q)) != q for q in quantiles):
            raise ParameterError("quantiles", "at most three decimals", "quantiles", self.quantiles)
        if not 2 <= self.points <= MOST:
            raise ParameterError("quantiles", f"2 to {MOST} points", "points", self.points)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One for each quantile, asked three times.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        number_column(public.domain, self.column)
        # Asked up to three times: the shift is an argument, and no part of the query's claim.
        return tuple(
            Query(
                name=_name(q),
                shape=(self.points,),
                distance=Distance.LINF,
                values="integers",
                at_most=self._asks,
                reads=Reads.FOLDS,
            )
            for q in self.quantiles
        )

    def ask(self, state: Transcript) -> Query | None:
        """The quantile at its own rank, then r ranks below and above it."""
        number, turn = divmod(len(state.answers), self._asks)
        queries = state.queries
        if number == len(queries):
            return None
        shift = 0
        if turn:
            # r follows from the noise's law alone, and not from the answer.
            ranks = self._ranks(state.answers[self._asks * number])
            shift = -ranks if turn == 1 else ranks
        return attrs.evolve(queries[number], args={"shift": shift})

    def _ranks(self, first: Answer) -> int:
        """r, in units of one b-th of a rank; rounded up."""
        if first.spread is None:
            return 0
        return math.ceil(first.spread.within((1 - self.level) / 2))

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[np.float64]:
        """PRIVATE: b times the score of every point: integers."""
        zero = (Exact.zeros((self.points,), 0),)
        (total,) = records.fold(partial(self._counted, public), zero, ROWS)
        counts = total.floats().astype(np.int64)
        # n_<=(t) and n_<(t) at every grid point, from one histogram.
        at_most = np.cumsum(counts)
        below = at_most - counts
        q = _ratio(
            self.quantiles[[_name(quantile) for quantile in self.quantiles].index(query.name)]
        )
        shift = 0 if query.args is None else int(query.args["shift"])
        # b (q n + s): multiplied by b everything is an integer, so nothing rounds.
        rank = q.numerator * int(counts.sum()) + shift
        above, beneath = q.denominator * below - rank, rank - q.denominator * at_most
        # Nothing lies beyond the ends of the grid, so they are never too far out.
        above[0], beneath[-1] = 0, 0
        distance = np.maximum(np.maximum(above, beneath), 0)
        return np.asarray(-distance, dtype=np.float64)

    def _counted(self, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: how many of a block's values are nearest to each point."""
        column = number_column(public.domain, self.column)
        mask = selected(public.domain, self.where, block) & column.present(block)
        # To the nearest point: the released quantile is of these rounded values.
        places = np.rint((column.scaled(block)[mask] + 1) / 2 * (self.points - 1))
        return (Exact.of(np.bincount(places.astype(np.intp), minlength=self.points), 0),)

    @property
    def grid(self) -> NDArray[np.float64]:
        """The points, as positions in [-1, 1]."""
        return np.linspace(-1.0, 1.0, self.points)

    def model(self, state: Transcript) -> Statistics:
        """One table with a row for each quantile: the chosen point and its interval."""
        column = number_column(state.public.domain, self.column)
        rows = [
            self._row(column, state.answers[k * self._asks :][: self._asks])
            for k in range(self._count)
        ]
        return Statistics.of(
            Figures(
                about={"quantile": tuple(self.quantiles)},
                estimate=np.array([row[0] for row in rows]),
                low=np.array([row[1] for row in rows]),
                high=np.array([row[2] for row in rows]),
                level=self.level,
                covers=_COVERS if self.interval else _NONE,
            )
        )

    @property
    def _asks(self) -> int:
        """Of each quantile."""
        return _ASKS if self.interval else 1

    @property
    def _count(self) -> int:
        return len(self.quantiles)

    def _row(self, column: NumberColumn, answers: tuple[Answer, ...]) -> tuple[float, float, float]:
        """The choice between the two others, in the file's units; everything without a spread."""
        positions = [self.grid[int(np.argmax(answer.value))] for answer in answers]
        middle, *ends = (float(column.value(np.array(position))) for position in positions)
        if answers[0].spread is None or not ends:
            return middle, column.column.low, column.column.high
        low, high = ends
        half = column.column.half_width / (self.points - 1)  # half a step of the grid
        # The two ends were chosen apart, and noise may have swapped them.
        first = max(min(low, high) - half, column.column.low)
        last = min(max(low, high) + half, column.column.high)
        return min(max(middle, first), last), first, last

    def forecast(self, public: Public, spreads: Mapping[str, NoiseLaw]) -> tuple[str, ...]:
        """How many ranks an end of an interval may lie away."""
        lines = []
        for q in self.quantiles:
            if _name(q) in spreads and self.interval:
                # Twice: the end is shifted by r, and its choice may miss its rank by r again.
                ranks = spreads[_name(q)].within((1 - self.level) / 2) / _ratio(q).denominator
                lines.append(
                    f"quantile {q:g} of {self.column}: within {2 * ranks:.4g} ranks on either side "
                    f"({100 * self.level:g} %)"
                )
        return tuple(lines)


@attrs.frozen
class RankBound(SensitivityBound):
    """The theorem above, in units of one b-th of a rank."""

    learner: ClassVar[type[AnyLearner]] = Quantiles

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """By relation, with the range of the changes."""
        # Every number of the theorem is multiplied by b, the denominator, as scores are.
        q = next(
            _ratio(quantile) for quantile in learner.quantiles if _name(quantile) == query.name
        )
        largest = max(q.numerator, q.denominator - q.numerator)
        denominator = q.denominator
        claim, movement = ByRelation(
            add_remove=float(largest), replace_one=float(denominator)
        ).under(adjacency)
        _, reach = ByRelation(add_remove=2.0 * largest, replace_one=2.0 * denominator).under(
            adjacency
        )
        return Sensitivity(
            value=movement,
            range=reach,
            distance=Distance.LINF,
            adjacency=claim,
            source=f"ranks of a quantile move by {movement:g}/{denominator} and lie "
            f"{reach:g}/{denominator} apart",
        )


def _ratio(q: float) -> Fraction:
    """a/b, of at most three decimals."""
    return Fraction(round(q * _FINEST), _FINEST)


def _name(q: float) -> str:
    return f"quantile-{round(q * _FINEST):03d}"
