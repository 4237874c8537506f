r"""Randomized response, exact: the true category with probability e^eps / (e^eps + c - 1).

A candidate category is drawn uniformly and kept if it is the true one, or else with probability
exp(-epsilon); otherwise another is drawn. Kept candidates have weights 1 and exp(-epsilon).

Source: Warner (1965); Kairouz, Oh & Viswanath (2016) for more than two categories.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.mechanisms.noise.exponential import ExpCoins
from dpcore.mechanisms.noise.uniform import uniform_below
from dpcore.randomness import Stream


def randomized_response(
    categories: NDArray[np.int64], count: int, epsilon: Fraction | float, stream: Stream
) -> NDArray[np.int64]:
    """One independent response per entry, of the shape of `categories`.

    Args:
        categories: The true ones, in range(count).
        count: How many there are, at least 2.
        epsilon: > 0, in nats; a float means the rational number it is.

    Raises:
        ValueError: a category, `count` or `epsilon` is outside its range.
    """
    true = np.ascontiguousarray(categories, dtype=np.int64).reshape(-1)
    need(
        count >= 2 and 0 < epsilon < float("inf"),
        ValueError,
        f"needs count >= 2 and a finite epsilon > 0, got {count!r}, {epsilon!r}",
    )
    need(
        not true.size or (int(true.min()) >= 0 and int(true.max()) < count),
        ValueError,
        "a category is not in range(count)",
    )
    coins = ExpCoins(Fraction(epsilon))
    answers = np.empty_like(true)
    waiting = np.arange(true.size)
    while waiting.size:
        candidates = uniform_below(count, waiting.size, stream)
        # exponent 0 for the true category, whose coin always shows heads, and 1 for others
        differs = (candidates != true[waiting]).astype(np.int64)
        mask = coins.toss(differs, stream)
        answers[waiting[mask]] = candidates[mask]
        waiting = waiting[~mask]
    return answers.reshape(np.shape(categories))
