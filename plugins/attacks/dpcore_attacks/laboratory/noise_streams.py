"""Streams for the laboratory: counted, with a bit flipped, and with words of rare runs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream

_LIMIT = 1 << 24  # words of one release: anyone who wants more never ends


class EndlessReadingError(Exception):
    """Raised inside a release that reads words without an end."""


class Ending(Stream):
    """The words of another stream, up to a number that no release needs."""

    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self._count = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next words.

        Raises:
            EndlessReadingError: no one needs so many.
        """
        self._count += count
        if self._count > _LIMIT:
            raise EndlessReadingError(f"it read more than {_LIMIT} words for one release")
        return self._inner.words(count)


def query_streams(path: Stream) -> Iterator[Stream]:
    """Streams of one ask after another, for one reader at a time: each goes on where the one before
    was left, and costs nothing to make. No two share a word.
    """
    while True:
        yield Ending(path)


class RecordedStream(Stream):
    """The words of `given`, then those of another stream; it counts what is read."""

    def __init__(self, inner: Stream, given: NDArray[np.uint64] | None = None) -> None:
        self._inner = inner
        self._prefix = np.empty(0, dtype=np.uint64) if given is None else given
        self._blocks: list[NDArray[np.uint64]] = []
        self.count = 0

    @property
    def seen(self) -> NDArray[np.uint64]:
        """All words that were read."""
        return np.concatenate([np.empty(0, dtype=np.uint64), *self._blocks])

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words: those of the prefix first.

        Raises:
            EndlessReadingError: no one needs so many.
        """
        start, self.count = self.count, self.count + count
        if self.count > _LIMIT:
            raise EndlessReadingError(f"it read more than {_LIMIT} words for one release")
        # where the prefix ends, the other stream goes on
        prefix = self._prefix[start : start + count]
        block = np.concatenate([prefix, self._inner.words(count - prefix.size)])
        self._blocks.append(block)
        return block


class Runs(RecordedStream):
    """Words of which half begin with up to `longest` equal bits: extremes of any inversion."""

    def __init__(self, inner: Stream, longest: int) -> None:
        super().__init__(inner)
        self._longest = longest

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next words, and as many to choose the runs."""
        block = super().words(count)
        choices = self._inner.words(count)
        length = choices % np.uint64(self._longest + 1)
        # kind 0 clears the leading bits, kind 1 sets them, the other two leave the word as it is
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> length
        kinds = (choices >> np.uint64(32)) % np.uint64(4)
        low = np.where(kinds == 0, block & mask, block)
        return np.where(kinds == 1, low | ~mask, low)
