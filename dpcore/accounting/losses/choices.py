r"""Choices one after another: their joint curve, and pairs for a composed lower end.

Each choice has a place t of its own (`dpcore.events.exponential`), which may depend on all answers before it. With
a = e^epsilon, one more choice, and then whatever has the curve H, costs at most

.. math:: (TH)(a)=\max_t\; p_t H(ae^{-t})+(1-p_t)H(ae^{\epsilon_0-t}),\quad
          p_t=\frac{e^{\epsilon_0}-e^t}{e^{\epsilon_0}-1} ,

so that k of them cost the curve :math:`h_k=T^kH_0`, :math:`H_0(a)=(1-a)_+`, or that of what follows
them all. An adaptive analyst attains it. It is convex, and it composes with other events as their
curves do, in whatever order each is asked: let M be the measure of what the others still
cost, in their own composition. One more choice costs at most
:math:`\max_t\int p_th_{k-1}(ae^{-t-y})+(1-p_t)h_{k-1}(ae^{\epsilon_0-t-y})\,dM(y)
\le\int h_k(ae^{-y})\,dM(y)`, and one more of the others turns M into its composition with that one.

On a grid of log a with step s = epsilon_0/m, chords lie above H. For u = e^t between two grid
points the maximand is then :math:`c_0+c_1u+c_2/u` with :math:`c_1,c_2\le0`, largest at
:math:`\sqrt{c_2/c_1}`, or at the end next to it. That place errs by less than a hundredth of a cell
where the curve bends by more than 1e-5 over it; each step is raised by 1e-9, relatively, which
covers what is missed. H is symmetric, H(1/a) = 1 - 1/a + H(a)/a, as are all pairs together.

**Lower ends.** A composed lower end takes the pair of one t, in all applications the same: the one with
the largest E_P e^{theta L}, where :math:`e^t=\frac{\theta}{1+\theta}\,
\frac{e^{\epsilon_0}-e^{-\theta\epsilon_0}}{1-e^{-\theta\epsilon_0}}`, theta the composition's tilt.

Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830 (the recursion for adaptive choices).
"""

import functools
import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.events.base import Direction, Event, VectorEvent
from dpcore.events.exponential import ExponentialMechanismEvent
from dpcore.events.gaussian import gaussian_curve
from dpcore.events.random_stopping import RandomStoppingEvent
from dpcore.rounding import up

MOST = 64
"""Choices whose joint curve is computed; more are composed of several such curves."""

_CELLS = 16  # m: of one range
_LEAST, _LARGEST = 1e-4, 100.0  # of epsilon_0; of the range of all losses together
_NEAREST = 1 / 256  # of epsilon_0 over the shift of a Gaussian that follows: else grids are large
_MISSED = 1e-9  # relative: what one step may miss, and its rounding
_DEVIATIONS = 12.0  # of the Gaussian that follows; beyond them its curve is taken as constant


def together(event: Event, count: int) -> tuple[tuple[Event, int], ...]:
    """What `count` of it compose to, each chosen from earlier answers: events with counts.

    Choices become joint curves of at most 64 each, of as equal sizes as can be.
    """
    if not isinstance(event, ExponentialMechanismEvent) or event.epsilon_0 < _LEAST:
        return ((event, count),)
    if count == 1 or (most := _most_joint(event)) < 2:
        return ((event, count),)
    blocks = math.ceil(count / most)
    size, larger = divmod(count, blocks)
    sizes = ((size, blocks - larger), (size + 1, larger))
    return tuple((_joint(event, size), times) for size, times in sizes if times)


def followed(event: Event, count: int, mu: float) -> Event | None:
    """`count` of it, and a Gaussian of shift mu after them, as one event; None: no better."""
    if not isinstance(event, ExponentialMechanismEvent) or count > _most_joint(event):
        return None
    # where the Gaussian is far wider than a choice, the grid would be too large
    return _joint(event, count, mu) if event.epsilon_0 >= max(_LEAST, _NEAREST * mu) else None


def attaining(event: Event, tilt: float) -> Event | None:
    """What one pair attains and is nowhere lossier than the event; None where none is known.

    Args:
        event: Any.
        tilt: theta > 0, where the log moments of the composition tell its epsilon.
    """
    # where scores are all equal and K >= 1, the best of K runs is one run
    if isinstance(event, RandomStoppingEvent) and event.shape < math.inf:
        return attaining(event.event, tilt)
    if not isinstance(event, ExponentialMechanismEvent):
        return event if event.attained else None
    epsilon_0 = event.epsilon_0
    least = math.expm1(epsilon_0) / -math.expm1(-tilt * epsilon_0)
    place = math.log(tilt / (tilt + 1)) + math.log1p(least)
    place = min(max(place, 0.01 * epsilon_0), 0.99 * epsilon_0)
    return ChoicePairEvent(epsilon=epsilon_0, top=place, adjacency=event.adjacency)


def _most_joint(event: ExponentialMechanismEvent) -> int:
    return min(MOST, int(_LARGEST / event.epsilon_0))


def _joint(event: ExponentialMechanismEvent, count: int, mu: float = 0.0) -> Event:
    return ChoicesEvent(epsilon=event.epsilon_0, count=count, mu=mu, adjacency=event.adjacency)


@attrs.frozen(kw_only=True)
class ChoicePairEvent(VectorEvent):
    """Two outcomes with losses `top` and `top - epsilon_0`: what one choice may be.

    Args:
        epsilon: epsilon_0.
        top: In (0, epsilon_0); the largest loss of the direction REMOVE.
        adjacency: What it is about.
    """

    epsilon_0: float = attrs.field(alias="epsilon")
    top: float
    adjacency: Adjacency

    def anchor(self, direction: Direction) -> float:
        """The larger loss."""
        return self.top if direction is Direction.REMOVE else self.epsilon_0 - self.top

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The larger loss's share of the curve at an array of epsilons >= 0, shape (k,)."""
        top = self.anchor(direction)
        share = math.exp(top - self.epsilon_0) * math.expm1(self.epsilon_0 - top)
        share /= -math.expm1(-self.epsilon_0)
        return np.asarray(up(-share * np.expm1(np.minimum(epsilons - top, 0.0)), roundings=100))


@attrs.frozen(kw_only=True)
class ChoicesEvent(VectorEvent):
    """Choices one after another, each place chosen from earlier answers, then a Gaussian release.

    Args:
        epsilon: epsilon_0 of each choice.
        count: Choices.
        mu: Shift of the Gaussian that follows, 0 for none.
        adjacency: What it is about.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon has a worst analyst of its own

    epsilon_0: float = attrs.field(alias="epsilon")
    count: int
    mu: float = 0.0
    adjacency: Adjacency

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Chords of the joint curve's upper ends at an array of epsilons >= 0, shape (k,)."""
        heights = _joint_curve(self.epsilon_0, self.count, self.mu)
        step = self.epsilon_0 / _CELLS
        # a place is rounded to the left, where the curve is higher
        place = np.minimum(epsilons / step * (1 - 2.0**-48), len(heights) - 1.0)
        cell = np.minimum(place.astype(np.int64), len(heights) - 2)
        share = np.expm1(step * (place - cell)) / math.expm1(step)
        value = heights[cell] * (1 - share) + heights[cell + 1] * share
        return np.clip(up(value, roundings=5000), 0.0, 1.0)


@functools.lru_cache(maxsize=32)  # a pure function, asked at many epsilons
def _joint_curve(epsilon_0: float, count: int, mu: float) -> NDArray[np.float64]:
    """Upper ends of T^count H at 0, s, 2s, ...; what follows has the curve H of a Gaussian."""
    step, top = epsilon_0 / _CELLS, math.exp(epsilon_0)
    reach = count * _CELLS + math.ceil(mu * (_DEVIATIONS + mu / 2) / step)
    points = step * np.arange(reach + count * _CELLS + 1.0)
    heights = gaussian_curve(points, mu) if mu > 0 else np.zeros_like(points)
    # every choice shortens the grid by its range, to the right of which nothing is known
    for _ in range(count):
        left = points[_CELLS:0:-1]
        left_heights = -np.expm1(-left) + np.exp(-left) * heights[_CELLS:0:-1]
        heights = _one_more(np.concatenate([left_heights, heights]), step, top)
    return heights


def _one_more(heights: NDArray[np.float64], step: float, top: float) -> NDArray[np.float64]:
    """T of a curve that is given from epsilon_0 to the left of 0 on, at 0, s, 2s, ..."""
    size = len(heights) - 2 * _CELLS
    span = math.expm1(step)
    # of each chord, a in units of its left end: its slope downwards, and its height at a = 0
    fall = (heights[:-1] - heights[1:]) / span
    start = heights[:-1] + fall
    best = np.zeros(size)
    for cell in range(_CELLS):
        # the chords that serve the larger and the smaller loss while t is in this cell
        near, far = _CELLS - cell - 1, 2 * _CELLS - cell - 1
        large, small = slice(near, near + size), slice(far, far + size)
        first, last = step * cell, step * (cell + 1)
        linear = np.maximum(start[large] - start[small], 0.0)
        inverse = np.maximum(math.exp(last) * (top * fall[large] - fall[small]), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            place = np.clip(0.5 * np.log(inverse / linear), first, last)
        place = np.where(np.isnan(place), first, place)
        share = np.expm1(last - place) / span
        value = np.expm1(step * _CELLS - place) * np.exp(place) * (
            heights[:-1][large] * (1 - share) + heights[1:][large] * share
        ) + np.expm1(place) * (heights[:-1][small] * (1 - share) + heights[1:][small] * share)
        best = np.maximum(best, value / math.expm1(step * _CELLS))
    return np.minimum(best * (1 + _MISSED), 1.0)
