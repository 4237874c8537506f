r"""Huber ridge in the space of a kernel: the minimiser, with an error known before any record is.

:math:`F(f)=\sum h_B(f(x_i)-y_i)+\tfrac\Lambda2\|f\|_K^2`, where h_B' is the residual clipped to
[-B, B], has the gradient :math:`\sum\mathrm{clip}(f(x_i)-y_i)K(x_i,\cdot)+\Lambda f`. At the
minimiser it is 0, so that :math:`f=\sum a_iK(x_i,\cdot)` with :math:`|a_i|\le B/\Lambda`.

Certificate. For :math:`f=\sum a_iK(x_i,\cdot)` the gradient is :math:`\sum h_iK(x_i,\cdot)` with
:math:`h=\mathrm{clip}(Ka-y)+\Lambda a`; F is Lam-strongly convex; so f lies within
:math:`\kappa\|h\|_1/\Lambda` of the minimiser, whatever a.

Search. Which residuals are clipped is guessed from the last point, the others are solved for.
Should that not end, projected gradient steps take over: the minimiser's a is also the one of
:math:`\tfrac12a^T(K+\Lambda)a-y^Ta` over the box :math:`|a_i|\le B/\Lambda`, on which a step of
length 1/L, L = m kappa^2 + Lam, contracts by 1 - Lam/L. With computed gradients that err by at most
delta in each entry, a ends within :math:`2\sqrt m\delta/\Lambda` of it. There
:math:`\|h\|_1\le\sqrt m L\cdot2\sqrt m\delta/\Lambda`, and what is computed of it errs by m delta:
`huber_error` allows twice their sum, which is thus reached on every dataset.
"""

import math

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import Kernel
from dpcore.errors import CertificateError
from dpcore.learning.solvers.sums import plain
from dpcore.rounding import UNIT, gamma, up

_GUESSES = 60


@attrs.frozen(kw_only=True)
class HuberProblem:
    """What is public of one minimisation.

    Args:
        kappa: sqrt(K(x, x)) is at most this. kernel_error: Of one computed K(x, y).
        label_bound: M. total_regularization: Lam > 0. clip: B > 0.
    """

    kappa: float
    kernel_error: float
    label_bound: float
    total_regularization: float
    clip: float

    @property
    def box(self) -> float:
        """B/Lam: no coefficient is larger."""
        return self.clip / self.total_regularization

    def curvature(self, records: int) -> float:
        """L: above the largest eigenvalue of K + Lam."""
        return up(records * self.kappa * self.kappa + self.total_regularization, roundings=5000)

    def noise(self, records: int) -> float:
        r"""delta: what an entry of Ka - y, of h or of a gradient step errs by, a in the box.

        With :math:`\|a\|_1\le mB/\Lambda`: a sum of m products and its kernel entries, a handful of
        roundings of numbers up to kappa^2 |a|_1 + M + B, and those of a step times L.
        """
        mass = records * self.box
        square = self.kappa * self.kappa
        entry = gamma(records + 6) * (square + self.kernel_error) + self.kernel_error
        size = square * mass + self.label_bound + self.clip
        step = 4 * UNIT * self.curvature(records) * self.box
        return up(entry * mass + 8 * UNIT * size + step, roundings=5000)


def huber_error(problem: HuberProblem, records: int) -> float:
    r"""Distance in the kernel's norm that `solve_huber` reaches on every dataset; or infinity.

    Infinity stands for an error above one record's pull kappa B/Lam, at which no claim would be
    worth making.

    Args:
        records: m, or a public upper bound on it: the error grows in it.
    """
    kappa, lam = problem.kappa, problem.total_regularization
    if not plain(kappa, problem.label_bound, lam, problem.clip, max(records, 1)):
        return math.inf
    reached = 2 * problem.curvature(records) / lam + 1
    tolerance = up(2 * kappa * records * problem.noise(records) * reached / lam, roundings=5000)
    return tolerance if tolerance <= kappa * problem.box else math.inf


def huber_evaluation_error(problem: HuberProblem, records: int) -> float:
    r"""Distance of a computed f(x) from the exact value of the same expansion.

    A sum of m products errs by :math:`\gamma_m\sum|a_i|\kappa^2`, its kernel entries by
    :math:`e_K\sum|a_i|`, with :math:`\sum|a_i|\le mB/\Lambda`.
    """
    square = problem.kappa * problem.kappa
    entry = gamma(records + 1) * (square + problem.kernel_error) + problem.kernel_error
    return up(entry * records * problem.box, roundings=5000)


def distance_to_minimiser(
    problem: HuberProblem,
    matrix: NDArray[np.float64],
    labels: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> float:
    """The certificate: how far the minimiser can be, in the kernel's norm, rounding included."""
    records = len(labels)
    residuals = np.clip(matrix @ coefficients - labels, -problem.clip, problem.clip)
    steep = np.abs(residuals + problem.total_regularization * coefficients)
    total = math.fsum(steep.tolist()) + records * problem.noise(records)
    return up(problem.kappa * total / problem.total_regularization, roundings=5000)


def solve_huber(
    problem: HuberProblem,
    kernel: Kernel,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Coefficients of a function within `tolerance` of the minimiser, shape (m,), in the box.

    Args:
        rows: Shape (m, p). labels: Shape (m,). tolerance: At least `huber_error` at m.

    Raises:
        CertificateError: the tolerance is below that, or something is not finite.
    """
    matrix, box = kernel(rows, rows), problem.box
    found = np.zeros(len(labels))
    for _ in range(_GUESSES):
        if distance_to_minimiser(problem, matrix, labels, found) <= tolerance:
            return found
        found = np.clip(_guessed(problem, matrix, labels, found), -box, box)
    lam, steep = problem.total_regularization, problem.curvature(len(labels))
    for _ in range(_steps(problem, len(labels))):
        if distance_to_minimiser(problem, matrix, labels, found) <= tolerance:
            return found
        gradient = matrix @ found + lam * found - labels
        found = np.clip(found - gradient / steep, -box, box)
    distance = distance_to_minimiser(problem, matrix, labels, found)
    raise CertificateError("kernel_ridge.huber_ridge", distance, tolerance)


def _guessed(
    problem: HuberProblem,
    matrix: NDArray[np.float64],
    labels: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The exact solution if the records clipped now are those clipped at the minimiser."""
    residuals = matrix @ coefficients - labels
    found = -np.clip(residuals, -problem.clip, problem.clip) / problem.total_regularization
    free = np.flatnonzero(np.abs(residuals) < problem.clip)
    if free.size == 0:
        return found
    held = np.where(np.abs(residuals) < problem.clip, 0.0, found)
    system = matrix[np.ix_(free, free)]
    system.flat[:: free.size + 1] += problem.total_regularization
    right = labels[free] - matrix[free] @ held
    try:
        factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return found
    found[free] = scipy.linalg.cho_solve(factor, right, check_finite=False)
    return found


def _steps(problem: HuberProblem, records: int) -> int:
    """Projected gradient steps after which a is as near as rounding lets it be, and some."""
    ratio = problem.curvature(records) / problem.total_regularization
    shrink = math.log(2 * problem.clip / max(problem.noise(records), 1e-300))
    return 10 + math.ceil(ratio * max(shrink, 1.0))
