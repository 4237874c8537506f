import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpcore import PublicRandomness, SecretRandomness
from dpcore.errors import RandomnessWithheldError


@given(chunks=st.lists(st.integers(0, 300), max_size=8))
def test_words_do_not_depend_on_how_they_are_asked_for(chunks):
    whole = PublicRandomness(7).stream("x").words(sum(chunks))
    stream = PublicRandomness(7).stream("x")
    assert np.array_equal(np.concatenate([[], *map(stream.words, chunks)]), whole)


def test_a_stream_starts_anew_each_time_it_is_named():
    assert np.array_equal(
        PublicRandomness(1).stream("f").words(9), PublicRandomness(1).stream("f").words(9)
    )


def test_no_two_paths_share_a_stream():
    randomness = SecretRandomness.rehearsal(0)
    streams = [
        randomness.noise(0, "q", 1),
        randomness.noise(0, "q", 2),
        randomness.noise(1, "q", 1),
        randomness.noise(0, "q1", 1),
        randomness.learner(0, "q", 1).stream("learner"),
        randomness.learner(0, "q", 1).stream("noise"),
        randomness.learner(0, "q", 2).stream("learner"),
        randomness.runtime("shuffle"),
        randomness.runtime("split"),
        PublicRandomness(0).stream("q"),
    ]
    first = {int(stream.words(1)[0]) for stream in streams}
    assert len(first) == len(streams)


def test_secure_coins_differ_between_runs_and_rehearsals_do_not():
    draw = lambda randomness: int(randomness.noise(0, "q", 1).words(1)[0])  # noqa: E731  # one use each
    assert draw(SecretRandomness.draw()) != draw(SecretRandomness.draw())
    assert draw(SecretRandomness.rehearsal(3)) == draw(SecretRandomness.rehearsal(3))
    assert SecretRandomness.draw().secure
    assert not SecretRandomness.rehearsal(3).secure


def test_keys_are_not_shown():
    randomness = SecretRandomness.rehearsal(12345)
    assert "12345" not in repr(randomness) + repr(randomness.learner(0, "q", 1))


def test_withheld_coins_cannot_be_read():
    with pytest.raises(RandomnessWithheldError, match="features"):
        PublicRandomness(None).stream("features")


# Kolmogorov-Smirnov on 200,000 draws with a fixed seed; a right sampler fails once in 10^4 seeds.
def test_normal_and_uniform_draws_have_their_law():
    stream = PublicRandomness(5).stream("ks")
    assert stats.kstest(stream.normal(200_000), "norm").pvalue > 1e-4
    assert stats.kstest(stream.uniform(200_000), "uniform").pvalue > 1e-4
    assert stats.kstest(1.02 * stream.normal(200_000), "norm").pvalue < 1e-2


def test_permutations_are_uniform():
    counts = np.zeros((3, 3))
    for key in range(6000):
        counts[np.arange(3), PublicRandomness(key).stream("p").permutation(3)] += 1
    # each cell is Binomial(6000, 1/3); six standard deviations are about 219
    assert np.all(np.abs(counts - 2000) < 220)


def test_generators_are_seeded_by_the_stream():
    draws = [PublicRandomness(key).stream("g").generator().random() for key in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
