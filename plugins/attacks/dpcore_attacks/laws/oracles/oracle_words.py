"""What an oracle makes of its words: at least 128 bits of them behind many answers."""

from functools import partial

import numpy as np

from dpcore.randomness import SecretRandomness, Stream
from dpcore_attacks.laboratory.noise_streams import RecordedStream
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge, skip_if
from dpcore_attacks.laws.mechanisms.noise_stream import BITS, SEED_WORDS, changing_bits
from dpcore_attacks.laws.oracles.interactive import InteractiveCase

ORACLE_ENTROPY = Law(
    "interactive.enough-entropy",
    "Answers to many questions depend on at least 128 bits of the oracle's noise stream.",
)

LAWS = (ORACLE_ENTROPY,)

_POINTS = 64
_FEWEST = 4  # answers: fewer need no 128 bits
_FEW = 8  # different answers


def oracle_entropy_verdict(case: InteractiveCase, seed: int = 0) -> Verdict:
    """Many points asked of oracles whose streams differ in one bit."""
    return judge(ORACLE_ENTROPY, case.name, partial(_entropy, case, seed))


def _entropy(case: InteractiveCase, seed: int) -> str:
    duel = case.duel()
    size = min(_POINTS, duel.mechanism.most_points)
    skip_if(size < _FEWEST, f"it answers {size} questions")
    points = np.outer(np.arange(1, size + 1) / (size + 1), case.points[0])

    def stream(number: int) -> Stream:
        return SecretRandomness.rehearsal(25_000 + seed).noise(0, case.query.name, number)

    def answers(noise: Stream) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return duel.mechanism.open(case.before, duel.query, duel.sensitivity, noise).ask(points)

    noise = RecordedStream(stream(1))
    first = answers(noise)
    if noise.count > SEED_WORDS:
        return f"{noise.count} words for {size} answers"
    # A choice of few answers needs few bits; another law counts them.
    skip_if(len(np.unique(first)) <= min(_FEW, size // 2), "its answers are few different ones")
    skip_if(noise.count == 0, "its noise is not drawn from its stream")
    # Each bit of the words is flipped by itself: what changes nothing is no entropy.
    changing = changing_bits(
        noise.seen, first, lambda words: answers(RecordedStream(stream(1), words))
    )
    fail_if(
        changing < BITS,
        f"{size} answers are made of {noise.count} words, of which {changing} bits change "
        f"anything: anyone who tries all seeds knows the noise",
    )
    return f"{changing} bits of {noise.count} words"
