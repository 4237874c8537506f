r"""Group privacy: what a claim about neighbours says of data sets k steps apart, rounded up.

A path of k neighbours leads from one to the other inside the domain: one record changed at a
time, or, where records come and go, those that go first.
"""

import math

from dpcore.rounding import up


def zcdp_of_group(rho: float, steps: int) -> float:
    """k^2 rho. Source: Bun & Steinke (2016), arXiv:1605.02065, Proposition 1.9."""
    return up(steps * steps * rho, roundings=3) if steps > 1 else steps * rho


def pure_of_group(epsilon: float, steps: int) -> float:
    """k epsilon. Source: Dwork & Roth (2014), Theorem 2.2."""
    return up(steps * epsilon, roundings=3) if steps > 1 else steps * epsilon


def approximate_of_group(epsilon: float, delta: float, steps: int) -> tuple[float, float]:
    r"""(k epsilon, :math:`\delta\sum_{i<k}e^{i\epsilon}`), the second at most 1.

    The definition, k times over, as in Vadhan (2017), The complexity of differential privacy,
    Lemma 2.2.
    """
    if steps == 0:
        return 0.0, 0.0
    if steps == 1 or delta == 0:
        return pure_of_group(epsilon, steps), delta
    total = steps * epsilon
    # e^700 is close to the largest float; every delta has reached 1 far below
    if total > 700:
        return up(total, roundings=3), 1.0
    # the geometric sum 1 + e^epsilon + ... + e^((k-1) epsilon)
    copies = math.expm1(total) / math.expm1(epsilon) if epsilon > 0 else steps
    return up(total, roundings=3), min(1.0, up(delta * copies, roundings=5000))
