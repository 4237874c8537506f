r"""Choices one after another: their joint curve, and pairs for a composed lower end.

Each choice has a place t of its own (`dpcore.events.exponential`), which may depend on all answers
before it. With a = e^epsilon, one more choice, and then whatever has the curve H, costs at most

.. math:: (TH)(a)=\max_t\; p_t H(ae^{-t})+(1-p_t)H(ae^{\epsilon_0-t}),\quad
          p_t=\frac{e^{\epsilon_0}-e^t}{e^{\epsilon_0}-1} ,

so that k of them cost the curve :math:`h_k=T^kH_0`, where :math:`H_0(a)=(1-a)_+` or the curve of
what follows them all. An adaptive analyst attains it. It composes with other events as their
curves do, in whatever order each is asked: let M be the composed measure of what the others still
cost. One more choice costs at most :math:`\max_t\int p_th_{k-1}(ae^{-t-y})
+(1-p_t)h_{k-1}(ae^{\epsilon_0-t-y})\,dM(y)\le\int h_k(ae^{-y})\,dM(y)`, and one more of the others
makes M what it was composed to be.

On a grid of log a with step s = epsilon_0/m, chords lie above H. For u = e^t between two grid
points the maximand is then :math:`c_0+c_1u+c_2/u` with :math:`c_1,c_2\le0`, largest at
:math:`\sqrt{c_2/c_1}`, or at the end next to it. That place errs by less than a hundredth of a cell
where the curve bends by more than 1e-5 over it; each step is raised by 1e-9, relatively, which
covers what is missed. Left of a = 1, H(1/a) = 1 - 1/a + H(a)/a, since all pairs together are
symmetric.

A lower end takes one t for all: the one with the largest E_P e^{theta L}, theta the tilt of the
composition, where :math:`e^t=\frac{\theta}{1+\theta}\,
\frac{e^{\epsilon_0}-e^{-\theta\epsilon_0}}{1-e^{-\theta\epsilon_0}}`.

Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830 (the recursion for adaptive choices).
"""

import functools
import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dpcore.events.base import CompoundEvent, Direction, Event
from dpcore.events.exponential import ExponentialMechanismEvent
from dpcore.events.gaussian import gaussian_curve
from dpcore.events.random_stopping import RandomStoppingEvent
from dpcore.rounding import up

MOST = 64
"""Choices whose joint curve is computed; more are composed of several such curves."""

_CELLS = 16  # m: of one range
_LEAST, _LARGEST = 1e-4, 4.0  # of epsilon_0; more is seldom asked for twice
_NEAREST = 1 / 256  # of epsilon_0 over the shift of a Gaussian that follows: else grids are large
_MISSED = 1e-9  # relative: what one step may miss, and its rounding


def together(event: Event, count: int) -> dict[Event, int]:
    """What `count` of it compose to, each chosen from earlier answers: events with counts.

    Choices become joint curves of at most 64 each, of as equal sizes as can be.
    """
    if count == 1 or not isinstance(event, ExponentialMechanismEvent):
        return {event: count}
    if not _LEAST <= event.epsilon_0 <= _LARGEST:
        return {event: count}
    size, larger = divmod(count, blocks := math.ceil(count / MOST))
    sizes = {size: blocks - larger, size + 1: larger}
    return {ChoicesEvent(event=event, count=k): times for k, times in sizes.items() if times}


def followed(event: Event, count: int, mu: float) -> Event | None:
    """`count` of it, and a Gaussian of shift mu after them, as one event; None: no better."""
    if not isinstance(event, ExponentialMechanismEvent) or count > MOST:
        return None
    # where the Gaussian is far wider than a choice, the grid would be too large
    is_near = max(_LEAST, _NEAREST * mu) <= event.epsilon_0 <= _LARGEST
    return ChoicesEvent(event=event, count=count, mu=mu) if is_near else None


def attaining(event: Event, tilt: float) -> Event | None:
    """What one pair attains and is nowhere lossier than the event; None where none is known.

    Args:
        event: Any.
        tilt: theta > 0, where the log moments of the composition tell its epsilon.
    """
    # where scores are all equal and K >= 1, the best of K runs is one run
    if isinstance(event, RandomStoppingEvent) and event.shape < math.inf:
        return attaining(event.event, tilt)
    if isinstance(event, ExponentialMechanismEvent):
        epsilon_0 = event.epsilon_0
        ratio = math.expm1(epsilon_0) / -math.expm1(-tilt * epsilon_0)
        top = math.log1p(ratio) - math.log1p(1 / tilt)
        top = min(max(top, 0.01 * epsilon_0), 0.99 * epsilon_0)
        return ChoicePairEvent(event=event, top=top)
    return event if event.attained else None


@attrs.frozen(kw_only=True)
class ChoicePairEvent(CompoundEvent):
    """Two outcomes with losses `top` and `top - epsilon_0`: what one choice may be.

    Args:
        event: The choice.
        top: In (0, epsilon_0); the largest loss of the direction REMOVE.
    """

    event: ExponentialMechanismEvent
    top: float

    def anchor(self, direction: Direction) -> float:
        """The larger loss."""
        return self.top if direction is Direction.REMOVE else self.event.epsilon_0 - self.top

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The larger loss's part of the curve at an array of epsilons >= 0, shape (k,)."""
        top, epsilon_0 = self.anchor(direction), self.event.epsilon_0
        share = math.exp(top) * (math.expm1(epsilon_0 - top) / math.expm1(epsilon_0))
        return np.asarray(up(-share * np.expm1(np.minimum(epsilons - top, 0.0)), roundings=100))


@attrs.frozen(kw_only=True)
class ChoicesEvent(CompoundEvent):
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

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Chords of the joint curve's upper ends at an array of epsilons >= 0, shape (k,)."""
        # read a little to the left, where a falling curve is higher by more than what is rounded
        a = np.exp(epsilons) * (1 - 1e-12)
        value = np.interp(a, *_joint_curve(self.event.epsilon_0, self.count, self.mu))
        return np.minimum(up(value, roundings=5000), 1.0)


@functools.lru_cache(maxsize=32)  # a pure function, asked at many epsilons
def _joint_curve(
    epsilon_0: float, count: int, mu: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a = 1, e^s, e^{2s}, ..., and upper ends of T^count H, H the Gaussian's curve (0: none)."""
    step = epsilon_0 / _CELLS
    last = step * np.arange(1.0, _CELLS + 1)[:, None]  # the end of each cell of t
    reach = count * _CELLS + math.ceil(mu * (12 + mu / 2) / step)
    points = step * np.arange(reach + count * _CELLS + 1.0)
    heights = gaussian_curve(points, mu) if mu > 0 else np.zeros_like(points)
    # each choice takes its range off the right end of the grid, beyond which nothing is known
    for _ in range(count):
        left = points[_CELLS:0:-1]
        reflected = np.exp(-left) * heights[_CELLS:0:-1] - np.expm1(-left)
        ends = np.concatenate([reflected, heights])
        # both ends of the chords that serve the larger and the smaller loss, a row for each cell
        rows = sliding_window_view(np.stack([ends[:-1], ends[1:]]), len(heights) - _CELLS, axis=1)
        large, small = rows[:, _CELLS - 1 :: -1], rows[:, : _CELLS - 1 : -1]
        # how the chords fall, a in units of their left ends
        large_fall, small_fall = ((x[0] - x[1]) / math.expm1(step) for x in (large, small))
        linear = np.maximum(large[0] + large_fall - small[0] - small_fall, 0.0)
        inverse = np.maximum(np.exp(last) * (math.exp(epsilon_0) * large_fall - small_fall), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            place = np.fmin(np.fmax(0.5 * np.log(inverse / linear), last - step), last)
        share = np.expm1(last - place) / math.expm1(step)
        high, low = (x[0] * (1 - share) + x[1] * share for x in (large, small))
        value = np.expm1(epsilon_0 - place) * np.exp(place) * high + np.expm1(place) * low
        heights = np.max(value, axis=0) / math.expm1(epsilon_0) * (1 + _MISSED)
    return np.exp(points[: len(heights)]), np.minimum(heights, 1.0)
