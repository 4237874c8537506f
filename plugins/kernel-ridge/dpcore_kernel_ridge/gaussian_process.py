r"""A Gaussian process on top of a private function: one price for all questions (T11)."""

import math
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import Needs, Query, Sensitivity
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.functions import Expansion, FunctionQuery, Oracle
from dpcore.functions.interactive import MOST_POINTS, function_query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore_kernel_ridge.one_noise import OneNoise

NUGGET = 2.0**-14
"""tau over kappa^2: the variance of every answer's own noise, relative to the process's."""

_JITTER = 2.0**-42  # over kappa^2: variance of a kept point's own part of the path
_SLACK = 2.0**-6  # of the nugget, that the residual variances of points not kept may add up to
_DROPPED = NUGGET * _SLACK / MOST_POINTS  # over kappa^2: residual variance of a point not kept


class _Path:
    """A path of the process, drawn where it is asked for: values at kept points determine it.

    The points kept form the rows of a Cholesky factor L of K + jitter, stored by columns of its
    transpose, packed: n (n + 1)/2 numbers for n points.
    """

    def __init__(self, query: FunctionQuery) -> None:
        self._query = query
        self._points = np.empty((16, query.width))
        self._packed = np.empty(16 * 17 // 2)
        self._draws = np.empty(16)
        self.kept = 0

    def value(self, point: NDArray[np.float64], xi: float) -> float:
        """Return G(x) given every earlier value; `xi` is a fresh standard normal draw."""
        query, n = self._query, self.kept
        # row = L^-1 k(x), for the points that already determine the path
        row = np.empty(0)
        if n:
            row = query.kernel(point[None, :], self._points[:n])[0]
            row = scipy.linalg.blas.dtpsv(n, self._packed, row, lower=0, trans=1, overwrite_x=1)
        prior = float(query.kernel.diagonal(point[None, :])[0])
        predicted = float(row @ self._draws[:n])
        residual = max(0.0, prior - float(row @ row))
        # the kept points nearly determine this value, and the answer's own nugget covers the
        # difference
        if residual <= _DROPPED * query.kappa**2:
            return predicted
        pivot = math.sqrt(residual + _JITTER * query.kappa**2)
        self._keep(point, row, pivot, xi)
        return predicted + pivot * xi

    def _keep(
        self, point: NDArray[np.float64], row: NDArray[np.float64], pivot: float, xi: float
    ) -> None:
        n = self.kept
        # room grows in proportion, so that all copies together stay linear in the result
        if n == self._points.shape[0]:
            room = n + n // 4 + 16
            self._points = _grown(self._points, room)
            self._draws = _grown(self._draws, room)
            self._packed = _grown(self._packed, room * (room + 1) // 2)
        start = n * (n + 1) // 2
        self._packed[start : start + n] = row
        self._packed[start + n] = pivot
        self._points[n], self._draws[n] = point, xi
        self.kept = n + 1


def _grown(array: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return a copy with room for `size` rows."""
    larger = np.empty((size, *array.shape[1:]))
    larger[: array.shape[0]] = array
    return larger


class _ProcessOracle(Oracle):
    """Return sigma above, rounded up: the noise has covariance sigma^2 (K + tau)."""

    def __init__(
        self, query: FunctionQuery, function: Expansion, noise_std: float, noise: Stream
    ) -> None:
        super().__init__(query, function, MOST_POINTS)
        self._noise_std, self._noise, self._path = noise_std, noise, _Path(query)

    @property
    def kept(self) -> int:
        """Points in the path's Cholesky factor; their factor takes 4 kept^2 bytes."""
        return self._path.kept

    def _answer(self, fresh: NDArray[np.float64]) -> NDArray[np.float64]:
        # two draws a point, whether it is kept or not: one for the path, one for its nugget
        draws = self._noise.normal((fresh.shape[0], 2))
        nugget_std = math.sqrt(NUGGET) * self._query.kappa
        path = [self._path.value(x, float(xi)) for x, xi in zip(fresh, draws[:, 0], strict=True)]
        return self._function(fresh) + self._noise_std * (np.array(path) + nugget_std * draws[:, 1])


@attrs.frozen(kw_only=True)
class GaussianProcess(OneNoise):
    r"""Answer with :math:`f+\sigma(G+\sqrt\tau\,\eta)`, G a Gaussian process with f's own kernel.

    Any number of adaptive questions (2^20 different ones, at which the oracle stops) cost one
    Gaussian event of :math:`\mu=1/\text{noise\_multiplier}`, with

    .. math:: \sigma=\text{noise\_multiplier}\,
              \bigl(\Delta_K+2e\sqrt{n/\tau}\bigr),\quad
              \beta=2^{-6},\ \tau=2^{-14}\kappa^2,\ n=2^{20},

    e the error of computing f(x). The path is drawn where it is asked for. A point whose residual
    variance given the points kept so far is r > tau beta/n joins them; any other is answered from
    them and its own nugget eta. Proof: let d = f - f', and L the factor that the paths of all
    points have. :math:`K-LL^T` is -jitter on the kept points and, on the others, what is left of K
    given them: positive semidefinite with n diagonal entries of at most tau beta/n, so at most its
    trace. Hence :math:`K\le LL^T+\tau\beta I\le LL^T+\tau I`, the covariance of the answers over
    sigma^2, and :math:`d^T(LL^T+\tau I)^{-1}d\le d^TK^+d\le\|d\|_K^2`. Errors of evaluation shift
    each answer by at most 2e, and the answers' noise is at least sigma^2 tau in every direction.
    So the sum of squared shifts over variances, each given the answers before, is at most mu^2
    whatever is asked, and adaptively chosen Gaussians with such a bound are mu-GDP. Answers are as
    computed in real arithmetic; the rest of tau, (1 - beta) tau, is far above their rounding.

    Args:
        noise_multiplier: sigma over the bracket above; calibrated if left out.

    Source: Hall, Rinaldo & Wasserman (2013), JMLR 14, Corollary 9; Smith & Thakurta (2022),
    arXiv:2206.04572, for adaptive choice; T11 in docs/theorems-noise.md.
    """

    needs: ClassVar[Needs] = attrs.evolve(OneNoise.needs, persons=True)
    source: ClassVar[str] = "T11 (function release by a Gaussian process)"

    def noise_std(self, query: FunctionQuery, sensitivity: Sensitivity) -> float:
        """sigma above, rounded up: the answers' noise has covariance sigma^2 (K + tau)."""
        nugget = math.sqrt(NUGGET) * query.kappa
        # each of up to 2^20 answers may be off by 2e, against noise of at least the nugget
        errors = 2 * query.evaluation_error * math.sqrt(MOST_POINTS) / nugget
        cutoff = sensitivity.unit + errors
        return up(self.noise_multiplier * cutoff, roundings=20)

    def covariance(
        self, points: NDArray[np.float64], query: FunctionQuery, sensitivity: Sensitivity
    ) -> NDArray[np.float64]:
        """Of the answers' noise at different points: noise_std^2 (K + tau), shapes (n, p), (n, n).

        Up to 2^-42 kappa^2 a point, the jitter of those that are kept.
        """
        nugget = NUGGET * query.kappa**2 * np.eye(points.shape[0])
        return self.noise_std(query, sensitivity) ** 2 * (query.kernel(points, points) + nugget)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> GaussianEvent:
        """Return one Gaussian event for all questions: mu = 1/noise_multiplier, rounded up."""
        function_query(query, self)
        mu = up(1.0, roundings=20) / self.noise_multiplier
        return GaussianEvent(mu=mu, adjacency=sensitivity.adjacency)

    def open(
        self, value: Expansion, query: FunctionQuery, sensitivity: Sensitivity, noise: Stream
    ) -> Oracle:
        """Return an oracle with one path for life: opening another is another release."""
        return _ProcessOracle(query, value, self.noise_std(query, sensitivity), noise)
