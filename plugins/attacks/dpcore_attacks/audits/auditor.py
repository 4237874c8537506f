"""The auditor: from samples of two neighbours to lower confidence bounds on what was claimed.

The samples are cut in three: on the first a distinguisher is learned, on the second it and its
threshold are chosen, on the third one event is counted. Only the count is evidence, so that
however many scores, directions and thresholds were tried, nothing needs correcting; several claims
share the error rate equally.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcore.checks import fraction
from dpcore.errors import need
from dpcore_attacks.audits.bands import measured_curve
from dpcore_attacks.audits.claims import Claim, likelihood_epsilon
from dpcore_attacks.audits.distinguisher import Distinguisher, distinguishers
from dpcore_attacks.audits.thresholds import Measured, Threshold, choose, measure

LEARNING = (0.02, 0.1)
"""Proportion of the samples on which distinguishers are learned: of one column, and of more."""

CHOOSING = 0.2
"""Share on which distinguisher and threshold are chosen."""

_FEWEST = 20  # samples a side


@attrs.frozen(kw_only=True, eq=False)
class Audit:
    """What samples say of one claim.

    Args:
        claim: What was audited.
        confidence: With at least this probability no bound below exceeds the truth.
        samples: Drawn of either neighbour; `tested` of them are evidence.
        distinguisher: Name of the score. threshold: The event of it that was counted.
        measured: Its counts and what they refute.
    """

    claim: Claim
    confidence: float
    samples: int
    distinguisher: str
    threshold: Threshold
    measured: Measured

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted at this confidence."""
        return self.measured.strength > self.claim.claimed

    @property
    def epsilon(self) -> float:
        """The least epsilon, in the claim's kind and at its delta, that is not refuted; nats."""
        return self.claim.as_epsilon(self.measured.strength)

    @property
    def claimed_epsilon(self) -> float:
        """What is claimed, in the same terms."""
        return self.claim.as_epsilon(self.claim.claimed)

    def at_delta(self, delta: float) -> float:
        """Return the least epsilon of any (epsilon, delta) claim that the same counts do not
        refute.
        """
        p, q = np.array([self.measured.p]), np.array([self.measured.q])
        return max(0.0, float(likelihood_epsilon(p, q, delta)[0]))

    def describe(self) -> str:
        """Return the claim, its verdict, and what the counts say by which score: one sentence."""
        verdict = "REFUTED" if self.broken else "not refuted"
        return (
            f"{self.claim.describe()} is {verdict}: {self.claim.finding(self.measured.strength)} "
            f"at {100 * self.confidence:g} % confidence, {self.samples} samples of either "
            f"neighbour, by {self.distinguisher}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Claim, verdict, bounds and counts as plain data, for JSON."""
        return {
            "claim": self.claim.describe(),
            "refuted": self.broken,
            "epsilon_at_least": self.epsilon,
            "claimed_epsilon": self.claimed_epsilon,
            "strength_at_least": self.measured.strength,
            "claimed_strength": self.claim.claimed,
            "confidence": self.confidence,
            "samples": self.samples,
            "tested": self.measured.trials,
            "hits": list(self.measured.hits),
            "distinguisher": self.distinguisher,
        }


def audit_samples(
    before: ArrayLike,
    after: ArrayLike,
    claims: Claim | Sequence[Claim],
    *,
    confidence: float = 0.95,
    names: Sequence[str] = (),
    cuts: tuple[int, int] | None = None,
) -> tuple[Audit, ...]:
    """Test claims on samples of a mechanism's outputs under two neighbours.

    Args:
        before, after: Independent outputs (or features of them) under either neighbour, equally
            many, shape (n,) or (n, k).
        claims: One or several; they share the error rate.
        confidence: Probability, at least, that no bound exceeds the truth.
        names: Of the columns, for the report.
        cuts: How many samples have passed where learning ends and where choosing ends; by the usual
            shares if None.

    Raises:
        ParameterError: too few samples, shapes that do not fit, or values that are no numbers.
    """
    claim_list = (claims,) if isinstance(claims, Claim) else tuple(claims)
    fraction(Audit, attrs.fields(Audit).confidence, confidence)
    first, second = _rows("before", before), _rows("after", after)
    need(
        first.shape == second.shape,
        "audit",
        f"samples of one shape, {first.shape}",
        "after",
        second.shape,
    )
    names = tuple(names) or tuple(f"coordinate {k}" for k in range(first.shape[1]))
    # three disjoint parts: what was learned and chosen never saw the samples that are counted
    learning, choosing = cuts or _cuts(first)
    candidates = list(distinguishers(first[:learning], second[:learning], names))
    # a union bound over the claims, so that all of them hold together
    error = (1 - confidence) / len(claim_list)
    return tuple(
        _audit(claim, candidates, (first, second), (learning, choosing), confidence, error)
        for claim in claim_list
    )


def _rows(name: str, samples: ArrayLike) -> NDArray[np.float64]:
    rows = np.asarray(samples, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    need(
        rows.ndim == 2 and len(rows) >= _FEWEST and rows.shape[1],
        "audit",
        f"at least {_FEWEST} samples in rows",
        name,
        rows.shape,
    )
    # a NaN has no place in an order of scores, and no event counts it
    need(np.isfinite(rows).all(), "audit", "finite samples", name, "NaN or infinity")
    return rows


def _cuts(rows: NDArray[np.float64]) -> tuple[int, int]:
    """Where learning ends, and where choosing ends."""
    samples = len(rows)
    learning = max(2, int(LEARNING[rows.shape[1] > 1] * samples))
    return learning, learning + max(2, int(CHOOSING * samples))


def _audit(
    claim: Claim,
    candidates: Sequence[Distinguisher],
    samples: tuple[NDArray[np.float64], NDArray[np.float64]],
    cuts: tuple[int, int],
    confidence: float,
    error: float,
) -> Audit:
    learning, choosing = cuts
    testing = len(samples[0]) - choosing
    # distinguisher and event are chosen on the second part, however many were compared
    choices: list[tuple[Distinguisher, Threshold, float]] = []
    for distinguisher in candidates:
        before, after = (distinguisher.score(rows[learning:choosing]) for rows in samples)
        choices.append((distinguisher, *choose(before, after, claim, error, testing)))
    distinguisher, threshold, _ = max(choices, key=lambda choice: choice[2])
    # the third part is looked at once, for one event: its counts need no correction
    fresh = [distinguisher.score(rows[choosing:]) for rows in samples]
    return Audit(
        claim=claim,
        confidence=confidence,
        samples=len(samples[0]),
        distinguisher=distinguisher.name,
        threshold=threshold,
        measured=measure(threshold, fresh[0], fresh[1], claim, error),
    )


Sampler = Callable[[int], ArrayLike]
"""Draws that many independent outputs under one neighbour, shape (n,) or (n, k)."""


def audit_mechanism(
    before: Sampler,
    after: Sampler,
    claims: Claim | Sequence[Claim],
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
) -> tuple[Audit, ...]:
    """Test claims on a black box that can be sampled under two neighbours.

    Raises:
        ParameterError: as for `audit_samples`.
    """
    return audit_samples(before(samples), after(samples), claims, confidence=confidence)


def curve_of_samples(
    before: ArrayLike, after: ArrayLike, epsilons: ArrayLike, *, confidence: float = 0.95
) -> NDArray[np.float64]:
    """Lower ends of delta at every epsilon at once, for a report or a plot; shape (k,).

    The best linear score is learned on a part of the samples and never counted on it.

    Raises:
        ParameterError: as for `audit_samples`.
    """
    first, second = _rows("before", before), _rows("after", after)
    learning, _ = _cuts(first)
    names = tuple(f"coordinate {k}" for k in range(first.shape[1]))
    score_by_name = {
        d.name: d.score for d in distinguishers(first[:learning], second[:learning], names)
    }
    # the band holds at every epsilon for one score, which is fixed before the rest is counted
    score = score_by_name.get("linear discriminant", score_by_name[names[0]])
    scores = [score(rows[learning:]) for rows in (first, second)]
    return measured_curve(scores[0], scores[1], np.asarray(epsilons, float), 1 - confidence)
