r"""Algorithm 2 as printed, for the experiment that stands for Figure 1. Not private.

:math:`\tilde K=\frac1k\sum gg^T`, g ~ N(0, K), with k of equation (1), inputs with truncated
Laplace noise, and one coefficient vector for each class against the rest.
"""

from __future__ import annotations

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
    spread: Floats
    coefficients: Floats

    def features(self, x: Floats) -> Floats:
        """Shape (n, d) to (n, m)."""
        return kernel(unit(x), self.rows, self.spread)


def kernel(left: Floats, right: Floats, spread: Floats) -> Floats:
    """(x.z)(x^T S z)."""
    found: Floats = (left @ right.T) * (left @ spread @ right.T)
    return found


def unit(x: Floats) -> Floats:
    """Rows of length 1."""
    found: Floats = x / np.linalg.norm(x, axis=1, keepdims=True)
    return found


def digits(coins: np.random.Generator, records: int) -> tuple[Floats, Floats]:
    """Handwritten digits of 8 by 8 pixels (scikit-learn's), in random order, and their classes."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SpecError("ntk.digits needs scikit-learn: pip install scikit-learn") from None
    x, y = load_digits(return_X_y=True)
    order = coins.permutation(len(y))[:records]
    return np.asarray(x[order], dtype=np.float64), np.asarray(y[order], dtype=np.float64)


def fit_kernel(
    x: Floats,
    y: Floats,
    coins: np.random.Generator,
    *,
    neurons: int,
    regularization: float,
    delta: float,
    radius: float,
    eta_min: float,
    epsilon: float | None = None,
) -> KernelFit:
    """The regression; where there is an epsilon, with the noise that Algorithm 2 adds.

    Args:
        radius: beta. epsilon: Of the samples and of the inputs alike.
    """
    rows = unit(x)
    weights = coins.standard_normal((neurons, x.shape[1]))
    spread = weights.T @ weights / neurons
    own = kernel(rows, rows, spread)
    if epsilon is not None:
        count = samples_equation_1(epsilon, delta, records=len(y), eta_min=eta_min, radius=radius)
        own = sampled(own, max(1, math.floor(count)), coins)
        rows = rows + truncated(epsilon, delta, radius, rows.shape, coins)
    own[np.diag_indices(len(y))] += regularization
    classes = (y[:, None] == np.arange(int(y.max()) + 1)).astype(np.float64)
    found = scipy.linalg.solve(own, classes, assume_a="pos")
    return KernelFit(rows=rows, spread=spread, coefficients=found)


def sampled(matrix: Floats, count: int, coins: np.random.Generator) -> Floats:
    """The mean of `count` squares of N(0, K)."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = root @ coins.standard_normal((len(matrix), count))
    found: Floats = drawn @ drawn.T / count
    return found


def truncated(
    epsilon: float, delta: float, radius: float, shape: tuple[int, ...], coins: np.random.Generator
) -> Floats:
    """Laplace noise of scale sqrt(d) beta/epsilon, none beyond `input_noise_bound`."""
    scale = math.sqrt(shape[1]) * radius / epsilon
    most = -math.expm1(-input_noise_bound(epsilon, delta, radius, shape[1]) / scale)
    sizes = -scale * np.log1p(-most * coins.random(shape))
    found: Floats = sizes * coins.choice([-1.0, 1.0], shape)
    return found
