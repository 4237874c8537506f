r"""Public neurons: the matrix S behind the kernel :math:`K(x,z)=(x\cdot z)(x^TSz)`.

For a layer of m quadratic neurons with standard normal weights, :math:`S=\frac1m\sum w_rw_r^T`;
its expectation, the kernel of infinitely many, has S = I. S is public: drawn from public
randomness. It is kept as a factor R with :math:`S=R^TR`, at most as many rows as columns, so that

.. math:: K(x,z)=F(x)\cdot F(z),\qquad F(x)=x\otimes Rx,\qquad
          \|F(x)\|^2=\|x\|^2\,x^TSx\le\lambda_{\max}(S)\,\|x\|^4 .

Source: Gu, Liang, Sha, Shi & Song (2024), Definitions 3.5 and 3.6, with the largest eigenvalue of
the S that was drawn where the paper has the variance of one weight.
"""

import math
from typing import Any

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import PublicRandomness
from dpcore.checks import positive_integer
from dpcore.rounding import up
from dpcore_ntk.inputs import Inputs

_UP = 1 + 1e-9  # eigvalsh and the product R R^T err by less, below ten thousand columns


def optional_count(instance: Any, attribute: Any, value: Any) -> None:
    """Validator: None, or an integer of at least 1."""
    if value is not None:
        positive_integer(instance, attribute, value)


@attrs.frozen(kw_only=True, eq=False)
class Neurons:
    """A drawn layer. Everything here is public.

    Args:
        factor: R above, shape (rank, width); None for the identity.
        width: d, number of coordinates of an input.
        norm: B, which no input exceeds.
    """

    factor: NDArray[np.float64] | None
    width: int
    norm: float

    @classmethod
    def draw(cls, count: int | None, inputs: Inputs, randomness: PublicRandomness) -> "Neurons":
        """m = `count` of them from the public stream "neurons"; infinitely many if None."""
        width = inputs.width
        if count is None:
            return cls(factor=None, width=width, norm=inputs.norm)
        weights = randomness.stream("neurons").normal((count, width)) / math.sqrt(count)
        # S = W^T W = T^T T: the triangle of a QR decomposition is a factor with fewer rows.
        if count > width:
            (triangle,) = scipy.linalg.qr(weights, mode="r", check_finite=False)
            weights = np.asarray(triangle[:width], dtype=np.float64)
        return cls(factor=weights, width=width, norm=inputs.norm)

    @property
    def rank(self) -> int:
        """How many rows R has."""
        return self.width if self.factor is None else int(self.factor.shape[0])

    @property
    def largest(self) -> float:
        """s, the largest eigenvalue of S, rounded up."""
        if self.factor is None:
            return 1.0
        # R R^T has the nonzero eigenvalues of S and no more rows than it.
        square = self.factor @ self.factor.T
        return max(float(scipy.linalg.eigvalsh(square)[-1]), 1e-300) * _UP

    @property
    def feature_norm(self) -> float:
        """sqrt(s) B^2, rounded up: no F(x) is longer."""
        return up(math.sqrt(self.largest) * self.norm**2, roundings=3)

    def hidden(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """R x of each row, shape (n, d) to (n, rank)."""
        return rows if self.factor is None else rows @ self.factor.T

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was drawn, for the published model."""
        return {} if self.factor is None else {"neurons": self.factor}
