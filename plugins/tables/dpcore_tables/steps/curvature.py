r"""What the steps of a descent say of its curvature: a regression of released gradients on weights.

.. math:: g_k=Lw_k+c+N(0,s^2I)

Weights are public and their noise wanders in every direction, so the answers distinguish L  from
what
synthetic records say of it: real columns are correlated, and real categories are not equally
frequent. Every row of L is estimated with a prior around that, of relative size `_TRUST`.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

_TRUST = 0.25


@attrs.frozen(kw_only=True, eq=False)
class Walked:
    """Sums over the steps so far: of w, g, w w' and w g'."""

    count: int = 0
    weights: NDArray[np.float64] | float = 0.0
    gradients: NDArray[np.float64] | float = 0.0
    squares: NDArray[np.float64] | float = 0.0
    products: NDArray[np.float64] | float = 0.0

    def after(self, weights: NDArray[np.float64], gradient: NDArray[np.float64]) -> "Walked":
        """Return one step further; both of shape (d,)."""
        return Walked(
            count=self.count + 1,
            weights=self.weights + weights,
            gradients=self.gradients + gradient,
            squares=self.squares + np.outer(weights, weights),
            products=self.products + np.outer(weights, gradient),
        )

    def curvature(
        self, usual: NDArray[np.float64], noise: float, *, at_once: bool = False
    ) -> NDArray[np.float64]:
        """L, symmetric; shape (d, d).

        Args:
            usual: What synthetic records say, of a positive diagonal. noise: s.
            at_once: Whether all rows have one decomposition, which is far faster where d is large
                and has other last bits.
        """
        # A line needs two points.
        if self.count < 2:
            return usual
        # Centred sums: the intercept c of the regression drops out.
        squares = self.squares - np.outer(self.weights, self.weights) / self.count
        products = self.products - np.outer(self.weights, self.gradients) / self.count
        # What the steps say beyond the prior curvature; the loop regresses it row by row.
        mismatch = (products - squares @ usual) / noise**2
        sizes = np.sqrt(usual.diagonal())
        correction = np.empty_like(usual)
        if at_once:
            # In units of the sizes every row's prior is a multiple of the identity.
            values, basis = np.linalg.eigh(squares * np.outer(sizes, sizes) / noise**2)
            parts = basis.T @ (sizes[:, None] * mismatch)
            parts /= np.maximum(values, 0.0)[:, None] + 1 / (_TRUST * sizes) ** 2
            correction = sizes[:, None] * (basis @ parts)
            return np.asarray(usual + (correction + correction.T) / 2)
        for row, size, mixed in zip(correction, sizes, mismatch.T, strict=True):
            precision = np.diag(1 / (_TRUST * size * sizes) ** 2)
            row[:] = np.linalg.solve(squares / noise**2 + precision, mixed)
        return np.asarray(usual + (correction + correction.T) / 2)
