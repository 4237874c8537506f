r"""Attack a trainer by one run: canaries that randomness put in, and guesses of which were.

Theorem (Mahloujifar, Melis & Chaudhuri 2025): let m fair randomness decide which canaries are in,
and let a run whose trade-off function is f publish something, from which somebody guesses r of the
randomness. With :math:`b(x)=f(1-x)`, the least probability that an event of probability x can have
under the other neighbour, start with :math:`R=\gamma v/m,\,H=\gamma(r-v)/m` and go from i = v - 1
down to
0: :math:`H'=\max(H,b(R)),\,R\leftarrow R+\tfrac i{r-i}(H'-H),\,H\leftarrow H'`. Where R + H ends
above r/m, v or more right guesses have probability at most :math:`\gamma`.

Which canaries are guessed may depend on what is published; how many must not. b is found from the
claim by bisection and rounded down, which refutes less.

Source: Mahloujifar, Melis & Chaudhuri (2025), Auditing f-differential privacy in one run, ICML,
PMLR 267:42615-42641, arXiv:2410.22235. The recursion was read off the public code of jax-privacy
2.0.0, and its numbers agree; tests hold it against exact laws.
"""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import fraction, positive_integer
from dpcore.errors import ContractError, need
from dpcore_attacks.audits.claims import Claim
from dpcore_attacks.black_box.attack import ERROR
from dpcore_attacks.black_box.report import NO_PROOF, Report, place_of

Trainer = Callable[..., Any]
"""Takes which canaries are in, shape (m,) of truths, and a NumPy generator if it is seeded; trains
once, and returns a score of each canary, shape (m,): the larger, the likelier it was in."""

_ROUNDS, _POINTS = 5, 65  # of a search, to 64^-5 of what is searched
_STRONGEST = 64.0


@attrs.frozen(kw_only=True, eq=False)
class OneRunReport(Report):
    """What the guesses of one run say of its claim.

    Args:
        canaries: m. guesses: r, fixed before the run. right: v of them.
        least: The largest strength, in the claim's own measure, that the guesses refute.
        error: Chance, at most, that a true claim is refuted.
        seed: Of the randomness, and of what the trainer draws if it takes a generator.
    """

    canaries: int
    guesses: int
    right: int
    least: float
    error: float
    seed: int

    @property
    def verdict(self) -> str:
        """`refuted` where so many right guesses are less likely than the error."""
        is_refuted = refutes(
            self.claim, self.claim.claimed, self.canaries, self.guesses, self.right, self.error
        )
        return "refuted" if is_refuted else "not refuted"

    def describe(self) -> str:
        """Return the verdict, the guesses, and what they rest on, a line each."""
        lines = [
            f"{self.title()}: {self.claim.finding(self.least)}",
            f"{self.right} of {self.guesses} guesses among {self.canaries} canaries were right, in "
            f"one run; a true claim is refuted with chance {self.error:g} at most",
            "premise: each canary's coin changes that canary only, and scores follow from what is "
            "published",
        ]
        return "\n".join(lines if self.verdict == "refuted" else [*lines, NO_PROOF])

    def to_dict(self) -> dict[str, Any]:
        """Subject, verdict and counts as plain data, for JSON."""
        counts = {"canaries": self.canaries, "guesses": self.guesses, "right": self.right}
        settings = {"least": self.least, "error": self.error, "seed": self.seed}
        return {**super().to_dict(), **counts, **settings}


def attack_one_run(
    train: Trainer,
    claim: Claim,
    *,
    canaries: int,
    relation: Adjacency,
    guesses: int | None = None,
    error: float = ERROR,
    seed: int = 0,
    seeded: bool = False,
    subject: str | None = None,
) -> OneRunReport:
    """Train once with canaries that fair randomness put in; guess the randomness from their scores.

    Args:
        train: The trainer. Its other records are its own affair.
        claim: `ApproximateDP`, `GaussianDP` or a `Curve`.
        canaries: m. Under `add_remove` one that is not in is left out; under `replace_one` another
            record is in its place.
        relation: Which of these it is.
        guesses: r: the half of them with the highest scores are said to be in, and as many with the
            lowest to be out. A tenth of the canaries if None.
        error: Chance, at most, that a true claim is refuted.
        seed: Of the randomness and of the generator that a seeded trainer gets.
        seeded: Whether the trainer takes a generator as its second argument.
        subject: Name for the report; the trainer's own if None.

    Raises:
        ParameterError: more guesses than canaries.
        ContractError: scores of another shape, or that are no numbers.
    """
    owner, fields = OneRunReport, attrs.fields(OneRunReport)
    fraction(owner, fields.error, error)
    positive_integer(owner, fields.canaries, canaries)
    number = max(1, canaries // 10) if guesses is None else guesses
    need(1 <= number <= canaries, "attack_one_run", "1 to all canaries", "guesses", number)
    need(isinstance(relation, Adjacency), "attack_one_run", "an Adjacency", "relation", relation)
    generator = np.random.default_rng(seed)
    # The trainer gets other randomness than these, so that it cannot know them.
    is_in = generator.integers(2, size=canaries).astype(bool)
    trained = train(is_in.copy(), *([generator.spawn(1)[0]] if seeded else []))
    scores = np.asarray(trained, dtype=np.float64)
    is_scored = scores.shape == (canaries,) and not np.isnan(scores).any()
    need(is_scored, ContractError, f"one score a canary, shape ({canaries},)")
    right = int(_right(scores, is_in, number))
    return OneRunReport(
        subject=subject or str(getattr(train, "__qualname__", type(train).__name__)),
        place=place_of(train),
        claim=claim,
        relation=str(relation),
        canaries=canaries,
        guesses=number,
        right=right,
        least=_least(claim, canaries, number, right, error),
        error=error,
        seed=seed,
    )


def refutes(
    claim: Claim, strength: float, canaries: int, guesses: int, right: int, error: float
) -> bool:
    """Return whether a claim of that kind and strength gives so many right guesses probability at
    most `error`: the theorem above."""
    if right == 0:
        return False
    reached = error * right / canaries
    rest = error * (guesses - right) / canaries
    for index in range(right - 1, -1, -1):
        least = max(rest, _least_probability(claim, strength, min(reached, 1.0)))
        # Where nothing is gained once, nothing is gained any more: b grows with R only.
        if least == rest:
            break
        reached += index / (guesses - index) * (least - rest)
        rest = least
        if reached + rest > guesses / canaries:
            return True  # both grow
    return bool(reached + rest > guesses / canaries)


def _least_probability(claim: Claim, strength: float, probability: float) -> float:
    """b: the least that an event of this probability has under the other neighbour; or less."""
    low, high = 0.0, probability
    p = np.array(probability)
    for _ in range(_ROUNDS):
        q = np.linspace(low, high, _POINTS)
        # Of the event, and of its complement with the neighbours exchanged.
        refuted = np.maximum(claim.strength(p, q), claim.strength(1 - q, 1 - p)) > strength
        # A smaller q is refuted more: the last point that is refuted is below b.
        count = int(np.argmin(refuted)) if not refuted.all() else _POINTS
        low, high = float(q[max(count - 1, 0)]), float(q[min(count, _POINTS - 1)])
    return low


def _least(claim: Claim, canaries: int, guesses: int, right: int, error: float) -> float:
    """Return the largest strength that is refuted, rounded down; 0 or below if none is."""
    low, high = 0.0, _STRONGEST
    for _ in range(30):
        middle = 0.5 * (low + high)
        is_refuted = refutes(claim, middle, canaries, guesses, right, error)
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def _right(scores: NDArray[np.float64], is_in: NDArray[np.bool_], guesses: int) -> int:
    """Return how many guesses are right: the highest scores are said to be in, the lowest to be
    out.
    """
    order = np.argsort(scores, kind="stable")
    low = guesses // 2
    high = guesses - low
    return int(np.sum(~is_in[order[:low]]) + np.sum(is_in[order[len(order) - high :]]))
