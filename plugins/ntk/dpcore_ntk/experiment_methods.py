r"""Algorithm 2 as printed, for the experiment that represents Figure 1. Not private.

:math:`\tilde K=\frac1k\sum gg^T`, g ~ N(0, K), with k of equation (1), inputs with truncated
Laplace noise, and one coefficient vector for each class against the rest.
"""

import math

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import SpecError
from dpcore_ntk.calculators import input_noise_bound, samples_equation_1

Floats = NDArray[np.float64]


@attrs.frozen(kw_only=True, eq=False)
class KernelFit:
    """f(x) = K(x, X)^T alpha, a column of alpha for every class."""

    rows: Floats
    noise_distribution: Floats
    coefficients: Floats

    def features(self, x: Floats) -> Floats:
        """Shape (n, d) to (n, m)."""
        return kernel(unit(x), self.rows, self.noise_distribution)


def kernel(left: Floats, right: Floats, noise_distribution: Floats) -> Floats:
    """Return the kernel matrix (x.z)(x^T S z) of two sets of rows: shape (n, m)."""
    matrix: Floats = (left @ right.T) * (left @ noise_distribution @ right.T)
    return matrix


def unit(x: Floats) -> Floats:
    """Return the rows, each scaled to length 1."""
    rows: Floats = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rows


def digits(randomness: np.random.Generator, records: int) -> tuple[Floats, Floats]:
    """Handwritten digits of 8 by 8 pixels (scikit-learn's), in random order, and their classes."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SpecError("ntk.digits needs scikit-learn: pip install scikit-learn") from None
    x, y = load_digits(return_X_y=True)
    order = randomness.permutation(len(y))[:records]
    return np.asarray(x[order], dtype=np.float64), np.asarray(y[order], dtype=np.float64)


def fit_kernel(
    x: Floats,
    y: Floats,
    randomness: np.random.Generator,
    *,
    neurons: int,
    regularization: float,
    delta: float,
    radius: float,
    eta_min: float,
    epsilon: float | None = None,
) -> KernelFit:
    """Return the regression; where there is an epsilon, with the noise that Algorithm 2 adds.

    Args:
        radius: beta. epsilon: Of the samples and of the inputs alike.
    """
    # As the paper has it: rows of length 1, and the S that was drawn and not its mean.
    rows = unit(x)
    weights = randomness.standard_normal((neurons, x.shape[1]))
    noise_distribution = weights.T @ weights / neurons
    gram = kernel(rows, rows, noise_distribution)
    if epsilon is not None:
        count = samples_equation_1(epsilon, delta, records=len(y), eta_min=eta_min, radius=radius)
        gram = sampled(gram, max(1, math.floor(count)), randomness)
        # As printed: alpha is fitted on the exact inputs' moments, and used at the noisy inputs.
        rows = rows + truncated(epsilon, delta, radius, rows.shape, randomness)
    gram[np.diag_indices(len(y))] += regularization
    classes = (y[:, None] == np.arange(int(y.max()) + 1)).astype(np.float64)
    alpha = scipy.linalg.solve(gram, classes, assume_a="pos")
    return KernelFit(rows=rows, noise_distribution=noise_distribution, coefficients=alpha)


def sampled(matrix: Floats, count: int, randomness: np.random.Generator) -> Floats:
    """Return the mean of `count` squares of N(0, K)."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    samples = root @ randomness.standard_normal((len(matrix), count))
    mean: Floats = samples @ samples.T / count
    return mean


def truncated(
    epsilon: float,
    delta: float,
    radius: float,
    shape: tuple[int, ...],
    randomness: np.random.Generator,
) -> Floats:
    """Laplace noise of scale sqrt(d) beta/epsilon, none beyond `input_noise_bound`."""
    scale = math.sqrt(shape[1]) * radius / epsilon
    # The probability that Laplace noise stays within
    # the bound: the inverse distribution is cut there.
    mass = -math.expm1(-input_noise_bound(epsilon, delta, radius, shape[1]) / scale)
    sizes = -scale * np.log1p(-mass * randomness.random(shape))
    noise: Floats = sizes * randomness.choice([-1.0, 1.0], shape)
    return noise
