r"""Error bounds of the paper as calculators, printed and corrected. No privacy claim rests on them.

They are about *one* evaluation with Laplace noise (T10, `questions: 1`), not about a function
release. Notation: m records, lam, labels in [-M, M], `smoothness` r and `source_norm`
:math:`\|L_K^{-r}f_\rho\|`, which no one knows of private data: they are assumptions.
"""

import math

from dpcore.checks import need_positive
from dpcore.errors import ParameterError


def regularization_2(records: int, smoothness: float) -> float:
    r"""Return Theorem 2's choice of lam for m records: :math:`\lambda=m^{-2/\min(4,3+2r)}`."""
    need_positive("regularization_2", records=records, smoothness=smoothness)
    return math.pow(records, -2 / min(4, 3 + 2 * smoothness))


def rate_2(smoothness: float) -> float:
    r"""Return Theorem 2's exponent of 1/m: :math:`\min(1/2,4r/(3+2r))`."""
    need_positive("rate_2", smoothness=smoothness)
    return min(0.5, 4 * smoothness / (3 + 2 * smoothness))


def constant_2_printed(
    kappa: float, label_bound: float, epsilon: float, smoothness: float, source_norm: float
) -> float:
    """Return Theorem 2's constant as printed; its last term lacks the factor 1 + 2 epsilon."""
    private, sample, approximation = _terms(kappa, label_bound, epsilon, smoothness, source_norm)
    return private + sample + approximation


def constant_2_corrected(
    kappa: float, label_bound: float, epsilon: float, smoothness: float, source_norm: float
) -> float:
    """Theorem 2's constant with 1 + 2 epsilon on the approximation term."""
    private, sample, approximation = _terms(kappa, label_bound, epsilon, smoothness, source_norm)
    return private + sample + (1 + 2 * epsilon) * approximation


def _terms(
    kappa: float, label_bound: float, epsilon: float, smoothness: float, source_norm: float
) -> tuple[float, float, float]:
    need_positive("constant_2_printed", kappa=kappa, label_bound=label_bound, epsilon=epsilon)
    need_positive("constant_2_printed", smoothness=smoothness, source_norm=source_norm)
    square, power = label_bound**2, 4 * smoothness
    # Three sources of error: the noise, the sample, and how far the kernel can reach the target.
    private = 24 * square * kappa**4 * (kappa + 1) ** 2 / epsilon**2
    sample = 8 * math.sqrt(2 * math.pi) * square * (1 + 2 * epsilon)
    powers = math.pow(kappa, power - 2) + math.pow(kappa, power - 4) + 2
    return private, sample, powers * source_norm**2


def epsilon_3(records: int, smoothness: float) -> float:
    r"""Theorem 3's choice, corrected: :math:`\epsilon=m^{-p}`, p = min(1/3, 4r/(3+6r)).

    The printed base 1/sqrt(m) does not give the claimed rate by the printed proof.
    """
    need_positive("epsilon_3", records=records, smoothness=smoothness)
    return math.pow(records, -min(1 / 3, 4 * smoothness / (3 + 6 * smoothness)))


def regularization_3(records: int, smoothness: float) -> float:
    r"""Theorem 3's choice: :math:`\lambda=(m\epsilon)^{-2/\min(4,3+2r)}`, with epsilon above."""
    effective_records = records * epsilon_3(records, smoothness)
    return math.pow(effective_records, -2 / min(4, 3 + 2 * smoothness))


def excess_error(
    *,
    epsilon: float,
    moved: float,
    label_bound: float,
    regularization: float,
    kappa: float,
    smoothness: float,
    source_norm: float,
) -> float:
    r"""Expected excess error of one private evaluation, for any epsilon:

    .. math:: e^\epsilon(V+D)+(e^\epsilon-1)M^2,\quad V=2\Delta^2/\epsilon^2,\quad
              D=\lambda^{\min(1,2r)}\kappa^{\max(4r-2,0)}\|L_K^{-r}f_\rho\|^2.

    Proof: by Theorem 1 the expected error is at most e^eps times the empirical one, which noise
    raises by its variance V; the minimiser's regularized empirical error is at most the one of
    the regularized target, whose mean is E(f_rho) + D, and E(f_rho) <= M^2. There is no
    sample-error term.

    Args:
        moved: Delta, the sensitivity of one evaluation: T4 times kappa, or Lemma 2 times kappa.
        regularization: lam <= 1.
    """
    need_positive(
        "excess_error", epsilon=epsilon, moved=moved, label_bound=label_bound, kappa=kappa
    )
    need_positive("excess_error", smoothness=smoothness, source_norm=source_norm)
    if not 0 < regularization <= 1:
        raise ParameterError(
            "excess_error", "regularization in (0, 1]", "regularization", regularization
        )
    # V and D of the formula; a smooth target (r > 1/2) gains no more than lam^1.
    noise = 2 * moved**2 / epsilon**2
    powers = math.pow(kappa, max(4 * smoothness - 2, 0.0))
    bias = math.pow(regularization, min(1.0, 2 * smoothness)) * powers * source_norm**2
    return math.exp(epsilon) * (noise + bias) + math.expm1(epsilon) * label_bound**2
