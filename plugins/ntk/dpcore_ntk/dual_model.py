"""The dual form of the private regression: noisy inputs, and a coefficient for each."""

from typing import Any

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.models.description import ShownModel
from dpcore_ntk.kernel import ntk_between
from dpcore_ntk.neurons import Neurons
from dpcore_ntk.targets import Targets


@attrs.frozen(kw_only=True, eq=False)
class DualModel(ShownModel):
    """f_c(x) = sum of alpha_ic K(x, x_i) over released points: a number, or the largest class.

    Args:
        points: Released inputs, shape (n, d). coefficients: alpha, shape (n, C).
    """

    domain: Domain
    neurons: Neurons
    points: NDArray[np.float64]
    coefficients: NDArray[np.float64]

    def outputs(self, table: Table) -> NDArray[np.float64]:
        """Return one output a class, or one, in units of the targets; shape (n, C)."""
        rows, hidden = encode_table(self.domain, table), self.neurons.hidden
        kernel = ntk_between(rows, hidden(rows), self.points, hidden(self.points))
        return np.asarray(kernel @ self.coefficients)

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of every class, shape (n, classes)."""
        return Targets(domain=self.domain).probabilities(self.outputs(table))

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, or classes. Shape (n,)."""
        return Targets(domain=self.domain).decode(self.outputs(table))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Released inputs, coefficients, and the neurons."""
        return {
            "points": self.points,
            "coefficients": self.coefficients,
            **self.neurons.arrays(),
        }


def dual_coefficients(
    moments: NDArray[np.float64],
    ridge: float,
    samples: int | None,
    targets: NDArray[np.float64],
) -> NDArray[np.float64]:
    r"""alpha = (M + r I)^{-1} Y, shape (n, C), from a positive semidefinite M.

    For r = 0 and M the mean of k > n + 1 outer products of draws from N(0, Sigma), the inverse has
    mean :math:`\frac{k}{k-n-1}\Sigma^{-1}`, so that :math:`(k-n-1)/k` times it is unbiased; for
    fewer draws the solution of least norm is taken.

    Args:
        moments: M, shape (n, n). ridge: r >= 0. samples: k, if M is such a mean.
        targets: Y, shape (n, C).
    """
    count = moments.shape[0]
    # A ridge makes the matrix definite, so that no eigenvalue has to be judged.
    if ridge > 0:
        matrix = moments + ridge * np.eye(count)
        return np.asarray(scipy.linalg.solve(matrix, targets, assume_a="sym", check_finite=False))
    values, vectors = scipy.linalg.eigh(moments, check_finite=False)
    # Eigenvalues at the level of rounding are zeros of M: their inverses would be noise only.
    nonzero = values > count * 2.0**-52 * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=nonzero)
    alpha = vectors @ (inverse[:, None] * (vectors.T @ targets))
    is_unbiased = samples is not None and samples > count + 1
    return alpha * ((samples - count - 1) / samples) if is_unbiased and samples else alpha
