r"""What the fairness experiments of the paper run. Nothing here is private.

The paper compares its random features with *regularised least squares* on the columns themselves,
and gives both the same noise: of the standard deviation that N features have.

Source: github.com/liaochunyang/DPRFM at 7470664; Table 2 has no code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Spread = Callable[[float, float, float, int], float]
"""A standard deviation from epsilon, delta, movement and N."""


@attrs.frozen(kw_only=True, eq=False)
class RidgeFit:
    """Coefficients of the columns as they come."""

    coefficients: Floats

    def features(self, x: Floats) -> Floats:
        """The columns, shape (n, d)."""
        return x


def fit_ridge(
    x: Floats, y: Floats, coins: np.random.Generator, *, regularization: float
) -> RidgeFit:
    r""":math:`(X^TX+\lambda I)^{-1}X^Ty`."""
    gram = x.T @ x + regularization * np.eye(x.shape[1])
    return RidgeFit(coefficients=np.asarray(np.linalg.solve(gram, x.T @ y), dtype=np.float64))


@attrs.frozen(eq=False)
class ScaledNoise:
    """Independent normal noise whose variance is known, so that gaps have a closed form."""

    spread: Spread

    def __call__(
        self,
        fit: Any,
        coins: np.random.Generator,
        count: int,
        *,
        epsilon: float,
        delta: float,
        movement: float,
        features: int,
    ) -> Floats:
        """Shape (count, coefficients).

        Args:
            movement: Delta is this over sqrt(N). features: N, whatever is fitted.
        """
        std = self.spread(epsilon, delta, movement, features)
        return std * coins.standard_normal((count, fit.coefficients.size))

    def variance(
        self, fit: Any, *, epsilon: float, delta: float, movement: float, features: int
    ) -> float:
        """Of one coordinate."""
        return self.spread(epsilon, delta, movement, features) ** 2


def _of_figures(epsilon: float, delta: float, movement: float, features: int) -> float:
    r""":math:`5\Delta/\sqrt{2\epsilon}`, as the code of Figures 7 and 8 has it."""
    return 5 * movement / math.sqrt(features) / math.sqrt(2 * epsilon)


def _of_algorithm(epsilon: float, delta: float, movement: float, features: int) -> float:
    r""":math:`\sqrt{2\ln(1.25/\delta)}\,\Delta/\epsilon`, as Algorithm 1 has it."""
    return math.sqrt(2 * math.log(1.25 / delta)) * movement / (math.sqrt(features) * epsilon)


GAP_NOISE = ScaledNoise(_of_figures)
ALGORITHM_NOISE = ScaledNoise(_of_algorithm)
