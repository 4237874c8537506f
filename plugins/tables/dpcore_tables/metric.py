r"""The metric of a descent: a noisy Gram matrix, denoised and damped. Never the answer itself.

What is known of the Gram matrix of standardised functions is its diagonal, n [0.5, v]^2. The
released one is a correction of it, whose eigenvalues below the noise's operator norm
:math:`\theta=\sqrt{2d}\,e` are noise, with e the standard deviation on the diagonal. Damped by a
part of theta the descent contracts; its errors do not move the fixed point.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import NONE
from dpcore_tables.steps.centres import Centres
from dpcore_tables.sums import gram_of

DAMPING, CLASS_DAMPING = 0.4, 0.7
"""Parts of the norm of the noise: of numbers, and of classes."""

_TINY = 1e-9


@attrs.frozen(kw_only=True, eq=False)
class Metric:
    """An estimate G of the Gram matrix with its damping, in one basis.

    Args:
        basis: Orthonormal columns, shape (d, d).
        known: Eigenvalues of G, >= 0.
        damping: What is added to them; curvature: what both are multiplied with.
        released: The noisy matrix; noise: its standard deviation on the diagonal.
    """

    basis: NDArray[np.float64]
    known: NDArray[np.float64]
    damping: NDArray[np.float64]
    curvature: float
    released: NDArray[np.float64] = attrs.field(factory=lambda: np.zeros((0, 0)))
    noise: float = 0.0

    @classmethod
    def of(
        cls,
        answer: NDArray[np.float64],
        planned: int,
        noise: float,
        dictionary: Dictionary,
        records: float,
        curvature: float,
        damping: float,
        centres: Centres | None = None,
    ) -> "Metric":
        """From the released vector, its planned width and the standard deviation of its noise; in
        the coordinates of `centres`."""
        width, ramps = dictionary.width, int(dictionary.is_ramp.sum())
        gram_matrix = gram_of(answer, planned)[:width, :width]
        widths = (width - ramps, ramps)
        facts = (noise, dictionary, records, curvature, damping, widths)
        if centres is None:
            return cls.denoised(gram_matrix, *facts)
        gram_matrix = centres.map @ gram_matrix @ centres.map.T
        return cls.denoised((gram_matrix + gram_matrix.T) / 2, *facts, centres.squares)

    @classmethod
    def denoised(
        cls,
        gram_matrix: NDArray[np.float64],
        noise: float,
        dictionary: Dictionary,
        records: float,
        curvature: float,
        damping: float,
        widths: tuple[int, int],
        squares: NDArray[np.float64] | float = 1.0,
    ) -> "Metric":
        """From a noisy matrix of some or all functions of a round.

        Args:
            gram_matrix: Of the dictionary, shape (d, d). noise: On the diagonal.
            widths: How many functions the round has that are no ramps, and how many that are:
                their noise is what is thresholded.
            squares: By what the mean squares of terms are multiplied, shape (d - 1,).
        """
        width = dictionary.width
        likely = records * dictionary.scales**2
        likely[1:] *= dictionary.squares * squares
        basis, eigenvalues, damped = np.zeros((width, width)), np.zeros(width), np.zeros(width)
        # A Gram matrix is at most twice its blocks, of ramps and of what is no ramp, so that by
        # those a descent contracts, too. Thresholds by the noise of both would leave ramps nothing.
        is_ramp = np.append(False, dictionary.is_ramp)
        blocks = (np.flatnonzero(~is_ramp), np.flatnonzero(is_ramp))
        for block, count in zip(blocks, widths, strict=True):
            matrix, diagonal = gram_matrix[np.ix_(block, block)], likely[block]
            # The diagonal is nearly known: correct it by the answer as far as its noise allows.
            trust = 1 / (1 + (noise / diagonal) ** 2)
            diagonal = np.maximum(diagonal + trust * (matrix.diagonal() - diagonal), 0.1 * diagonal)
            # Soft threshold: eigenvalues of the correction within the noise's norm become 0.
            theta = math.sqrt(2 * count) * noise
            values, vectors = np.linalg.eigh(matrix - np.diag(diagonal))
            signals = np.sign(values) * np.maximum(np.abs(values) - theta, 0.0)
            values, vectors = np.linalg.eigh(np.diag(diagonal) + (vectors * signals) @ vectors.T)
            basis[np.ix_(block, block)] = vectors
            eigenvalues[block] = np.maximum(values, 0.0)
            # Damping by a part of the noise's norm is what makes the descent contract. Far records
            # are clipped, so that ramps contract without it, and with it many do not arrive.
            damped[block] = 0.0 if is_ramp[block].any() else damping * theta
        return cls(
            basis=basis,
            known=eigenvalues,
            damping=damped,
            curvature=curvature,
            released=gram_matrix,
            noise=noise,
        )

    @property
    def damped(self) -> NDArray[np.float64]:
        """H = c (G + damping), as symmetric as floats allow; shape (d, d)."""
        return self._matrix(self._damped)

    @property
    def undamped(self) -> NDArray[np.float64]:
        """c G, shape (d, d)."""
        return self._matrix(self.curvature * self.known)

    def _matrix(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.basis * values) @ self.basis.T)

    def posterior(
        self, noise: float, deviation: float, prior: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what maps b = H w + N(0, noise + spread H) to the mean of w, shape (d, d).

        Args:
            noise: R, a variance. spread: sigma^2. prior: The precision of w, shape (d, d).
        """
        damped = self._damped
        weight = damped / (noise + deviation * damped)
        # Gaussian posterior of w, given b with variance noise + spread H.
        precision = self._matrix(weight * damped) + prior
        return np.asarray(np.linalg.solve(precision, self._matrix(weight)))

    def remainder(
        self, noise: float, deviation: float, prior: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the covariance of w that the data leave, shape (d, d); arguments of
        `posterior`.
        """
        damped = self._damped
        precision = self._matrix(damped**2 / (noise + deviation * damped)) + prior
        return np.asarray(np.linalg.inv(precision))

    @property
    def _damped(self) -> NDArray[np.float64]:
        return np.asarray(self.curvature * (self.known + self.damping))


def released_levels(
    dictionary: Dictionary, row: NDArray[np.float64], noise: float
) -> tuple[NDArray[np.float64], ...]:
    """Proportions of every declared column's categories, from a released Gram matrix whose terms
    have them all; empty for numbers.

    Args:
        row: The matrix's first, of the intercept, shape (d,). noise: On the diagonal.
    """
    # Rows are shortened: so is the intercept's own entry, and the ratio is of a mean.
    total = max(float(row[0]), noise) / INTERCEPT
    means, proportions = row[1:] / (total * dictionary.sizes), []
    deviations = noise / math.sqrt(2) / (total * dictionary.sizes)
    for column, count in enumerate(dictionary.layout.levels):
        is_own = (dictionary.terms[:, 0] == column) & (dictionary.terms[:, 2] == NONE)
        order = np.flatnonzero(is_own)[np.argsort(dictionary.terms[is_own, 1])]
        # Shrunk towards equal shares by the noise; shares spread about as much as they are large.
        likely = means[order] / (1 + count * deviations[order] ** 2)
        if count == 2:
            likely = np.concatenate([-likely, likely]) / math.sqrt(2)
        proportion = np.maximum(1 + math.sqrt(max(count, 1)) * likely, _TINY)
        proportions.append(proportion / proportion.sum() if count > 0 else np.zeros(0))
    return tuple(proportions)
