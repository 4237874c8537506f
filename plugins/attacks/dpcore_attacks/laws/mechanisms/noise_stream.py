"""What a mechanism makes of the words of its stream: noise with tails, and enough of them."""

import math
from collections.abc import Callable
from itertools import pairwise, product

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.event import Direction
from dpcore.sensitivity import Distance
from dpcore_attacks.laboratory.draws import Bench
from dpcore_attacks.laboratory.noise_streams import RecordedStream, Runs
from dpcore_attacks.laws.law import Law, fail_if, skip_if
from dpcore_attacks.laws.mechanisms.statistical_trial import Trial, local, rounded

TAILS = Law(
    "mechanism.noise-has-tails", "Noise has no largest size, or the curve says what that costs."
)
ENTROPY = Law(
    "mechanism.enough-entropy",
    "A release of many coordinates depends on at least 128 bits of its noise stream.",
)

BITS = 128
"""That noise of many numbers must depend on."""

SEED_WORDS = 8
"""As many or fewer words may be a seed."""

_NOTHING = 1e-30  # of a delta


def tails(trial: Trial) -> str:
    """Words with long runs of equal bits give extremes of any inversion; where one size of noise is
    the largest again and again, whatever the value, outputs beyond it distinguish neighbours .
    """
    bench, _, _ = local(trial, 1.0, 1024)
    skip_if(trial.distance is Distance.HAMMING, "its outputs are categories")
    skip_if(
        trial.case.mechanism.arithmetic == "exact",
        "its outputs lie on a grid: the law of any value measures them",
    )
    curve = trial.event(bench).curve
    # A curve that pays for an end of the noise, in delta, owes no tails.
    skip_if(
        max(curve.upper_at(500.0, d) for d in Direction) > _NOTHING,
        "its curve leaves room for noise that ends",
    )
    release = bench.prepared()
    tops: list[float] = []
    for base in (0.0, 5.0):
        value = np.full(1024, base)
        noises = [
            # Streams with long runs of equal bits reach the ends of an inversion at once.
            bench.released(release, value, Runs(bench.stream(k), 40)) - value
            for k in range(12)
        ]
        noises += [bench.released(release, value, bench.stream(k)) - value for k in range(100)]
        sizes = np.abs(np.concatenate(noises))
        plain = sizes[-100 * 1024 :]
        skip_if(
            len(np.unique(rounded(plain))) < 0.9 * len(plain),
            "its outputs repeat: the law of any value measures them",
        )
        top = float(sizes.max())
        # A largest size that repeats is an end of the noise, not the luck of one draw; in a single
        # release it may be a radius that its coordinates share.
        alike = [int((np.abs(noise) >= top * (1 - 1e-9)).sum()) for noise in noises]
        tops.append(top if sum(alike) >= 10 and np.count_nonzero(alike) > 1 else math.inf)
    low, high = sorted(tops)
    fail_if(
        high < math.inf and high <= low * (1 + 1e-6),
        f"no noise is larger than {high:.6g} at scale 1, which many draws attain exactly: "
        f"outputs farther away are impossible for one neighbour and not for the other",
    )
    return "no size of noise was the largest twice"


def entropy(trial: Trial) -> str:
    """Bits that change the output, of the words that a release reads."""
    skip_if(
        trial.distance is Distance.RKHS or not trial.case.mechanism.needs.stream,
        "its noise is not drawn from the stream of one release",
    )
    if trial.distance is Distance.PSD_ROWS:
        bench, value = trial.own_bench(1.0), np.eye(trial.case.query.shape[0]).ravel()
    else:
        bench, value = trial.accepted_bench(256, 1.0)[0], np.zeros(256)
    release = bench.prepared()
    stream = RecordedStream(bench.stream(1))
    first = bench.released(release, value, stream)
    words = stream.seen
    references = [bench.released(release, value, bench.stream(k)) for k in (2, 3)]
    if stream.count > SEED_WORDS:
        return f"{stream.count} words for {value.size} coordinates"
    skip_if(
        all(np.array_equal(first, reference) for reference in references), "its outputs do not vary"
    )
    skip_if(
        len(np.unique(first)) <= 2 and not _erratic(bench, value, words),
        f"one choice from {stream.count} words",
    )
    # Few words: each bit is flipped by itself, and what changes nothing is no entropy.
    changing = changing_bits(
        words,
        first,
        lambda changed_words: bench.released(
            release, value, RecordedStream(bench.stream(1), changed_words)
        ),
    )
    fail_if(
        changing < BITS,
        f"{value.size} coordinates are made of {stream.count} words, of which {changing} bits "
        f"change anything: anyone who tries all seeds knows the noise",
    )
    return f"{changing} bits of {stream.count} words"


def changing_bits(
    words: NDArray[np.uint64],
    first: NDArray[np.float64],
    released: Callable[[NDArray[np.uint64]], NDArray[np.float64]],
) -> int:
    """Return how many bits of `words` change what is released, one at a time, from `first`."""
    changing = 0
    for word, bit in product(range(len(words)), range(64)):
        changed_words = words.copy()
        changed_words[word] ^= np.uint64(1) << np.uint64(bit)
        changing += not np.array_equal(first, released(changed_words))
    return changing


def _erratic(bench: Bench, value: NDArray[np.float64], words: NDArray[np.uint64]) -> bool:
    """Return whether a choice changes at every step of its first word, as the choice of a generator
    does; an inversion changes once for each option at most.
    """
    steps = 64
    small = attrs.evolve(bench, query=attrs.evolve(bench.query, shape=(8,)))
    release, options = small.prepared(), np.zeros(8)
    first_words = np.linspace(0, 1, steps, endpoint=False) * 2.0**64
    releases = []
    for word in first_words.astype(np.uint64):
        stream_words = words.copy()
        stream_words[0] = word
        releases.append(
            small.released(release, options, RecordedStream(small.stream(1), stream_words))
        )
    return (
        sum(not np.array_equal(earlier, later) for earlier, later in pairwise(releases)) > steps / 3
    )
