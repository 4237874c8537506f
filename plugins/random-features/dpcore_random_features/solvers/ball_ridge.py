r"""Ball-constrained ridge: the minimiser of
:math:`\tfrac12\sum(\phi_i\cdot c-y_i)^2+\tfrac\Lambda2\|c\|^2` over :math:`\|c\|\le R`.

If plain ridge leaves the ball, the minimiser is c(nu), the solution of (G + Lam + nu) c = b for the
one nu > 0 at which |c(nu)| = R.

Certificate. For any c and nu >= 0 let r = sum phi_i (phi_i . c - y_i) + (Lam + nu) c. Let |c| = R,
or nu = 0 and |c| <= R; let c* be the exact minimiser. Strong convexity, then the variational
inequality at c*, then <c, c - c*> >= 0 on the sphere (or nu = 0) give

    Lam |c - c*|^2 <= <g(c) - g(c*), c - c*> <= <r - nu c, c - c*> <= |r| |c - c*|,

so that |c - c*| <= |r|/Lam. A computed c misses the sphere by some gap; moving it there changes r
by at most (n kappa^2 + Lam + nu) gap. `distance_to_minimiser` evaluates that on the records and
adds what the evaluation itself may err by.

Search. nu is bracketed by lo (solution outside) and hi (solution inside) until hi - lo is small;
then a point of the segment between the two solutions has norm R, and its residual is at most the
larger of theirs plus (hi - lo) R. No smoothness and no lucky Newton step is needed: Newton's
method only shortens the search. Cholesky leaves a residual of at most 2 s gamma_{3s+1} times the
matrix's norm times the solution's (Higham 2002, Theorem 10.4), which is what makes the public
tolerance of `error` reachable for every dataset.
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
from dpcore.rounding import gamma, up
from dpcore_models.solvers.certified import Certified
from dpcore_models.solvers.short_rows import FoldedRows, Sums
from dpcore_models.solvers.sums import depth, gram, norm, plain, pull
from dpcore_models.theorems.sum_form import (
    ball_ridge_add_remove,
    ball_ridge_replace_label,
    ball_ridge_replace_one,
)
from dpcore_random_features.solvers.ball import into_ball

_STEPS = 400


@attrs.frozen(kw_only=True)
class BallRidge(Certified):
    """The public parameters of the problem.

    Args:
        radius: R > 0.
    """

    radius: float

    def moves(self) -> ByRelation:
        """T6(a)'s movements of the exact minimiser in l2, for each relation."""
        arguments = (self.kappa, self.label_bound, self.total_regularization, self.radius)
        return ByRelation(
            add_remove=ball_ridge_add_remove(*arguments),
            replace_one=ball_ridge_replace_one(*arguments),
            replace_label=ball_ridge_replace_label(*arguments),
        )

    def norm(self, records: int) -> float:
        """R: a bound on the minimiser's norm, whatever the number of records."""
        return self.radius

    def pull(self, records: int) -> float:
        """n kappa (kappa R + M): a bound on the data's part of the gradient, inside the ball."""
        return records * self.kappa * (self.kappa * self.radius + self.label_bound)

    def error(self, records: int, width: int) -> float:
        r"""As `Certified.error`.

        With W = n kappa (kappa R + M), no residual below is more than: 4 (gamma + 2 s gamma_{3s+1})
        W from forming and solving the primal system (its solution is at most 2R long, and Lam + nu
        times it at most 2W); the same with 1 + n kappa^2/Lam as a further factor from the dual one,
        whose unknowns are carried back by the features; 2^-46 W from missing the sphere; 3 gamma W
        from evaluating. The sum is taken four times. Infinity is for: too ill-conditioned (a
        relative error of the matrix times its condition number above 1/8), or an error above one
        record's pull kappa (M + kappa R)/Lam or above R, at which no claim but the diameter would
        be worth making. (Below R, nu is found to Lam/8, so that the solutions at both ends are at
        most 2R long.)
        """
        return self._error(records, width, depth(records), min(records, (width - 1) // 2))

    def folded_error(self, records: int, width: int) -> float:
        """As `error`, where every entry of the primal system is rounded once: a depth of 1."""
        return self._error(records, width, 1, 0)

    def _error(self, records: int, width: int, sum_depth: int, dual_size: int) -> float:
        """By the depth of the sums, and the most records at which the dual system is taken."""
        kappa, lam, radius = self.kappa, self.total_regularization, self.radius
        # Outside this range products could overflow, and no bound on their rounding would hold.
        if not plain(kappa, self.label_bound, lam, radius, records):
            return math.inf
        pull_bound = self.pull(records)
        relative = gamma(sum_depth + 2) + 2 * width * gamma(3 * width + 1)
        residual = 4 * relative * pull_bound
        worst = relative * (1 + records * kappa * kappa / lam)
        # The dual system may be taken for at most so many records: its errors are added.
        if dual_size:
            dual = gamma(width + dual_size + 2) + 2 * dual_size * gamma(3 * dual_size + 1)
            condition = 1 + dual_size * kappa * kappa / lam
            residual += 4 * dual * condition * self.pull(dual_size)
            worst = max(worst, dual * condition)
        residual += (gamma(128) + 3 * gamma(width + sum_depth + 8)) * pull_bound
        tolerance = 4 * residual
        one_record = kappa * (self.label_bound + kappa * radius)
        # The three conditions of the docstring: conditioning, one record's pull, and R itself.
        if not (worst <= 0.125 and tolerance <= one_record and tolerance <= lam * radius):
            return math.inf
        return up(tolerance / lam + gamma(512) * radius, roundings=5000)

    def solve(
        self, features: NDArray[np.float64], labels: NDArray[np.float64], tolerance: float
    ) -> NDArray[np.float64]:
        """As `Certified.solve`, of true norm at most R.

        An infinite tolerance asks for the best effort, which is always some point of the ball and
        never raises.
        """
        if features.shape[0] == 0:
            return np.zeros(features.shape[1])
        distance = partial(distance_to_minimiser, self, features, labels)
        return self._solve(_System.of(self, features, labels), distance, tolerance)

    def solve_folded(self, rows: FoldedRows, tolerance: float) -> NDArray[np.float64]:
        """As `Certified.solve_folded`, from one pass, with what `solve` says of the tolerance."""
        if len(rows) == 0:
            return np.zeros(rows.units.width)
        sums = rows.sums()
        distance = partial(_distance_by_sums, self, sums)
        return self._solve(_System.of_sums(self, sums), distance, tolerance)

    def _solve(
        self,
        system: "_System",
        distance: Callable[[NDArray[np.float64], float], float],
        tolerance: float,
    ) -> NDArray[np.float64]:
        if math.isinf(tolerance):
            # Best effort: the claim is the diameter then, and any point of the ball keeps it.
            with np.errstate(all="ignore"):
                solution, _ = _search(self, system, 0.0)
                return into_ball(solution, self.radius)
        # An eighth of the residual that the tolerance
        # allows: the rest is room for all other errors.
        slack = tolerance * self.total_regularization / 8
        solution, shift = _search(self, system, slack)
        result = into_ball(solution, self.radius)
        # The certificate is about the point before
        # projection; the triangle inequality adds the rest.
        projection_gap = up(norm(result - solution), roundings=5)
        error = distance(solution, shift) + projection_gap
        if not error <= tolerance:
            raise CertificateError("ball_ridge", error, tolerance)
        return result


def _takes_dual(records: int, width: int) -> bool:
    return 2 * records < width


def distance_to_minimiser(
    problem: BallRidge,
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    shift: float,
) -> float:
    """Return the certificate: how far `coefficients` can be from the exact minimiser, rounding
    included.

    Args:
        shift: nu >= 0; whichever is given, the result is valid.
    """
    records, width = features.shape
    data = pull(features, features @ coefficients - labels)
    return _distance(problem, coefficients, shift, data, records, width + depth(records))


def _distance_by_sums(
    problem: BallRidge, sums: Sums, coefficients: NDArray[np.float64], shift: float
) -> float:
    """Return the same from exact sums, of which each became a float by one rounding."""
    data = sums.gram @ coefficients - sums.moments
    return _distance(problem, coefficients, shift, data, sums.records, sums.moments.size + 1)


def _distance(
    problem: BallRidge,
    coefficients: NDArray[np.float64],
    shift: float,
    data: NDArray[np.float64],
    records: int,
    sum_depth: int,
) -> float:
    """By the data's part of the gradient, which errs by at most gamma_{deep + 2} of
    n kappa (kappa |c| + M)."""
    kappa, lam = problem.kappa, problem.total_regularization
    length: float = up(norm(coefficients), roundings=4)
    # On the sphere, or inside it with nu = 0: else the gap to the sphere is added.
    is_inside = shift == 0 and length <= problem.radius
    gap = 0.0 if is_inside else abs(length - problem.radius) + gamma(16) * length
    residual: float = up(norm(data + (lam + shift) * coefficients), roundings=4)
    size = records * kappa * (kappa * length + problem.label_bound) + (lam + shift) * length
    residual += gamma(sum_depth + 8) * size
    residual += (records * kappa * kappa + lam + shift) * gap
    return up(residual / lam + gap, roundings=5000)


def _search(
    problem: BallRidge, system: "_System", slack: float
) -> tuple[NDArray[np.float64], float]:
    """Coefficients and nu: nu = 0 inside the ball, else a point of norm about R.

    Args:
        slack: How far nu may be off, times R.
    """
    # Plain ridge first: where it lies in the ball it is the minimiser.
    outer_end = system.solve_at(0.0)
    if outer_end is not None and outer_end.length <= problem.radius:
        return outer_end.coefficients, 0.0
    # |c(nu)| <= |b|/nu: at nu = 2 |b|/R the solution is inside, whatever the records.
    inner_end = system.solve_at(2 * system.pull_norm / problem.radius)
    if inner_end is None or not inner_end.length <= problem.radius:
        return np.zeros(system.features.shape[1]), 0.0
    low = 0.0
    goal = max(slack / problem.radius, 2.0**-50 * inner_end.shift)
    # Newton's guess where it lies in the bracket; every
    # fourth step bisects, so that it must shrink.
    for step in range(_STEPS):
        width = inner_end.shift - low
        middle = low + width / 2
        if width <= goal or not low < middle < inner_end.shift:
            break
        guess = math.nan if outer_end is None else outer_end.newton(problem.radius) + goal / 2
        candidate = min(guess, inner_end.shift - 0.75 * goal)  # next to the end it would meet
        if step % 4 == 3 or not low < candidate < inner_end.shift:
            candidate = middle
        solution = system.solve_at(candidate)
        if solution is not None and solution.length <= problem.radius:
            inner_end = solution
        else:
            low, outer_end = candidate, solution
    # Cholesky broke down at the lower end: only the inner solution is there to return.
    if outer_end is None:
        return inner_end.coefficients, inner_end.shift
    return _meet_sphere(inner_end, outer_end, problem.radius), low if low > 0 else inner_end.shift


@attrs.frozen(eq=False)
class _Solution:
    """c(nu), its norm, and minus half the derivative of its squared norm in nu."""

    shift: float
    coefficients: NDArray[np.float64]
    length: float
    slope: float

    def newton(self, radius: float) -> float:
        """Newton's next nu for 1/|c(nu)| = 1/R (Moré & Sorensen 1983)."""
        step = self.length * self.length / self.slope * (self.length / radius - 1)
        return self.shift + step if math.isfinite(step) else math.nan


@attrs.frozen(eq=False)
class _System:
    """(A + Lam + nu) z = h with c = z, or c = features^T z in the dual form."""

    features: NDArray[np.float64]
    matrix: NDArray[np.float64]
    right: NDArray[np.float64]
    regularization: float
    dual: bool
    pull_norm: float

    @classmethod
    def of(
        cls, problem: BallRidge, features: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> "_System":
        """Primal unless there are far fewer records than features."""
        right = pull(features, labels)
        dual = _takes_dual(*features.shape)
        return cls(
            features=features,
            matrix=features @ features.T if dual else gram(features),
            right=labels if dual else right,
            regularization=problem.total_regularization,
            dual=dual,
            pull_norm=norm(right),
        )

    @classmethod
    def of_sums(cls, problem: BallRidge, sums: Sums) -> "_System":
        """Return the primal system, from exact sums only: no row is read again."""
        return cls(
            features=np.empty((0, sums.moments.size)),
            matrix=sums.gram,
            right=sums.moments,
            regularization=problem.total_regularization,
            dual=False,
            pull_norm=norm(sums.moments),
        )

    def solve_at(self, shift: float) -> _Solution | None:
        """Return the solution at nu, or None where Cholesky breaks down."""
        matrix = self.matrix.copy(order="F")
        matrix.flat[:: matrix.shape[0] + 1] += self.regularization + shift
        try:
            factor = scipy.linalg.cho_factor(
                matrix, lower=True, overwrite_a=True, check_finite=False
            )
        except scipy.linalg.LinAlgError:
            return None
        unknowns = scipy.linalg.cho_solve(factor, self.right, check_finite=False)
        coefficients = self._carry(unknowns)
        length = norm(coefficients)
        if not math.isfinite(length):
            return None
        # Minus half the derivative of |c(nu)|^2: one more solution with the same factor.
        derivative = self._carry(scipy.linalg.cho_solve(factor, unknowns, check_finite=False))
        slope = max(float(derivative @ coefficients), 2.0**-1000)
        return _Solution(shift, coefficients, length, slope)

    def _carry(self, unknowns: NDArray[np.float64]) -> NDArray[np.float64]:
        coefficients: NDArray[np.float64] = self.features.T @ unknowns if self.dual else unknowns
        return coefficients


def _meet_sphere(inner_end: _Solution, outer_end: _Solution, radius: float) -> NDArray[np.float64]:
    """Return the point of norm R on the segment between two solutions."""
    direction = outer_end.coefficients - inner_end.coefficients
    square, product = float(direction @ direction), float(inner_end.coefficients @ direction)
    deficit = (radius - inner_end.length) * (radius + inner_end.length)
    root = math.sqrt(max(product * product + square * deficit, 0.0))
    # The root of a quadratic, written without a difference of numbers of about the same size.
    fraction = (
        deficit / (product + root) if product > 0 else (root - product) / max(square, 2.0**-1000)
    )
    fraction = min(max(fraction, 0.0), 1.0) if math.isfinite(fraction) else 0.0
    point = inner_end.coefficients + fraction * direction
    length = norm(point)
    # what rounding left: far too little to change the residual by more than the certificate sees
    return point * (radius / length) if abs(length - radius) <= 2.0**-40 * radius else point
