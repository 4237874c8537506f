"""Bundle: the records of some parts, on the worker of a cluster that read them.

A bundle is pickled as its recipe: where the parts lie, and how they are encoded. So wherever a
cluster moves, copies or spills one, no record travels: the parts are read again there. What is read
again must be what was read first, by a digest under a key of the run's own.

The functions of this module run as tasks of a cluster, which logs the message of an error and the
arguments of anyone who raised it. So they raise nothing: they return a `Failure`.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import attrs

from dpcore.errors import EngineError, MisfitError, ReleaseError, SourceError, need
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.private.engines.base import BlockError, Encode, Task
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.selection import counted_from
from dpcore.records import Folded, Records, added
from dpcore.source import Columns, Part

Made = TypeVar("Made")


class Misfit(NamedTuple):
    """Where a record does not fit, as `MisfitError` says it: never what it holds."""

    column: str
    rule: str
    part: int
    row: int


class Failure(NamedTuple):
    """What is reported of an error on a worker: its type's name, and the place of a misfit.

    Args:
        of_part: Whether a task's own part failed, and not what a worker needs for it.
    """

    cause: str
    misfit: Misfit | None = None
    of_part: bool = False

    def error(self) -> ReleaseError:
        """Return what the process of the run raises in the place of a total."""
        return (
            BlockError(self.cause)
            if self.of_part
            else EngineError(f"a worker failed after records were opened ({self.cause})")
        )


class Contents(NamedTuple):
    """PRIVATE: what a bundle holds: the records of each part, and a keyed digest of all."""

    counts: tuple[int, ...]
    mark: bytes


class Room(NamedTuple):
    """What a worker has for a bundle: a folder of its operator's, and threads."""

    folder: Path | None
    threads: int


class _MisfitAtError(Exception):
    """A misfit, its only argument."""


@attrs.define(eq=False, repr=False)
class Reading:
    """Encodes batches, counts them, and adds them to a digest: rows only, however they are cut."""

    encode: Encode
    digests: Sequence[Any]
    part: int = 0
    row: int = 0

    @classmethod
    def of(cls, encode: Encode, key: bytes) -> Reading:
        return cls(encode, [hashlib.blake2b(key=key) for _ in range(3)])

    def __call__(self, batch: Columns) -> Records:
        try:
            records = self.encode(batch)
        except MisfitError as error:
            # The error's row is one of the batch: add the part's rows before it.
            place = Misfit(error.column, error.rule, self.part, self.row + error.row)
        else:
            # The digests are of rows only: batches may be cut otherwise at the next reading.
            self.row += len(records)
            matrices = records.features, records.labels, records.numbers
            for digest, matrix in zip(self.digests, matrices, strict=True):
                digest.update(matrix)
            return records
        # Outside the `except`, so that no chained error carries a record's value along.
        raise _MisfitAtError(place)

    def mark(self) -> bytes:
        return b"".join(digest.digest() for digest in self.digests)


@attrs.frozen(eq=False, repr=False)
class _Numbered(Part):
    """A part that says when it is begun."""

    part: Part
    number: int
    reading: Reading

    def batches(self) -> Iterator[Columns]:
        # Every part counts its rows from 0, as the caller's own part does.
        self.reading.part, self.reading.row = self.number, 0
        yield from self.part.batches()


@attrs.frozen(eq=False, repr=False)
class Recipe:
    """How a bundle is made: its parts, what encodes them, and the key of the run's digests."""

    parts: Sequence[Part]
    encode: Encode
    key: bytes


class Bundle:
    """PRIVATE: records in a spool of the worker's, read at the first need. Pickled without them.

    Args:
        recipe: A pickled `Recipe`.
        room: What the worker that calls has.
    """

    def __init__(self, recipe: bytes, room: Callable[[], Room]) -> None:
        self._recipe, self._room, self._lock = recipe, room, threading.Lock()
        self._engine: LocalEngine | None = None
        self._contents: Contents | None = None

    def __reduce__(self) -> Any:
        # Only the recipe travels: anyone who receives it reads the parts again.
        return Bundle, (self._recipe, self._room)

    def __repr__(self) -> str:
        return "Bundle(private)"

    def __del__(self) -> None:
        # Python may be shutting down, when modules are gone already.
        with suppress(Exception):
            if self._engine is not None:
                self._engine.close()

    def contents(self) -> Contents:
        """Counts of the parts and the keyed digest; reads the parts at the first call."""
        with self._lock:
            return self._load_once()[1]

    def total(self, task: Task, first: int, expected: Contents) -> Folded:
        """Return the sum over its records, of which the first has place `first` in the source.

        Raises:
            SourceError: it is no longer what was read first.
        """
        with self._lock:
            engine, contents = self._load_once()
            # Another digest means other records: a sum over both readings would be of no dataset.
            need(
                contents == expected,
                SourceError,
                "a part of the source has changed since it was read",
            )
            # Selections are by a record's place in the whole source: count from `first`.
            split, sample = counted_from(first, task.split), counted_from(first, task.sample)
            return engine.total(attrs.evolve(task, split=split, sample=sample))

    def _load_once(self) -> tuple[LocalEngine, Contents]:
        if self._engine is None or self._contents is None:
            room = self._room()
            engine = LocalEngine(spool=room.folder, threads=room.threads)
            try:
                self._contents = self._load(engine)
            # Any end but success closes the spool: no half-read records stay on the worker.
            except BaseException:
                engine.close()
                raise
            self._engine = engine
        return self._engine, self._contents

    def _load(self, engine: LocalEngine) -> Contents:
        recipe: Recipe = pickle.loads(self._recipe)  # noqa: S301  # the operator's own process's
        # The key of the digests is the run's own: equal records of two runs cannot be linked.
        reading = Reading.of(recipe.encode, recipe.key)
        parts = [_Numbered(part, number, reading) for number, part in enumerate(recipe.parts)]
        return Contents(engine.load(parts, reading), reading.mark())


def read(recipe: bytes, room: Callable[[], Room]) -> Bundle:
    """Return a task: a bundle whose parts are read."""
    forbid_core_dumps()  # of the worker, which holds records from here on
    bundle = Bundle(recipe, room)
    contents_of(bundle)
    return bundle


def contents_of(bundle: Bundle) -> Contents | Failure:
    """Return a task: what a bundle holds."""
    return catch_failure(bundle.contents)


def total_of(bundle: Bundle, task: bytes, first: int, expected: Contents) -> Folded | Failure:
    """Return a task: the sum over a bundle."""

    def total() -> Folded:
        loaded_task: Task = pickle.loads(task)  # noqa: S301  # the operator's own process's
        return bundle.total(loaded_task, first, expected)

    return catch_failure(total)


def hand_on(task: bytes) -> bytes:
    """Return a task: the same bytes, on a worker from which others get them."""
    return task


def add(*totals: Folded | Failure) -> Folded | Failure:
    """Return a task: the sum of totals, or the first failure among them."""
    failures = [total for total in totals if isinstance(total, Failure)]
    sums = [total for total in totals if not isinstance(total, Failure)]
    return failures[0] if failures else catch_failure(lambda: functools.reduce(added, sums))


def join(*answers: Any) -> list[Any]:
    """Return a task: answers, and lists of them, in one list."""
    lists = (answer if isinstance(answer, list) else [answer] for answer in answers)
    return [*itertools.chain.from_iterable(lists)]


def catch_failure(work: Callable[[], Made]) -> Made | Failure:
    """Return what `work` returns, or its error as a `Failure`."""
    try:
        return work()
    except _MisfitAtError as error:
        return Failure("MisfitError", *error.args)
    except BlockError as error:
        return Failure(error.cause, of_part=True)
    # The type's name only: a message may quote a record, and the cluster logs results.
    except Exception as error:
        return Failure(type(error).__name__)
