"""`draws`: release a mechanism many times at synthetic values, at one shape and scale."""

import itertools
from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, DpcoreError, Mechanism, Query, SecretRandomness, Sensitivity
from dpcore.mechanism import Prepared, from_real, to_real
from dpcore.randomness import Stream
from dpcore_attacks.laboratory.noise_streams import Ending, query_streams

_LOCAL = 12  # streams at which a release must be local
_ALIKE = 0.02  # of a frequency


@attrs.frozen(kw_only=True, eq=False)
class Bench:
    """A mechanism at one query and sensitivity, to be released many times.

    Args:
        mechanism: Set to a scale.
        seed: Of all streams.
    """

    mechanism: Mechanism
    query: Query
    sensitivity: Sensitivity
    seed: int = 0

    def prepared(self) -> Prepared:
        """Return the release of any value, as runs use it."""
        return self.mechanism.prepared(self.query, self.sensitivity)

    def stream(self, number: int) -> Stream:
        """Return the noise words of one query; a release that reads them without end is stopped."""
        return Ending(
            SecretRandomness.rehearsal(20_000 + self.seed).noise(0, self.query.name, number)
        )

    def release(self, value: NDArray[np.float64], stream: Stream) -> NDArray[np.float64]:
        """Return one release of real coordinates."""
        return self.released(self.prepared(), value, stream)

    def released(
        self, release: Prepared, value: NDArray[np.float64], stream: Stream
    ) -> NDArray[np.float64]:
        """Return one release of real coordinates, by a mechanism that is prepared already."""
        return to_real(np.asarray(release(from_real(value, self.query), self.query, stream)))

    def draws(self, value: NDArray[np.float64], count: int, first: int) -> NDArray[np.float64]:
        """Releases of one value in so many queries, shape (count, coordinates).

        Args:
            first: Names the queries' words: other numbers, other noise.
        """
        release, query, statistic = self.prepared(), self.query, from_real(value, self.query)
        words = query_streams(
            SecretRandomness.rehearsal(21_000 + self.seed).noise(0, query.name, first)
        )
        # Thousands of calls: nothing is done in them that one call could do for all.
        return np.array(
            [
                to_real(np.asarray(release(statistic, query, stream)))
                for stream in itertools.islice(words, count)
            ]
        )

    def takes(self, value: NDArray[np.float64]) -> bool:
        """Return whether a value is released at all."""
        try:
            self.release(value, self.stream(0))
        except DpcoreError:
            return False
        return True

    def is_local(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        """Return whether each coordinate of the release depends on that of the value and on noise
        only.

        Asked at equal streams: where some coordinates move, they come out as where all move, and
        the others as where none does. Then each coordinate has a law that depends on its own value,
        and all coordinates of one release are draws of such laws.
        """
        # equal streams show nothing of noise that is drawn elsewhere
        if not self.mechanism.needs.stream:
            return False
        if self.query.distance is Distance.HAMMING:
            return self._is_local_in_distribution()
        release = self.prepared()
        rng = np.random.default_rng(self.seed)
        for number in range(_LOCAL):
            mask = rng.random(before.size) < 0.5
            mixed = np.where(mask, after, before)
            old, new, mixed_release = (
                self.released(release, value, self.stream(number))
                for value in (before, after, mixed)
            )
            # every bit: a coordinate that others reach moves with them, however little
            if not np.array_equal(mixed_release, np.where(mask, new, old), equal_nan=True):
                return False
        return True

    def _is_local_in_distribution(self) -> bool:
        """Return the same by frequencies: entries of category 0 report alike, whatever the others
        are.

        A sampler that rejects reads more words for some categories, so that equal streams do not
        say.
        """
        zero = np.zeros(self.query.real_size)
        mixed = zero.copy()
        mixed[1::2] = 1.0
        single, among = (self.draws(value, 20, 900)[:, ::2] for value in (zero, mixed))
        kinds = np.unique(np.concatenate([single.ravel(), among.ravel()]))
        gap = max(abs(float((single == k).mean()) - float((among == k).mean())) for k in kinds)
        return gap < _ALIKE


def bases(distance: Distance, unit: float, size: int, categories: int) -> NDArray[np.float64]:
    """Values of so many coordinates: half of them 0, the others by turns where floats are coarse,
    where roundings change their mind, and far away. Categories are taken in turn.
    """
    if distance is Distance.HAMMING:
        return np.arange(size, dtype=np.float64) % categories
    values = np.zeros(size)
    turns = np.array(
        [
            1.0,
            -1.0,
            0.25,
            7.0,
            -130.0,
            1e3,
            -1e3,
            1e5,
            1e6,
            2.0**11 + 0.5,  # where 16 bits round the one down and its neighbour up
            2.0**20 + 0.5,
            2.0**24 + 0.5,  # where 32 bits do
            2.0**27 + 7.5,
            -(2.0**30) - 63.5,
            1e9,
            2.0**36 + 0.25,
        ]
    )
    values[1::2] = np.resize(turns, size // 2)
    return values * unit


def groups(value: NDArray[np.float64]) -> Iterator[NDArray[np.bool_]]:
    """Yield all coordinates, then those of each value."""
    # a fault at one value by itself would drown among all coordinates
    yield np.ones(value.size, dtype=bool)
    kinds = np.unique(value)
    for kind in kinds if len(kinds) > 1 else ():
        yield value == kind


def last_digit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exponent of the last binary digit that is 1; 0 of zero."""
    mantissa, exponent = np.frexp(values)
    integers = np.abs(mantissa * 2.0**53).astype(np.int64)
    # The lowest bit that is set, in two's complement.
    last = integers & -integers
    digit = np.log2(np.where(last > 0, last, 1).astype(np.float64)) + exponent - 53
    return np.asarray(np.where(integers == 0, 0.0, digit))
