"""Selections: the same set from any blocks, uniform, and the one that sorting gives."""

import itertools
import math
import pickle

import numpy as np
import pytest

from dpcore import SecretRandomness
from dpcore.private.engines.selection import BernoulliSelection, Complement, Smallest
from dpcore.randomness import Stream, Words


def words(seed=3, name="shuffle"):
    return SecretRandomness.rehearsal(seed).runtime(name).by_place


@pytest.mark.parametrize("secret", [True, False])
def test_a_word_by_its_place_is_the_word_of_the_stream(secret):
    stream = Stream(b"key", ("a", 1), secret=secret)
    by_place, read = stream.by_place, stream.words(200_000)
    for first, count in [
        (0, 1),
        (1, 5),
        (31, 40),
        (95, 70_000),
        (131_071, 3),
        (0, 200_000),
        (9, 0),
    ]:
        assert (by_place.at(first, count) == read[first : first + count]).all()


def test_secret_words_travel_without_the_key_of_the_run():
    pytest.importorskip("cryptography")
    found = pickle.dumps(words())
    assert b"rehearsal 3" not in found
    again = pickle.loads(found)  # noqa: S301  # written two lines above
    assert (again.at(5, 9) == words().at(5, 9)).all()


@pytest.mark.parametrize(("places", "size"), [(1, 1), (7, 3), (70_000, 14_000), (70_000, 1)])
def test_the_smallest_are_those_that_come_first_in_the_order(places, size):
    order = SecretRandomness.rehearsal(3).runtime("shuffle").permutation(places)
    kept = Smallest.of(words(), size, places).contains(0, places)
    assert set(np.flatnonzero(kept)) == set(order[:size])


def test_a_selection_is_the_same_from_any_blocks():
    within = BernoulliSelection(words(4), 1 << 61)
    for found in (within, Complement(within), Smallest.of(words(), 500, 3000, within)):
        whole = found.contains(0, 3000)
        parts = [found.contains(at, min(77, 3000 - at)) for at in range(0, 3000, 77)]
        assert (np.concatenate(parts) == whole).all()


def test_a_subset_among_others_has_its_size_among_them():
    within = BernoulliSelection(words(4), 1 << 61)
    found = Smallest.of(words(), 300, 3000, within).contains(0, 3000)
    assert (found & within.contains(0, 3000)).sum() == 300


class Tied(Words):
    """Few different words, from a table."""

    def __init__(self, table):
        self.table = np.array(table, dtype=np.uint64)

    def at(self, first, count):
        return self.table[first : first + count]


def test_where_the_threshold_ties_the_next_words_decide():
    found = Smallest.of(Tied([5, 5, 9, 1, 2, 3]), 1, 3)
    assert found.contains(0, 3).tolist() == [True, False, False]
    assert Smallest.of(Tied([5, 5, 9]), 2, 3).contains(0, 3).tolist() == [True, True, False]


def test_every_subset_is_equally_likely_given_equal_words():
    # all 3^4 tables of words from {0, 1, 2}: those that tie at the threshold go on to new words, so
    # that the rest must give each of the six pairs equally often
    counts = dict.fromkeys(itertools.combinations(range(4), 2), 0)
    for table in itertools.product(range(3), repeat=4):
        first = Smallest.of(Tied([*table, 0, 1, 2, 3]), 2, 4)
        if first.start == 0:
            counts[tuple(np.flatnonzero(first.contains(0, 4)).tolist())] += 1
    assert len(set(counts.values())) == 1


def test_coins_fall_as_often_as_declared():
    # 200,000 randomness of chance 1/4: six standard errors fail once in 5e8
    fraction = BernoulliSelection(words(), 1 << 61).contains(0, 200_000).mean()
    assert abs(fraction - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 200_000)
