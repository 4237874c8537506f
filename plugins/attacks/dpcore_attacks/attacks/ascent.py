"""Local ascent: from a good configuration to a worse pair, by moving its few different rows.

Rows of a construction often lie in a plane; then only their coordinates in it are searched first
(Nelder-Mead), and all coordinates afterwards (finite-difference L-BFGS-B).
"""

from collections.abc import Callable

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore_attacks.attacks.neighbours import Configuration

Score = Callable[[Configuration], float]
"""What to raise; minus infinity where a configuration does not count."""

_STEP = 0.2
_LARGEST = 60  # coordinates that finite differences are worth


class SearchOverError(Exception):
    """Raised by a score when the search is over: time or pairs ran out."""


def climb(start: Configuration, score: Score, evaluations: int) -> None:
    """Raise `score` from `start`; anyone who scores remembers the best configuration.

    Args:
        evaluations: Roughly how often `score` may be called.
    """
    best = _Best(start, score)
    plane = _basis(start.raw)
    # first within the span of the rows: few coordinates, which Nelder-Mead can search
    if (plane.shape[0] + 1) * len(start.labels) <= _LARGEST:
        _simplex(best, plane, evaluations)
    width = start.raw.shape[1]
    # then in all coordinates, unless the span was all of them or differences cost too much
    if plane.shape[0] < width and (width + 1) * len(start.labels) <= _LARGEST:
        _gradient(best, np.eye(width), evaluations)


class _Best:
    """The score as a function to be minimised, and where it was least."""

    def __init__(self, start: Configuration, score: Score) -> None:
        self.configuration, self._score = start, score
        self.value = score(start)

    def __call__(self, configuration: Configuration) -> float:
        value = self._score(configuration)
        if value > self.value:
            self.value, self.configuration = value, configuration
        # minimisers need finite numbers: a configuration that does not count is a large loss
        return -value if np.isfinite(value) else 1e6


def _basis(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal rows that span `raw`, shape (r, width)."""
    _, sizes, rows = np.linalg.svd(raw, full_matrices=False)
    rank = max(1, int((sizes > 1e-9 * max(1.0, sizes[0])).sum()))
    # a line by itself has no angle to search: a second direction comes in
    if rank < 2 and raw.shape[1] > 1:
        rank = 2
    return np.asarray(rows[:rank])


def _pack(
    configuration: Configuration, basis: NDArray[np.float64], unit: float
) -> NDArray[np.float64]:
    return np.concatenate([(configuration.raw @ basis.T).ravel(), configuration.labels / unit])


def _unpack(
    vector: NDArray[np.float64], like: Configuration, basis: NDArray[np.float64], unit: float
) -> Configuration:
    rows = len(like.labels)
    raw = vector[: -rows or None].reshape(rows, -1) @ basis
    return attrs.evolve(like, raw=np.clip(raw, -1, 1), labels=vector[-rows:] * unit)


def _unit(configuration: Configuration) -> float:
    return float(np.abs(configuration.labels).max()) or 1.0


def _simplex(best: _Best, basis: NDArray[np.float64], evaluations: int) -> None:
    start, unit = best.configuration, _unit(best.configuration)
    middle = _pack(start, basis, unit)
    # large entries step towards 0: rows are clipped to [-1, 1], where a step outwards is idle
    steps = np.where(np.abs(middle) > 0.5, -_STEP, _STEP) * np.sign(middle + 1e-300)
    simplex = np.vstack([middle, middle + np.diag(steps)])
    scipy.optimize.minimize(  # type: ignore[call-overload]  # the stubs lack this method's options
        lambda vector: best(_unpack(vector, start, basis, unit)),
        middle,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": evaluations, "adaptive": True},
    )


def _gradient(best: _Best, basis: NDArray[np.float64], evaluations: int) -> None:
    start, unit = best.configuration, _unit(best.configuration)
    middle = _pack(start, basis, unit)
    scipy.optimize.minimize(  # type: ignore[call-overload]  # the stubs lack this method's options
        lambda vector: best(_unpack(vector, start, basis, unit)),
        middle,
        method="L-BFGS-B",
        bounds=[(-1.0, 1.0)] * len(middle),
        options={"maxfun": evaluations, "eps": 1e-6},
    )
