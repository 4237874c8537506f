r"""Choices one after another: their joint curve, and pairs for a composed lower end.

Each choice has a place t of its own (`dpcore.claims.events.exponential`), which may depend on all
answers before it. With a = e^epsilon, one more choice, and then whatever has the curve H, costs at
most

.. math:: (TH)(a)=\max_t\; p_t H(ae^{-t})+(1-p_t)H(ae^{\epsilon_0-t}),\quad
          p_t=\frac{e^{\epsilon_0}-e^t}{e^{\epsilon_0}-1} ,

so that k of them cost the curve :math:`h_k=T^kH_0`, where :math:`H_0(a)=(1-a)_+` or the curve of
what follows them all. An adaptive analyst attains it. It composes with other events as their
curves do, in whatever order each is asked: let M be the composed measure of what the others still
cost. One more choice costs at most :math:`\max_t\int p_th_{k-1}(ae^{-t-y})
+(1-p_t)h_{k-1}(ae^{\epsilon_0-t-y})\,dM(y)\le\int h_k(ae^{-y})\,dM(y)`, and one more of the others
makes M what it was composed to be.

On a grid of log a with step s, a 24th of epsilon_0 or less, chords lie above H. For u = e^t between
two grid points the maximand is then :math:`c_0+c_1u+c_2/u` with :math:`c_1,c_2\le0`, which is
concave. So it is at most twice its value in the middle less that at one end. Left of a = 1,
H(1/a) = 1 - 1/a + H(a)/a, since all pairs together are symmetric.

For a lower end, every choice has its place in the middle: randomized response of epsilon_0/2.

Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830 (the recursion for adaptive choices).
"""

import functools
import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.randomized_response import RandomizedResponseEvent
from dpcore.event import CompoundEvent, Direction, Event, VectorCurve
from dpcore.rounding import down, up

MOST = 64
"""Choices whose joint curve is computed; more are composed of several such curves."""

_CELLS = 24  # of one range, at least
_FINEST = 384  # cells of the ranges of all choices, where no Gaussian follows and they are few
_LEAST, _LARGEST = 1e-4, 4.0  # of epsilon_0; more is seldom asked for twice
_NEAREST = 1 / 256  # of epsilon_0 over the shift of a Gaussian that follows: else grids are large


def together(event: Event, count: int, mu: float = 0.0) -> dict[Event, int]:
    """Return the events that `count` of it compose to, each chosen from earlier answers.

    Events come with counts.

    Choices become joint curves of at most 64 each, of as equal sizes as can be.

    Args:
        event: Any.
        count: At least 1.
        mu: Shift of a Gaussian that follows them all; only choices join it, and 64 at most.
    """
    # where the Gaussian is far wider than a choice, the grid would be too large
    if not (
        isinstance(event, ExponentialMechanismEvent)
        and max(_LEAST, _NEAREST * mu) <= event.epsilon_0 <= _LARGEST
        and (count > 1 if mu == 0 else count <= MOST)
    ):
        return {event: count}
    size, larger = divmod(count, blocks := math.ceil(count / MOST))
    sizes = {size: blocks - larger, size + 1: larger}
    return {ChoicesEvent(event=event, count=k, mu=mu): n for k, n in sizes.items() if n}


def attaining(event: Event) -> Event | None:
    """Return an event that one pair attains, nowhere lossier than the given one; else None."""
    if isinstance(event, ExponentialMechanismEvent):
        half = down(0.5 * event.epsilon_0, roundings=2)
        return RandomizedResponseEvent(epsilon=half, classes=2, adjacency=event.adjacency)
    # where scores are all equal and K >= 1, the best of K runs is one run
    if isinstance(event, RandomStoppingEvent) and event.shape < math.inf:
        return attaining(event.event)
    return event if event.curve.attained else None


@attrs.frozen(kw_only=True)
class ChoicesEvent(CompoundEvent, VectorCurve):
    """Choices one after another, each place chosen from earlier answers, then a Gaussian release.

    Args:
        event: One of them.
        count: Choices, 64 at most.
        mu: Shift of the Gaussian that follows, 0 for none.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon has a worst analyst of its own

    event: ExponentialMechanismEvent
    count: int
    mu: float = 0.0

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Interpolate the joint curve's upper ends by chords at epsilons >= 0, shape (k,)."""
        # read a little to the left, where a falling curve is higher by more than what is rounded
        a = np.exp(epsilons) * (1 - 1e-12)
        value = np.interp(a, *_joint_curve(self.event.epsilon_0, self.count, self.mu))
        return np.minimum(up(value, roundings=5000), 1.0)


@functools.lru_cache(maxsize=32)  # a pure function, asked at many epsilons
def _joint_curve(
    epsilon_0: float, count: int, mu: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a = 1, e^s, e^{2s}, ..., and upper ends of T^count H, H the Gaussian's curve (0:
    none).
    """
    # a Gaussian's tail may be many ranges long
    cells = _CELLS if mu > 0 else max(_CELLS, _FINEST // count)
    step = epsilon_0 / cells
    half_steps = 0.5 * step * np.arange(2.0 * cells + 1)[:, None]  # t, and epsilon_0 - t reversed
    fraction = np.expm1(half_steps[::-1]) * np.exp(half_steps) / math.expm1(epsilon_0)  # p_t
    cutoff = count * cells + math.ceil(mu * (12 + mu / 2) / step)
    points = step * np.arange(cutoff + count * cells + 1.0)
    heights = gaussian_curve(points, mu) if mu > 0 else np.zeros_like(points)
    # each choice takes its range off the right end of the grid, beyond which nothing is known
    for _ in range(count):
        magnitudes = points[cells:0:-1]
        reflected = np.exp(-magnitudes) * heights[cells:0:-1] - np.expm1(-magnitudes)
        ends = np.concatenate([reflected, heights])
        middles = ends[:-1] + np.diff(ends) * (math.expm1(step / 2) / math.expm1(step))
        # row k is a curve k steps further to the right, on the grid
        on, off = (sliding_window_view(x, len(heights) - cells) for x in (ends, middles))
        at_ends = fraction[::2] * on[cells::-1] + (1 - fraction[::2]) * on[: cells - 1 : -1]
        inside = (
            fraction[1::2] * off[cells - 1 :: -1] + (1 - fraction[1::2]) * off[: cells - 1 : -1]
        )
        bounds = 2 * inside - np.minimum(at_ends[:-1], at_ends[1:])
        heights = up(np.max(bounds, axis=0), roundings=1000)
    return np.exp(points[: len(heights)]), np.minimum(heights, 1.0)
