"""The staircase mechanism of Geng & Viswanath (2014), arXiv:1212.1186: noise in l1, by its law."""

import math
from fractions import Fraction

import numpy as np

from dpcore import AdditiveNoise, IntegerDistribution, hookimpl
from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.exponential import BernoulliExp, uniform_below


class Staircase(AdditiveNoise):
    """Stairs as wide as the sensitivity, each exp(-epsilon) as high; the upper part is optimal."""

    source = "Geng & Viswanath (2014), arXiv:1212.1186, Theorem 3"

    def distribution(self, shift, scale):
        loss = Fraction(shift) / scale  # epsilon
        upper = max(1, round(shift / (1 + math.exp(loss / 2))))
        stairs, randomness = laplace_distribution(1 / loss, 1), BernoulliExp(loss)

        def draw(count, stream):
            values, again = np.empty(count, dtype=np.int64), np.arange(count)
            while again.size:
                stair = stairs.floored(again.size, stream)
                step = uniform_below(shift, again.size, stream)
                size = np.maximum(stair, -1 - stair) * shift + step
                values[again] = np.where(stair < 0, -size, size)
                low = (step >= upper) & ~randomness.toss(
                    np.ones(again.size, dtype=np.int64), stream
                )
                again = again[low | ((stair < 0) & (size == 0))]  # 0 has one sign
            return values

        def log_weight(k):
            return -float(loss) * (abs(k) // shift + (abs(k) % shift >= upper))

        return IntegerDistribution(
            draw=draw, log_weight=log_weight, period=shift, decay=float(loss)
        )


@hookimpl
def dpcore_mechanisms():
    return {"staircase": Staircase}
