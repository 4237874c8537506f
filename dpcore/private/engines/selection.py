"""Selection: which records take part, by secret words that belong to places in the source.

The record at place i of a source has word i of a secret stream, whichever block, thread or machine
it is on. So a part that is read or computed again gives the same records, and nothing has to hold a
list of all of them.

* `BernoulliSelection`: each record whose word is small, independently of all others: Poisson
  samples, and the hold-out where the number of records is private.
* `Smallest`: the h records with the smallest of n words: a uniform subset. The words are
  exchangeable, and so they are given that the h-th and the next smallest differ; where they do not,
  the next n words are taken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.private.bounding import NO_PERSON, PersonCodes
from dpcore.randomness import Words

_CHUNK = 1 << 16  # words at a time
_TOP = 16  # bits of a histogram


class Selection(ABC):
    """PRIVATE: a set of places, drawn by the runtime."""

    @abstractmethod
    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each of the places first, ..., first + count - 1 belongs to it."""


@attrs.frozen(repr=False)
class Everything(Selection):
    """The selection of all places, with no coin drawn."""

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return True for every place, shape (count,)."""
        return np.ones(count, dtype=bool)


EVERYTHING = Everything()


@attrs.frozen(repr=False)
class Complement(Selection):
    """The places of one selection that are not in another: the learners' proportion of a split."""

    out: Selection

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is not in the other selection, shape (count,)."""
        return ~self.out.contains(first, count)


@attrs.frozen(repr=False)
class _From(Selection):
    """The places of a selection from one on, counted from there."""

    selection: Selection
    start: int

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is selected, by its place in the source."""
        return self.selection.contains(self.start + first, count)


def counted_from(start: int, selection: Selection) -> Selection:
    """Return the same selection if place `start` of the source is counted as the first."""
    return EVERYTHING if isinstance(selection, Everything) else _From(selection, start)


@attrs.frozen(repr=False)
class BernoulliSelection(Selection):
    """Every place whose word, without its lowest bit, is below `below`: a chance of below/2^63."""

    words: Words
    below: int

    @classmethod
    def chance(cls, words: Words, fraction: float) -> BernoulliSelection:
        """Select the places at which `Stream.uniform` is below `fraction`."""
        # (w >> 11) + 1/2 < share 2^53 says that w >> 11 is at most ceil(share 2^53 - 1/2) - 1
        below = math.ceil(Fraction(fraction) * 2**53 - Fraction(1, 2))
        return cls(words, min(max(below, 0), 1 << 53) << 10)

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is selected, by its own word."""
        return self.words.at(first, count) >> np.uint64(1) < np.uint64(self.below)


@attrs.frozen(repr=False, kw_only=True)
class OfGroup(Selection):
    """Those places of a selection that drew one group, by words apart from the selection's.

    Args:
        words: By which places draw their groups. groups: How many there are.
        turn: The group, from 0.
    """

    selection: Selection
    words: Words
    groups: int
    turn: int

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is selected, by its own words."""
        drawn_groups = self.words.at(first, count) % np.uint64(self.groups)
        in_turn: NDArray[np.bool_] = drawn_groups == self.turn
        return self.selection.contains(first, count) & in_turn


@attrs.frozen(repr=False, eq=False)
class OfPersons(Selection):
    """All used records of some persons, wherever they stand.

    Args:
        codes: Which records are used, and whose they are.
        chosen: Whether each person is chosen. Shape (persons,).
    """

    codes: PersonCodes
    chosen: NDArray[np.bool_]

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is selected, by its person."""
        codes = self.codes.codes[first : first + count]
        in_use: NDArray[np.bool_] = codes != NO_PERSON
        # Places that no one uses have no person to look up.
        in_use[in_use] = self.chosen[codes[in_use]]
        return in_use


@attrs.frozen(repr=False)
class Smallest(Selection):
    """The places whose words, from word `start` on, are at most `largest`."""

    words: Words
    start: int
    largest: int

    @classmethod
    def of(cls, words: Words, size: int, places: int, among: Selection = EVERYTHING) -> Smallest:
        """Return a uniform subset of `size` of the places below `places` that are in `among`.

        Places that are not in `among` may be in the selection all the same: take both.

        Constant memory: a histogram of the words' first 16 bits says where the size-th smallest
        lies, and the words that begin like it are sorted.
        """
        start = 0
        while True:
            if (threshold := _largest(words, start, size, places, among)) is not None:
                return cls(words, start, threshold)
            # A tie at the threshold: the next words of the stream are as good as new ones.
            start += places

    def contains(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return whether each place is selected, by its own word."""
        return self.words.at(self.start + first, count) <= np.uint64(self.largest)


def _chunks(places: int) -> list[tuple[int, int]]:
    return [(start, min(_CHUNK, places - start)) for start in range(0, places, _CHUNK)]


def _largest(words: Words, start: int, size: int, places: int, among: Selection) -> int | None:
    """Return the size-th smallest word; None where the next one equals it."""
    shift = np.uint64(64 - _TOP)
    counts = np.zeros(1 << _TOP, dtype=np.int64)
    for chunk_start, count in _chunks(places):
        chunk_words = words.at(start + chunk_start, count)[among.contains(chunk_start, count)]
        # First pass: how many words begin with each of the 2^16 beginnings.
        counts += np.bincount((chunk_words >> shift).astype(np.intp), minlength=counts.size)
    below = np.cumsum(counts)
    top = int(np.searchsorted(below, size))
    boundary_words = []
    for chunk_start, count in _chunks(places):
        chunk_words = words.at(start + chunk_start, count)[among.contains(chunk_start, count)]
        # Second pass: only words that begin like the size-th smallest are held.
        boundary_words.append(chunk_words[chunk_words >> shift == np.uint64(top)])
    ordered = np.sort(np.concatenate(boundary_words))
    place = size - int(below[top] - counts[top])  # counted from 1 among those
    # No threshold separates equal words, so that no subset would have `size` places.
    if place < ordered.size and ordered[place] == ordered[place - 1]:
        return None
    return int(ordered[place - 1])
