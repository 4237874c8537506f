r"""The whole measured curve: a band that holds at every threshold, and so every epsilon, at once.

By Dvoretzky, Kiefer & Wolfowitz with Massart's constant, an empirical distribution function of n
samples lies farther than :math:`w=\sqrt{\log(2/a)/(2n)}` from the truth with probability at most a.
With a half of the error rate on either side,

.. math:: \delta(\epsilon)\ge\max_E\;\hat P(E)-w-e^{\epsilon}(\hat Q(E)+w)

for all half-lines E and all epsilon together. Weaker at any one event than its exact count.

Source: Massart (1990), Annals of Probability 18:1269-1283, Corollary 1.
"""

import math

import numpy as np
from numpy.typing import NDArray


def measured_curve(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    epsilons: NDArray[np.float64],
    error: float,
) -> NDArray[np.float64]:
    """Lower ends of the larger direction's delta at every epsilon, shape (k,), in [0, 1].

    Args:
        before, after: Scores, equally many, of samples on which the score was not learned.
        error: Probability that any of them lies above the truth.
    """
    trials = len(before)
    # 4: two sides of a distribution function, and half of the error for either neighbour
    width = math.sqrt(math.log(4 / error) / (2 * trials))
    cuts = np.unique(np.concatenate([before, after]))
    # a maximum over fewer events is a lower end as well
    cuts = cuts[:: max(1, len(cuts) // 4000)]
    curve = np.zeros(len(epsilons))
    above = [
        1 - np.searchsorted(np.sort(scores), cuts, side="left") / trials
        for scores in (before, after)
    ]
    below = [
        np.searchsorted(np.sort(scores), cuts, side="right") / trials for scores in (before, after)
    ]
    # both half-lines under both orders of the neighbours: the two bands cover them all
    for p, q in (above, above[::-1], below, below[::-1]):
        gain = (p - width)[None] - np.exp(epsilons)[:, None] * np.minimum(q + width, 1.0)[None]
        curve = np.maximum(curve, gain.max(axis=1))
    return curve
