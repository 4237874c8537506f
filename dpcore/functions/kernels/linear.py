"""The linear kernel x . y: kappa is the domain's norm."""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.functions.kernels.base import Kernel
from dpcore.rounding import gamma, up


@attrs.frozen(kw_only=True)
class LinearKernel(Kernel):
    """The inner product of encoded rows."""

    def norm(self, domain: Domain) -> float:
        """Return the domain's `feature_norm`, with room for rounding."""
        return up(domain.feature_norm, roundings=5000)

    def error(self, domain: Domain) -> float:
        """Return a sum of p products errs by at most 2 p u |x| |y| (Higham 2002, (3.5))."""
        return gamma(2 * domain.width) * self.norm(domain) ** 2

    def diagonal(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared norm |x|^2 of every row, shape (n, p) to (n,)."""
        squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows)
        return squares

    def __call__(
        self, left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """x . y."""
        return left @ right.T
