r"""Attack a function from within: both neighbours meet equal noise, and what they declare is read.

Theorem: let an answer be y = g(D, o), where o are the results of all noise calls, and let o stand
at the same places of every y, of D' too, unless that is an exception. Let S hold all o with
g(D, o) unlike g(D', o), p = P(o in S) under D. Then the event {g(D, o): o in S} has probability p
under D. Under D' it has probability 0: an answer g(D', o') in it says o' itself, which would be in
S, where both answers differ. So a claim must allow :math:`\delta\ge p` at every epsilon. Of k
tapes that are recorded under D, j give D' another answer: Clopper and Pearson's lower end of p
refutes the claim or does not.

That all randomness is in o is tested: D must give its own answer on its own tape, to the last bit.
That o is in the answers is read off all answers that are compared, and is a premise for others.
Where it does not, or where D' makes other noise calls, an answer that differs is a *candidate* and
no verdict: `sum + noise` differs with equal noise, too.

Also, each noise call says how far its value may move. One that moved further contradicts what
the call declares. That is read off one tape, and refutes the declaration, not the claim.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import fraction, positive_integer
from dpcore.errors import need
from dpcore_attacks.audits.binomial import at_least
from dpcore_attacks.audits.claims import Claim
from dpcore_attacks.black_box.attack import ERROR, Release, check_pairs
from dpcore_attacks.black_box.elsewhere import NoAnswerError
from dpcore_attacks.black_box.neighbouring import Pair
from dpcore_attacks.black_box.noise_calls import (
    NoiseCall,
    Row,
    Tape,
    contradictions,
)
from dpcore_attacks.black_box.report import NO_PROOF, Report, place_of
from dpcore_attacks.black_box.words import Refused, Word


@attrs.frozen(kw_only=True, eq=False)
class EqualNoiseReport(Report):
    """What tapes of one function say of its claim.

    Args:
        tapes: Recorded under the first neighbour of each pair.
        differing: Of the pair that differed most: how many gave the second another answer.
        published: Whether all results of noise calls stand in the answers of both neighbours, at
            the same places, and both make the same calls.
        contradictions: Declarations that a value contradicts, as sentences.
        calls: Noise calls of the longest tape.
        least: Lower end of the probability that equal noise gives another answer.
        error: Chance, at most, that a true claim is refuted.
    """

    tapes: int
    differing: int
    published: bool
    contradictions: Sequence[str]
    calls: int
    least: float
    error: float

    @property
    def verdict(self) -> str:
        """`refuted`, `not refuted` or `not judged`; contradicted declarations are next to it."""
        if self.reason:
            return "not judged"
        strength = float(self.claim.strength(np.array(self.least), np.array(0.0)))
        return "refuted" if self.published and strength > self.claim.claimed else "not refuted"

    @property
    def exit_code(self) -> int:
        """1 where a declaration is contradicted, too."""
        return 1 if self.contradictions else super().exit_code

    def describe(self) -> str:
        """Return the verdict, what differed, and what is contradicted, a line each."""
        lines = [self.title() + (f": {self.reason}" if self.reason else "")]
        if not self.reason:
            lines.append(
                f"with equal noise {self.differing} of {self.tapes} answers differed "
                f"({self.calls} noise calls each)"
            )
        if self.verdict == "refuted":
            lines += [
                f"so it needs a delta of at least {self.least:.4g} at every epsilon",
                "premise: every answer shows all noise at the same places, as the compared ones do",
            ]
        elif self.differing:
            lines.append(
                "that is no verdict, because the answer does not show all noise: draw answers of "
                "this pair with `dpcore.attack`"
            )
        lines += [f"declared too little: {sentence}" for sentence in self.contradictions]
        return "\n".join(lines if self.exit_code == 1 else [*lines, NO_PROOF])

    def to_dict(self) -> dict[str, Any]:
        """Subject, verdict and counts as plain data, for JSON."""
        counts = {"tapes": self.tapes, "differing": self.differing, "calls": self.calls}
        bounds = {"published": self.published, "least": self.least, "error": self.error}
        return {**super().to_dict(), **counts, **bounds, "declared": [*self.contradictions]}


def attack_with_equal_noise(
    release: Release,
    claim: Claim,
    *,
    neighbours: list[Pair],
    relation: Adjacency,
    noise: Sequence[NoiseCall],
    tapes: int = 100,
    error: float = ERROR,
    public: Callable[[Any], Any] | None = None,
    subject: str | None = None,
) -> EqualNoiseReport:
    """Run a function on neighbours with equal noise; read what its noise calls declare.

    Args:
        release: Takes records and returns everything that is published.
        claim: `ApproximateDP`, `GaussianDP` or a `Curve`.
        neighbours: Pairs of records. Each is tested with its proportion of the error.
        relation: What the pairs are neighbours under.
        noise: Every place where the function draws what is random.
        tapes: Runs of the first neighbour of each pair, each of them given to both.
        error: Chance, at most, that a true claim is refuted.
        public: What of an answer is published, as a function; everything if None.
        subject: Name for the report; the function's own if None.

    Raises:
        ParameterError: pairs that are no neighbours, no noise call, or values of other lengths.
        NoAnswerError: a noise call has no such sensitivity.
    """
    fraction(EqualNoiseReport, attrs.fields(EqualNoiseReport).error, error)
    positive_integer(EqualNoiseReport, attrs.fields(EqualNoiseReport).tapes, tapes)
    check_pairs(neighbours, relation)
    need(noise, "attack_with_equal_noise", "at least one NoiseCall", "noise", 0)
    runner = _Runner(release=release, noise=tuple(noise), public=public)
    trials = [_trial(runner, pair, tapes) for pair in neighbours]
    # Of several pairs the strongest counts, each with its proportion of the error.
    strongest = max(trials, key=lambda trial: (trial.published, trial.differing))
    sentences = [
        f"{sentence} (pair {number})"
        for number, trial in enumerate(trials, 1)
        for sentence in trial.contradictions
    ]
    least = float(at_least(strongest.differing, tapes, error / len(neighbours)))
    return EqualNoiseReport(
        subject=subject or str(getattr(release, "__qualname__", type(release).__name__)),
        place=place_of(release),
        claim=claim,
        relation=str(relation),
        reason=next((trial.reason for trial in trials if trial.reason), ""),
        tapes=tapes,
        differing=strongest.differing,
        published=strongest.published,
        contradictions=tuple(dict.fromkeys(sentences)),
        calls=max(trial.calls for trial in trials),
        least=least,
        error=error,
    )


@attrs.frozen(kw_only=True, eq=False)
class _Runner:
    release: Release
    noise: Sequence[NoiseCall]
    public: Callable[[Any], Any] | None

    def run(self, records: Any, given: Sequence[Row] | None = None) -> tuple[Word, Tape]:
        """Return the answer and its tape; an exception is an answer, and so is another order of
        calls.
        """
        tape = Tape(given)
        try:
            with tape.around(self.noise):
                # Some libraries change their caller's records: each run gets its own.
                answer = self.release(copy.deepcopy(records))
            answer = answer if self.public is None else self.public(answer)
        except (NoAnswerError, MemoryError):
            # Something about the attack, and no answer of the function.
            raise
        except Exception as error:
            answer = Refused(type(error).__name__)
        return Word.of(answer), tape


@attrs.frozen(kw_only=True, eq=False)
class _Trial:
    differing: int
    published: bool
    contradictions: tuple[str, ...]
    calls: int
    reason: str


def _trial(runner: _Runner, pair: Pair, tapes: int) -> _Trial:
    """Return all tapes of one pair."""
    differing, calls, reason, strays = 0, 0, "", False
    sentences: dict[str, float] = {}
    places: list[set[tuple[str, int]]] | None = None
    for _ in range(tapes):
        word, recorded = runner.run(pair[0])
        rows = recorded.rows
        calls = max(calls, len(rows))
        repeated, _ = runner.run(pair[0], rows)
        if repeated.text() != word.text():
            reason = "the first neighbour's answer differs on its own tape: it draws, or keeps, "
            reason += "something outside the noise calls that were named"
            break
        other, replayed = runner.run(pair[1], rows)
        differing += other.text() != word.text()
        places = _places(places, word, rows)
        # An exception is unlike every other answer, whatever noise came before it.
        if not other.refused or word.refused:
            places = _places(places, other, rows)
        strays |= replayed.strayed
        for sentence, movement in contradictions(rows, replayed.rows):
            sentences[sentence] = max(movement, sentences.get(sentence, 0.0))
    return _Trial(
        differing=differing,
        # Without any noise there is none to show, and every difference is the records'.
        published=not strays and all(places or ()),
        contradictions=tuple(
            f"{text}, and moved by {distance:.6g}" if distance else text
            for text, distance in sentences.items()
        ),
        calls=calls,
        reason=reason,
    )


def _places(
    places: list[set[tuple[str, int]]] | None, word: Word, rows: Sequence[Row]
) -> list[set[tuple[str, int]]]:
    """For each number that noise calls returned, where in every answer so far it is."""
    results = [np.asarray(row.result) for row in rows]
    if any(result.dtype.kind not in "fiu" for result in results):
        return [set()]
    numbers: NDArray[np.float64] = np.concatenate(
        [result.astype(np.float64).reshape(-1) for result in results] or [np.zeros(0)]
    )
    standing = [
        {
            (path, index)
            for path, values in word.numbers.items()
            for index in np.flatnonzero(values == number).tolist()
        }
        for number in numbers
    ]
    if places is None:
        return standing
    # Another number of calls than before: no place is fixed.
    if len(places) != len(standing):
        return [set()]
    return [old & new for old, new in zip(places, standing, strict=True)]
