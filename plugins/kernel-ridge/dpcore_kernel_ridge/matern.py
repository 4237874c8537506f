r"""Matérn kernels of smoothness 1/2, 3/2 and 5/2: kappa = 1 whatever the rows.

With :math:`t=\sqrt{2\nu}\,\|x-y\|/h`: :math:`e^{-t}`, :math:`(1+t)e^{-t}` and
:math:`(1+t+t^2/3)e^{-t}`. Their spectral densities, proportional to
:math:`(2\nu/h^2+\|w\|^2)^{-\nu-p/2}`, are positive in every dimension p, so that the kernels are
positive definite (Bochner; Rasmussen & Williams 2006, (4.14) to (4.17)).
"""

import math
from abc import abstractmethod
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.functions.kernels.base import UnitKernel
from dpcore.rounding import gamma


@attrs.frozen(kw_only=True)
class MaternKernel(UnitKernel):
    """A Matérn kernel: functions of it are rougher than those of the Gaussian kernel.

    Args:
        bandwidth: h, public, in encoded units.
    """

    kind: ClassVar[str] = "a Matérn kernel"

    twice: ClassVar[int]
    """2 nu."""

    @abstractmethod
    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate K at the distances t >= 0."""

    def error(self, domain: Domain) -> float:
        """(p + 16) u: |t K'(t)| is at most 0.61, so that a relative error in t stays small.

        t is off by a relative (p + 10) u/2 or less, so that K moves by at most 0.31 (p + 10) u; the
        exponential and the products err by less than 9 units in the last place of 1.
        """
        return gamma(domain.width + 16)

    def __call__(
        self, left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Evaluate the kernel by distances of the rows themselves."""
        # from differences: |x|^2 - 2 x.y + |y|^2 would cancel where rows are close
        return self.at(
            scipy.spatial.distance.cdist(left, right) * (math.sqrt(self.twice) / self.bandwidth)
        )


@attrs.frozen(kw_only=True)
class ExponentialKernel(MaternKernel):
    """nu = 1/2: functions are continuous, with kinks."""

    twice: ClassVar[int] = 1

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate K = exp(-t) at distances t >= 0."""
        return np.exp(-t)


@attrs.frozen(kw_only=True)
class Matern32Kernel(MaternKernel):
    """nu = 3/2: functions are once differentiable."""

    twice: ClassVar[int] = 3

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate K = (1 + t) exp(-t) at distances t >= 0."""
        return (1 + t) * np.exp(-t)


@attrs.frozen(kw_only=True)
class Matern52Kernel(MaternKernel):
    """nu = 5/2: functions are twice differentiable."""

    twice: ClassVar[int] = 5

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate K = (1 + t + t^2/3) exp(-t) at distances t >= 0."""
        return (1 + t + t * t / 3) * np.exp(-t)
