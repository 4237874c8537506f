"""Thresholds: events of a score, and the one that is expected to refute most.

An event is a half-line of a score under one of the two orders of the neighbours: four families.
Which is tested is chosen on samples that the test never sees, so that one look needs no correction.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_attacks.audits.binomial import at_least, at_most
from dpcore_attacks.audits.claims import Claim

_CUTS = 150  # thresholds tried in each family, denser towards the tails


@attrs.frozen
class Threshold:
    """The event {score >= cut}, or {score <= cut} if `below`.

    Args:
        reversed: Whether its probability under `after` is the larger one.
    """

    cut: float
    below: bool
    reversed: bool

    def hits(self, scores: NDArray[np.float64]) -> int:
        """Return how many scores lie in the event."""
        inside = scores <= self.cut if self.below else scores >= self.cut
        return int(np.count_nonzero(inside))

    def ordered(
        self, before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the neighbour under which the event is likelier first."""
        return (after, before) if self.reversed else (before, after)


@attrs.frozen
class Measured:
    """What the counts of one event refute.

    Args:
        hits: Samples in the event, under the likelier neighbour and under the other.
        trials: Samples of either neighbour.
        p, q: At least p under the one, at most q under the other.
        strength: Of the claim's kind, the least that is not refuted.
    """

    hits: tuple[int, int]
    trials: int
    p: float
    q: float
    strength: float


def measure(
    threshold: Threshold,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    claim: Claim,
    error: float,
) -> Measured:
    """Count, and bound both probabilities at half of `error` each.

    Args:
        before, after: Scores of fresh samples, equally many, shape (n,).
        error: Probability that the strength exceeds that of the true pair.
    """
    likely, unlikely = threshold.ordered(before, after)
    # two ends at half of the error each: both hold together
    hits = threshold.hits(likely), threshold.hits(unlikely)
    p = at_least(hits[0], len(likely), error / 2)
    q = at_most(hits[1], len(unlikely), error / 2)
    strength = float(claim.strength(p, q))
    return Measured(hits, len(likely), float(p), float(q), strength)


def choose(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    claim: Claim,
    error: float,
    testing: int,
) -> tuple[Threshold, float]:
    r"""Return the threshold with the largest strength to be expected of `testing` fresh samples a
    side.

    A count k of n here predicts a frequency in the test whose variance is that of :math:`nt/(n+t)`
    samples: the strength at that many, with half a hit added to the unlikely side, is compared.
    It steers power only.

    Returns:
        The threshold, and that strength.
    """
    count = len(before)
    # two frequencies differ with variance 1/n + 1/t, that of nt/(n + t) samples
    worth = count * testing / (count + testing)
    best = Threshold(np.inf, below=False, reversed=False), -np.inf
    # geometric from either end: at a small delta the most saying events are rare
    ranks = np.unique(np.geomspace(1, 2 * count, _CUTS).astype(np.intp)) - 1
    merged = np.sort(np.concatenate([before, after]))
    cuts = np.unique(merged[np.unique(np.concatenate([ranks, 2 * count - 1 - ranks]))])
    sorted_before, sorted_after = np.sort(before), np.sort(after)
    for below in (False, True):
        counts = [_hits(scores, cuts, below) for scores in (sorted_before, sorted_after)]
        for swapped in (False, True):
            likely, unlikely = counts[::-1] if swapped else counts
            # expected counts represent counts: they choose, and are no evidence
            p = at_least(likely / count * worth, worth, error / 2)
            q = at_most(np.minimum((unlikely + 0.5) / count, 1.0) * worth, worth, error / 2)
            strengths = claim.strength(p, q)
            index = int(np.argmax(strengths))
            if strengths[index] > best[1]:
                best = Threshold(float(cuts[index]), below, swapped), float(strengths[index])
    return best


def _hits(
    ordered: NDArray[np.float64], cuts: NDArray[np.float64], below: bool
) -> NDArray[np.float64]:
    """Scores in the event of every cut, from sorted scores."""
    if below:
        return np.searchsorted(ordered, cuts, side="right").astype(np.float64)
    return (len(ordered) - np.searchsorted(ordered, cuts, side="left")).astype(np.float64)
