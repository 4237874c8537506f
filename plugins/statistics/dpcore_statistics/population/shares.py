r"""Counts of a stream, and shares: test inversion with the noise and the sampling at the truth.

* A count of a Poisson stream: all :math:`\lambda` with
  :math:`(\tilde n-\lambda)^2\le z^2(\lambda+s^2)`.
* A proportion of S among S + R, sums of :math:`k_S` and :math:`k_R` noisy cells: all p with
  :math:`(\tilde S-p\tilde n)^2\le z^2(\tilde np(1-p)+s^2(k_S(1-p)^2+k_Rp^2))`. Without noise it is
  Wilson's interval, and without sampling Fieller's.
* The same with a public n: the noise term is :math:`s^2k_S`.
"""

from typing import Any

import numpy as np

from dpcore import Domain
from dpcore_statistics.population.sampling import NOTHING, Ends, Sampling, roots


def stream_count(count: Any, sampling: Sampling) -> Ends:
    """Return the expected count of a stream whose number of records is a Poisson number."""
    noise = sampling.width**2
    z = sampling.z * sampling.tail(np.maximum(count, 0.0) + noise, noise**2)
    middle = np.asarray(count) + z * z / 2
    half = z * np.sqrt(np.maximum(0.0, np.asarray(count) + z * z / 4 + sampling.width**2))
    return np.maximum(0.0, middle - half), np.maximum(0.0, middle + half)


def counts_in(
    domain: Domain, counts: Any, sampling: Sampling | None, *, out_of: float | None
) -> Ends:
    """Return intervals of expected counts: out of a public number of records, or of a stream.

    A count of a sample from a finite population reveals nothing else of it: its share does.
    """
    if sampling is None or (out_of is None and domain.sampled != "independent"):
        return NOTHING
    if out_of is None:
        return stream_count(counts, sampling)
    low, high = public_fraction(counts, out_of, sampling)
    return out_of * low, out_of * high


def noisy_fraction(
    top: Any, rest: Any, sampling: Sampling, cells: tuple[int, int] = (1, 1), *, cut: bool = True
) -> Ends:
    """Return an interval of p, the proportion of S + R records, if both counts are noisy.

    Args:
        cells: How many noisy numbers S and R are the sums of.
        cut: Whether ends are cut to [0, 1]; those for comparisons are not.
    """
    n = np.asarray(top) + np.asarray(rest)
    of_top, of_rest = cells
    p, noise = np.clip(top / np.maximum(n, 1.0), 0.0, 1.0), sampling.width**2
    total = np.maximum(n, 0.0) * p * (1 - p) * sampling.fraction(n)
    total = total + noise * (of_top * (1 - p) ** 2 + of_rest * p**2)
    z = sampling.z * sampling.tail(total, noise**2 * (of_top * (1 - p) ** 4 + of_rest * p**4))
    squared = (z * sampling.width) ** 2
    sampled = z**2 * np.maximum(n, 0.0) * sampling.fraction(n)
    a = n * n + sampled - squared * (of_top + of_rest)
    b = top * n + sampled / 2 - squared * of_top
    ends = (0.0, 1.0) if cut else (-np.inf, np.inf)
    return roots(a, b, np.square(top) - squared * of_top, *ends, n > 0)


def public_fraction(top: Any, n: float, sampling: Sampling, cells: int = 1) -> Ends:
    """Return an interval of p, out of a public number of records."""
    p, noise = np.clip(np.asarray(top) / max(n, 1.0), 0.0, 1.0), sampling.width**2
    total = n * p * (1 - p) * sampling.fraction(n) + cells * noise
    z = sampling.z * sampling.tail(total, cells * noise**2)
    sampled = z**2 * n * sampling.fraction(n)
    c = np.square(top) - cells * (z * sampling.width) ** 2
    return roots(n * n + sampled, np.asarray(top) * n + sampled / 2, c, 0.0, 1.0)
