r"""Gradient descent on released gradients: the public side, a function of answers only.

.. math:: w \leftarrow w-\eta\,g/n,\qquad \text{published: the mean of the later half}

The averaged iterates have the error of one gradient released with the whole stage's budget and a
known Hessian, so that many steps cost no more than one.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_linear.clipped_sum import shortened


@attrs.frozen(kw_only=True)
class Steps:
    """How far to descend.

    Args:
        clip: C, of every record's gradient.
        count: T, number of steps.
        rate: eta, per step, for the mean gradient.
    """

    clip: float
    count: int
    rate: float

    @classmethod
    def for_stage(cls, records: int, mu: float, fraction: float, width: int) -> "Steps":
        """Return the schedule of one stage: labels in [0, 1], rows of length at most 1.

        Args:
            records: n. mu: Of the whole release. share: Of this stage. width: d.
        """
        # A short clip means little noise and much bias: it grows with n mu, as noise matters less.
        clip = min(1.0, 0.04 * (records * mu / 300) ** 0.75)
        time = min(max(0.1 * records * mu * math.sqrt(fraction) / clip, 5.0), 1500.0)
        time = min(max(time * (15 / width) ** 0.25, 5.0), 1500.0)
        # Fewer, longer steps where time is short; the cap on eta keeps a step stable.
        count = min(max(math.ceil(time), 40), 500)
        return cls(clip=clip, count=count, rate=min(time, 1.5 * count) / count)


@attrs.frozen(kw_only=True, eq=False)
class Descent:
    """Where a descent is.

    Args:
        records: What the gradient's sum is divided by: a public number.
        taken: Steps so far.
        total: Sum of the iterates of the later half so far.
    """

    steps: Steps
    records: int
    weights: NDArray[np.float64]
    taken: int
    total: NDArray[np.float64]

    @classmethod
    def start(cls, steps: Steps, records: int, weights: NDArray[np.float64]) -> "Descent":
        """Return the descent before its first step, at `weights`, shortened to the ball."""
        start = shortened(weights)
        return cls(
            steps=steps, records=records, weights=start, taken=0, total=np.zeros(start.shape)
        )

    @property
    def averaged(self) -> int:
        """The number of last iterates that are averaged."""
        return max(1, self.steps.count // 2)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken == self.steps.count

    def after(self, gradient: NDArray[np.float64]) -> "Descent":
        """Return the descent one step further, along a released sum of gradients."""
        weights = shortened(self.weights - self.steps.rate / self.records * gradient)
        # Early iterates still hold the start; only the later half enters the mean.
        in_later_half = self.taken >= self.steps.count - self.averaged
        return attrs.evolve(
            self,
            weights=weights,
            taken=self.taken + 1,
            total=self.total + weights if in_later_half else self.total,
        )

    @property
    def average(self) -> NDArray[np.float64]:
        """The weights to publish: the mean of the later half of the iterates."""
        return self.total / self.averaged
