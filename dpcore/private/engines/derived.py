"""What is derived from blocks, kept in a spool: the integer rows of a stage, for all its asks.

Arrays whose every number a 32-bit float holds are kept as such, and come back as they were: the
integers of `dpcore_linear.integers` take half the room.
"""

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import fingerprint
from dpcore.private.engines.spool import Spool
from dpcore.records import same_key

Derived = TypeVar("Derived")


class _Stored(NamedTuple):
    """Where an array lies, and what it was."""

    disk_type: np.dtype[Any]
    memory_type: np.dtype[Any]
    shape: tuple[int, ...]


class _Entry(NamedTuple):
    """A tuple in the spool: arrays there, all else here."""

    place: int
    size: int
    items: list[Any]
    kind: type[Any]


class DerivedBlocks:
    """PRIVATE: what was derived from every block for the latest key. Any threads may share it.

    A key whose objects came here pickled once more, as with every ask of a cluster, is the same if
    its objects have the same type and fields to the last byte (`dpcore.checks`).
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
            # One key at a time: a learner goes through all blocks with one stage before the next,
            # so older results would only fill the disk.
            if self._spool is None or not same_key(self._key, key):
                self._begin(key)
            assert self._spool is not None, "begun"
            spool, entries = self._spool, self._entries
        # Outside the lock: making rows may take long, and two threads would make the same ones.
        if (entry := entries.get(block)) is not None:
            return cast(Derived, _read_entry(spool, entry))
        result = make()
        if isinstance(result, tuple):  # anything else is made anew
            entries[block] = _put_entry(spool, result)
        return result

    def _begin(self, key: tuple[object, ...]) -> None:
        """Another key: new objects that are worth the same, or something else."""
        # An empty fingerprint means that the objects cannot be serialised: then never reuse a
        # result, since nobody can tell whether it belongs to this key.
        mark = fingerprint(*key)
        if self._spool is None or not mark or mark != self._mark:
            self.close()
            self._spool, self._entries = Spool(self._folder), {}
        self._key, self._mark = key, mark

    def close(self) -> None:
        """Remove the spool and forget its entries; a later key begins anew."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self._entries = None, {}


@attrs.frozen(eq=False)
class BlockKeeper:
    """The keeper of one block."""

    blocks: DerivedBlocks
    block: int

    def derived(self, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """As `Records.derived`: what `make` returns for this block and key, now or before."""
        return self.blocks.derived(self.block, key, make)


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64:
        return array
    # Lossless or not at all: sums over blocks must be the same integers whether rows come from the
    # spool or are made anew. NaN differs from itself, so it is never narrowed.
    with np.errstate(over="ignore", under="ignore"):
        narrowed = array.astype(np.float32)
    return narrowed if np.array_equal(narrowed, array) else array


def _put_entry(spool: Spool, result: tuple[Any, ...]) -> _Entry:
    items: list[Any] = []
    arrays = []
    for item in result:
        if isinstance(item, np.ndarray) and item.dtype != object:
            arrays.append(_narrow(item))
            items.append(_Stored(arrays[-1].dtype, item.dtype, item.shape))
        else:
            items.append(item)
    return _Entry(spool.put(arrays), sum(array.nbytes for array in arrays), items, type(result))


def _read_entry(spool: Spool, entry: _Entry) -> Any:
    items, position = [], 0
    content = spool.read(entry.place, entry.size)
    for item in entry.items:
        if not isinstance(item, _Stored):
            items.append(item)
            continue
        count = math.prod(item.shape)
        # `astype` copies, so the rows outlive the thread's buffer, which its next read overwrites.
        array = np.frombuffer(content, dtype=item.disk_type, count=count, offset=position)
        position += array.nbytes
        items.append(array.reshape(item.shape).astype(item.memory_type))
    return tuple(items) if entry.kind is tuple else entry.kind(*items)
