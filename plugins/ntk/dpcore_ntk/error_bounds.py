r"""The paper's error bounds, printed (1 where it writes O) and proved. No claim rests on them.

Notation: :math:`\eta_{\min}I\preceq K\preceq\eta_{\max}I`, Ktilde the mean of k samples g g^T,
g ~ N(0, K); inputs of norm at most B, weights of variance sigma^2, m of them, in d columns.

* Samples. :math:`\tilde K=K^{1/2}WK^{1/2}` with W a mean of k squares. With probability 1 - gamma
  the roots of W's eigenvalues are within t of 1, :math:`t=\sqrt{n/k}+\sqrt{2\ln(2/\gamma)/k}`
  (Davidson & Szarek 2001, Theorem II.13), so that :math:`aK\preceq\tilde K\preceq bK` with
  :math:`a=\max(0,1-t)^2,b=(1+t)^2`.
* Inverse. Then, inverses being antitone, :math:`(\tilde K+\lambda)^{-1}-(K+\lambda)^{-1}` lies
  between the same with bK and with aK, whose eigenvalues are
  :math:`(1-c)\eta/((\eta+\lambda)(c\eta+\lambda))`, largest at :math:`\eta=\lambda/\sqrt c` or at
  the end of the range that is nearest to it. Attained by Ktilde = aK or bK.
* Kernel entries. :math:`\frac1m\sum_r(w_r\cdot x)(w_r\cdot z)` is a quadratic form of normal
  variables; the eigenvalues of its matrix are :math:`\frac{\sigma^2}{2m}(x\cdot z\pm\|x\|\|z\|)`,
  m times each. Laurent & Massart (2000), Lemma 1, whose proof allows negative weights, gives
  :math:`2\sigma^2B^2(\sqrt{u/m}+u/m)` on each side with probability 1 - e^{-u}; the factor
  :math:`x\cdot z` gives B^2 more. Neither d nor a condition on m is needed.
"""

import math

from dpcore.checks import need_positive
from dpcore.errors import ParameterError
from dpcore_ntk.calculators import input_noise_bound
from dpcore_ntk.row_movement import matrix_movement


def spectral_error_printed(records: int, samples: int, gamma: float) -> float:
    r"""rho of Condition 5.6: :math:`\sqrt{(n^2+\ln(1/\gamma))/k}+(n^2+\ln(1/\gamma))/k`."""
    need_positive("spectral_error_printed", records=records, samples=samples, gamma=gamma)
    ratio = (records**2 + math.log(1 / gamma)) / samples
    return math.sqrt(ratio) + ratio


def spectral_ends(records: int, samples: int, gamma: float) -> tuple[float, float]:
    """Return a and b, as proved above."""
    need_positive("spectral_ends", records=records, samples=samples, gamma=gamma)
    t = math.sqrt(records / samples) + math.sqrt(2 * math.log(2 / gamma) / samples)
    return max(0.0, 1 - t) ** 2, (1 + t) ** 2


def inverse_error_printed(
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
) -> float:
    r"""Lemma 5.7's error of the inverse: :math:`\rho\,\eta_{\max}/(\eta_{\min}+\lambda)^2`."""
    _check_order(eta_min, eta_max, regularization)
    rho = spectral_error_printed(records, samples, gamma)
    return rho * eta_max / (eta_min + regularization) ** 2


def inverse_error(
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
) -> float:
    """Return the same, proved, with probability 1 - gamma."""
    low, high = spectral_ends(records, samples, gamma)
    return inverse_movement(low, high, eta_min, eta_max, regularization)


def inverse_movement(
    low: float, high: float, eta_min: float, eta_max: float, regularization: float
) -> float:
    """Return the supremum over Ktilde between low K and high K of the norm of the inverses'
    difference.
    """
    _check_order(eta_min, eta_max, regularization)

    def error_at(scale: float) -> float:
        # The difference is largest at lam/sqrt(c), or at
        # the end of the range that is nearest to it.
        peak = eta_max if scale == 0.0 else regularization / math.sqrt(scale)
        eta = min(max(peak, eta_min), eta_max)
        denominator = (eta + regularization) * (scale * eta + regularization)
        return abs(1 - scale) * eta / denominator

    return max(error_at(low), error_at(high))


def prediction_error_printed(
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
    epsilon: float,
    delta: float,
    radius: float,
    width: int,
    norm: float = 1.0,
    weight_variance: float = 1.0,
) -> float:
    r"""Lemma 4.3: :math:`\frac{B^3\sqrt d\,B_L}{\eta_{\min}+\lambda}
    +\frac{\rho\,\eta_{\max}\omega}{(\eta_{\min}+\lambda)^2}`, :math:`\omega=6d\sigma^2B^4`."""
    # First the noise of the inputs at the printed ridge, then the error of the sampled inverse.
    noise = input_noise_bound(epsilon, delta, radius, width)
    first = norm**3 * math.sqrt(width) * noise / (eta_min + regularization)
    omega = 6 * width * weight_variance * norm**4
    inverse = inverse_error_printed(records, samples, gamma, eta_min, eta_max, regularization)
    return first + omega * inverse


def prediction_error(
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
    epsilon: float,
    delta: float,
    radius: float,
    width: int,
    largest: float,
    norm: float = 1.0,
    label_bound: float = 1.0,
) -> float:
    r"""Return the same, proved, for f = K(x, X)^T (K + lambda)^{-1} Y / n, with probability 1 -
    gamma.

    :math:`f-\tilde f=\frac1n[(k-\tilde k)^T\tilde AY+k^T(A-\tilde A)Y]` with
    :math:`\|k\|\le\sqrt n\,sB^4`, :math:`\|k-\tilde k\|\le\sqrt n\,sB^2e(2B+e)`,
    :math:`e=\sqrt d\,B_L`, :math:`\|Y\|\le\sqrt nM` and
    :math:`\|\tilde A\|\le1/(a\eta_{\min}+\lambda)`.

    Args:
        largest: s, the largest eigenvalue of the weights' matrix that was drawn.
    """
    low, high = spectral_ends(records, samples, gamma)
    # e is how far noise moves an input in l2: B_L on each of d coordinates.
    e = math.sqrt(width) * input_noise_bound(epsilon, delta, radius, width)
    input_error = largest * norm**2 * e * (2 * norm + e) / (low * eta_min + regularization)
    inverse = inverse_movement(low, high, eta_min, eta_max, regularization)
    return label_bound * (input_error + largest * norm**4 * inverse)


def main_theorem_printed(
    epsilon_x: float,
    delta_x: float,
    epsilon_alpha: float,
    delta_alpha: float,
    delta_3: float,
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
    radius: float,
    width: int,
    norm: float = 1.0,
    weight_variance: float = 1.0,
) -> dict[str, float]:
    """Theorem 4.4: what is claimed together, under the promise of eta_min for all data sets."""
    # The paper spends (epsilon_x, delta_x) on the inputs, whose noise is part of the error.
    error = prediction_error_printed(
        records,
        samples,
        gamma,
        eta_min,
        eta_max,
        regularization,
        epsilon_x,
        delta_x,
        radius,
        width,
        norm,
        weight_variance,
    )
    return {
        "epsilon": epsilon_x + epsilon_alpha,
        "delta": delta_x + delta_alpha,
        "error": error,
        "probability": 1 - delta_3 - gamma,
    }


def main_theorem(
    epsilon_x: float,
    delta_x: float,
    epsilon_alpha: float,
    delta_alpha: float,
    records: int,
    samples: int,
    gamma: float,
    eta_min: float,
    eta_max: float,
    regularization: float,
    radius: float,
    width: int,
    largest: float,
    norm: float = 1.0,
) -> dict[str, float]:
    """Return the same with the proved error: the weights are drawn and known, so there is no
    delta_3.

    Its epsilon and delta hold for pairs of data sets that both keep the promise, same labels, one
    input moved by at most beta. Unconditionally the printed mechanism has none.
    """
    # Only the samples can fail, with probability gamma: the inputs' noise never exceeds B_L.
    error = prediction_error(
        records,
        samples,
        gamma,
        eta_min,
        eta_max,
        regularization,
        epsilon_x,
        delta_x,
        radius,
        width,
        largest,
        norm,
    )
    return {
        "epsilon": epsilon_x + epsilon_alpha,
        "delta": delta_x + delta_alpha,
        "error": error,
        "probability": 1 - gamma,
    }


def entry_error_printed(
    neurons: int, width: int, delta: float, norm: float = 1.0, weight_variance: float = 1.0
) -> float:
    r"""Lemma E.10, solved for its :math:`\epsilon_1=\sqrt{dB^8\sigma^4\ln(1/\delta_2)/m}`."""
    need_positive("entry_error_printed", neurons=neurons, width=width, delta=delta)
    log = math.log(1 / delta)
    return norm**4 * weight_variance * math.sqrt(width * log / neurons)


def entry_error(
    neurons: int, delta: float, norm: float = 1.0, weight_variance: float = 1.0
) -> float:
    r"""Return the same, proved: :math:`2\sigma^2B^4(\sqrt{u/m}+u/m)`, :math:`u=\ln(2/\delta_2)`."""
    need_positive("entry_error", neurons=neurons, delta=delta)
    ratio = math.log(2 / delta) / neurons
    return 2 * weight_variance * norm**4 * (math.sqrt(ratio) + ratio)


def matrix_error_printed(
    records: int,
    neurons: int,
    width: int,
    delta: float,
    norm: float = 1.0,
    weight_variance: float = 1.0,
) -> float:
    r"""Lemma E.11: :math:`n\epsilon_1` at :math:`\delta_2=\delta_3/n^2`."""
    fraction = delta / records**2
    return records * entry_error_printed(neurons, width, fraction, norm, weight_variance)


def matrix_error(
    records: int, neurons: int, delta: float, norm: float = 1.0, weight_variance: float = 1.0
) -> float:
    """Return the same, proved: n(n + 1)/2 different entries share delta_3."""
    # A union bound over the entries of a symmetric matrix.
    fraction = 2 * delta / (records * (records + 1))
    return records * entry_error(neurons, fraction, norm, weight_variance)


def matrix_sensitivity_printed(
    records: int,
    neurons: int,
    width: int,
    delta: float,
    radius: float,
    norm: float = 1.0,
    weight_variance: float = 1.0,
) -> float:
    r"""Lemma E.12: :math:`n\epsilon_1+\sqrt n\,\sigma^2B^3\beta`, with probability 1 - delta_3."""
    error = matrix_error_printed(records, neurons, width, delta, norm, weight_variance)
    return error + math.sqrt(records) * weight_variance * norm**3 * radius


def matrix_sensitivity(records: int, radius: float, largest: float, norm: float = 1.0) -> float:
    r"""Return the same, proved, for the weights that were drawn:
    :math:`\sqrt{8(n+1)}\,sB^3\beta`.
    """
    return matrix_movement(radius, norm, largest, records)


def _check_order(eta_min: float, eta_max: float, regularization: float) -> None:
    need_positive("inverse_error", eta_max=eta_max, regularization=regularization)
    if not 0 <= eta_min <= eta_max:
        raise ParameterError("inverse_error", "0 <= eta_min <= eta_max", "eta_min", eta_min)
