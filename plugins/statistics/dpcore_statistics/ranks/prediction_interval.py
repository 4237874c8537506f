r"""Prediction intervals by split conformal prediction, from noisy counts of errors on a hold-out.

Errors :math:`R_i=|y_i-f(x_i)|` of n held-out records, which the model has not seen, are rounded up
to a public grid. Their prefix counts :math:`\tilde C` and number :math:`\tilde n` are released.

Theorem: let t be released such that, given the errors, :math:`C(t)\ge(1-\alpha+\beta)(n+1)` with
probability at least :math:`1-\beta` over the noise. If the hold-out and a new record are
exchangeable, :math:`P(R_{new}\le t)\ge1-\alpha`. Proof: off an event of probability beta, t is at
least the k-th smallest error for :math:`k\ge(1-\alpha+\beta)(n+1)`, and the new error is at most
that with probability at least k/(n+1). []

Such a t is the first grid point from which on all points pass

.. math:: \tilde C(t)-q(\tilde n+1)\ge z_\beta\sigma_t,\qquad q=1-\alpha+\beta,

for the deviation :math:`\sigma_t` of the noise there: one that is too small needs the last point
below the true rank to pass, which has probability beta, whatever the others do. The last point, the
largest error that is possible, holds every error. Beta is public: of .001 to .04 the one that makes
:math:`\beta n+z_\beta\max\sigma` least, with n public, or its limit; .002 if neither is.

Where errors are cut off at a smaller `cap`, its point says nothing: the interval is infinite.
"""

from __future__ import annotations

from statistics import NormalDist

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, SumQuery
from dpcore.checks import positive
from dpcore.errors import NoClaimError, ParameterError, UnfitTargetError, need
from dpcore.interval import NoiseLaw, NormalSpread
from dpcore.learning.models.figures import Figures, Statistics
from dpcore_statistics.columns import NumberColumn, declared
from dpcore_statistics.ranks.prefixes import RankPrefixes, _slopes
from dpcore_statistics.strategies import Lengths

PREDICTED = "predicted"
_MISSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04)  # beta
_USUAL = 0.002  # beta, where nothing is public about n


@attrs.frozen(kw_only=True)
class PredictionInterval(RankPrefixes):
    """How far a new record's value lies from its prediction at most, with a stated probability.

    It is about another release's predictions on the hold-out (`of`). A prediction -+ the released
    half-width holds a new record's value with at least the level's probability, over the hold-out,
    the noise and the new record, for records that are exchangeable; in every group, if there are
    some.

    Total: as every statistic.

    Args:
        levels: With what probability a new value lies in its interval; several cost no more.
        points: Of the grid of errors, equally spaced from 0 to the cap.
        cap: The largest error that is told apart; the width of the target's range if left out.
        by: Columns whose combinations are groups with intervals of their own.
    """

    column: str = attrs.field(init=False, default=PREDICTED)
    quantiles: tuple[float, ...] = attrs.field(init=False, default=())
    level: float = attrs.field(init=False, default=0.95)
    guess: dict[str, float] = attrs.field(init=False, factory=dict)
    levels: tuple[float, ...] = (0.9,)
    points: int = 257
    cap: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            raise ParameterError("prediction_interval", "levels in (0, 1)", "levels", self.levels)

    def query(self, public: Public) -> SumQuery:
        """The measured sums of every group.

        Raises:
            ParameterError: there are no predictions, or the cap is more than an error can be.
            NoClaimError: records are of persons, or the noise would not be normal.
        """
        domain, people = public.domain, public.domain.people
        if PREDICTED not in domain.columns or not domain.labelled:
            raise ParameterError(
                "a prediction interval", "evaluated records", "of", None,
                message="it is about another release's predictions: name that release under `of`",
            )  # fmt: skip
        need(not domain.classes, UnfitTargetError, "a prediction interval is about numbers")
        # Records of one person are not exchangeable with a stranger's.
        one_each = people is None or people.records == 1
        need(one_each, NoClaimError, "a prediction interval needs one record of each person")
        need(
            self.norm(public) is Distance.L2,
            NoClaimError,
            "a prediction interval needs normal noise: give the budget a delta",
        )
        widest = 2 * domain.label_bound
        if self._cap(public) > widest:
            raise ParameterError("prediction_interval", f"at most {widest:g}", "cap", self.cap)
        return super().query(public)

    def _cap(self, public: Public) -> float:
        return 2 * public.domain.label_bound if self.cap is None else self.cap

    def _places(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """PRIVATE: every record's group, and its error's point, rounded up."""
        domain = public.domain
        predicted, truth = declared(domain, PREDICTED), declared(domain, domain.target)
        assert isinstance(predicted, NumberColumn), "numbers are predicted"
        assert isinstance(truth, NumberColumn), "of numbers"
        # Entry by entry, so that a record's point is the same in every block.
        distances = np.abs(predicted.scaled(block) - truth.scaled(block)) * domain.label_bound
        steps = np.minimum(distances / self._cap(public), 1.0) * (self.points - 1)
        return self.group_of(block, public), np.ceil(steps).astype(np.intp)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One table with a row for each group and level."""
        strategy, groups = self.strategy(public), self.groups(public)
        counts = strategy.estimates(np.asarray(answer.value, dtype=np.float64))
        totals, n = counts[:, -1:], self._public_total(public)
        if n is not None:
            counts = counts - _slopes(strategy) * (totals - n)
            totals = np.full((1, 1), float(n))
        cap = self._cap(public)
        # The last point holds every error where nothing was cut off there.
        grid = np.linspace(0.0, cap, self.points)
        if cap < 2 * public.domain.label_bound:
            grid[-1] = np.inf
        halves = []
        for level in self.levels:
            miss, deviations = self._miss(level, answer.spread, public)
            q = level + miss
            margin = -NormalDist().inv_cdf(miss) * deviations
            passing = counts - q * (totals + 1) >= margin
            # After the last point that does not pass; where the last one fails too, it is taken.
            last_fault = self.points - 1 - np.argmax(~passing[:, ::-1], axis=1)
            first = np.where(passing.all(axis=1), 0, last_fault + 1)
            halves.append(grid[np.minimum(first, self.points - 1)])
        count = len(self.levels)
        half = np.stack(halves, axis=1).reshape(-1)
        repeated = {
            name: tuple(value for value in values for _ in range(count))
            for name, values in groups.about.items()
        }
        figures = Figures(
            about={**repeated, "probability": tuple(self.levels) * groups.size},
            estimate=half,
            low=half,
            high=half,
            level=max(self.levels),
            covers="a prediction -+ the estimate holds a new record's value with at least that "
            "probability, over the hold-out, the noise and the new record, for records that are "
            "exchangeable; it is no statement about smaller groups than these",
        )
        return Statistics.of(figures)

    def _miss(
        self, level: float, spread: NoiseLaw | None, public: Public
    ) -> tuple[float, NDArray[np.float64]]:
        """beta, and the noise's deviation at every point; of an unknown law no point passes."""
        if not isinstance(spread, NormalSpread):
            return (1 - level) / 2, np.full(self.points, np.inf)
        n, strategy = public.domain.at_most, self.strategy(public)
        answers, last = strategy.answers, strategy.answers[-1]

        def deviations(q: float) -> NDArray[np.float64]:
            is_public = self._public_total(public) is not None
            shares = _slopes(strategy) if is_public else np.full(len(answers), q)
            return spread.std * Lengths.of(answers - shares[:, None] * last).l2

        # From public facts alone: a choice by answers would spend beta once for each candidate.
        candidates = [miss for miss in _MISSES if level + miss < 1] or [(1 - level) / 2]
        if n is None:
            miss = min(candidates, key=lambda miss: abs(miss - _USUAL))
        else:
            z = NormalDist()
            widest = float(deviations(level).max())
            miss = min(candidates, key=lambda miss: miss * n - z.inv_cdf(miss) * widest)
        return miss, deviations(level + miss)

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """How many records the noise and beta cost at each level."""
        lines = []
        for level in self.levels:
            miss, deviations = self._miss(level, spread, public)
            ranks = -NormalDist().inv_cdf(miss) * float(deviations.max())
            lines.append(
                f"prediction interval at {level:g}: the rank of the errors is "
                f"{level + miss:g} (n + 1), and at most {ranks:.4g} more"
            )
        return tuple(lines)
