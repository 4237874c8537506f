r"""T5's exact supremum: how far one more record moves sum-form ridge.

.. math:: S(n,\Lambda)=M\max_{0\le g\le n\kappa^2,\ 0\le k\le\kappa}
          \frac{k}{g+\Lambda+k^2}\Bigl(1+\frac{k\sqrt{ng}}{g+\Lambda}\Bigr)

n equal points of length sqrt(g/n) and one of length k, opposite to them and of the opposite label,
attain it. It is a maximum over two numbers, found on a grid and polished: what is found is attained
up to rounding, so that it is never above the supremum. Claims rest on `ridge_add_remove`.
"""

import math

import numpy as np
import scipy

from dpcore.checks import need_positive

_POINTS = 400  # of the grid, each way


def ridge_add_remove_exact(
    kappa: float, label_bound: float, total_regularization: float, records: int
) -> float:
    """Return the maximum, not rounded up; arguments as `ridge_add_remove` takes them."""
    need_positive(
        "ridge_add_remove_exact", kappa=kappa, label_bound=label_bound, Lam=total_regularization
    )
    largest_gram = records * kappa * kappa
    # No other record: the maximum over k by itself has a closed form.
    if largest_gram == 0:
        return label_bound * _longest(kappa, total_regularization)
    # Geometric in g, whose scale is unknown; g = 0 is looked at as well.
    low = min(total_regularization, largest_gram) * 1e-4
    grid = np.concatenate([[0.0], np.geomspace(low, largest_gram, _POINTS)])
    length = np.linspace(0.0, kappa, _POINTS + 1)[1:]
    at_g, at_k = np.meshgrid(grid, length, indexing="ij")
    denominator = at_g + total_regularization
    values = at_k / (denominator + at_k**2) * (1 + at_k * np.sqrt(records * at_g) / denominator)
    place = np.unravel_index(int(np.argmax(values)), values.shape)
    start = np.array([at_g[place] / largest_gram, at_k[place] / kappa])

    def below(point: np.ndarray) -> float:
        fraction, part = np.clip(point, 0.0, 1.0)
        return -moved(
            float(fraction) * largest_gram, float(part) * kappa, total_regularization, records
        )

    bounds = [(0.0, 1.0), (0.0, 1.0)]
    # Polishing only raises what is attained; the grid's own best is kept next to it.
    optimum = scipy.optimize.minimize(
        below, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-10, "fatol": 1e-15}
    )
    return label_bound * max(float(values[place]), -float(optimum.fun))


def moved(g: float, k: float, total_regularization: float, records: int) -> float:
    """Return the movement that a pair of lengths attains, for labels of size 1."""
    denominator = g + total_regularization
    return k / (denominator + k * k) * (1 + k * math.sqrt(records * g) / denominator)


def _longest(kappa: float, total_regularization: float) -> float:
    """Return the largest value of k/(Lam + k^2)."""
    k = min(kappa, math.sqrt(total_regularization))
    return k / (total_regularization + k * k)
