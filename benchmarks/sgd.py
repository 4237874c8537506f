"""Block descent against the plain Python loop, one BLAS thread, interleaved; ratios of medians.

python benchmarks/sgd.py
"""

import math
import statistics
import time

import numpy as np
from threadpoolctl import threadpool_limits

from dpcore_sgd.block_descent import Descent, FeatureRows, descend

RECORDS, STEPS, REPEATS, CHAINS = 10_000, 20_000, 7, 32


def loop(features, labels, order, rate, clip):
    """What everyone writes first."""
    w = np.zeros(features.shape[1])
    limits = (clip / np.linalg.norm(features, axis=1)).tolist()
    for row in order.tolist():
        phi = features[row]
        residual = phi @ w - labels[row]
        if clip < math.inf:
            residual = min(max(residual, -limits[row]), limits[row])
        w -= rate * residual * phi
    return w


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(width, block, clip, chains):
    """Seconds of one loop (per chain) over seconds of block descent (per chain)."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(RECORDS, width))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    targets = rng.uniform(-1, 1, (RECORDS, chains))
    labels = targets[:, 0]
    order = rng.integers(0, RECORDS, STEPS)
    descent = Descent(rate=0.05, clip=clip)

    def ours():
        if chains == 1:
            return descend(FeatureRows(features), labels, order, descent, block=block)
        return descend(FeatureRows(features, chains), targets, order, descent, block=block)

    def theirs():
        return loop(features, labels, order, descent.rate, clip)

    if chains == 1:
        assert np.allclose(ours(), theirs(), rtol=0, atol=1e-10)
    pairs = [(seconds(theirs), seconds(ours)) for _ in range(REPEATS)]
    plain, blocked = (statistics.median(column) for column in zip(*pairs, strict=True))
    per_step = 1e6 * blocked / STEPS / chains
    print(
        f"{width:5d} features, block {block:3d}, {chains:2d} chains, clip {clip:4g}: "
        f"{plain * chains / blocked:5.1f} x the loop ({per_step:.2f} us a step and chain)"
    )


def main():
    for width, block in ((50, 32), (50, 64), (200, 32), (1000, 16)):
        for clip in (math.inf, 1.0, 0.3):
            ratio(width, block, clip, 1)
    for width in (50, 1000):
        ratio(width, 16, math.inf, CHAINS)
    ratio(50, 16, 1.0, CHAINS)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
