"""What is derived from blocks, kept in a spool: the integer rows of a stage, for all its asks.

Arrays whose every number a 32-bit float holds are kept as such, and come back as they were: the
integers of `dpcore_linear.integers` take half the room.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.engines.spool import Spool
from dpcore.fingerprint import fingerprint
from dpcore.records.records import same_key

Derived = TypeVar("Derived")


class _Stored(NamedTuple):
    """Where an array lies, and what it was."""

    kept: np.dtype[Any]
    given: np.dtype[Any]
    shape: tuple[int, ...]


class _Entry(NamedTuple):
    """A tuple in the spool: arrays there, all else here."""

    place: int
    size: int
    items: list[Any]
    kind: type[Any]


class DerivedBlocks:
    """PRIVATE: of every block what was made for the latest key. Any threads may share it.

    A key whose objects came here pickled once more, as with every ask of a cluster, is the same if
    its objects have the same type and fields to the last byte (`dpcore.fingerprint`).
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._key: tuple[object, ...] = ()
        self._mark: tuple[bytes, ...] = ()
        self._spool: Spool | None = None
        self._entries: dict[int, _Entry] = {}

    def derived(self, block: int, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """As `Records.derived`, of a block by its number."""
        with self._lock:
            if self._spool is None or not same_key(self._key, key):
                self._begin(key)
            assert self._spool is not None, "begun"
            spool, entries = self._spool, self._entries
        entry = entries.get(block)
        if entry is not None:
            return cast(Derived, _read(spool, entry))
        made = make()
        if isinstance(made, tuple):  # anything else is made anew
            entries[block] = _put(spool, made)
        return made

    def _begin(self, key: tuple[object, ...]) -> None:
        """Another key: new objects that are worth the same, or something else."""
        mark = fingerprint(*key)
        if self._spool is None or not mark or mark != self._mark:
            self.close()
            self._spool, self._entries = Spool(self._folder), {}
        self._key, self._mark = key, mark

    def close(self) -> None:
        """Remove what is kept."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self._entries = None, {}


@attrs.frozen(eq=False)
class BlockKeeper:
    """The keeper of one block."""

    blocks: DerivedBlocks
    block: int

    def derived(self, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """As `Records.derived`."""
        return self.blocks.derived(self.block, key, make)


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore", under="ignore"):
        less = array.astype(np.float32)
    return less if np.array_equal(less, array) else array


def _put(spool: Spool, made: tuple[Any, ...]) -> _Entry:
    items: list[Any] = []
    arrays = []
    for item in made:
        if isinstance(item, np.ndarray) and item.dtype != object:
            arrays.append(_narrow(item))
            items.append(_Stored(arrays[-1].dtype, item.dtype, item.shape))
        else:
            items.append(item)
    size = sum(array.nbytes for array in arrays)
    return _Entry(spool.put(arrays), size, items, type(made))


def _read(spool: Spool, entry: _Entry) -> Any:
    found, at = [], 0
    content = spool.read(entry.place, entry.size)
    for item in entry.items:
        if not isinstance(item, _Stored):
            found.append(item)
            continue
        count = math.prod(item.shape)
        array = np.frombuffer(content, dtype=item.kept, count=count, offset=at)
        at += array.nbytes
        found.append(array.reshape(item.shape).astype(item.given))
    return tuple(found) if entry.kind is tuple else entry.kind(*found)
