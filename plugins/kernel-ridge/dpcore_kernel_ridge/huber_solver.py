r"""Huber ridge in the space of a kernel: a public number of steps, and the error after them.

:math:`F(f)=\sum h_B(f(x_i)-y_i)+\tfrac\Lambda2\|f\|_K^2`, where h_B' is the residual clipped to
[-B, B], has the minimiser :math:`f^*=\sum a^*_iK(x_i,\cdot)`, where a* minimises
:math:`G(a)=\tfrac12a^T(K+\Lambda)a-y^Ta` over the box :math:`|a_i|\le B/\Lambda`: at both,
:math:`\mathrm{clip}(Ka-y)+\Lambda a=0`.

Steps. With L = m kappa^2 + Lam above every eigenvalue of K + Lam, r = sqrt(Lam/L) and
a_0 = a_{-1} = 0,

.. math:: b_k=a_k+\tfrac{1-r}{1+r}(a_k-a_{k-1}),\qquad
          a_{k+1}=\mathrm{clip}\big(b_k-\nabla G(b_k)/L\big).

Their number is fixed by what is public and by m. No record decides when they end.

Claim: after S steps whose gradients err by at most delta in each entry,

.. math:: \|f-f^*\|_K\le2(1-r/2)^S\sqrt{mM\min(M/2,B)/\Lambda}+4\sqrt{mL}\,\delta/\Lambda+\kappa mu
          B/\Lambda .

Proof. Where every gradient errs by a vector of length at most e, G(a_S) - G(a*) is at most
:math:`(1-r)^S(\sqrt{2(G(0)-G(a^*))}+\sqrt{2/\Lambda}\sum_{i\le S}e(1-r)^{-i/2})^2`. As
:math:`\sqrt{1-r}\le1-r/2`, its root is at most :math:`(1-r/2)^S\sqrt{2G(0)-2G(a^*)}+
2e\sqrt{2L}/\Lambda`, with :math:`e\le\sqrt m\,\delta`. G(0) = 0, and :math:`-G(a^*)\le
\max_a(y^Ta-\tfrac\Lambda2\|a\|^2)\le mM\min(M/2,B)/\Lambda`. At a minimum over a convex set
:math:`G(a)-G(a^*)\ge\tfrac12(a-a^*)^T(K+\Lambda)(a-a^*)\ge\tfrac12\|f-f^*\|_K^2`. The box of floats
ends at B/Lam (1 + t), :math:`|t|\le u`: its minimiser has :math:`|\mathrm{clip}(Ka-y)+\Lambda
a|\le uB` in every entry, so that F has a gradient of length at most kappa m u B there, and F is
Lam-strongly convex. []

Source of the first line: Schmidt, Le Roux & Bach (2011), arXiv:1109.2415, Proposition 4, with exact
projections. A rounding of b_k by x counts as an error of the gradient of at most L |x|, since
0 <= K + Lam <= L.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import CertificateError
from dpcore.functions import Kernel
from dpcore.rounding import UNIT, gamma, up
from dpcore_models.solvers.sums import plain

_STEEPEST = 2.0**24  # L/Lam: more would take too many steps
_FRACTION = 2.0**-30  # of one record's pull: what the steps may leave, where rounding leaves less


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
        """Bound L, the largest eigenvalue of K + Lam, from above."""
        return up(records * self.kappa * self.kappa + self.total_regularization, roundings=5000)

    def noise(self, records: int) -> float:
        r"""delta: what an entry of a computed gradient errs by, roundings of the step included.

        :math:`|b_i|\le3B/\Lambda`: a sum of m products and its kernel entries, a handful of
        roundings of numbers up to kappa^2 |b|_1 + 3B + M. The roundings of b_k, of the division by
        L and of the step come to less than 32 u L B/Lam.
        """
        # |b|_1: momentum takes b_k as far as three times the box.
        mass = 3 * records * self.box
        square = self.kappa * self.kappa
        entry = gamma(records + 6) * (square + self.kernel_error) + self.kernel_error
        size = square * mass + self.label_bound + 3 * self.clip
        step = 32 * UNIT * self.curvature(records) * self.box
        return up(entry * mass + 8 * UNIT * size + step, roundings=5000)

    def rounding(self, records: int) -> float:
        """Return the second and the third term of the claim: what no number of steps takes away."""
        lam = self.total_regularization
        # Every record may err in its own entry: a vector of m errors is sqrt(m) delta long.
        gradients = 4 * math.sqrt(records * self.curvature(records)) * self.noise(records) / lam
        return up(gradients + self.kappa * records * UNIT * self.box, roundings=5000)

    def left(self, records: int) -> float:
        """Bound what the steps may leave of the first term."""
        return max(self.rounding(records), _FRACTION * self.kappa * self.box)

    def steps(self, records: int) -> int:
        """S, after which the first term is at most `left`: public but for the number of records."""
        if not records:
            return 0
        bound, lam = self.label_bound, self.total_regularization
        first = 2 * math.sqrt(records * bound * min(bound / 2, self.clip) / lam)
        ratio = math.sqrt(self.curvature(records) / lam)
        # (1 - r/2)^S <= e^{-Sr/2}, so that S = (2/r) log(first/left) steps suffice.
        shrink = math.log(up(max(first / self.left(records), 1.0), roundings=20))
        return math.ceil(up(2 * ratio * shrink, roundings=20))


def huber_error(problem: HuberProblem, records: int) -> float:
    r"""Distance in the kernel's norm that `solve_huber` reaches on every dataset; or infinity.

    Infinity represents an error above one record's pull kappa B/Lam, at which no claim would be
    worth making, and for L/Lam above 2^24, at which the steps would take too long.

    Args:
        records: m, or a public upper bound on it: the error grows in it.
    """
    kappa, lam = problem.kappa, problem.total_regularization
    # Outside this range products could overflow, and the roundings counted above would not be all.
    if not plain(kappa, problem.label_bound, lam, problem.clip, max(records, 1)):
        return math.inf
    if problem.curvature(records) > _STEEPEST * lam:
        return math.inf
    tolerance = up(problem.rounding(records) + problem.left(records), roundings=5000)
    # A solver error is added to the sensitivity, so that
    # one above a record's pull is not worth claiming.
    return tolerance if tolerance <= kappa * problem.box else math.inf


def huber_evaluation_error(problem: HuberProblem, records: int) -> float:
    r"""Distance of a computed f(x) from the exact value of the same expansion.

    A sum of m products errs by :math:`\gamma_m\sum|a_i|\kappa^2`, its kernel entries by
    :math:`e_K\sum|a_i|`, with :math:`\sum|a_i|\le mB/\Lambda`.
    """
    square = problem.kappa * problem.kappa
    entry = gamma(records + 1) * (square + problem.kernel_error) + problem.kernel_error
    return up(entry * records * problem.box, roundings=5000)


def solve_huber(
    problem: HuberProblem,
    kernel: Kernel,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Coefficients of a function within `tolerance` of the minimiser, shape (m,), in the box.

    Takes `HuberProblem.steps` steps of one product with the kernel matrix each, whatever the
    records.

    Args:
        rows: Shape (m, p). labels: Shape (m,). tolerance: At least `huber_error` at m.

    Raises:
        CertificateError: the tolerance is below that.
    """
    records, lam, box = len(labels), problem.total_regularization, problem.box
    # The certificate rests on public numbers and m
    # alone: it can fail for a caller, not for a dataset.
    error = huber_error(problem, records)
    if not error <= tolerance:
        raise CertificateError("kernel_ridge.huber_ridge", error, tolerance)
    matrix, steep = kernel(rows, rows), problem.curvature(records)
    root = math.sqrt(lam / steep)
    momentum = (1 - root) / (1 + root)
    iterate = lookahead = np.zeros(records)
    # No stopping rule reads a residual: the number of steps would say about the records.
    for _ in range(problem.steps(records)):
        gradient = matrix @ lookahead + lam * lookahead - labels
        # Projection on the box is clipping by entry, and exact in floats.
        step = np.clip(lookahead - gradient / steep, -box, box)
        lookahead = step + momentum * (step - iterate)
        iterate = step
    return iterate
