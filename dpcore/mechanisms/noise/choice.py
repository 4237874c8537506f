r"""A choice with probabilities proportional to :math:`e^{-rate\,n_t}`, exactly.

A uniform candidate t is drawn and kept by a coin with heads of probability
:math:`e^{-rate\,n_t}`; if it shows tails, both are drawn again (von Neumann). A best candidate
(n = 0) is always kept, so it takes at most as many tries as there are candidates, on average. No
float weighs anything: a softmax would underflow to 0/0 on long lists.
"""

from collections.abc import Sequence

import numpy as np

from dpcore.errors import need
from dpcore.mechanisms.noise.exponential import ExpCoins
from dpcore.mechanisms.noise.uniform import uniform_below
from dpcore.randomness import Stream

_FIRST, _MOST = 64, 4096  # tries at once
_COIN = 1 << 62  # the largest exponent of one coin


def chosen(behind: Sequence[int], coins: ExpCoins, stream: Stream) -> int:
    """The chosen index.

    Args:
        behind: How far each candidate is behind the best one, >= 0, one of them 0; of any size.
        coins: Of the rate.

    Raises:
        ValueError: there are no candidates, or none of them is the best.
    """
    need(behind and min(behind) == 0, ValueError, "needs candidates, of which one is the best")
    # a coin's exponent is at most 2^62; `_shows_heads` tosses for what lies above
    first = np.array([min(n, _COIN) for n in behind], dtype=np.int64)
    tries = _FIRST
    while True:
        candidates = uniform_below(len(behind), tries, stream)
        heads = coins.toss(first[candidates], stream)
        # tries are independent, so the first success of a batch is that of single tries
        for index in candidates[heads]:
            if _shows_heads(behind[int(index)] - _COIN, coins, stream):
                return int(index)
        tries = min(2 * tries, _MOST)


def _shows_heads(exponent: int, coins: ExpCoins, stream: Stream) -> bool:
    """Whether a coin for the rest of an exponent shows heads: independent coins multiply."""
    while exponent > 0:
        (heads,) = coins.toss(np.array([min(exponent, _COIN)], dtype=np.int64), stream)
        if not heads:
            return False
        exponent -= _COIN
    return True
