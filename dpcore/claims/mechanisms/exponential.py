r"""`exponential`: choose one of many candidates, likelier the better its score.

Probabilities are proportional to :math:`e^{-rate\,n_t}`, exactly: a uniform candidate t is drawn
and kept by a coin with heads of that probability; if it shows tails, both are drawn again (von
Neumann). A best candidate (n = 0) is always kept, so it takes at most as many tries as there are
candidates, on average. No float weighs anything: a softmax would underflow to 0/0 on long lists.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import need_field
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.mechanisms.choice import Choice
from dpcore.claims.mechanisms.noise.exponential import BernoulliExp, uniform_below
from dpcore.claims.mechanisms.noise.grid import Grid
from dpcore.claims.mechanisms.noise.release import Executed
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import ChoiceDistribution
from dpcore.mechanism import Prepared, summed
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Distance, Sensitivity

MOST = 1 << 16
"""Candidates: more would take too many tries."""


@attrs.frozen(kw_only=True)
class Exponential(Choice, Executed):
    r"""Candidate t with probability proportional to :math:`e^{\epsilon u(t)/\Delta_R}`.

    :math:`\Delta_R` is the range sensitivity: how far the largest and the least change of a score
    may lie apart between neighbours. It is at most twice the largest change, and half of that where
    all scores move one way. The losses of all candidates lie in an interval of length epsilon, so
    the choice is epsilon-DP, epsilon^2/8-zCDP, and has a curve of its own. Next to Gaussian noise
    it costs less than permute-and-flip, which is the better one under pure epsilon.

    The release is 1 at the chosen index and 0 elsewhere. Scores that are not integers are rounded
    to a public grid of step g, which adds two steps to the range. Exact arithmetic.

    Args:
        epsilon: Of the choice, in nats; calibrated if left out.

    Source: McSherry & Talwar (2007); Dong, Durfee & Rogers (2020), arXiv:1909.13830 (its curve);
    Cesar & Rogers (2021), arXiv:2004.07223 (zCDP).
    """

    source: ClassVar[str] = "Dong, Durfee & Rogers (2020), arXiv:1909.13830, bounded range"
    rule: ClassVar[tuple[str, ...]] = ("exponential", "epsilon")

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "Exponential":
        """Set epsilon = 2/scale, so that rho = epsilon^2/8 is that of mu = 1/scale."""
        return attrs.evolve(self, epsilon=2 / scale)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> ExponentialMechanismEvent:
        """Return a choice of bounded range.

        Raises:
            ParameterError: the query is complex, or the sensitivity is too far from 1 for a grid.
        """
        need_field(query.field == "real", query, "field", "real scores", owner="Exponential")
        # a plan fails here where no grid fits, before any record is read
        self.rate(query, sensitivity)
        return ExponentialMechanismEvent(epsilon=self.epsilon, adjacency=sensitivity.adjacency)

    def refusal(self, query: Query) -> str:
        """Explain that the query has too many candidates; empty if it has not."""
        if query.real_size <= MOST:
            return ""
        return f"it chooses among at most {MOST} candidates, the query has {query.real_size}"

    def rate(self, query: Query, sensitivity: Sensitivity) -> tuple[int, Fraction]:
        """Return log2 of the step, and epsilon over the range in steps; the plan fixes both."""
        if query.values == "integers":
            return 0, Fraction(self.epsilon) / Fraction(sensitivity.range_sensitivity)
        # rounding moves a score's change by up to a step, so the range of changes by up to two
        exponent = Grid.for_release(
            sensitivity.range_sensitivity, query.real_size, Distance.LINF
        ).exponent
        steps = Fraction(sensitivity.range_sensitivity) / Fraction(2) ** exponent + 2
        return exponent, Fraction(self.epsilon) / steps

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> ChoiceDistribution:
        """Return the law of the chosen score below the best; non-integer scores were rounded."""
        exponent, rate = self.rate(query, sensitivity)
        step = 2.0**exponent
        return ChoiceDistribution(
            scale=up(step / float(rate), roundings=2),
            candidates=query.real_size,
            rounding=0.0 if query.values == "integers" else step,
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the rate, which the plan fixes."""
        exponent, rate = self.rate(query, sensitivity)
        return _AtRate(exponent, BernoulliExp(rate))


@attrs.frozen
class _AtRate:
    exponent: int
    randomness: BernoulliExp

    def __call__(self, value: Any, query: Query, noise: Stream) -> NDArray[Any]:
        scores = _steps(summed(value, query), self.exponent)
        best = max(scores)
        indicator = np.zeros(len(scores))
        indicator[chosen([best - score for score in scores], self.randomness, noise)] = 1.0
        return indicator.reshape(query.shape)


def _steps(scores: NDArray[np.float64] | Exact, exponent: int) -> list[int]:
    """Return scores in steps of 2^exponent, as integers of any size.

    Nothing is clamped, since clamping some of the scores could widen their range.
    """
    if isinstance(scores, Exact):
        return [*map(int, scores.in_units(exponent))]
    unit = Fraction(2) ** exponent
    flat = scores.tolist()
    # already whole steps: a shift is as exact as a fraction, and faster
    if all(abs(score) < 2.0**52 and score == int(score) for score in flat) and exponent <= 0:
        return [int(score) << -exponent for score in flat]
    return [round(Fraction(score) / unit) for score in flat]


_FIRST, _MOST = 64, 4096  # tries at once
_TRIAL = 1 << 62  # the largest exponent of one coin


def chosen(behind: Sequence[int], randomness: BernoulliExp, stream: Stream) -> int:
    """Return the chosen index.

    Args:
        behind: How far each candidate is behind the best one, >= 0, one of them 0; of any size.
        randomness: Of the rate.

    Raises:
        ValueError: there are no candidates, or none of them is the best.
    """
    need(behind and min(behind) == 0, ValueError, "needs candidates, of which one is the best")
    # a coin's exponent is at most 2^62; `_shows_heads` tosses for what lies above
    first = np.array([min(n, _TRIAL) for n in behind], dtype=np.int64)
    tries = _FIRST
    while True:
        candidates = uniform_below(len(behind), tries, stream)
        heads = randomness.toss(first[candidates], stream)
        # tries are independent, so the first success of a batch is that of single tries
        for index in candidates[heads]:
            if _shows_heads(behind[int(index)] - _TRIAL, randomness, stream):
                return int(index)
        tries = min(2 * tries, _MOST)


def _shows_heads(exponent: int, randomness: BernoulliExp, stream: Stream) -> bool:
    """Toss a biased coin for the rest of an exponent: independent trials multiply."""
    while exponent > 0:
        (heads,) = randomness.toss(np.array([min(exponent, _TRIAL)], dtype=np.int64), stream)
        if not heads:
            return False
        exponent -= _TRIAL
    return True
