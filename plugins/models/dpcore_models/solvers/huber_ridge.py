r"""Huber ridge: the minimiser of :math:`F(c)=\sum h_B(\phi_i\cdot c-y_i)+\tfrac\Lambda2\|c\|^2`,
where h_B' is the residual clipped to [-B, B].

Certificate. F is Lam-strongly convex, so that |c - c*| <= |grad F(c)|/Lam, for every c.
`distance_to_minimiser` evaluates the gradient on the records and adds what that may err by.

Search. Newton's method with exact line search on a convex piecewise quadratic, which finds the
minimiser in finitely many steps in exact arithmetic (Madsen & Nielsen 1990, BIT 30:682-699). Should
rounding keep it from the tolerance, gradient steps of length 1/L, L = n kappa^2 + Lam, take over.
With a computed gradient that errs by at most E, each of them changes the true F by at most
(E^2 - |g|^2)/(2L) (the descent lemma), so that F falls by a fixed amount while |g| >= 2E: after
finitely many steps |g| < 2E. The public tolerance of `error` is at least 4E with E at
its largest over every dataset and every point the steps can visit. So it is always reached.
"""

import math
from collections.abc import Callable
from functools import partial

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import CertificateError
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.rounding import UNIT, gamma, up
from dpcore_models.solvers.certified import Certified
from dpcore_models.solvers.huber_folds import FoldedHuber
from dpcore_models.solvers.short_rows import FoldedRows
from dpcore_models.solvers.sums import depth, gram, norm, plain, pull
from dpcore_models.theorems.sum_form import huber_ridge, huber_ridge_norm

_NEWTON_STEPS = 200
_HALVINGS = 60
_STEEPEST = 1e8  # n kappa^2 over Lam


@attrs.frozen(kw_only=True)
class HuberRidge(Certified):
    """The public parameters of the problem.

    Args:
        clip: B > 0.
    """

    clip: float

    def moves(self) -> ByRelation:
        """Return T6(b)'s movements of the exact minimiser in l2, for each relation."""
        return huber_ridge(self.kappa, self.label_bound, self.clip, self.total_regularization)

    def norm(self, records: int) -> float:
        """Bound the minimiser's norm for at most `records` records."""
        return huber_ridge_norm(
            self.kappa, self.label_bound, self.clip, self.total_regularization, records
        )

    def noise(self, records: int, width: int, length: float) -> float:
        r"""Bound the error of a gradient, or a gradient step, at a point of at most this norm.

        A residual errs by gamma_{d+1} (kappa |c| + M), and clipping does not stretch that; the sum
        of n pulls of at most kappa B errs by gamma_depth of their sum; a step of 1/L rounds its
        point, which is worth 4 u L |c| in the gradient.
        """
        kappa, lam = self.kappa, self.total_regularization
        residuals = gamma(width + 2) * records * kappa * (kappa * length + self.label_bound)
        pull_error = gamma(depth(records) + 2) * records * kappa * self.clip
        step = 4 * UNIT * (records * kappa * kappa + lam) * length
        return up(residuals + pull_error + gamma(3) * lam * length + step, roundings=5000)

    def error(self, records: int, width: int) -> float:
        r"""Return eight times the noise, over Lam.

        The gradient steps start at a point within X = `norm` of the minimiser, itself at most X
        long, and, being non-expansive up to noise, stay within max(X, noise/Lam) of it. Infinity
        represents an error not below one record's pull kappa B/Lam, and for steeper
        problems than n kappa^2/Lam = 1e8.
        """
        return self._error(records, partial(self.noise, records, width))

    def _error(self, records: int, noise: Callable[[float], float]) -> float:
        lam, one_record = self.total_regularization, self.kappa * self.clip
        # Gradient steps take about n kappa^2/Lam passes, where rounding stops Newton's method.
        numbers = (self.kappa, self.label_bound, lam, self.clip, records)
        if not plain(*numbers) or records * self.kappa**2 > _STEEPEST * lam:
            return math.inf
        # The tolerance must be reachable from any point that the search may visit, for any dataset.
        longest = 3 * self.norm(records) + one_record / lam  # of the search, where noise matters
        tolerance = 8 * noise(longest)
        return up(tolerance / lam, roundings=5000) if tolerance <= one_record else math.inf

    def folded_error(self, records: int, width: int) -> float:
        """Return the same as `error`, with the noise of sums in integers."""
        return self._error(records, partial(self._folded_problem.noise, records, width))

    def solve_folded(self, rows: FoldedRows, tolerance: float) -> NDArray[np.float64]:
        """Solve as `Certified.solve_folded`: by a few passes over the records for each step."""
        return self._folded_problem.minimise(rows, tolerance, self.norm(len(rows)))

    @property
    def _folded_problem(self) -> FoldedHuber:
        return FoldedHuber(
            kappa=self.kappa,
            label_bound=self.label_bound,
            total_regularization=self.total_regularization,
            clip=self.clip,
        )

    def solve(
        self, features: NDArray[np.float64], labels: NDArray[np.float64], tolerance: float
    ) -> NDArray[np.float64]:
        """Minimise by Newton's method, then gradient steps; below `error` it may not end.

        Raises:
            CertificateError: something is not finite, which no dataset of a domain makes it.
        """
        # Zero is within the norm bound of every minimiser, for every dataset.
        point = _Point.evaluate(self, features, labels, np.zeros(features.shape[1]))
        nearest = math.inf
        for _ in range(_NEWTON_STEPS):
            nearest = min(nearest, point.distance)
            if nearest <= tolerance:
                return point.coefficients
            point = point.newton(nearest)
        if not point.distance <= self.norm(features.shape[0]):
            point = point.evaluate_at(np.zeros(features.shape[1]))
        # Negated, so that a distance that is no number goes on to the check below and raises there.
        while not point.distance <= tolerance:
            if not math.isfinite(point.distance):
                raise CertificateError("huber_ridge", point.distance, tolerance)
            point = point.evaluate_at(point.coefficients - point.gradient / point.curvature)
        return point.coefficients


def distance_to_minimiser(
    problem: HuberRidge,
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> float:
    """Return the certificate: a bound on the distance to the minimiser, with rounding."""
    return _Point.evaluate(problem, features, labels, coefficients).distance


@attrs.frozen(eq=False)
class _Point:
    """A point of the search with its computed residuals and gradient, and the certificate."""

    problem: HuberRidge
    features: NDArray[np.float64]
    labels: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    residuals: NDArray[np.float64]
    gradient: NDArray[np.float64]
    distance: float

    @classmethod
    def evaluate(
        cls,
        problem: HuberRidge,
        features: NDArray[np.float64],
        labels: NDArray[np.float64],
        coefficients: NDArray[np.float64],
    ) -> "_Point":
        """Evaluate residuals, gradient and certificate at some coefficients."""
        lam, (records, width) = problem.total_regularization, features.shape
        residuals = features @ coefficients - labels
        # The computed gradient's norm, plus all that it may err by: an upper bound on the true one.
        clipped = np.clip(residuals, -problem.clip, problem.clip)
        gradient = pull(features, clipped) + lam * coefficients
        length = up(norm(coefficients), roundings=4)
        steep = up(norm(gradient), roundings=4) + problem.noise(records, width, length)
        return cls(
            problem=problem,
            features=features,
            labels=labels,
            coefficients=coefficients,
            residuals=residuals,
            gradient=gradient,
            distance=up(steep / lam, roundings=5000),
        )

    def evaluate_at(self, coefficients: NDArray[np.float64]) -> "_Point":
        """Return the same problem at another point."""
        return _Point.evaluate(self.problem, self.features, self.labels, coefficients)

    @property
    def curvature(self) -> float:
        """L: an upper bound on the Hessian."""
        kappa = self.problem.kappa
        steepest = len(self.labels) * kappa * kappa + self.problem.total_regularization
        return up(steepest, roundings=5000)

    def newton(self, nearest: float) -> "_Point":
        """Take a Newton step: in full if its certificate is smaller, else by line search."""
        direction = self._direction()
        full = self.evaluate_at(self.coefficients + direction)
        # Than the latest is not enough: steps that raise the objective could cycle.
        if full.distance <= 0.9 * nearest:
            return full
        return self.evaluate_at(self.coefficients + self._stride(direction) * direction)

    def _direction(self) -> NDArray[np.float64]:
        """Return -gradient / (active Gram + Lam), or -gradient / L if Cholesky breaks down."""
        lam = self.problem.total_regularization
        # The Hessian of the quadratic piece that the point lies on.
        active = self.features[np.abs(self.residuals) < self.problem.clip]
        count, width = active.shape
        try:
            if 2 * count < width:  # the same by Woodbury's identity, in the active records' space
                kernel = active @ active.T
                kernel.flat[:: count + 1] += lam
                inner = _solve(kernel, active @ self.gradient)
                return (active.T @ inner - self.gradient) / lam
            matrix = gram(active)
            matrix.flat[:: width + 1] += lam
            return -_solve(matrix, self.gradient)
        except scipy.linalg.LinAlgError:
            return -self.gradient / self.curvature

    def _stride(self, direction: NDArray[np.float64]) -> float:
        """Minimise the objective along `direction`: find the root of its increasing derivative."""
        lam, clip = self.problem.total_regularization, self.problem.clip
        steps = self.features @ direction
        inner_product, square = float(self.coefficients @ direction), float(direction @ direction)

        def derivative(stride: float) -> float:
            slope = np.clip(self.residuals + stride * steps, -clip, clip) @ steps
            return float(slope) + lam * (inner_product + stride * square)

        # The derivative increases along the line: double until it is positive, then bisect.
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            if derivative(high) >= 0:
                break
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if derivative(middle) >= 0 else (middle, high)
        return high


def _solve(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    if right.size == 0:
        return right
    factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))
