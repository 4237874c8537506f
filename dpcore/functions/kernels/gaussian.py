r"""The Gaussian kernel :math:`\exp(-\|x-y\|^2/(2h^2))`: kappa = 1 whatever the rows."""

from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.functions.kernels.base import UnitKernel
from dpcore.rounding import gamma


@attrs.frozen(kw_only=True)
class GaussianKernel(UnitKernel):
    """The Gaussian kernel with a public `bandwidth` h, in encoded units.

    Args:
        bandwidth: h: at that distance the kernel is exp(-1/2).
    """

    kind: ClassVar[str] = "a Gaussian kernel"

    def error(self, domain: Domain) -> float:
        """(p + 16) u: |t exp(-t)| <= 1/e, so that a relative error in t stays small.

        t is p + 6 roundings away from the exact one, so that exp(-t) moves by less than that many
        times u/e; the exponential itself errs by less than 4 units in the last place.
        """
        return gamma(domain.width + 16)

    def __call__(
        self, left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """By differences of the rows themselves, which are exact to one rounding."""
        exponents = scipy.spatial.distance.cdist(left, right, "sqeuclidean")
        exponents *= -0.5 / self.bandwidth**2
        return np.exp(exponents, out=exponents)
