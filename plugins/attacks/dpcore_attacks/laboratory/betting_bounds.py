r"""`betting_bounds`: certify lower ends of :math:`P(E)-e^\epsilon Q(E)` by bets on pairs of draws.

Each pair gives the number :math:`Z = 1[x \in E] - e^\epsilon 1[y \in E]`, x from P and y from Q. A
player who puts the share :math:`\lambda` of a capital of 1 on Z being larger than c multiplies it
by :math:`1 + \lambda (Z - c)`. If the mean of Z is at most c, the capital grows above 1/rate with
probability at most `rate`, however often one looks (Ville's inequality). Several shares are played
side by side with equal parts of the capital, so that none has to be chosen beforehand.

Source: Waudby-Smith & Ramdas (2024), J. R. Stat. Soc. B 86(1), Section 4.
"""

import math

import numpy as np
from numpy.typing import NDArray

_PLAYERS = 14
_HALVINGS = 50


def certified_by_bets(
    p: NDArray[np.bool_], q: NDArray[np.bool_], factor: float, rate: float
) -> float:
    """Return the largest mean that is refuted, or less; errs with probability at most `rate`.

    Args:
        p, q: Whether each draw is in the event, shape (n,), independent of one another.
        factor: e^epsilon.
    """
    count = min(len(p), len(q))
    first, second = p[:count], q[:count]
    # Z has four values, and a product does not depend on the order of its factors
    joint = int((first & second).sum())
    first_only, second_only = int(first.sum()) - joint, int(second.sum()) - joint
    hits = np.array(
        [first_only, joint, second_only, count - first_only - joint - second_only], dtype=np.float64
    )
    values = np.array([1.0, 1.0 - factor, -factor, 0.0])
    fractions = 0.5 ** np.arange(_PLAYERS) / (factor + 1.0) * (1 - 1e-9)  # no bet ends in debt

    def capital(mean: float) -> float:
        logs = np.log1p(np.outer(fractions, values - mean)) @ hits
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean()))

    # Z lies between -e^epsilon and 1, and so does its mean
    goal, low, high = -math.log(rate), -factor, 1.0
    if capital(low) < goal:
        return low
    for _ in range(_HALVINGS):  # the capital falls in the mean
        middle = 0.5 * (low + high)
        if capital(middle) >= goal:
            low = middle
        else:
            high = middle
    return low
