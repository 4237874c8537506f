import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpcore import PublicCoins, SecretCoins
from dpcore.errors import CoinsWithheldError


@given(chunks=st.lists(st.integers(0, 300), max_size=8))
def test_words_do_not_depend_on_how_they_are_asked_for(chunks):
    whole = PublicCoins(7).stream("x").words(sum(chunks))
    stream = PublicCoins(7).stream("x")
    assert np.array_equal(np.concatenate([[], *map(stream.words, chunks)]), whole)


def test_a_stream_starts_anew_each_time_it_is_named():
    assert np.array_equal(PublicCoins(1).stream("f").words(9), PublicCoins(1).stream("f").words(9))


def test_no_two_paths_share_a_stream():
    coins = SecretCoins.rehearsal(0)
    streams = [
        coins.noise(0, "q", 1),
        coins.noise(0, "q", 2),
        coins.noise(1, "q", 1),
        coins.noise(0, "q1", 1),
        coins.learner(0, "q", 1).stream("learner"),
        coins.learner(0, "q", 1).stream("noise"),
        coins.learner(0, "q", 2).stream("learner"),
        coins.runtime("shuffle"),
        coins.runtime("split"),
        PublicCoins(0).stream("q"),
    ]
    first = {int(stream.words(1)[0]) for stream in streams}
    assert len(first) == len(streams)


def test_secure_coins_differ_between_runs_and_rehearsals_do_not():
    draw = lambda coins: int(coins.noise(0, "q", 1).words(1)[0])  # noqa: E731  # one use each
    assert draw(SecretCoins.draw()) != draw(SecretCoins.draw())
    assert draw(SecretCoins.rehearsal(3)) == draw(SecretCoins.rehearsal(3))
    assert SecretCoins.draw().secure
    assert not SecretCoins.rehearsal(3).secure


def test_keys_are_not_shown():
    coins = SecretCoins.rehearsal(12345)
    assert "12345" not in repr(coins) + repr(coins.learner(0, "q", 1))


def test_withheld_coins_cannot_be_read():
    with pytest.raises(CoinsWithheldError, match="features"):
        PublicCoins(None).stream("features")


# Kolmogorov-Smirnov on 200,000 draws with a fixed seed; a right sampler fails once in 10^4 seeds.
def test_normal_and_uniform_draws_have_their_law():
    stream = PublicCoins(5).stream("ks")
    assert stats.kstest(stream.normal(200_000), "norm").pvalue > 1e-4
    assert stats.kstest(stream.uniform(200_000), "uniform").pvalue > 1e-4
    assert stats.kstest(1.02 * stream.normal(200_000), "norm").pvalue < 1e-2


def test_permutations_are_uniform():
    counts = np.zeros((3, 3))
    for key in range(6000):
        counts[np.arange(3), PublicCoins(key).stream("p").permutation(3)] += 1
    # each cell is Binomial(6000, 1/3); six standard deviations are about 219
    assert np.all(np.abs(counts - 2000) < 220)


def test_generators_are_seeded_by_the_stream():
    draws = [PublicCoins(key).stream("g").generator().random() for key in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
