r"""Batches that are cut off at a largest size: `event` unless the batch would be too large.

If a batch exceeds its limit with probability at most tau whatever the data, both laws are within
tau in total variation of those without a limit, so

.. math:: \delta(\epsilon) \le \min_{\epsilon'\le\epsilon}\;
          \delta_{event}(\epsilon') + (1+e^{\epsilon'})\,\tau .

For Poisson sampling of n records at probability q with a limit B, tau = P(Bin(n, q) > B).

Source: the definition of total variation; Chua et al. (2024), arXiv:2411.04205, Theorem 3.3, state
the same price for a whole training run.
"""

from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import probability
from dpcore.events.base import Direction, Event, VectorEvent
from dpcore.rounding import up

_LADDER = np.concatenate([[0.0], np.geomspace(1e-4, 40.0, 80)])
_GRANTED = 1e-9  # relative, to the tail of a binomial


def too_large(records: int, sampling_probability: float, limit: int) -> float:
    """P(Bin(records, q) > limit), rounded up.

    Args:
        records: At least as many as the larger of two neighbouring datasets has.
        sampling_probability: q.
        limit: The largest batch.
    """
    if limit >= records:
        return 0.0
    tail = float(scipy.special.bdtrc(limit, records, sampling_probability))
    return min(1.0, tail * (1 + _GRANTED) + 1e-300)


@attrs.frozen(kw_only=True)
class TruncatedBatchEvent(VectorEvent):
    """`event`, except that with probability at most `uncovered` the batch is cut off.

    Args:
        event: What the release costs without a limit.
        uncovered: tau, in [0, 1].
    """

    attained: ClassVar[bool] = False  # an upper bound

    event: Event
    uncovered: float = attrs.field(validator=probability)

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        """The event's."""
        return self.event.adjacency

    @property
    def symmetric(self) -> bool:
        """As the event."""
        return self.event.symmetric

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The bound above; the minimum is over the epsilons asked for and a fixed ladder."""
        asked = np.concatenate([_LADDER, epsilons])
        order = np.argsort(asked, kind="stable")
        sorted_ = asked[order]
        value = self.event.curve(sorted_, direction)
        with np.errstate(over="ignore"):
            value = value + (1 + np.exp(np.minimum(sorted_, 700.0))) * self.uncovered
        least = np.empty_like(value)
        least[order] = np.minimum.accumulate(value)
        return np.asarray(np.minimum(up(least[len(_LADDER) :], roundings=10), 1.0))

    def delta_lower(self, epsilon: float, direction: Direction) -> float:
        """0: the bound need not be attained."""
        return 0.0

    def curve_lower(
        self, epsilons: NDArray[np.float64], direction: Direction
    ) -> NDArray[np.float64]:
        """0: the bound need not be attained."""
        return np.zeros_like(epsilons)

    def pure_epsilon(self) -> float | None:
        """The event's where no batch is cut off."""
        return self.event.pure_epsilon() if self.uncovered == 0 else None

    def anchor(self, direction: Direction) -> float | None:
        """None: the minimum is in between."""
        return None
