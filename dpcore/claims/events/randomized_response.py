r"""Randomized response on C classes, and the two claims it is the worst case of.

A class is kept with probability :math:`e^{\epsilon_0}/(e^{\epsilon_0}+C-1)`, else replaced by one
of the others uniformly. For 0 <= epsilon <= epsilon_0 (and 0 beyond)

.. math:: \delta(\epsilon) = \frac{e^{\epsilon_0}-e^{\epsilon}}{e^{\epsilon_0}+C-1}.

Source: the definition. With C = 2 it is the worst of all epsilon_0-DP releases, and with an
infinite loss of probability delta_0 next to it the worst of all (epsilon_0, delta_0)-DP ones:
Kairouz, Oh & Viswanath (2017), arXiv:1311.0776v4, Theorem 3.1 and section 3.
"""

import math
from abc import abstractmethod
from functools import partial
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import integer_from, positive, probability
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.rounding import down, gamma, half_square, up


def response_curve(
    epsilons: NDArray[np.float64], epsilon: float, classes: float
) -> NDArray[np.float64]:
    """Return the curve above, to a relative 2^-50."""
    gap = -np.expm1(np.minimum(epsilons - epsilon, 0.0))
    return np.asarray(gap / (1 + (classes - 1) * math.exp(-epsilon)))


def response_renyi(
    orders: NDArray[np.float64], epsilon: float, classes: float
) -> NDArray[np.float64]:
    r"""Return the pair's Rényi divergence, rounded up.

    At most min(epsilon_0, alpha epsilon_0^2 / 2).

    .. math:: \epsilon_0 + \tfrac1{\alpha-1}\log\frac{1+e^{(1-2\alpha)\epsilon_0}
              +(C-2)e^{-\alpha\epsilon_0}}{1+(C-1)e^{-\epsilon_0}}
    """
    excess = orders - 1
    # e^{epsilon_0} is outside of the logarithm, so that nothing overflows
    with np.errstate(under="ignore"):
        above = np.exp((1 - 2 * orders) * epsilon) + (classes - 2) * np.exp(-orders * epsilon)
    below = (classes - 1) * math.exp(-epsilon)
    value = epsilon + (np.log1p(above) - math.log1p(below)) / excess
    # the rounding error of the terms, so that the value errs upwards
    value = value + gamma(32) * (epsilon + (1 + math.log1p(below)) / excess)
    return np.clip(value, 0.0, np.minimum(epsilon, orders * (epsilon * epsilon / 2)))


class _Response(Event, VectorCurve):
    """Randomized response on `classes` classes, with `epsilon_0`."""

    symmetric: ClassVar[bool] = True

    epsilon_0: float

    @property
    @abstractmethod
    def classes(self) -> int:
        """C, the number of classes."""

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded up, shape (k,)."""
        value = response_curve(epsilons, self.epsilon_0, self.classes)
        return np.minimum(up(value, roundings=10), 1.0)

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded down, shape (k,)."""
        return down(response_curve(epsilons, self.epsilon_0, self.classes), roundings=20)

    @property
    def claims(self) -> Claims:
        """epsilon_0, which no loss exceeds; epsilon_0^2/2: Bun & Steinke (2016), Proposition 1.4.

        The divergences are the pair's (rounded up): no release with that epsilon has larger ones.
        """
        renyi = partial(response_renyi, epsilon=self.epsilon_0, classes=self.classes)
        return Claims(pure=self.epsilon_0, rho=half_square(self.epsilon_0), renyi=renyi)


@attrs.frozen(kw_only=True)
class RandomizedResponseEvent(_Response):
    """One answer out of `classes`.

    Args:
        epsilon: epsilon_0 of the mechanism, > 0.
        classes: C, an integer >= 2.
        adjacency: Under which one person's class may change.
    """

    epsilon_0: float = attrs.field(validator=positive, alias="epsilon")
    classes: int = attrs.field(validator=integer_from(2))
    adjacency: Adjacency


@attrs.frozen(kw_only=True)
class PureEvent(_Response):
    """Any epsilon_0-DP release: the curve of randomized response on two classes.

    Args:
        epsilon: epsilon_0, > 0.
        adjacency: What the claim is about.
    """

    classes: ClassVar[int] = 2

    epsilon_0: float = attrs.field(validator=positive, alias="epsilon")
    adjacency: Adjacency


@attrs.frozen(kw_only=True)
class ApproximateEvent(Event, VectorCurve):
    r"""Any (epsilon_0, delta_0)-DP release.

    .. math::
    \delta(\epsilon)=\delta_0+(1-\delta_0)\frac{e^{\epsilon_0}-e^\epsilon}{e^{\epsilon_0}+1}

    for epsilon <= epsilon_0, and delta_0 beyond.

    Args:
        epsilon: epsilon_0, > 0.
        delta: delta_0, in [0, 1].
        adjacency: What the claim is about.
    """

    symmetric: ClassVar[bool] = True

    epsilon_0: float = attrs.field(validator=positive, alias="epsilon")
    delta_0: float = attrs.field(validator=probability, alias="delta")
    adjacency: Adjacency

    def _value(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.delta_0 + (1 - self.delta_0) * response_curve(epsilons, self.epsilon_0, 2)

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded up, shape (k,)."""
        value = np.minimum(up(self._value(epsilons), roundings=10), 1.0)
        # beyond epsilon_0 only the infinite loss is left
        return np.where(epsilons >= self.epsilon_0, self.delta_0, value)

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded down, shape (k,)."""
        return down(self._value(epsilons), roundings=20)

    def infinite_mass(self, direction: Direction) -> float:
        """Return delta_0, the probability of an infinite loss."""
        return self.delta_0

    @property
    def claims(self) -> Claims:
        """The pair (epsilon_0, delta_0) of the claim; a pure epsilon where delta_0 is 0."""
        return Claims(
            approximate=(self.epsilon_0, self.delta_0),
            pure=self.epsilon_0 if self.delta_0 == 0 else None,
        )
