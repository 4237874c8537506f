r"""The minimiser of a perturbed objective, with a certificate: exact rows, a public tolerance.

.. math:: J(\theta)=\sum_i\int_0^{x_i\cdot\theta}\mathrm{clip}(s(t,y_i),\pm B)\,dt+
          \tfrac\Lambda2\|\theta\|^2+b\cdot\theta ,\qquad \|x_i\|\le1,\ |y_i|\le1,

s the derivative of half the square, or of the logistic loss: t - y, or (tanh(t/2) - y)/2.

Certificate. J is Lam-strongly convex: :math:`|\theta-\theta^*|\le|\nabla J(\theta)|/\Lambda`.
Search. Newton steps that shorten the gradient, then gradient steps of length 1/L, L = n beta + Lam.
With a computed gradient that errs by at most E each of the latter changes J by at most
:math:`(E^2-|g|^2)/(2L)`, so that after finitely many of them |g| < 2E; the tolerance is 8E. None of
them leads farther from the minimiser than :math:`|\nabla J(0)|/\Lambda`.
"""

from collections.abc import Callable
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive, positive_integer
from dpcore.functions import ProcessQuery
from dpcore.rounding import UNIT, gamma, up

Floats = NDArray[np.float64]
# Derivatives of a loss, the first and the second, at scores and labels.
Slope = Callable[[Floats, Floats], tuple[Floats, Floats]]

_NEWTON_STEPS, _HALVINGS = 100, 20


@attrs.frozen(kw_only=True)
class ObjectiveQuery(ProcessQuery):
    """A question whose process has one step: from the linear term to the minimiser.

    Args:
        ridge: Lam > 0.
        slope: B > 0: no record's gradient is longer.
        curvature: beta: no second derivative of a loss is larger.
        most: A public limit on the number of records.
    """

    ridge: float = attrs.field(validator=positive)
    slope: float = attrs.field(validator=positive)
    curvature: float = attrs.field(validator=positive)
    most: int = attrs.field(validator=positive_integer)

    def tolerance(self, cutoff: float) -> float:
        """Return how long the gradient may be at what is computed, for a linear term of this
        length.

        Eight times what a computed gradient and a step may err by, over all datasets and all points
        of the search, which are at most twice as long as the minimiser.
        """
        count, ridge = self.most, self.ridge
        longest = 2 * (count * self.slope + cutoff) / ridge
        terms = (
            count * (self.curvature * longest + self.slope + 2) + 2 * ridge * longest + 2 * cutoff
        )
        roundings = gamma(count + self.real_size + 32) * terms
        step = 4 * UNIT * (count * self.curvature + ridge) * longest
        return up(8 * (roundings + step), roundings=100)

    def solve(self, rows: Floats, labels: Floats, loss: Slope, term: Floats) -> Floats:
        """PRIVATE: within `tolerance` of |b|, over Lam, of the minimiser."""
        gradient = partial(self._gradient, rows, labels, loss, term)
        limit = self.tolerance(float(np.linalg.norm(term))) / 2
        theta = np.zeros(self.real_size)
        slope, second = gradient(theta)
        for _ in range(_NEWTON_STEPS):
            length = float(np.linalg.norm(slope))
            if length <= limit:
                return theta
            hessian = (rows.T * second) @ rows + self.ridge * np.eye(len(theta))
            direction = np.linalg.solve(hessian, slope)
            for halving in range(_HALVINGS):
                rate = 0.5**halving
                candidate = theta - rate * direction
                slope_there, second_there = gradient(candidate)
                if np.linalg.norm(slope_there) <= (1 - 0.1 * rate) * length:
                    break
            else:
                break
            theta, slope, second = candidate, slope_there, second_there
        # Gradient steps by itself are proved to arrive; a kink may keep Newton's from it.
        rate = 1 / (len(rows) * self.curvature + self.ridge)
        while float(np.linalg.norm(slope)) > limit:
            theta = theta - rate * slope
            slope, _ = gradient(theta)
        return theta

    def _gradient(
        self, rows: Floats, labels: Floats, loss: Slope, term: Floats, theta: Floats
    ) -> tuple[Floats, Floats]:
        """Return the gradient at a point, and the second derivatives of the clipped losses."""
        slopes, second = loss(rows @ theta, labels)
        clipped = np.clip(slopes, -self.slope, self.slope)
        second = np.where(clipped == slopes, second, 0.0)
        return rows.T @ clipped + self.ridge * theta + term, second
