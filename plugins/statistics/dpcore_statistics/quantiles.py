r"""Quantiles: points of a public grid, by choices of their own or from one noisy count of ranks.

A choice takes a point likelier the nearer its rank is.

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
between them. One choice by itself has no interval, and three cost three times as much as one:
`interval: false` asks for the quantile only, and its interval is then the whole range.

Several quantiles, and quantiles by group, follow from prefix counts (`ranks.prefixes`). Which way
is taken follows from public widths at a unit of budget, to which both are proportional:

* of a choice's interval, 2r at m quantiles of three asks each: :math:`\epsilon=2\mu/\sqrt{3m}` a
  choice where Gaussian squares add up, else a proportion of 1/(3m);
* of prefixes, the largest deviation times the normal quantile of all ranks together.

One quantile is a choice, whose typical error is a third of a rank's noise. Without intervals
typical errors are compared: a choice's is .7 of its scale, a rank's .8 of its deviation. A
recursion of choices is not offered.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    SumQuery,
)
from dpcore.checks import confidence, one_of
from dpcore.claims.mechanisms.exponential import MOST
from dpcore.errors import ParameterError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.conversation import Transcript
from dpcore.models.figures import Figures, Statistics
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore_statistics.columns import NumberColumn, number_column, require_conditions, selected
from dpcore_statistics.population.sampling import check_guess
from dpcore_statistics.ranks.prefixes import COVERS, MOST_POINTS, RankPrefixes
from dpcore_statistics.statistic import ROWS, Folding, StatisticBound
from dpcore_statistics.strategies import rank_strategy

_QUERIES = 3  # the quantile itself, and a choice on either side for its interval
_NONE = "none was asked for: the whole range"
_FINEST = 1000  # the denominator of a quantile


_POPULATION = ("population", "both")


@attrs.frozen(kw_only=True)
class Quantiles(Folding):
    """Quantiles of one column, of any number, each a point of a public grid with its interval.

    Three choices are asked of one quantile: itself, and the ends of its interval; one choice, where
    no interval is wanted. Several, and those of groups, follow from one noisy count of all ranks,
    so that a tenth quantile costs nothing more, and all intervals hold together.

    Total: ranks are finite whatever the records, and of no records all points are equally good.

    Args:
        column: A declared range; missing values are left out.
        quantiles: In (0, 1), increasing, with at most three decimals; 0.5 is the median.
        points: Of the grid, equally spaced over the range, both ends included.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an interval holds.
        interval: Whether two thirds of the budget go into an interval of each quantile; if not, all
            of it goes into the quantile, and nothing is said of how near it is. `population` and
            `both` say intervals with sampling error, by prefixes; `noise` none.
        method: `choice` or `prefixes`; by public widths if left out.
        distance: Of prefixes: `l2` for Gaussian noise, `l1` for Laplace noise on a tree, which
            uses no delta; by the budget if left out.
        by: Columns whose combinations are groups, empty ones too: categories, or ranges cut by
            `edges` or `bins`.
        edges: Of the cells of a range under `by`, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        guess: Public guesses, for what `check` expects of the population only: `records`, the
            number of values (in a group).
    """

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"method": "choice"}}

    bounds: ClassVar[tuple[str, ...]] = ("statistics.ranks",)
    total: ClassVar[bool] = True

    column: str
    quantiles: tuple[float, ...] = (0.5,)
    points: int = 1025
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)
    interval: bool | Literal["noise", "population", "both"] = True
    method: Literal["choice", "prefixes"] | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of("choice", "prefixes"))
    )
    by: tuple[str, ...] = ()
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    guess: dict[str, float] = attrs.field(factory=dict)
    distance: Literal["l1", "l2"] | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of("l1", "l2"))
    )

    def __attrs_post_init__(self) -> None:
        quantiles = [*self.quantiles]
        all_inside = all(isinstance(q, int | float) and 0 < q < 1 for q in quantiles)
        need(
            quantiles and all_inside and all(a < b for a, b in pairwise(quantiles)),
            "quantiles",
            "increasing numbers in (0, 1)",
            "quantiles",
            self.quantiles,
        )
        # The denominator is the unit of the scores, so it must be small and exact.
        need(
            all(float(_ratio(q)) == q for q in quantiles),
            "quantiles",
            "at most three decimals",
            "quantiles",
            self.quantiles,
        )
        need(2 <= self.points <= MOST, "quantiles", f"2 to {MOST} points", "points", self.points)
        kinds = (True, False, "noise", *_POPULATION)
        need(self.interval in kinds, "quantiles", f"one of {kinds}", "interval", self.interval)
        check_guess("quantiles", self.guess, ("records",))
        if self.method == "choice" and (self.by or self.distance or self.interval in _POPULATION):
            owner = "quantiles by group, of a population, or in a norm"
            raise ParameterError(owner, "method: prefixes", "method", self.method)

    def prefixes(self, public: Public) -> RankPrefixes | None:
        """Return the rank counts that the quantiles follow from; None if each is a choice."""
        counts = RankPrefixes(
            column=self.column, quantiles=self.quantiles, points=self.points, where=self.where,
            level=self.level, by=self.by, edges=self.edges, bins=self.bins,
            interval=None if self.interval is True else self.interval or "noise",
            guess=self.guess, distance=self.distance,
        )  # fmt: skip
        by_ranks = self.distance or self.interval in _POPULATION
        asked = "prefixes" if by_ranks else self.method
        method = asked or ("prefixes" if self._prefers_prefixes(public) else "choice")
        return counts if method == "prefixes" else None

    def _prefers_prefixes(self, public: Public) -> bool:
        """Return the rule above; by group there is no other way."""
        if self.by or self._count == 1 or self.points > MOST_POINTS:
            return bool(self.by)
        # At mu = 1, or at epsilon = 1 where the budget has no delta.
        in_l1, is_replacement = public.mu is None, public.domain.exact is not None
        planned_queries = self._query_count * self._count
        epsilon = 1 / planned_queries if in_l1 else 2 / math.sqrt(planned_queries)
        diameter = max(max(q, 1 - q) for q in self.quantiles)
        scale = (2.0 if is_replacement else 2 * diameter) / epsilon
        # Of a replaced record: twice in l1, about sqrt(2) in l2; a Laplace law has std sqrt(2).
        grown = (2.0 if in_l1 else math.sqrt(2.0)) if is_replacement else 1.0
        unit = grown * (math.sqrt(2.0) if in_l1 else 1.0)
        mean, largest = (unit * size for size in _deviations(self.points, in_l1))
        if not self.interval:
            return bool(0.8 * mean < 0.7 * scale)
        z = -NormalDist().inv_cdf(apart(1 - self.level, self.points) / 2)
        choice = 2 * scale * math.log(2 * self.points / (1 - self.level))
        return bool(z * largest < choice)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return a query for each quantile, asked up to three times; or one for all ranks.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        if (prefixes := self.prefixes(public)) is not None:
            return prefixes.queries(public)
        require_conditions(public.domain, self.where)
        number_column(public.domain, self.column)
        # Asked up to three times: the shift is an argument, and no part of the query's claim.
        return tuple(
            Query(
                name=_name(q),
                shape=(self.points,),
                distance=Distance.LINF,
                values="integers",
                at_most=self._query_count,
                reads=Reads.FOLDS,
            )
            for q in self.quantiles
        )

    def ask(self, state: Transcript) -> Query | None:
        """Ask for the quantile at its rank, then r ranks below and above; or all ranks once."""
        if self.prefixes(state.public) is not None:
            return super().ask(state)
        number, turn = divmod(len(state.answers), self._query_count)
        queries = state.queries
        if number == len(queries):
            return None
        shift = 0
        if turn:
            # r follows from the noise distribution only, and not from the answer.
            ranks = self._ranks(state.answers[self._query_count * number])
            shift = -ranks if turn == 1 else ranks
        return attrs.evolve(queries[number], args={"shift": shift})

    def _ranks(self, first: Answer) -> int:
        """Return r, in units of 1/b of a rank; rounded up."""
        if first.noise_distribution is None:
            return 0
        return math.ceil(first.noise_distribution.within((1 - self.level) / 2))

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[np.float64] | Exact:
        """PRIVATE: return b times the score of every point, in integers; or an exact sum."""
        if isinstance(query, SumQuery):
            prefixes = self.prefixes(public)
            assert prefixes is not None, "it planned this query"
            return prefixes.total_of(query, records, public)
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
        """PRIVATE: count the values of a block that are nearest to each point."""
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
        """Return a table with a row for each quantile: the chosen point and its interval."""
        if (prefixes := self.prefixes(state.public)) is not None:
            return prefixes.model(state)
        column = number_column(state.public.domain, self.column)
        rows = [
            self._row(column, state.answers[k * self._query_count :][: self._query_count])
            for k in range(self._count)
        ]
        return Statistics.of(
            Figures(
                about={"quantile": tuple(self.quantiles)},
                estimate=np.array([row[0] for row in rows]),
                low=np.array([row[1] for row in rows]),
                high=np.array([row[2] for row in rows]),
                level=self.level,
                covers=COVERS if self.interval else _NONE,
                dates=column.date_rows(len(rows)),
            )
        )

    @property
    def _query_count(self) -> int:
        """The number of queries of each quantile."""
        return _QUERIES if self.interval else 1

    @property
    def _count(self) -> int:
        return len(self.quantiles)

    def _row(self, column: NumberColumn, answers: tuple[Answer, ...]) -> tuple[float, float, float]:
        """Return the chosen point and its interval; the whole range without a noise law."""
        positions = [self.grid[int(np.argmax(answer.value))] for answer in answers]
        middle, *ends = (float(column.value(np.array(position))) for position in positions)
        if answers[0].noise_distribution is None or not ends:
            return middle, column.column.low, column.column.high
        low, high = ends
        half = column.column.half_width / (self.points - 1)  # half a step of the grid
        # The two ends were chosen apart, and noise may have swapped them.
        first = max(min(low, high) - half, column.column.low)
        last = min(max(low, high) + half, column.column.high)
        return min(max(middle, first), last), first, last

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Forecast the number of ranks by which an end of an interval may be off."""
        if (prefixes := self.prefixes(public)) is not None:
            return prefixes.forecast(public, noise_distributions)
        return tuple(
            f"quantile {q:g} of {self.column}: within {ranks:.4g} ranks on either side "
            f"({100 * self.level:g} %)"
            for q, ranks in self._rank_ranges(noise_distributions).items()
        )

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return that number of ranks: an interval of fewer records contains all of them."""
        if (prefixes := self.prefixes(public)) is not None:
            return prefixes.least_records(public, noise_distributions)
        return max(self._rank_ranges(noise_distributions).values(), default=0.0)

    def _rank_ranges(
        self, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> dict[float, float]:
        """Return, by quantile, the largest distance in ranks of an end of its interval."""
        # Twice: the end is shifted by r, and its choice may miss its rank by r again.
        return {
            q: 2
            * noise_distributions[_name(q)].within((1 - self.level) / 2)
            / _ratio(q).denominator
            for q in self.quantiles
            if _name(q) in noise_distributions and self.interval
        }


@attrs.frozen
class RankBound(SensitivityBound):
    """The theorem above, in units of one b-th of a rank."""

    learner: ClassVar[type[AnyLearner]] = Quantiles

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the sensitivity by relation, with the range of changes; or that of prefixes."""
        if isinstance(query, SumQuery):
            prefixes = learner.prefixes(public)
            return StatisticBound().sensitivity(query, prefixes, public, adjacency)
        # Every number of the theorem is multiplied by b, the denominator, as scores are.
        q = next(
            _ratio(quantile) for quantile in learner.quantiles if _name(quantile) == query.name
        )
        largest = max(q.numerator, q.denominator - q.numerator)
        denominator = q.denominator
        claim, movement = ByRelation(
            add_remove=float(largest), replace_one=float(denominator)
        ).under(adjacency)
        _, cutoff = ByRelation(add_remove=2.0 * largest, replace_one=2.0 * denominator).under(
            adjacency
        )
        return Sensitivity(
            value=movement,
            range=cutoff,
            distance=Distance.LINF,
            adjacency=claim,
            source=f"ranks of a quantile move by {movement:g}/{denominator} and lie "
            f"{cutoff:g}/{denominator} apart",
        )


@lru_cache(maxsize=16)
def _deviations(points: int, in_l1: bool) -> tuple[float, float]:
    """Return a rank's standard deviation by prefixes at unit noise: the mean and the largest."""
    lengths = rank_strategy(points, in_l1).lengths.l2
    return float(lengths.mean()), float(lengths.max())


def _ratio(q: float) -> Fraction:
    """Return a/b, of at most three decimals."""
    return Fraction(round(q * _FINEST), _FINEST)


def _name(q: float) -> str:
    return f"quantile-{round(q * _FINEST):03d}"
