r"""Distinguishers: scores by which samples of two neighbours are distinguished.

Candidates are every column of the features by itself (a log-likelihood ratio where the noise is
known) and two that are learned: the linear discriminant
:math:`(\Sigma_0+\Sigma_1)^{-1}(m_1-m_0)`, optimal for Gaussians of equal covariance, on the columns
and on the columns with their squares, which also sees a difference of spread. What was never noised
shows as a direction without variance, and the discriminant finds it.
"""

from collections.abc import Callable, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

Score = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_SQUARED = 24  # with at most that many columns, squares are added
_SMALLEST = 1e-15  # relative eigenvalue below which a direction counts as without variance


@attrs.frozen(eq=False)
class Distinguisher:
    """A score of feature rows, shape (n, k) to (n,), and what it is called."""

    name: str
    score: Score


def distinguishers(
    before: NDArray[np.float64], after: NDArray[np.float64], names: tuple[str, ...]
) -> Iterator[Distinguisher]:
    """Candidates, learned from these samples, shape (n, k) each."""
    # a column may be a likelihood already, with nothing left to learn
    for column, name in enumerate(names):
        yield Distinguisher(name, _column(column))
    if len(names) > 1:
        yield Distinguisher("linear discriminant", _discriminant(before, after, lambda rows: rows))
    if len(names) <= _SQUARED:
        squared = _discriminant(before, after, lambda rows: np.hstack([rows, rows * rows]))
        yield Distinguisher("quadratic discriminant", squared)


def _column(index: int) -> Score:
    return lambda rows: rows[:, index]


def _discriminant(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    expand: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Score:
    """Fisher's, in standardised columns, with eigenvalues raised to a floor."""
    centre = 0.5 * (before.mean(axis=0) + after.mean(axis=0))
    # one scale from both sides: a scale of each would hide a difference between them
    deviation = np.vstack([before - centre, after - centre]).std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)

    def prepare(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return expand((rows - centre) / scale)

    first, second = prepare(before), prepare(after)
    mean_difference = second.mean(axis=0) - first.mean(axis=0)
    within = _covariance(first) + _covariance(second)
    values, vectors = np.linalg.eigh(within)
    # a direction without variance that differs gets a huge weight: it says all
    floor = _SMALLEST * max(float(values[-1]), 1e-280)
    weights = vectors @ ((vectors.T @ mean_difference) / np.maximum(values, floor))
    return lambda rows: prepare(rows) @ weights


def _covariance(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred.T @ centred / len(rows))
