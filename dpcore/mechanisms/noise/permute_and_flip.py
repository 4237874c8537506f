r"""Permute-and-flip, exact: an index with a high score, chosen in private.

In a random order, each index tosses a coin with heads of probability
:math:`e^{-rate\,(\max q - q_r)}`, and the first heads wins. The coins do not depend on the order,
so the winner is uniform among the heads: all coins are tossed at once and one of the heads is
drawn. A largest score always shows heads.

Source: McKenna & Sheldon (2020), arXiv:2010.12603.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.mechanisms.noise.exponential import ExpCoins
from dpcore.mechanisms.noise.uniform import uniform_below
from dpcore.randomness import Stream


def permute_and_flip(scores: NDArray[np.int64], coins: ExpCoins, stream: Stream) -> int:
    """The chosen index.

    Args:
        scores: Integers within +-2^61, shape (n,), n >= 1.
        coins: Their rate is epsilon / (2 sensitivity) per unit of score.

    Raises:
        ValueError: no scores, or one beyond +-2^61.
    """
    need(
        scores.size != 0 and int(np.abs(scores).max()) <= 1 << 61,
        ValueError,
        "needs at least one score, each within +-2^61",
    )
    # the largest score has exponent 0, so at least one coin shows heads
    winners = np.flatnonzero(coins.toss(scores.max() - scores, stream))
    return int(winners[uniform_below(winners.size, 1, stream)[0]])
