r"""Sparse vector: the first of a list of integer scores that is small enough, found in private.

The threshold gets noise Z, every score noise Z_g, both two-sided geometric, and the first g with
:math:`r(g)+Z_g\le r_0+Z` is published, the last one if none is.

Theorem: epsilon-DP with Z of scale 2 Delta/epsilon and Z_g of scale 4 Delta/epsilon; where all
scores move one way between neighbours, Z_g of scale 2 Delta/epsilon too. Integers whose changes are
at most Delta in size and lie at most Delta apart move one way if Delta is 1. Source: Lyu, Su & Li
(2017), arXiv:1603.01699, Theorem 4 and its form for monotone queries, with one answer; noise of an
integer law has the same ratio at integer shifts.

The walk stops too late only if a score far below r_0 gets a large noise: with
:math:`r_0=\frac{2\Delta}{\epsilon}\ln(B/\beta)` it seldom runs beyond the first g with no score
left.
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Query, Sensitivity
from dpcore.checks import fraction
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.mechanisms.choice import Choice
from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.release import drawable, whole_numbers_only
from dpcore.errors import need
from dpcore.mechanism import integers
from dpcore.randomness import Stream


@attrs.frozen(kw_only=True)
class SparseVector(Choice):
    """1 at the first score that is small enough, 0 elsewhere. Exact arithmetic.

    Args:
        epsilon: In nats; calibrated if left out.
        late: beta: about the probability that it stops later than it should.
    """

    source: ClassVar[str] = "Lyu, Su & Li (2017), arXiv:1603.01699, Theorem 4 (sparse vector)"
    rule: ClassVar[tuple[str, ...]] = ("sparse_vector", "epsilon", "late")

    late: float = attrs.field(default=1e-3, validator=fraction)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> PureEvent:
        """Return the event of an epsilon-DP release.

        Raises:
            ParameterError: the query is complex.
        """
        # Sparse vector is pure epsilon-DP for one answer, however many scores it looks at.
        need(query.field == "real", "SparseVector", "real scores", "field", query.field)
        return PureEvent(epsilon=self.epsilon, adjacency=sensitivity.adjacency)

    def refusal(self, query: Query) -> str:
        """Return why the query cannot be answered (it has real scores); empty for integers."""
        return whole_numbers_only(query)

    def scales(self, sensitivity: Sensitivity) -> tuple[Fraction, Fraction]:
        """Return the scales of the threshold's noise and of the scores' noise."""
        # Delta, rounded up to an integer; integer noise has its ratio at integer shifts only.
        movement = max(1, math.ceil(sensitivity.unit))
        # Integers that move by at most 1 and lie at most 1 apart all move one way; more than 1, as
        # of several records of one person, is never taken for that.
        one_way = movement == 1 and sensitivity.range_sensitivity <= 1
        unit = Fraction(movement) / Fraction(self.epsilon)
        # The scales of the theorem; exact fractions, so that nothing is rounded below them.
        return 2 * unit, (2 if one_way else 4) * unit

    def enough(self, query: Query, sensitivity: Sensitivity) -> int:
        """Return r_0, the level that is small enough before any noise."""
        scale, _ = self.scales(sensitivity)
        return math.ceil(float(scale) * math.log(query.real_size / self.late))

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[np.float64]:
        """Return 1 at the index where the walk stops.

        Raises:
            ContractError: the scores are no integers of up to 2^53.
        """
        scores = integers(value, query)
        of_threshold, of_scores = self.scales(sensitivity)
        level = self.enough(query, sensitivity)
        # One noise for the threshold, drawn once: a fresh one at every step is another mechanism.
        level += int(laplace_distribution(drawable(of_threshold), 1).symmetric(1, noise)[0])
        noisy = scores + laplace_distribution(drawable(of_scores), scores.size).symmetric(
            scores.size, noise
        )
        # All noises are drawn at once: how many does not depend on where the walk stops.
        below = np.flatnonzero(noisy <= level)
        indicator = np.zeros(scores.size)
        indicator[below[0] if below.size else scores.size - 1] = 1.0
        return indicator.reshape(query.shape)
