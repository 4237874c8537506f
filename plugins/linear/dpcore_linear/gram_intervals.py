r"""Confidence intervals of ridge from released sums: noise on the matrix and the moments, to first
order.

With :math:`\tilde G=G+Z` (a symmetric Z of standard deviation s on the diagonal and
:math:`s/\sqrt2` next to it), :math:`\tilde b=b+N(0,s_b^2I)`, H the matrix that was solved and
:math:`\theta` what was published, :math:`\theta-\theta^\circ\approx H^{-1}(\beta-Z\theta)`, so that

.. math:: \mathrm{Cov}=H^{-1}\big(s_b^2I+\tfrac{s^2}2(\|\theta\|^2I+\theta\theta^T)\big)H^{-1}.

:math:`\theta^\circ` is the ridge of the same records with the same Lam, without noise. Terms of
second order are small where :math:`s\sqrt{2d}` (about the norm of Z) is at most half the least
eigenvalue of H; beyond that there are no intervals.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.models.error_bars import NoIntervals, NoiseIntervals
from dpcore_linear.exact_sums import GramUnits
from dpcore_linear.linearised_noise import LinearisedNoise


def gram_intervals(
    units: GramUnits,
    noise_distribution: NoiseDistribution | None,
    eigen: tuple[NDArray[np.float64], NDArray[np.float64]],
    theta: NDArray[np.float64],
) -> NoiseIntervals:
    """Return the intervals of the published coefficients and predictions.

    Args:
        noise_distribution: The distribution of the noise on each released number.
        eigen: Eigenvalues and eigenvectors of H.
    """
    if not isinstance(noise_distribution, NormalDistribution):
        return NoIntervals(reason="they are stated for normal noise alone (mechanism gaussian)")
    on_matrix, on_moments = units.a * noise_distribution.std, units.w * noise_distribution.std
    values, vectors = eigen
    # First-order intervals leave out what is quadratic in
    # the noise: they would be too narrow beyond this.
    if on_matrix * math.sqrt(2 * units.width) > float(values.min()) / 2:
        return NoIntervals(
            reason="the noise is too large next to the matrix to state them (more records, a "
            "larger epsilon or a larger total_regularization give some)"
        )
    length = float(np.linalg.norm(theta))
    # The covariance between H^{-1} and H^{-1} has two eigenvalues: one along theta, one across it.
    across_std = math.hypot(on_moments, on_matrix * length / math.sqrt(2))
    along_std = math.hypot(across_std, on_matrix * length / math.sqrt(2))
    inverse = (vectors / values) @ vectors.T
    root = across_std * inverse
    if length:
        unit = theta / length
        root += (along_std - across_std) * np.outer(inverse @ unit, unit)
    return LinearisedNoise(root=root, longest=units.kappa)
