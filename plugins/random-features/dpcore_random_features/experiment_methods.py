r"""What the papers' experiments run, as their published code does. Nothing here is private.

Features :math:`\sqrt{2/N}\cos(w^Tx+b)`, :math:`w\sim N(0,s^2I)`, b uniform on a turn. Their rows
have norm near 1, and the sensitivities are those of features of modulus 1: see `published_code`.

Source: github.com/liaochunyang/DPRFM at 7470664.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_random_features.solvers.kaczmarz import kaczmarz

Floats = NDArray[np.float64]
Solver = Literal["pinv", "kaczmarz", "sgd", "zero"]

_CUT = 1e-12  # of the Gram matrix' largest eigenvalue: below it, rows are copies of one another


@attrs.frozen(kw_only=True, eq=False)
class CosineFit:
    """Coefficients of random cosines, and what a formula of a paper may use of the fit.

    Args:
        solve: From the features of the records to the coefficients, shapes (m, N) and (N,); it is
            called when they are asked for, since a gap in closed form needs none.
    """

    x: Floats
    frequencies: Floats
    phases: Floats
    solve: Callable[[Floats], Floats]
    records: int
    rate: float | None

    @cached_property
    def coefficients(self) -> Floats:
        """Of the features, shape (N,)."""
        return self.solve(self.features(self.x))

    def features(self, x: Floats) -> Floats:
        """Shape (n, d) to (n, N)."""
        return cosines(x, self.frequencies, self.phases)


def cosines(x: Floats, frequencies: Floats, phases: Floats) -> Floats:
    """Return the features, shape (n, N), as they come."""
    turns = x @ frequencies
    turns += phases
    np.cos(turns, out=turns)
    turns *= math.sqrt(2 / phases.size)
    return turns


def fit_cosines(
    x: Floats,
    y: Floats,
    randomness: np.random.Generator,
    *,
    features: int,
    frequency_sd: float,
    solver: Solver,
    rate: float | None = None,
) -> CosineFit:
    """Random cosines, fitted without noise.

    Args:
        features: N. frequency_sd: s; the published code takes twice what it calls gamma.
        solver: `pinv`, the shortest least-squares solution; `kaczmarz`, one step for every record,
            of records drawn uniformly, from 0; `sgd`, as many steps of least squares; or `zero`,
            which looks at no record.
        rate: Of `sgd`.
    """
    # Frequencies, phases and order come from one generator in this order, so that runs repeat.
    frequencies = frequency_sd * randomness.standard_normal((x.shape[1], features))
    phases = 2 * math.pi * randomness.random(features)
    order = randomness.integers(len(y), size=len(y))

    def solve(matrix: Floats) -> Floats:
        if solver == "pinv":
            return shortest(matrix, y)
        if solver == "kaczmarz":
            return kaczmarz(matrix, y, order)
        if solver == "zero":
            return np.zeros(features)
        assert rate is not None
        return descent(matrix, y, order, rate)

    return CosineFit(
        x=x, frequencies=frequencies, phases=phases, solve=solve, records=len(y), rate=rate
    )


def shortest(matrix: Floats, y: Floats) -> Floats:
    r"""Return the shortest least-squares solution by way of the Gram matrix: :math:`A^T(AA^T)^+y`.

    It is what `numpy.linalg.pinv` gives where eigenvalues are either above the cut or those of
    repeated rows.
    """
    # The smaller Gram matrix: its eigenvalues are those of the other one, zeros apart.
    if matrix.shape[0] > matrix.shape[1]:
        values, vectors = np.linalg.eigh(matrix.T @ matrix)
        nonzero = values > _CUT * values[-1]
        tall: Floats = vectors[:, nonzero] @ (
            (vectors[:, nonzero].T @ (matrix.T @ y)) / values[nonzero]
        )
        return tall
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    nonzero = values > _CUT * values[-1]
    wide: Floats = matrix.T @ (
        vectors[:, nonzero] @ ((vectors[:, nonzero].T @ y) / values[nonzero])
    )
    return wide


def descent(matrix: Floats, y: Floats, order: NDArray[np.int64], rate: float) -> Floats:
    """Steps of least squares from 0, one record each."""
    weights = np.zeros(matrix.shape[1])
    for row in order:
        weights -= rate * (matrix[row] @ weights - y[row]) * matrix[row]
    return weights


def f1(randomness: np.random.Generator, records: int, *, columns: int) -> tuple[Floats, Floats]:
    r"""Standard normal rows, labels :math:`\sqrt{1+\|x\|_2}`."""
    x = randomness.standard_normal((records, columns))
    return x, np.sqrt(1 + np.linalg.norm(x, axis=1))


def f2(randomness: np.random.Generator, records: int, *, columns: int) -> tuple[Floats, Floats]:
    r"""Standard normal rows, labels :math:`\sum_i\exp(-|x_i|)`."""
    x = randomness.standard_normal((records, columns))
    return x, np.exp(-np.abs(x)).sum(axis=1)
