"""Thresholds: events of a score, and the one that is expected to refute most.

An event is a half-line of a score under one of the two orders of the neighbours: four families.
Which is tested is chosen on samples that the test never sees, so that one look needs no correction.
"""

from __future__ import annotations

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
        """How many scores lie in the event."""
        inside = scores <= self.cut if self.below else scores >= self.cut
        return int(np.count_nonzero(inside))

    def ordered(
        self, before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The neighbour under which the event is likelier first."""
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
    likely, other = threshold.ordered(before, after)
    hits = threshold.hits(likely), threshold.hits(other)
    p = at_least(hits[0], len(likely), error / 2)
    q = at_most(hits[1], len(other), error / 2)
    strength = float(claim.strength(p, q))
    return Measured(hits, len(likely), float(p), float(q), strength)


def choose(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    claim: Claim,
    error: float,
    testing: int,
) -> tuple[Threshold, float]:
    r"""The threshold with the largest strength to be expected of `testing` fresh samples a side.

    A count k of n here predicts a frequency in the test whose variance is that of :math:`nt/(n+t)`
    samples: the strength at that many, with half a hit added to the unlikely side, is compared.
    It steers power alone.

    Returns:
        The threshold, and that strength.
    """
    own = len(before)
    worth = own * testing / (own + testing)
    best = Threshold(np.inf, below=False, reversed=False), -np.inf
    ranks = np.unique(np.geomspace(1, 2 * own, _CUTS).astype(np.intp)) - 1
    merged = np.sort(np.concatenate([before, after]))
    cuts = np.unique(merged[np.unique(np.concatenate([ranks, 2 * own - 1 - ranks]))])
    sorted_before, sorted_after = np.sort(before), np.sort(after)
    for below in (False, True):
        counts = [_hits(scores, cuts, below) for scores in (sorted_before, sorted_after)]
        for swapped in (False, True):
            likely, other = counts[::-1] if swapped else counts
            p = at_least(likely / own * worth, worth, error / 2)
            q = at_most(np.minimum((other + 0.5) / own, 1.0) * worth, worth, error / 2)
            found = claim.strength(p, q)
            place = int(np.argmax(found))
            if found[place] > best[1]:
                best = Threshold(float(cuts[place]), below, swapped), float(found[place])
    return best


def _hits(
    ordered: NDArray[np.float64], cuts: NDArray[np.float64], below: bool
) -> NDArray[np.float64]:
    """Scores in the event of every cut, from sorted scores."""
    if below:
        return np.searchsorted(ordered, cuts, side="right").astype(np.float64)
    return (len(ordered) - np.searchsorted(ordered, cuts, side="left")).astype(np.float64)
