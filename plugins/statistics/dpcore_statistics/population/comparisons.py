r"""Comparisons of two groups: differences by their own intervals, and ratios of means.

A difference (MOVER): :math:`d-\sqrt{(m_1-l_1)^2+(h_2-m_2)^2}` to
:math:`d+\sqrt{(h_1-m_1)^2+(m_2-l_2)^2}`, of estimates m in intervals [l, h] of their own. A ratio
(Fieller): all r with :math:`(u_1-ru_2)^2\le q^2(v_1+r^2v_2)`, u the means above the low end of the
range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcore_statistics.population.moments import Moments, total_variance
from dpcore_statistics.population.sampling import Ends, Sampling, nothing_unless, roots

Estimate = tuple[Any, Any, Any]
"""A number, and the low and the high end of its interval."""


def difference(first: Estimate, second: Estimate) -> Ends:
    """Of two independent numbers, the first less the second; of infinite ends nothing is told."""
    told = np.isfinite(first[1]) & np.isfinite(second[1])
    (m1, l1, h1), (m2, l2, h2) = (
        tuple(np.where(told, number, 0.0) for number in estimate) for estimate in (first, second)
    )
    # An estimate outside its interval would break the roots: it is cut first.
    m1, m2 = np.clip(m1, l1, h1), np.clip(m2, l2, h2)
    gap = m1 - m2
    return nothing_unless(told, gap - np.hypot(m1 - l1, h2 - m2), gap + np.hypot(h1 - m1, m2 - l2))


def mean_ratio(first: Moments, second: Moments, floor: float, law: Sampling) -> Ends:
    """The ratio of two means in the file's units.

    Args:
        floor: The low end of the range in half-widths of it, so that a mean is m + 1 + floor >= 0.
    """
    (total1, of1), (total2, of2) = total_variance(first, law), total_variance(second, law)
    u1, u2 = first.mean + 1 + floor, second.mean + 1 + floor
    v1, v2 = total1 / first.number**2, total2 / second.number**2
    r = u1 / np.where(u2 > 0, u2, 1.0)
    # The variance of u_1 - r u_2, and its own, at the estimated ratio.
    weight1, weight2 = first.number**-4.0, r**4 * second.number**-4.0
    q = law.quantile(v1 + r * r * v2, weight1 * of1 + weight2 * of2)
    told = (u2 > 0) & (np.asarray(first.n) > 0) & (np.asarray(second.n) > 0)
    return roots(u2 * u2 - q * q * v2, u1 * u2, u1 * u1 - q * q * v1, 0.0, np.inf, told)
