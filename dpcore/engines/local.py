"""The local engine: records lie in a spool on disk, threads add up sums over its blocks.

Memory does not grow with the number of records: a thread holds one block, and what a learner
derives from blocks lies on disk too (`dpcore.engines.derived`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar, NamedTuple

import attrs
import numpy as np

from dpcore.checks import positive_integer
from dpcore.engines.base import BlockError, Encode, Engine, Task
from dpcore.engines.derived import BlockKeeper, DerivedBlocks
from dpcore.engines.spool import Spool
from dpcore.errors import ContractError, MisfitError
from dpcore.records.records import Folded, Records, added
from dpcore.records.source import Part
from dpcore.sampling.selection import EVERYTHING, Selection

BLOCK = 4096
"""Records of a block."""

_NUMBER = 8  # bytes


def usable_threads() -> int:
    """As many as this process may use processors."""
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
        self.known: list[_Block] = []

    def put(self, records: Records, first: int, span: int) -> None:
        if len(records):
            place = self.spool.put([records.features, records.labels])
            width = records.features.shape[1]
            self.known.append(_Block(place, first, span, len(records), width))

    def records(self, number: int) -> Records:
        block = self.known[number]
        numbers = block.rows * block.width
        view = self.spool.mapped(block.place, _NUMBER * (numbers + block.rows))
        found = np.frombuffer(view, dtype=np.float64)
        return Records(
            features=found[:numbers].reshape(block.rows, block.width),
            labels=found[numbers:],
            keeper=BlockKeeper(self.derived, number),
        )

    def left(self, number: int) -> None:
        block = self.known[number]
        self.spool.left(block.place, _NUMBER * block.rows * (block.width + 1))

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
    """

    one_memory: ClassVar[bool] = True

    spool: Path | None = None
    threads: int = attrs.field(factory=usable_threads, validator=positive_integer)
    rows: int = attrs.field(default=BLOCK, validator=positive_integer)
    _held: dict[Selection, _Blocks] = attrs.field(factory=dict, init=False, repr=False)

    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """One part after the other, a batch at a time."""
        if self._held:
            raise ContractError("an engine holds the records of one run: make another")
        blocks = self._held[EVERYTHING] = _Blocks(self.spool)
        counts, first = [0] * len(parts), 0
        for records in self._cut(self._encoded(parts, encode, counts)):
            blocks.put(records, first, len(records))
            first += len(records)
        return tuple(counts)

    def _encoded(
        self, parts: Sequence[Part], encode: Encode, counts: list[int]
    ) -> Iterator[Records]:
        for number, part in enumerate(parts):
            for batch in part.batches():
                try:
                    records = encode(batch)
                except MisfitError as error:
                    raise error.after(counts[number], number) from None
                counts[number] += len(records)
                yield records

    def _cut(self, batches: Iterator[Records]) -> Iterator[Records]:
        """Batches of any size to blocks of one, but for the last."""
        waiting: list[Records] = []
        have = 0
        for records in batches:
            waiting.append(records)
            have += len(records)
            if have < self.rows:
                continue
            whole = _joined(waiting)
            cut = have // self.rows * self.rows
            for at in range(0, cut, self.rows):
                yield whole.take(np.arange(at, at + self.rows))
            waiting = [whole.take(np.arange(cut, have))]
            have -= cut
        if have:
            yield _joined(waiting)

    def total(self, task: Task) -> Folded:
        """Every thread takes the next block and adds."""
        blocks = self._of(task.split)
        waiting, lock = iter(range(len(blocks.known))), threading.Lock()
        stopped = threading.Event()

        def work() -> Folded:
            total = task.zero
            while True:
                with lock:
                    number = next(waiting, None)
                if number is None or stopped.is_set():
                    return total
                records = self._sampled(blocks, number, task)
                if len(records):
                    total = added(total, _done(task, records, stopped))
                blocks.left(number)

        total = task.zero
        for found in self._side_by_side(work, stopped):
            total = added(total, found)
        return total

    def _side_by_side(self, work: Callable[[], Folded], stopped: threading.Event) -> list[Folded]:
        """What every thread finds; where one fails, or a signal comes, the others stop."""
        if self.threads == 1:
            return [work()]
        with ThreadPoolExecutor(self.threads) as pool:
            begun = [pool.submit(work) for _ in range(self.threads)]
            try:
                return [one.result() for one in begun]
            except BaseException:
                stopped.set()
                raise

    def _sampled(self, blocks: _Blocks, number: int, task: Task) -> Records:
        records = blocks.records(number)
        if task.sample is EVERYTHING:
            return records
        block = blocks.known[number]
        kept = task.sample.kept(block.first, block.span)
        if task.split is not EVERYTHING:
            kept = kept[task.split.kept(block.first, block.span)]
        return records.take(np.flatnonzero(kept))

    def _of(self, split: Selection) -> _Blocks:
        """The blocks of a split, cut out once."""
        if not self._held:
            raise ContractError("the engine holds no records")
        if split not in self._held:
            whole, found = self._held[EVERYTHING], _Blocks(self.spool)
            self._held[split] = found
            for number, block in enumerate(whole.known):
                kept = np.flatnonzero(split.kept(block.first, block.span))
                found.put(whole.records(number).take(kept), block.first, block.span)
                whole.left(number)
        return self._held[split]

    def close(self) -> None:
        """Remove the spools."""
        for blocks in self._held.values():
            blocks.close()
        self._held.clear()


def _done(task: Task, records: Records, stopped: threading.Event) -> Folded:
    """What a block adds; where it fails, the other threads stop.

    Raises:
        BlockError: it fails.
    """
    try:
        return task.part(records)
    except Exception as error:
        told = type(error).__name__
    stopped.set()
    raise BlockError(told)


def _joined(several: list[Records]) -> Records:
    if len(several) == 1:
        return several[0]
    return Records(
        features=np.concatenate([one.features for one in several]),
        labels=np.concatenate([one.labels for one in several]),
    )
