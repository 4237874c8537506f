r"""Certainty: how much an attacker learns at most, from a certified privacy curve.

The attacker knows everything but which of two neighbouring datasets was used. A test accuses the
second one wrongly with probability alpha and finds the first with probability beta. Where
(epsilon, delta) holds in both directions, Kairouz, Oh & Viswanath (2015, Theorem 2.1) give

.. math::
    \beta \le e^{\epsilon} \alpha + \delta, \qquad
    \beta \le 1 - e^{-\epsilon} (1 - \delta - \alpha),

and the total variation distance is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1). Every point
of a curve holds, so the least bound over its points holds.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.rounding import up

_ROUNDINGS = 64  # of a bound below, exponentials of up to an ulp each included
_MOST = 700.0  # nats whose exponential is a double
_SLACK = 2.0**-45  # far above the roundings of a few numbers up to 1


@attrs.frozen(kw_only=True, eq=False)
class Curve:
    """Points of a certified privacy curve; each holds for every neighbouring pair.

    Args:
        deltas: Increasing, shape (k,).
        epsilons: Upper ends there, nats, nonincreasing up to rounding, shape (k,).
    """

    deltas: NDArray[np.float64]
    epsilons: NDArray[np.float64]

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return the largest probability to detect one dataset at a false positive rate.

        Args:
            false_positive_rate: alpha, in [0, 1].
        """
        products = np.exp(np.minimum(self.epsilons, _MOST)) * false_positive_rate + self.deltas
        # Where e^epsilon is no double, 1 represents the first bound, which is trivially true.
        steep_bounds = np.where(self.epsilons > _MOST, 1.0, up(products, roundings=_ROUNDINGS))
        miss_rates = np.maximum(1.0 - self.deltas - false_positive_rate, 0.0) * np.exp(
            -self.epsilons
        )
        flat_bounds = 1.0 - miss_rates + _SLACK
        return float(min(1.0, steep_bounds.min(), flat_bounds.min()))

    @property
    def right(self) -> float:
        """The largest probability to guess right, of one who holds both for equally likely.

        (1 + the total variation distance) / 2; without the release it is 1/2. For no other belief
        does the probability to guess right change by more.
        """
        odds = np.exp(-self.epsilons)  # (e^eps - 1 + 2 delta)/(e^eps + 1), times e^-eps
        variations = (1.0 - odds + 2.0 * self.deltas * odds) / (1.0 + odds) + _SLACK
        return float(min(1.0, 0.5 + 0.5 * variations.min()))
