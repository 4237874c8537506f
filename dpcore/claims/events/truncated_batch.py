r"""Poisson-sampled batches that are cut off at a largest size, at random.

Let S be the rest of the Poisson sample, the same on two neighbouring datasets, and B the limit.

* |S| < B: the differing record joins the batch, or does not: `event`.
* |S| >= B: the batch is a random part T of S, of B records. The record joins with probability q
  B/(|S|+1) <= q B/(B+1), and then takes the place of a random member of T: it moves a sum of
  vectors of norm at most C by 2 C: `full`.

With tau >= P(|S| >= B), joint convexity over S gives

.. math:: \delta \le (1-\tau)\,\delta_{event} + \tau\max(\delta_{event}, \delta_{full}) .

Not attained: S is not published, and the bound takes it for known.

Source: the argument above; Ganesh, McKenna, McMahan, Smith & Wu (2025), arXiv:2508.15089, treat the
same batches.
"""

from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import probability
from dpcore.errors import need
from dpcore.event import Claims, CompoundEvent, Direction, Event, VectorCurve, larger
from dpcore.rounding import up

_GRANTED = 1e-9  # relative, to the tail of a binomial


def too_large(others: int, sampling_probability: float, limit: int) -> float:
    """Return P(Bin(others, q) >= limit), rounded up.

    Args:
        others: Records next to the differing one, at most.
        sampling_probability: q.
        limit: The largest batch, >= 1.
    """
    if limit > others:
        return 0.0
    tail = float(scipy.special.bdtrc(limit - 1, others, sampling_probability))
    return min(1.0, tail * (1 + _GRANTED) + 1e-300)


@attrs.frozen(kw_only=True)
class TruncatedBatchEvent(CompoundEvent, VectorCurve):
    """`event`, except that with probability at most `uncovered` the batch is full without it.

    Args:
        event: What the release costs where the batch has room.
        full: What it costs where the record takes another's place.
        uncovered: tau, in [0, 1].
    """

    attained: ClassVar[bool] = False  # an upper bound

    full: Event
    uncovered: float = attrs.field(validator=probability)

    def __attrs_post_init__(self) -> None:
        need(
            self.full.adjacency == self.event.adjacency,
            "TruncatedBatchEvent",
            "two events for one relation",
            "adjacency",
            f"{self.event.adjacency}, {self.full.adjacency}",
        )

    @property
    def symmetric(self) -> bool:
        """Whether both events have the same curve in either direction."""
        return self.event.curve.symmetric and self.full.curve.symmetric

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the bound above at an array of epsilons >= 0, rounded up, shape (k,)."""
        # the full batch is charged with probability tau, and only where it costs more
        room = self.event.curve.upper(epsilons, direction)
        increase = np.maximum(self.full.curve.upper(epsilons, direction) - room, 0.0)
        return np.asarray(np.minimum(up(room + self.uncovered * increase, roundings=10), 1.0))

    @property
    def claims(self) -> Claims:
        """The larger pure epsilon and rho (quasi-convexity); None where one event has none."""
        room, full = self.event.claims, self.full.claims
        return Claims(pure=larger(room.pure, full.pure), rho=larger(room.rho, full.rho))

    def largest_loss(self, direction: Direction) -> float | None:
        """Return None: each event has its own."""
        return None
