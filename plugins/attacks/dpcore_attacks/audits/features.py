r"""Features: an answer as a few numbers that distinguish two neighbours .

With v and v' the statistics of both neighbours at a query, computed at known randomness, and x the
answer, the log-likelihood ratios of the common noises are, up to a positive factor,

* Gaussian: :math:`\langle x-(v+v')/2,\,v'-v\rangle`;
* Laplace: :math:`\|x-v\|_1-\|x-v'\|_1`, and l2-gamma the same in l2;
* k Gaussian samples, given by their second moment x:
  :math:`\langle(v+\lambda I)^{-1}-(v'+\lambda I)^{-1},\,x\rangle`;

a coordinate that got no noise lies exactly at v or at v'. A matrix of samples of a singular v has
an eigenvalue 0, and one of a v with two equal rows has two equal rows, in whatever order they come:
the least :math:`x_{ii}+x_{jj}-2x_{ij}` is 0. Asks are added up with the weight that their
noise gives them. Any function of public answers is a valid feature: these are the most saying ones
where the noise is of their kind.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.errors import DpcoreError

NAMES = (
    "the likelihood of Gaussian noise",
    "the likelihood of Laplace noise",
    "the likelihood of l2-gamma noise",
    "the likelihood of Gaussian samples",
    "coordinates without noise",
    "the least eigenvalue",
    "the closest two rows",
)

_EXACT = 1e-9  # of the claim: nearer than that counts as no noise


class Comparison:
    """Features of one query's answers; it remembers what only the statistics determine."""

    def __init__(self, planned_query: PlannedQuery) -> None:
        self._ask, self._unit, self._weight = (
            planned_query,
            planned_query.sensitivity.largest,
            strength(planned_query),
        )
        self._pair: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._inverses = np.empty(0)

    def features(
        self,
        value: NDArray[np.float64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return one number each of `NAMES`, larger where `after` is likelier.

        Args:
            value, before, after: Real coordinates, flat.
        """
        from_before, from_after = value - before, value - after
        step, exact = after - before, _EXACT * self._unit
        # where the pair agrees, a coordinate without noise reveals nothing
        differs = np.abs(step) > exact
        at_after = np.count_nonzero(differs & (np.abs(from_after) <= exact))
        at_before = np.count_nonzero(differs & (np.abs(from_before) <= exact))
        scale = self._weight / self._unit
        numbers = np.array(
            [
                scale * scale * (0.5 * (from_before + from_after) @ step),
                scale * (np.abs(from_before).sum() - np.abs(from_after).sum()),
                scale * (np.linalg.norm(from_before) - np.linalg.norm(from_after)),
                *self._samples(value, before, after, float(at_after) - float(at_before)),
            ]
        )
        # low bits of floating-point noise are out of every claim's scope: they must not decide
        numbers[:3] = np.round(numbers[:3], 9)
        return numbers

    def _samples(
        self,
        value: NDArray[np.float64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        noise_free: float,
    ) -> tuple[float, float, float, float]:
        """Return the inner product above, `noise_free`, the least eigenvalue, the least squared
        distance.

        All but `noise_free` are 0 unless the statistics are symmetric matrices.
        """
        if self._pair is None or self._pair[0] is not before or self._pair[1] is not after:
            # it depends on the two statistics only, which are the same arrays in most runs
            self._pair, self._inverses = (before, after), self._inverse_difference(before, after)
        if not self._inverses.size:
            return 0.0, noise_free, 0.0, 0.0
        matrix = value.reshape(self._ask.query.shape)
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        return float(self._inverses @ value), noise_free, smallest, _closest(matrix)

    def _inverse_difference(
        self, before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the difference of the inverses, flat; empty where there is none."""
        shape = self._ask.query.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            return np.empty(0)
        pair = before.reshape(shape), after.reshape(shape)
        if any(not np.allclose(v, v.T) for v in pair):
            return np.empty(0)
        # samples are drawn with lambda added to the diagonal, if the mechanism has one
        noise = float(getattr(self._ask.mechanism, "lam0", None) or 0.0) * np.eye(shape[0])
        first, second = (np.linalg.pinv(v + noise, hermitian=True) for v in pair)
        return np.asarray((first - second).reshape(-1))


def _closest(matrix: NDArray[np.float64]) -> float:
    """Return the least squared distance of two rows of samples, from their matrix of products."""
    if len(matrix) < 2:
        return 0.0
    squares = np.diag(matrix)
    distances = squares[:, None] + squares - 2 * matrix
    return float(distances[np.triu_indices(len(matrix), 1)].min())


def strength(planned_query: PlannedQuery) -> float:
    """Return how much one query tells: its event's mu, else a pure epsilon, else sqrt(2 rho), else
    1.

    It weighs asks against each other, and no claim rests on it.
    """
    try:
        claims = planned_query.event().claims
    except DpcoreError:
        return 1.0
    of_rho = None if claims.rho is None else math.sqrt(2 * claims.rho)
    return next((x for x in (claims.mu, claims.pure, of_rho) if x is not None), 1.0)
