"""Attack any function by its answers only: words are drawn, an event is learnt, and counted anew.

The answers of the tested pair are cut in halves. On the first, columns and scores are learnt and
one event is chosen; on the second it is counted, and Clopper-Pearson ends of both counts refute the
claim or do not. So however many pairs, columns, scores and thresholds were tried, a true claim is
refuted with probability at most `error` a report.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dpcore.adjacency import Adjacency
from dpcore.checks import fraction
from dpcore.errors import need
from dpcore_attacks.audits.auditor import Audit, audit_samples
from dpcore_attacks.audits.binomial import at_least, at_most
from dpcore_attacks.audits.claims import Claim
from dpcore_attacks.black_box.columns import Columns
from dpcore_attacks.black_box.elsewhere import NoAnswerError
from dpcore_attacks.black_box.neighbouring import Pair, check_pair
from dpcore_attacks.black_box.report import BlackBoxReport, place_of
from dpcore_attacks.black_box.words import Refused, Word

ERROR = 1e-4
"""Chance, at most, that a report refutes a true claim."""

_FEWEST = 160  # answers of either neighbour
_SEARCHED = 0.25  # of the draws, where there are several pairs
_MOST = 1e12  # draws that a message still suggests

Release = Callable[..., Any]
"""Takes records, and a NumPy generator if it is seeded; returns everything that is published."""


@attrs.frozen(kw_only=True, eq=False)
class _Sampler:
    """Draws words of one function, every time on fresh copies of the records."""

    release: Release
    seeded: bool
    public: Callable[[Any], Any] | None
    digits: int | None
    generator: np.random.Generator

    def draw(self, pair: Pair, count: int) -> tuple[list[Word], list[Word]]:
        """So many words of either neighbour, in a random order of calls."""
        words: tuple[list[Word], list[Word]] = ([], [])
        # A function that counts its calls must not seem to distinguish the neighbours .
        for first in self.generator.integers(2, size=count).tolist():
            for side in (first, 1 - first):
                words[side].append(self._word(pair[side]))
        return words

    def _word(self, records: Any) -> Word:
        # Some libraries change their caller's records: each call gets its own.
        arguments = [copy.deepcopy(records), *([self.generator] if self.seeded else [])]
        try:
            answer = self.release(*arguments)
            answer = answer if self.public is None else self.public(answer)
        except (NoAnswerError, MemoryError):
            # Something about the attack, and no answer of the function.
            raise
        except Exception as error:
            answer = Refused(type(error).__name__)
        word = Word.of(answer)
        return word if self.digits is None else word.rounded(self.digits)


def attack(
    release: Release,
    claim: Claim,
    *,
    neighbours: list[Pair],
    relation: Adjacency,
    draws: int = 10_000,
    error: float = ERROR,
    seed: int = 0,
    seeded: bool = False,
    public: Callable[[Any], Any] | None = None,
    digits: int | None = None,
    subject: str | None = None,
) -> BlackBoxReport:
    """Try to refute a claim about any function by its answers on neighbours.

    Args:
        release: The function, with its own randomness. Its answers may be numbers, texts, arrays,
            collections of these, and exceptions.
        claim: `ApproximateDP`, `GaussianDP` or a `Curve`.
        neighbours: Pairs of records. A part of the draws chooses the pair that is tested.
        relation: What the pairs are neighbours under. Without one, a claim says nothing.
        draws: Answers of either neighbour.
        error: Chance, at most, that a true claim is refuted.
        seed: Of the order of calls and of the generator that a seeded function gets.
        seeded: Whether the function takes a generator as its second argument. Then a report repeats
            exactly.
        public: What of an answer is published, as a function; everything if None.
        digits: Significant decimal digits of numbers that are compared; all bits if None.
        subject: Name for the report; the function's own if None.

    Raises:
        ParameterError: pairs that are no neighbours, answers of an unknown kind, or fewer draws
            than could refute the claim whatever came out.
    """
    fraction(BlackBoxReport, attrs.fields(BlackBoxReport).error, error)
    checked = check_pairs(neighbours, relation)
    counts = _counts(claim, draws, len(neighbours), error)
    generator = np.random.default_rng(seed)
    sampler = _Sampler(
        release=release, seeded=seeded, public=public, digits=digits, generator=generator
    )
    chosen = 0
    if len(neighbours) > 1:
        # These draws choose the pair, and none of them is evidence.
        audits = [_audit(sampler.draw(pair, counts[0]), claim, 0.5) for pair in neighbours]
        chosen = int(np.argmax([audit.measured.strength for audit in audits]))
    words = sampler.draw(neighbours[chosen], counts[1])
    refusals = sum(word.refused for side in words for word in side)
    is_dead = refusals == 2 * counts[1] and len({word.text() for s in words for word in s}) == 1
    premises = ["every call draws fresh noise, independent of earlier calls"]
    premises += [] if checked else [f"the pairs are neighbours under {relation}: not checked"]
    premises += [] if digits is None else [f"numbers have {digits} significant digits"]
    premises += [] if public is None else ["what `public` leaves out is not published"]
    return BlackBoxReport(
        subject=subject or str(getattr(release, "__qualname__", type(release).__name__)),
        place=place_of(release),
        claim=claim,
        relation=str(relation),
        audit=None if is_dead else _audit(words, claim, error),
        reason=f"every call ended in {words[0][0].texts['answer']}" if is_dead else "",
        pair=chosen,
        pairs=len(neighbours),
        draws=counts[0] * len(neighbours) + counts[1],
        error=error,
        seed=seed,
        refusals=refusals,
        premises=premises,
    )


def check_pairs(neighbours: Sequence[Pair], relation: Adjacency) -> bool:
    """Return whether every pair could be checked.

    Raises:
        ParameterError: there is none, or one is no pair of neighbours.
    """
    pairs_fit = isinstance(neighbours, list) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in neighbours
    )
    shape = [type(pair).__name__ for pair in neighbours] if isinstance(neighbours, list) else None
    need(pairs_fit and neighbours, "attack", "a list of (before, after)", "neighbours", shape)
    need(isinstance(relation, Adjacency), "attack", "an Adjacency", "relation", relation)
    # Every pair is checked, also after one that could not be.
    checks = [check_pair(pair, relation) for pair in neighbours]
    return all(checks)


def _counts(claim: Claim, draws: int, pairs: int, error: float) -> tuple[int, int]:
    """Draws for the search of each pair, and for the pair that is tested.

    Raises:
        ParameterError: even two answers that share nothing would refute nothing.
    """
    searching = int(_SEARCHED * draws) // pairs if pairs > 1 else 0
    testing = draws - searching * pairs
    enough = _FEWEST
    while not _can_refute(claim, enough, error) and enough < _MOST:
        enough *= 2
    if pairs > 1:
        # What the search takes is added, so that the suggestion is enough.
        enough = max(int(enough / (1 - _SEARCHED)), int(_FEWEST * pairs / _SEARCHED)) + 1
    need(
        draws >= enough or (testing >= _FEWEST and _can_refute(claim, testing, error)),
        "attack",
        f"at least about {enough} draws here",
        "draws",
        draws,
    )
    need(pairs == 1 or searching >= _FEWEST, "attack", f"{enough} draws", "draws", draws)
    return searching, testing


def _can_refute(claim: Claim, draws: int, error: float) -> bool:
    """Return whether an event that always comes under one neighbour and never under the other
    would.
    """
    tested = draws - draws // 2
    p, q = at_least(tested, tested, error / 2), at_most(0, tested, error / 2)
    return bool(claim.strength(p, q) > claim.claimed)


def _audit(words: tuple[list[Word], list[Word]], claim: Claim, error: float) -> Audit:
    """Learn from the first half of the words, count one event in the second."""
    eighth, half = len(words[0]) // 8, len(words[0]) // 2
    columns = Columns.learnt(words[0][:eighth], words[1][:eighth])
    before, after = (columns.rows(side[eighth:]) for side in words)
    # A column that never moves reveals nothing, and no direction can be learnt of it.
    learning = np.vstack([before[: half - eighth], after[: half - eighth]])
    sensitive = (learning != learning[0]).any(axis=0)
    sensitive[0] |= not sensitive.any()
    names = [name for name, moves in zip(columns.names, sensitive, strict=True) if moves]
    (audit,) = audit_samples(
        before[:, sensitive],
        after[:, sensitive],
        claim,
        confidence=1 - error,
        names=names,
        cuts=(eighth, half - eighth),
    )
    return audit
