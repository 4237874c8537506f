r"""Prediction intervals by split conformal prediction, from noisy counts of errors on a hold-out.

Errors :math:`R_i=|y_i-f(x_i)|` of n hold-out records, which the model has not seen, are rounded up
to a public grid. Their prefix counts :math:`\tilde C` and number :math:`\tilde n` are released.

The released t is the first grid point from which on all points pass

.. math:: \tilde C(s)-q(\tilde n+1)\ge m,

the last one if it does not pass: the largest error that is possible, which holds every error.

Theorem: let the noise of the left side be normal with deviations of at most :math:`\sigma`, and
:math:`N=n+1`. If the hold-out and a new record are exchangeable, :math:`P(R_{new}\le t)\ge q` for
:math:`m=\phi(0)\sigma` where :math:`(1-q)N\ge m`, and for every n for :math:`m=\mu\sigma` with
:math:`c=q/(1-q)` and :math:`\mu=\max(z_q,\sqrt{\ln2/c})`.

Proof: given the errors, let K = C(t), or N at the last point. For K to be below k, the last point s
with C(s) < k has to pass, as all from t on do: so for :math:`j=k-1\le qN+m`
:math:`P(K>j)\ge\Phi((m+qN-j)/\sigma)`, whatever the errors are. The new error is at most the
k-th smallest with probability at least k/N, hence at most t with at least :math:`1/N` times

.. math:: \sum_jP(K>j)\ge\int_0^{\min(N,qN+m)}\Phi((m+qN-x)/\sigma)\,dx .

With :math:`L(x)=\phi(x)-x\Phi(-x)` and :math:`a=(1-q)N/\sigma`, this is
:math:`qN+m-\sigma(L(0)-L(\mu+ca))\ge qN` if :math:`a\ge\mu\ge\phi(0)=L(0)`. If :math:`a<\mu`, it is
:math:`N-\sigma(L(\mu-a)-L(\mu+ca))`, and at least qN where
:math:`h(a)=a-L(\mu-a)+L(\mu+ca)\ge0`. h(0) = 0, and
:math:`h'(a)=\Phi(\mu-a)-c\,\Phi(-\mu-ca)`. The first term is concave, so above its chord from
:math:`\Phi(\mu)` to 1/2; the second is at most :math:`c\,\Phi(-\mu)e^{-\mu ca}`, convex, and at
most :math:`\Phi(\mu)` at 0, since :math:`\mu\ge z_q`, and 1/2 at :math:`\mu`, since
:math:`c\mu^2\ge\ln2`. So h rises. Both terms of :math:`\mu` together are at least
:math:`\phi(0)`: either c < 4.35, or q > .81 and :math:`z_q>.87`. []

Where errors are cut off at a smaller `cap`, its point says nothing: the interval is infinite.
"""

import math
from statistics import NormalDist

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, SumQuery
from dpcore.checks import positive
from dpcore.errors import NoClaimError, UnfitTargetError, need
from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.models.figures import Figures, Statistics
from dpcore_statistics.columns import NumberColumn, declared
from dpcore_statistics.ranks.prefixes import RankPrefixes, _slopes
from dpcore_statistics.strategies import Lengths

PREDICTED = "predicted"


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
        cap: The largest error that is distinguished; the width of the target's range if left out.
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
        need(
            self.levels and all(0 < level < 1 for level in self.levels),
            "prediction_interval",
            "levels in (0, 1)",
            "levels",
            self.levels,
        )

    def query(self, public: Public) -> SumQuery:
        """Return the measured sums of every group.

        Raises:
            ParameterError: there are no predictions, or the cap is more than an error can be.
            NoClaimError: records are of persons, or the noise would not be normal.
        """
        domain, people = public.domain, public.domain.people
        need(
            PREDICTED in domain.columns and domain.labelled,
            "a prediction interval",
            "evaluated records",
            "of",
            None,
            message="it is about another release's predictions: name that release under `of`",
        )
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
        need(
            self._cap(public) <= widest,
            "prediction_interval",
            f"at most {widest:g}",
            "cap",
            self.cap,
        )
        return super().query(public)

    def _cap(self, public: Public) -> float:
        return 2 * public.domain.label_bound if self.cap is None else self.cap

    def _places(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """PRIVATE: return every record's group, and its error's point, rounded up."""
        domain = public.domain
        predicted, truth = declared(domain, PREDICTED), declared(domain, domain.target)
        assert isinstance(predicted, NumberColumn), "numbers are predicted"
        assert isinstance(truth, NumberColumn), "of numbers"
        # Entry by entry, so that a record's point is the same in every block.
        distances = np.abs(predicted.scaled(block) - truth.scaled(block)) * domain.label_bound
        steps = np.minimum(distances / self._cap(public), 1.0) * (self.points - 1)
        return self.group_of(block, public), np.ceil(steps).astype(np.intp)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return a table with a row for each group and level."""
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
            margin = self._margin(level, answer.noise_distribution, public)
            passing = counts - level * (totals + 1) >= margin
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

    def _margin(
        self, level: float, noise_distribution: NoiseDistribution | None, public: Public
    ) -> float:
        """Return m, in ranks, from public facts; infinite if the noise law is not normal."""
        if not isinstance(noise_distribution, NormalDistribution):
            return math.inf
        answers, n = self.strategy(public).answers, self._public_total(public)
        proportions = (
            _slopes(self.strategy(public)) if n is not None else np.full(len(answers), level)
        )
        rows = Lengths.of(answers - proportions[:, None] * answers[-1])
        # Noise is rounded to a grid, which the normal distribution leaves out.
        rounding = float(rows.l1.max()) * noise_distribution.rounding
        return rank_margin(level, noise_distribution.std * float(rows.l2.max()), n) + rounding

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the number of ranks that the noise costs at each level."""
        lines = []
        for level in self.levels:
            ranks = self._margin(level, noise_distribution, public)
            lines.append(
                f"prediction interval at {level:g}: the rank of the errors is "
                f"{level:g} (n + 1), and {ranks:.4g} more"
            )
        return tuple(lines)


def rank_margin(level: float, deviation: float, n: int | None) -> float:
    """Return m of the theorem above, for a public n or for every n.

    Args:
        level: q. deviation: The largest of the noise, in ranks. n: None if it is private.
    """
    smallest = deviation / math.sqrt(2 * math.pi)
    if n is not None and (1 - level) * (n + 1) >= smallest:
        return smallest
    odds = level / (1 - level)
    return deviation * max(NormalDist().inv_cdf(level), math.sqrt(math.log(2) / odds))
