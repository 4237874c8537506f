r"""Joint bands: how far all answers of a release lie from the truth together.

The law of additive noise is public, so that anyone may draw from it as often as he likes. Of N
draws of the largest error, the r-th smallest lies below the quantile of level 1 - beta only if at
least r draws do, which has the probability :math:`P(\mathrm{Bin}(N,1-\beta)\ge r)`. r is the least
one for which that is at most 2^-20: the Monte Carlo error is rounded up.

Draws come from a fixed public stream, by one raw word each: the same plan has the same band
everywhere. The band is rounded up to 10 bits, which hides the last bits of logarithms.

* Laplace noise on a grid, :math:`q=e^{-\mathrm{step}/\mathrm{scale}}`: as :math:`P(|Z|\ge k)=
  2q^k/(1+q)` for k >= 1, :math:`|Z|=\lfloor\log(u(1+q)/2)/\log q\rfloor`, at least 0, with a sign.
* Gaussian noise on a grid of 64 or more steps a width: the normal distribution, which differs from
  it by less than :math:`e^{-2\pi^264^2}`; of fewer steps, the sums of its own weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpcore.interval import LaplaceDistribution, NoiseDistribution, NormalDistribution

Stream = np.random.PCG64
"""Raw words that no version of numpy changes; its `Generator` may change between versions."""

MOST_DRAWS = 10_000
FEWEST_DRAWS = 2_048
_BEYOND = 64  # draws beyond the quantile, where a small miss needs more draws than these
_WORK = 1 << 31  # operations that a simulation may take: about a second
_MOST_WORK = 1 << 33  # and where a small miss needs more draws
_OVERHEAD = 256  # operations that a draw takes next to its own
_AT_ONCE = 64  # draws: what they lead to stays near the processor
_SEED = 20_260_101
_DOUBT = 2.0**-20  # the probability that a band is too narrow
_NARROW = 64.0  # steps of a width, from which on the normal distribution serves


def joint_half_width(
    sample: Callable[[Stream, int], NDArray[np.float64]], miss: float, draws: int
) -> float:
    """Simulate w with P(error <= w) >= 1 - miss; infinite if there are too few draws.

    Args:
        sample: So many draws of the largest error, in units of its interval, from the stream.
    """
    rank = _rank(miss, draws)
    if rank > draws:
        return math.inf
    stream = Stream(_SEED)
    counts = [min(_AT_ONCE, draws - start) for start in range(0, draws, _AT_ONCE)]
    errors = np.concatenate([sample(stream, count) for count in counts])
    mantissa, exponent = math.frexp(float(np.partition(errors, rank - 1)[rank - 1]))
    return math.ldexp(math.ceil(math.ldexp(mantissa, 10)), exponent - 10)


def simulated_half_width(
    errors: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    size: int,
    work: int,
    distribution: NoiseDistribution | None,
    miss: float,
) -> float:
    """Return the same for independent noise of one law; infinite if it cannot be simulated.

    That is where the law is none of those drawn here, or the miss so small that it would take more
    than some seconds: other intervals, of each number by itself, hold all the same.

    Args:
        errors: The largest errors that noises of shape (draws, size) lead to. Shape (draws,).
        work: How many operations a draw takes; four products of matrices are one.
    """
    if not can_simulate(distribution):
        return math.inf
    draws = min(MOST_DRAWS, max(FEWEST_DRAWS, _WORK // max(1, work)))
    draws = max(draws, math.ceil(_BEYOND / miss))
    if draws * (work + _OVERHEAD) > _MOST_WORK:
        return math.inf
    return joint_half_width(
        lambda stream, count: errors(noises(distribution, stream, (count, size))), miss, draws
    )


def can_simulate(distribution: NoiseDistribution | None) -> bool:
    """Return whether the law is one of those that `noises` draws."""
    return isinstance(distribution, LaplaceDistribution | NormalDistribution)


def noises(
    distribution: NoiseDistribution | None, stream: Stream, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Draw independent noise of a law.

    Raises:
        TypeError: it is neither a Laplace nor a Gaussian law.
    """
    words = stream.random_raw(math.prod(shape)).reshape(shape)
    # 53 bits of a word are the uniform number, and its lowest bit is the sign.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    if isinstance(distribution, LaplaceDistribution):
        signs = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
        if not distribution.step:
            return np.asarray(signs * (-distribution.scale) * np.log(uniform))
        steps = distribution.scale / distribution.step
        sizes = -steps * np.log(uniform * (1 + math.exp(-1 / steps)) / 2)
        return np.asarray(signs * distribution.step * np.maximum(np.floor(sizes), 0.0))
    if isinstance(distribution, NormalDistribution):
        if not distribution.step or distribution.width >= _NARROW * distribution.step:
            from scipy.special import ndtri

            return np.asarray(distribution.width * ndtri(uniform))
        return distribution.step * _narrow_gaussian(distribution.width / distribution.step, uniform)
    raise TypeError(f"no law that is simulated: {type(distribution).__name__}")


def _narrow_gaussian(steps: float, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw from a discrete Gaussian by its own weights."""
    cutoff = math.ceil(12 * steps) + 2
    values = np.arange(-cutoff, cutoff + 1)
    weights = np.exp(-0.5 * (values / steps) ** 2)
    ends = np.cumsum(weights / math.fsum(weights))
    places = np.searchsorted(ends, uniform)
    return values[np.minimum(places, len(values) - 1)].astype(np.float64)


def _rank(miss: float, draws: int) -> int:
    """Return the least r with P(Bin(draws, 1 - miss) >= r) <= 2^-20; draws + 1 if none."""
    from scipy.special import betainc

    # By the normal approximation at first, then up or down by the exact tail.
    p, z = 1 - miss, NormalDist().inv_cdf(1 - _DOUBT)
    rank = min(draws, round(draws * p + z * math.sqrt(draws * p * miss)))

    def is_enough(number: int) -> bool:
        return bool(betainc(number, draws - number + 1, p) <= _DOUBT)

    while rank <= draws and not is_enough(rank):
        rank += 1
    while rank > 1 and rank <= draws and is_enough(rank - 1):
        rank -= 1
    return rank
