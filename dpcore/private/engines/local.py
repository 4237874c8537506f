"""The local engine: records lie in a spool on disk, threads add up sums over its blocks.

Memory does not grow with the number of records: a thread holds one block, and what a learner
derives from blocks lies on disk too (`dpcore.private.engines.local`).

What is derived from blocks, kept in a spool: the integer rows of a stage, for all its queries.

Arrays whose every number a 32-bit float holds are kept as such, and come back as they were: the
integers of `dpcore_linear.integers` take half the room.
"""

import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import fingerprint, positive_integer
from dpcore.errors import UNREADABLE, ContractError, MisfitError, need
from dpcore.private.engines.base import BlockError, Encode, Engine, Task
from dpcore.private.engines.selection import EVERYTHING, Selection
from dpcore.private.engines.spool import Spool
from dpcore.records import Folded, Records, added, same_key
from dpcore.source import Part

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

    A key whose objects came here pickled once more, as with every query of a cluster, is the same
    if its objects have the same type and fields to the last byte (`dpcore.checks`).
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._key: tuple[object, ...] = ()
        self._mark: tuple[bytes, ...] = ()
        self._spool: Spool | None = None
        self._entries: dict[int, _Entry] = {}

    def derived(self, block: int, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """Return what `make` computes for a block, by number, as `Records.derived` does."""
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
        """Begin another key, whose objects may equal the present ones."""
        # An empty fingerprint means that the objects cannot be serialised: then never reuse a
        # result, since no one can say whether it belongs to this key.
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
        """Return what `make` computes for this block and key, as `Records.derived` does."""
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


BLOCK = 4096
"""Records of a block."""

_NUMBER = 8  # bytes
_FEWEST = 64  # records of a block, where memory is limited


def usable_threads() -> int:
    """Return the number of processors that this process may use, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Block(NamedTuple):
    """Where some records lie, and which places of the source they have."""

    place: int
    first: int
    span: int
    rows: int
    width: int


class _Blocks:
    """PRIVATE: the records of one split, in blocks."""

    def __init__(self, folder: Path | None) -> None:
        self.spool, self.derived = Spool(folder), DerivedBlocks(folder)
        self.blocks: list[_Block] = []
        self.names: tuple[str, ...] = ()

    def put(self, records: Records, first: int, span: int) -> None:
        if len(records):
            place = self.spool.put([records.features, records.labels, records.numbers])
            self.blocks.append(_Block(place, first, span, *records.features.shape))
            self.names = records.number_names  # the same of all blocks

    def records(self, number: int) -> Records:
        block = self.blocks[number]
        view = self.spool.mapped(block.place, self._size(block))
        features, labels, numbers = np.split(
            np.frombuffer(view, dtype=np.float64),
            [block.rows * block.width, block.rows * (block.width + 1)],
        )
        return Records(
            features=features.reshape(block.rows, -1),
            labels=labels,
            numbers=numbers.reshape(block.rows, -1),
            number_names=self.names,
            keeper=BlockKeeper(self.derived, number),
        )

    def drop(self, number: int) -> None:
        block = self.blocks[number]
        self.spool.drop_pages(block.place, self._size(block))

    def _size(self, block: _Block) -> int:
        return _NUMBER * block.rows * (block.width + 1 + len(self.names))

    def close(self) -> None:
        self.spool.close()
        self.derived.close()


@attrs.frozen(kw_only=True, eq=False, slots=False)
class LocalEngine(Engine):
    """Blocks in a spool, threads in this process.

    Args:
        spool: The operator's folder for files without a name; the system's own if None.
        threads: How many blocks are worked on at a time.
        rows: Most records of a block.
        memory: Bytes that the process may use: the blocks of all threads take an eighth of it.
    """

    one_memory: ClassVar[bool] = True

    spool: Path | None = None
    threads: int = attrs.field(factory=usable_threads, validator=positive_integer)
    rows: int = attrs.field(default=BLOCK, validator=positive_integer)
    memory: int | None = None
    _by_split: dict[Selection, _Blocks] = attrs.field(factory=dict, init=False, repr=False)

    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """Read one part after the other, a batch at a time, into blocks of `rows` records."""
        need(
            not self._by_split,
            ContractError,
            "an engine holds the records of one run: make another",
        )
        # The order of parts and batches numbers the records, so selections by place mean the same
        # records here as in memory.
        blocks = self._by_split[EVERYTHING] = _Blocks(self.spool)
        counts, first = [0] * len(parts), 0
        for records in self._cut(self._encode(parts, encode, counts)):
            blocks.put(records, first, len(records))
            first += len(records)
        return tuple(counts)

    def _encode(
        self, parts: Sequence[Part], encode: Encode, counts: list[int]
    ) -> Iterator[Records]:
        for number, part in enumerate(parts):
            for batch in part.batches():
                try:
                    records = encode(batch)
                except MisfitError as error:
                    # The error counts records within its batch; give it the place within the part.
                    raise error.after(counts[number], number) from None
                counts[number] += len(records)
                yield records

    def _cut(self, batches: Iterator[Records]) -> Iterator[Records]:
        """Cut batches of any size into blocks of one length; the last may be shorter."""
        # Blocks of one size, whatever the source's batches are: memory is one block a thread.
        queue: list[Records] = []
        count = 0
        for records in batches:
            queue.append(records)
            count += len(records)
            rows = self._rows(records)
            if count < rows:
                continue
            joined_batches = _join(queue)
            cut = count // rows * rows
            for start in range(0, cut, rows):
                yield joined_batches.take(np.arange(start, start + rows))
            queue = [joined_batches.take(np.arange(cut, count))]
            count -= cut
        if count:
            yield _join(queue)

    def _rows(self, records: Records) -> int:
        """Return a block's number of records: fewer if memory is limited, yet worth a task."""
        if self.memory is None:
            return self.rows
        width = records.features.shape[1] + 1 + len(records.number_names)
        size: int = _NUMBER * width * self.threads
        return min(self.rows, max(_FEWEST, self.memory // (8 * size)))

    def total(self, task: Task) -> Folded:
        """Sum `task.part` over all blocks; each thread takes the next block and adds it."""
        blocks = self._blocks_of(task.split)
        queue, lock = iter(range(len(blocks.blocks))), threading.Lock()
        # Totals are integers, so any order in which threads add gives the same total to the last
        # bit.
        stop = threading.Event()

        def work() -> Folded:
            total = task.zero
            while True:
                with lock:
                    number = next(queue, None)
                if number is None or stop.is_set():
                    return total
                # No lock around the work: a block belongs to the one thread that took its number.
                records = self._select_rows(blocks, number, task)
                if len(records):
                    total = added(total, _fold_block(task, records, stop))
                blocks.drop(number)

        # No more threads than blocks: small data are folded in this one.
        count = min(self.threads, len(blocks.blocks))
        return functools.reduce(added, self._run_threads(work, stop, count), task.zero)

    def _run_threads(
        self, work: Callable[[], Folded], stop: threading.Event, count: int
    ) -> list[Folded]:
        """Return every thread's result; if one fails, or a signal arrives, stop the others."""
        if count <= 1:
            return [work()]
        from concurrent.futures import ThreadPoolExecutor  # small data need none

        with ThreadPoolExecutor(count) as pool:
            futures = [pool.submit(work) for _ in range(count)]
            try:
                return [future.result() for future in futures]
            except BaseException:
                stop.set()
                raise

    def _select_rows(self, blocks: _Blocks, number: int, task: Task) -> Records:
        records = blocks.records(number)
        if task.sample is EVERYTHING:
            return records
        block = blocks.blocks[number]
        # The sample is drawn over places of the source; a split's block holds only some of them, so
        # take the entries of those places.
        selection = task.sample.contains(block.first, block.span)
        if task.split is not EVERYTHING:
            selection = selection[task.split.contains(block.first, block.span)]
        return records.take(np.flatnonzero(selection))

    def _blocks_of(self, split: Selection) -> _Blocks:
        """Return the blocks of a split, cut out at its first use and kept for later asks."""
        need(self._by_split, ContractError, "the engine holds no records")
        if split not in self._by_split:
            # Each block keeps its places in the source, so later samples choose the same records.
            source_blocks, split_blocks = self._by_split[EVERYTHING], _Blocks(self.spool)
            self._by_split[split] = split_blocks
            for number, block in enumerate(source_blocks.blocks):
                rows = np.flatnonzero(split.contains(block.first, block.span))
                split_blocks.put(source_blocks.records(number).take(rows), block.first, block.span)
                source_blocks.drop(number)
        return self._by_split[split]

    def close(self) -> None:
        """Remove the spools with all records in them; the engine can load again."""
        for blocks in self._by_split.values():
            blocks.close()
        self._by_split.clear()


def _fold_block(task: Task, records: Records, stop: threading.Event) -> Folded:
    """Return a block's contribution; if it fails, stop the other threads.

    Raises:
        BlockError: it fails.
    """
    try:
        return task.part(records)
    except UNREADABLE:
        raise
    except Exception as error:
        # The error itself stops here: its text or its frames may hold a record.
        error_type = type(error).__name__
    stop.set()
    raise BlockError(error_type)


def _join(batches: list[Records]) -> Records:
    if len(batches) == 1:
        return batches[0]
    return Records(
        features=np.concatenate([records.features for records in batches]),
        labels=np.concatenate([records.labels for records in batches]),
        numbers=np.concatenate([records.numbers for records in batches]),
        number_names=batches[0].number_names,
    )
