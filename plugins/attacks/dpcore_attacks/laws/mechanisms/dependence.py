r"""Dependence: how numbers of one release follow one another, learnt from releases of zeros.

Noise :math:`z` of covariance :math:`\Sigma` hides a movement s no better than one number of the
deviation :math:`(s^T\Sigma^{-1}s)^{-1/2}`: the sum :math:`w^T x` with :math:`w=\Sigma^{-1}s` has
it. Over s of l2 norm 1 the least is the root of the smallest eigenvalue of :math:`\Sigma`. What is
learnt here chooses a movement and an event only: errors of it cost power, and nothing else.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore.sensitivity import Distance
from dpcore_attacks.laboratory.excess import Sample

_WAVES = 4  # of a rank: how finely the dependence of two numbers is looked for
_BINS = 16  # of either number of a pair
_PART = 0.25  # of releases, to learn the likelihood of a pair's outputs from


def weakest_movement(
    releases: NDArray[np.float64], distance: Distance
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the movement of norm 1 that the noise hides least, and the weights that show it.

    Args:
        releases: Of one value, shape (releases, coordinates).
    """
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(releases.T)))
    inverse = (vectors / np.maximum(values, 1e-12 * values[-1] + 1e-300)) @ vectors.T
    step = vectors[:, 0]
    if distance is Distance.LINF:
        step = np.where(step < 0, -1.0, 1.0)
    elif distance is not Distance.L2:
        # Of all l1 movements of norm 1, those of one coordinate are the extreme ones.
        step = np.eye(len(values))[int(np.argmax(np.diag(inverse)))]
    return step, inverse @ step


def most_dependent_pair(releases: NDArray[np.float64]) -> tuple[int, int]:
    """Return the two coordinates whose outputs depend on one another most, in any way.

    Ranks become cosines of several wavelengths, odd ones of which keep the sign, so that sizes that
    follow one another correlate where the numbers do not.
    """
    count, size = releases.shape
    ranks = (np.argsort(np.argsort(releases, axis=0), axis=0) + 0.5) / count
    waves = np.concatenate([np.cos(np.pi * k * ranks) for k in range(1, _WAVES + 1)], axis=1)
    squares = (waves.T @ waves / count) ** 2
    # All products of a wave of one coordinate with a wave of another, summed by coordinates.
    strength = squares.reshape(_WAVES, size, _WAVES, size).sum(axis=(0, 2))
    first, second = np.unravel_index(int(np.argmax(np.triu(strength, 1))), strength.shape)
    return int(first), int(second)


def pair_samples(
    pair: tuple[int, int], p: NDArray[np.float64], q: NDArray[np.float64]
) -> list[Sample]:
    """Return the likelihood of both outputs of a pair, learnt in cells on a part of the
    releases.
    """
    cut = int(_PART * len(p))
    learning = np.concatenate([p[:cut], q[:cut]])
    edges = [np.quantile(learning[:, k], np.linspace(0, 1, _BINS + 1)[1:-1]) for k in pair]

    def cells(releases: NDArray[np.float64]) -> NDArray[np.intp]:
        rows, columns = (
            np.searchsorted(cuts, releases[:, k]) for cuts, k in zip(edges, pair, strict=True)
        )
        return np.asarray(_BINS * rows + columns)

    # One more in each cell, so that no cell has the likelihood 0.
    counts = [np.bincount(cells(side[:cut]), minlength=_BINS**2) + 1.0 for side in (p, q)]
    ratios = np.log(counts[0] / counts[1])
    scores = (ratios[cells(side[cut:])][:, None] for side in (p, q))
    label = f"the likelihood of outputs {pair[0]} and {pair[1]} together"
    return [Sample(p=next(scores), q=next(scores), what=label)]
