r"""The paper's numbers as calculators, printed and corrected. No privacy claim rests on them.

Notation: n records of norm at most B, one of which moves by beta; weights of variance sigma^2;
s, the largest eigenvalue of the S that was drawn; eta_min, the promised least eigenvalue of K.
"""

import math

import scipy

from dpcore import REPLACE_ONE
from dpcore.checks import need_positive
from dpcore.claims.events.gaussian_sampling import MOST, GaussianSamplingEvent
from dpcore.event import Direction
from dpcore_ntk.row_movement import matrix_movement, row_movement


def matrix_movement_printed(
    radius: float, norm: float, records: int, weight_variance: float = 1.0
) -> float:
    r"""psi of Condition 5.5 with the constant 1: :math:`\sqrt n\,\sigma^2B^3\beta`.

    Too small: the constant is left out, and sigma^2 is where s belongs.
    """
    return math.sqrt(records) * weight_variance * norm**3 * radius


def allowed_movement(epsilon: float, delta: float, samples: float) -> float:
    r"""Definition 5.2: :math:`\Delta=\min\{\epsilon/\sqrt{8k\log(1/\delta)},
    \epsilon/(8\log(1/\delta))\}`, for epsilon < 1.
    """
    need_positive("allowed_movement", epsilon=epsilon, delta=delta, samples=samples)
    log = math.log(1 / delta)
    return min(epsilon / math.sqrt(8 * samples * log), epsilon / (8 * log))


def samples_equation_1(
    epsilon: float,
    delta: float,
    *,
    records: int,
    eta_min: float,
    radius: float,
    norm: float = 1.0,
    weight_variance: float = 1.0,
) -> float:
    r"""Equation (1): :math:`k\le\frac{\epsilon^2\eta_{\min}^2}
    {8\log(1/\delta)\,n^2\sigma^4B^8\beta^2}`, a real number.

    As printed. Its derivation gives B^6, and asks for :math:`k\ge8\log(1/\delta)` and epsilon < 1,
    which no k meets at the paper's own numbers.
    """
    movement = records * weight_variance * norm**4 * radius / eta_min
    return epsilon**2 / (8 * math.log(1 / delta) * movement**2)


def samples_corrected(
    epsilon: float,
    delta: float,
    *,
    records: int,
    eta_min: float,
    radius: float,
    largest: float,
    norm: float = 1.0,
    printed_factor: bool = True,
) -> float:
    r"""Return the same derivation with the proved :math:`\psi=\sqrt{8(n+1)}\,sB^3\beta`.

    Args:
        largest: s.
        printed_factor: Whether M = sqrt(n) psi/eta_min, as Lemma E.15 prints, or psi/eta_min,
            which holds as well.
    """
    movement = matrix_movement(radius, norm, largest, records) / eta_min
    if printed_factor:
        movement *= math.sqrt(records)
    return epsilon**2 / (8 * math.log(1 / delta) * movement**2)


def samples_sound(
    epsilon: float, delta: float, *, lam0: float, radius: float, largest: float, norm: float = 1.0
) -> int:
    """Return the largest k at which Gaussian sampling on K + lam0 I is (epsilon, delta)-DP; 0 for
    none.

    For every dataset of every size, without a promise. At most 10^14.

    Args:
        radius: beta; 2 B or more for records that move anywhere. largest: s.
    """
    need_positive("samples_sound", epsilon=epsilon, delta=delta, lam0=lam0, radius=radius)
    # K + lam0 I has no eigenvalue below lam0: theta is what a row moves by, relative to that.
    theta = row_movement(min(radius, 2 * norm), norm, largest) / math.sqrt(lam0)

    def holds(samples: int) -> bool:
        event = GaussianSamplingEvent(theta=theta, samples=samples, adjacency=REPLACE_ONE)
        return event.curve.upper_at(epsilon, Direction.ADD) <= delta

    # Delta grows with k: double until it fails, then bisect; `low` is 0 or holds.
    low, high = 0, 1
    while high <= MOST and holds(high):
        low, high = high, 2 * high
    high = min(high, MOST + 1)
    while high - low > max(1, low >> 40):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def input_noise_bound(epsilon: float, delta: float, radius: float, width: int) -> float:
    r"""B_L of Lemma 5.9: :math:`\frac{\sqrt d\beta}\epsilon\log(1+\frac{e^\epsilon-1}{2\delta})`,
    no noise of any coordinate is larger.
    """
    need_positive("input_noise_bound", epsilon=epsilon, delta=delta, radius=radius)
    scale = math.sqrt(width) * radius / epsilon
    return scale * math.log1p(float(scipy.special.expm1(epsilon)) / (2 * delta))


def kernel_error_printed(records: int, norm: float, width: int, noise_bound: float) -> float:
    r"""Lemma 5.10: :math:`\|K(x,\tilde X)-K(x,X)\|\le2\sqrt nB^3\sqrt d\,B_L`.

    As printed: lacks s, and what the noise adds to the norm of an input.
    """
    return 2 * math.sqrt(records) * norm**3 * math.sqrt(width) * noise_bound


def kernel_error_corrected(
    records: int, norm: float, width: int, noise_bound: float, largest: float
) -> float:
    r"""Return the same proved: :math:`\sqrt n\,sB^2e(2B+e)` with :math:`e=\sqrt d\,B_L`.

    As :math:`|(x\cdot z)(x^TSz)-(x\cdot z')(x^TSz')|\le sB^2\|z-z'\|(\|z\|+\|z'\|)`.
    """
    # An input with noise may be up to B + e long, which is where 2B + e comes from.
    shift = math.sqrt(width) * noise_bound
    return math.sqrt(records) * largest * norm**2 * shift * (2 * norm + shift)
