r"""The Gaussian event: exact for any epsilon, and closed under composition.

.. math:: \delta(\epsilon;\mu) = \Phi(\mu/2-\epsilon/\mu) - e^{\epsilon}\,\Phi(-\mu/2-\epsilon/\mu)

Source: Balle & Wang (2018), arXiv:1805.06530v2, Theorem 5 and Lemma 6 with
mu = l2_sensitivity / noise_std; Dong, Roth & Su (2022), Corollary 2.13 (the same curve) and
Corollary 3.3 (composition: the mu add in squares).
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_positive, positive
from dpcore.errors import need
from dpcore.event import Claims, Direction, Event, PrivacyCurve, bisect
from dpcore.rounding import gamma, half_square, up

_ULPS = gamma(24)  # relative error granted to each of the two terms of the difference
_UNDERFLOW = 1400.0  # exp(-x/2) is still a normal number below this
_BELOW_NORMAL = math.exp(-0.5 * _UNDERFLOW)  # no curve is above it where a^2 >= _UNDERFLOW
_SQRT_HALF = math.sqrt(0.5)
_SPLIT = 134217729.0  # 2^27 + 1 (Veltkamp)
_SERIES = 26.0  # up to here neither exp(x^2) nor erfc(x) leaves the normal numbers
_IN_CACHE = 1 << 14  # numbers of one block


def gaussian_delta(epsilon: float, mu: float) -> float:
    r"""Return an upper end of the curve of a Gaussian shifted by `mu` standard deviations.

    With a = epsilon/mu - mu/2, b = epsilon/mu + mu/2 and e^epsilon phi(b) = phi(a), it is
    :math:`\tfrac12 e^{-a^2/2}(\mathrm{erfcx}(a/\sqrt2)-\mathrm{erfcx}(b/\sqrt2))` for a >= 0, which
    neither overflows nor cancels more than the difference itself does. The rounding error of
    either term is added, so that the result errs upwards.

    Args:
        epsilon: In nats, any real number.
        mu: Shift over standard deviation, > 0.
    """
    return _curve(epsilon, mu, +_ULPS)


def gaussian_delta_lower(epsilon: float, mu: float) -> float:
    """Return a lower end of the same curve: the rounding error is subtracted."""
    return _curve(epsilon, mu, -_ULPS)


def _curve(epsilon: float, mu: float, ulps: float) -> float:
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    density = 0.5 * math.exp(-0.5 * a * a) if a * a < _UNDERFLOW else 0.0
    # too small to compute: an upper end that no such curve exceeds, or 0 from below
    if density == 0.0 and a > 0:
        return _BELOW_NORMAL if ulps > 0 else 0.0
    # for positive arguments erfcx keeps the digits; for negative ones it would overflow
    first = density * _erfcx(a * _SQRT_HALF) if a >= 0 else 0.5 * math.erfc(a * _SQRT_HALF)
    second = (
        density * _erfcx(b * _SQRT_HALF)
        if b >= 0
        else math.exp(epsilon) * 0.5 * math.erfc(b * _SQRT_HALF)
    )
    # a and b carry an ulp of |b| or |a|, which the exponent multiplies by |a|
    error = ulps * (1 + (1 + abs(a)) * max(abs(a), abs(b))) * (first + second)
    return min(1.0, max(0.0, first - second + error))


def gaussian_curve(
    epsilons: NDArray[np.float64],
    mu: float | NDArray[np.float64],
    *,
    lower: bool = False,
) -> NDArray[np.float64]:
    """Return upper (or lower) ends of the curve at arrays that broadcast, by the same formula."""
    epsilons, mu = np.asarray(epsilons, float), np.asarray(mu, float)
    shape = np.broadcast_shapes(epsilons.shape, mu.shape)
    if len(shape) != 2 or math.prod(shape) <= _IN_CACHE:
        return _curves(np.atleast_1d(epsilons), np.atleast_1d(mu), lower).reshape(shape)
    # blocks of whole rows, so that the temporaries of a block stay in the cache
    values = np.empty(shape)
    rows = max(1, _IN_CACHE // shape[1])
    epsilons, mu = np.broadcast_to(epsilons, shape), np.broadcast_to(mu, shape)
    for start in range(0, shape[0], rows):
        block = slice(start, start + rows)
        values[block] = _curves(epsilons[block], mu[block], lower)
    return values


def _curves(
    epsilons: NDArray[np.float64], mu: NDArray[np.float64], lower: bool
) -> NDArray[np.float64]:
    """Compute the same in few passes over arrays, since pricing a mixture spends its time here."""
    middle, half = epsilons / mu, mu / 2
    a = middle - half
    b = np.add(middle, half, out=middle)
    with np.errstate(over="ignore"):
        square = a * a
    # exp(-a^2/2) / 2, and 0 where that is no normal number
    density = np.minimum(square, 2000.0)
    density *= -0.5
    np.exp(density, out=density)
    density *= 0.5
    if np.any(underflow := ~(square < _UNDERFLOW)):
        density[underflow] = 0.0
    # the first term is Phi(-a), the second e^epsilon Phi(-b)
    first = _times_erfcx(density, a, out=square)
    if np.any(negative := a < 0):
        first[negative] = scipy.special.ndtr(-a[negative])
    second = _times_erfcx(density, b, out=np.empty_like(a))
    if np.any(negative := b < 0):
        # b < 0 happens at negative epsilons only, so the bound at 0 changes nothing there
        growth = np.exp(np.minimum(np.broadcast_to(epsilons, b.shape)[negative], 0.0))
        second[negative] = growth * scipy.special.ndtr(-b[negative])
    negligible = underflow & (a > 0)
    # the error of `_curve`: ulps of 1 + (1 + |a|) max(|a|, |b|), times both terms; it is added for
    # an upper end and subtracted for a lower one. Arrays are reused from here on.
    size = np.abs(a, out=a)
    cutoff = np.maximum(size, np.abs(b, out=b), out=b)
    np.minimum(cutoff, 1e8, out=cutoff)
    np.minimum(size, 1e8, out=size)
    size += 1
    cutoff *= size
    cutoff += 1
    cutoff *= -_ULPS if lower else _ULPS
    cutoff *= np.add(first, second, out=size)
    first -= second
    first += cutoff
    np.clip(first, 0.0, 1.0, out=first)
    first[negligible] = 0.0 if lower else _BELOW_NORMAL
    return first


def _times_erfcx(
    density: NDArray[np.float64], x: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return density * erfcx(x / sqrt(2)) for x >= 0."""
    np.maximum(x, 0.0, out=out)
    out *= _SQRT_HALF
    scipy.special.erfcx(out, out=out)
    out *= density
    return out


def _erfcx(x: float) -> float:
    r"""Return exp(x^2) erfc(x) for x >= 0 by the standard library: scipy takes .3 s to import.

    erfc of a C library errs by at most 5 units in the last place, exp by 1; the square's rounding
    error is known and put back. Beyond 26 the seventh partial sum of the asymptotic series
    :math:`\frac{1}{x\sqrt\pi}\sum_k(-1)^k(2k-1)!!/(2x^2)^k`, whose next term is below 2^-55.
    """
    if x < _SERIES:
        square = x * x
        high = (x * _SPLIT) - (x * _SPLIT - x)  # 26 bits of x, so that its products are exact
        low = x - high
        error = ((high * high - square) + 2 * high * low) + low * low
        return math.exp(square) * math.erfc(x) * (1 + error)
    total, step = 1.0, 1 / (2 * x * x)
    for odd in range(13, 0, -2):
        total = 1 - odd * step * total
    return total / (x * math.sqrt(math.pi))


def gaussian_epsilon(delta: float, mu: float, *, lower: bool = False) -> float:
    """Return the least epsilon >= 0 with the curve of `mu`, or its lower end, at most `delta`.

    Bisection to the last bit on a monotone curve; 0 where the curve starts below `delta`.

    Raises:
        ValueError: `delta` is outside (0, 1).
    """
    need(0 < delta < 1, ValueError, f"delta must be in (0, 1), got delta={delta!r}")
    curve = gaussian_delta_lower if lower else gaussian_delta
    if curve(0.0, mu) <= delta:
        return 0.0
    # the privacy loss is N(mu^2/2, mu^2): beyond this point its tail by itself is below delta
    below, above = 0.0, 0.5 * mu * mu + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    below, above = bisect(lambda epsilon: curve(epsilon, mu) <= delta, below, above)
    return below if lower else above


def least_epsilon(distance: float, deviation: float, delta: float) -> float:
    """Return the epsilon that normal noise of this `deviation` loses at `delta`, rounded down.

    The two outputs are `distance` apart. What a run really loses is no less.
    """
    # a smaller shift loses less
    mu = distance / deviation * (1 - 1e-9)
    return gaussian_epsilon(delta, mu, lower=True) if mu > 0 else 0.0


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose curve passes below (epsilon, delta), rounded down.

    Raises:
        ValueError: `epsilon` is not finite and >= 0, or `delta` is outside (0, 1).
    """
    need(
        math.isfinite(epsilon) and epsilon >= 0 and 0 < delta < 1,
        ValueError,
        f"no such target: epsilon={epsilon!r}, delta={delta!r}",
    )
    # delta grows with mu: the lower end fits once it has moved, the upper one does not
    log_mu, _ = bisect(lambda x: not gaussian_delta(epsilon, math.exp(x)) <= delta, -700.0, 20.0)
    return math.exp(log_mu)


@attrs.frozen(kw_only=True)
class GaussianEvent(Event, PrivacyCurve):
    """N(v, std^2 I) with an l2 shift of at most `mu` standard deviations.

    Args:
        mu: l2_sensitivity / noise_std, > 0.
        adjacency: The relation under which the shift is bounded.
    """

    symmetric: ClassVar[bool] = True
    inverses: ClassVar[Mapping[str, str]] = {"noise_multiplier": "mu"}

    mu: float = attrs.field(validator=positive)
    adjacency: Adjacency

    @classmethod
    def of_noise(cls, noise_multiplier: float, adjacency: Adjacency) -> "GaussianEvent":
        """Return the event of noise of `noise_multiplier` sensitivities, rounded up.

        Raises:
            ParameterError: it is not finite and > 0.
        """
        need_positive("GaussianEvent", noise_multiplier=noise_multiplier)
        return cls(mu=up(1 / noise_multiplier, roundings=1), adjacency=adjacency)

    def upper_at(self, epsilon: float, direction: Direction) -> float:
        """Return the curve above, equal in both directions."""
        return gaussian_delta(epsilon, self.mu)

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons, rounded up, shape (k,)."""
        return gaussian_curve(epsilons, self.mu)

    def lower_at(self, epsilon: float, direction: Direction) -> float:
        """Return the curve with its rounding error subtracted."""
        return gaussian_delta_lower(epsilon, self.mu)

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return lower ends of the curve at an array of epsilons, shape (k,)."""
        return gaussian_curve(epsilons, self.mu, lower=True)

    @property
    def claims(self) -> Claims:
        """The event is exactly this Gaussian; mu^2/2: Bun & Steinke (2016), Proposition 1.6."""
        return Claims(mu=self.mu, rho=half_square(self.mu))
