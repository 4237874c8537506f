r"""`permute_and_flip`: choose which of many scores is (nearly) the largest, in private.

Exact: in a random order, each index tosses a coin with heads of probability
:math:`e^{-rate\,(\max q - q_r)}`, and the first heads wins. The randomness do not depend on the
order,
so the winner is uniform among the heads: all randomness is tossed at once and one of the heads is
drawn. A largest score always shows heads.

Source: McKenna & Sheldon (2020), arXiv:2010.12603.
"""

from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import need_field
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.mechanisms.choice import Choice
from dpcore.claims.mechanisms.noise.exponential import BernoulliExp, uniform_below
from dpcore.claims.mechanisms.noise.grid import LARGEST, Grid
from dpcore.claims.mechanisms.noise.release import Executed
from dpcore.errors import need
from dpcore.interval import ChoiceDistribution
from dpcore.mechanism import Prepared, summed
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class PermuteAndFlip(Choice, Executed):
    r"""An index r, by randomness with heads of probability

    .. math:: e^{-\epsilon(\max q-q_r)/(2\Delta)}

    tossed in a random order until one shows heads. Never a worse expected score than the
    exponential mechanism at the same epsilon. The release is 1 at the chosen index and 0 elsewhere.
    Scores are rounded to a public grid of step g, at most Delta/1000, which adds one step to Delta.
    Exact arithmetic.

    Args:
        epsilon: Of the choice, in nats: it is epsilon-DP; calibrated if left out.

    Source: McKenna & Sheldon (2020), arXiv:2010.12603.
    """

    source: ClassVar[str] = "McKenna & Sheldon (2020), arXiv:2010.12603"
    rule: ClassVar[tuple[str, ...]] = ("permute_and_flip", "epsilon")

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> PureEvent:
        """Return the event of any epsilon-DP release.

        Raises:
            ParameterError: the query is complex, or the sensitivity is too far from 1 for a grid.
        """
        need_field(query.field == "real", query, "field", "real scores", owner="PermuteAndFlip")
        # a plan fails here where no grid fits, before any record is read
        self.grid(query, sensitivity)
        return PureEvent(epsilon=self.epsilon, adjacency=sensitivity.adjacency)

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> ChoiceDistribution:
        """Return the law of the chosen score below the best one.

        It is no worse than the exponential mechanism's.
        """
        grid = self.grid(query, sensitivity)
        scale = 2 * float(grid.sensitivity(sensitivity.unit)) * grid.step / self.epsilon
        return ChoiceDistribution(
            scale=up(scale, roundings=4), candidates=query.real_size, rounding=grid.step
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the grid and the rate, which the plan fixes."""
        grid = self.grid(query, sensitivity)
        rate = Fraction(self.epsilon) / (2 * grid.sensitivity(sensitivity.unit))
        return _OnGrid(grid, BernoulliExp(rate))


@attrs.frozen
class _OnGrid:
    grid: Grid
    randomness: BernoulliExp

    def __call__(self, value: Any, query: Query, noise: Stream) -> NDArray[Any]:
        # differences of clamped scores stay below 2^63, as randomness need; clamping lengthens none
        scores = np.clip(self.grid.round(summed(value, query)), -LARGEST // 2, LARGEST // 2)
        indicator = np.zeros(scores.size)
        indicator[permute_and_flip(scores, self.randomness, noise)] = 1.0
        return indicator.reshape(query.shape)


def permute_and_flip(scores: NDArray[np.int64], randomness: BernoulliExp, stream: Stream) -> int:
    """Return the chosen index.

    Args:
        scores: Integers within +-2^61, shape (n,), n >= 1.
        randomness: Their rate is epsilon / (2 sensitivity) per unit of score.

    Raises:
        ValueError: no scores, or one beyond +-2^61.
    """
    need(
        scores.size != 0 and int(np.abs(scores).max()) <= 1 << 61,
        ValueError,
        "needs at least one score, each within +-2^61",
    )
    # the largest score has exponent 0, so at least one coin shows heads
    winners = np.flatnonzero(randomness.toss(scores.max() - scores, stream))
    return int(winners[uniform_below(winners.size, 1, stream)[0]])
