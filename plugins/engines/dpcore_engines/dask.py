"""Dask: the records of a run on the workers of a Dask cluster, one bundle on each.

Out go the places of parts, pickled tasks and keyed words that select records; back come counts and
exact totals. Workers read the parts themselves, so that every worker needs the files under the same
names. All of that is private: whoever sees the cluster's messages is left of the door.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import attrs

from dpcore.engines.base import BlockError, Encode, Engine, Task
from dpcore.engines.local import LocalEngine
from dpcore.errors import ContractError, MisfitError, ReleaseError, RequestError, SourceError
from dpcore.records.records import Folded, added
from dpcore.records.source import Part
from dpcore_engines import dask_workers
from dpcore_engines.bundle import Contents, Failure, Recipe, Room, contents_of, read, total_of
from dpcore_engines.dask_workers import answers

Found = TypeVar("Found")

PLUGINS = "dpcore.plugins"
_ALWAYS = ("dpcore", "numpy")
_HERE = (
    "the source is read once, is grouped by persons, or lies in this process's memory: its records "
    "stayed in this process and were not sent to the cluster"
)


def versions(names: Sequence[str]) -> dict[str, str]:
    """What a process would compute with: Python, and distributions; "" where one is missing."""
    found = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: F401

        found["cryptography"] = "there"  # its words are the same in every version
    except ImportError:
        found["cryptography"] = ""
    return found


def room_of_worker() -> Room:
    """The worker's own folder and threads."""
    from distributed import get_worker

    worker = get_worker()
    return Room(Path(worker.local_directory), worker.state.nthreads)


def _in_use() -> tuple[str, ...]:
    """Distributions of plugins whose modules this process has imported."""
    found = {
        point.dist.name
        for point in metadata.entry_points(group=PLUGINS)
        if point.dist is not None and point.module in sys.modules
    }
    return tuple(sorted(found))


@attrs.frozen(eq=False, repr=False)
class _Held:
    """A bundle of the cluster's, and the place in the source of its first record."""

    future: Any
    contents: Contents
    first: int


@attrs.frozen(eq=False, repr=False, slots=False)
class Dask(Engine):
    """Records on the workers of a Dask cluster.

    A worker that is lost takes its bundle along: another worker reads the parts again, and totals
    have the same bits. Parts that are read once, or lie in this process's memory, stay here, in a
    `LocalEngine`.

    Args:
        client: A `distributed.Client`. It is the caller's to close.
        spool: Where records that stay here are kept; the system's own folder if None.
        progress: PRIVATE: told how many bundles of how many have answered, whenever more have.
            A sealed run refuses it, for a cluster's pace may follow the records.
    """

    client: Any
    spool: Path | None = None
    progress: Callable[[int, int], None] | None = None
    _held: list[_Held] = attrs.field(factory=list, init=False)
    _futures: list[Any] = attrs.field(factory=list, init=False)
    _here: list[LocalEngine] = attrs.field(factory=list, init=False)

    def ready(self) -> None:
        """Compare versions with every worker's.

        Raises:
            RequestError: there is no worker, or one has other versions.
        """
        self._workers()

    @property
    def note(self) -> str:
        """Whether the records stayed in this process."""
        return _HERE if self._here else ""

    @property
    def tells(self) -> bool:
        """Whether it has somebody to tell."""
        return self.progress is not None

    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """Every worker reads neighbouring parts."""
        if self._futures or self._here:
            raise ContractError("an engine holds the records of one run: make another")
        if any(part.stays for part in parts):
            self._here.append(LocalEngine(spool=self.spool))
            return self._here[0].load(parts, encode)
        workers, key, run = self._workers(), secrets.token_bytes(32), secrets.token_hex(8)
        shares = [share for share in _shares(parts, len(workers)) if share]
        self._futures[:] = [
            self.client.submit(
                read,
                _pickled(Recipe(share, encode, key)),
                room_of_worker,
                key=f"dpcore-records-{run}-{number}",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            for number, (share, worker) in enumerate(zip(shares, workers, strict=False))
        ]
        asked = [self._asked(contents_of, future) for future in self._futures]
        counts: list[int] = []
        done = 0
        answers = zip(shares, self._futures, self._answers(asked), strict=True)
        for share, future, found in answers:
            if isinstance(found, Failure):
                raise _unread(found, done)
            self._held.append(_Held(future, found, sum(counts)))
            counts += found.counts
            done += len(share)
        return tuple(counts)

    def total(self, task: Task) -> Folded:
        """Every bundle adds its own."""
        if self._here:
            return self._here[0].total(task)
        if not self._held:
            raise ContractError("the engine holds no records")
        sent, total = _pickled(task), task.zero
        asked = [
            self._asked(total_of, one.future, sent, one.first, one.contents) for one in self._held
        ]
        for found in self._answers(asked):
            if isinstance(found, Failure):
                raise BlockError(found.told)
            total = added(total, found)
        return total

    def close(self) -> None:
        """Release the bundles; whatever a worker still does for them is cancelled."""
        self._cancel(self._futures)
        self._futures.clear()
        self._held.clear()
        for engine in self._here:
            engine.close()
        self._here.clear()

    def _workers(self) -> list[str]:
        """Addresses of all workers, which all have this process's versions."""
        names = tuple(sorted({*_ALWAYS, *_in_use()}))
        own = versions(names)
        if not own["cryptography"]:
            raise RequestError(
                "workers need cryptography, by which secret words travel: pip install cryptography"
            )
        with _told("no answer from the scheduler, so no record was opened", RequestError):
            theirs = answers(self.client, versions, names)
        if not theirs:
            raise RequestError("the cluster has no workers, so no record was opened")
        for found in theirs.values():
            if not isinstance(found, dict):
                raise RequestError(
                    "a worker cannot import dpcore_engines: install what is installed here there"
                )
            for name, version in own.items():
                if found.get(name) != version:
                    raise RequestError(
                        f"{name} is {version} here and {found.get(name) or 'missing'} on a worker: "
                        "install the same there; no record was opened"
                    )
        return sorted(theirs)

    def _asked(self, work: Callable[..., Any], *args: Any) -> Any:
        key = f"dpcore-ask-{secrets.token_hex(8)}"
        return self.client.submit(work, *args, key=key, pure=False)

    def _answers(self, asked: Sequence[Any]) -> list[Any]:
        """The results, in order; of whatever ends the wait, nothing stays on the workers.

        Raises:
            ReleaseError: the cluster was lost, or its workers one after the other.
        """
        try:
            with _told("the cluster failed after records were opened", ReleaseError):
                self._wait(asked)
                return [future.result() for future in asked]
        except BaseException:
            self._cancel(asked)
            raise

    def _wait(self, asked: Sequence[Any]) -> None:
        """Until all have answered, or no worker is left that could, or none does anything.

        A task whose worker is lost while there is no other is left lying by Dask, even when a
        worker comes; so are the tasks of workers that pause for want of memory.
        """
        from distributed import wait

        waiting, missed, idle = list(asked), 0, 0
        while waiting:
            try:
                with self.client.as_current():
                    waiting = list(wait(waiting, dask_workers.LOOK, "FIRST_COMPLETED").not_done)
            except TimeoutError:
                doing = self.client.processing()
                missed = 0 if doing else missed + 1
                idle = idle + 1 if doing and not any(doing.values()) else 0
                if missed == dask_workers.LOOKS:
                    raise _NoWorkerLeftError from None
                if idle == dask_workers.LOOKS:
                    raise _IdleError from None
                continue
            missed = idle = 0
            if self.progress is not None:
                self.progress(len(asked) - len(waiting), len(asked))

    def _cancel(self, futures: Sequence[Any]) -> None:
        with contextlib.suppress(Exception):  # the cluster is gone, and all it held with it
            self.client.cancel(list(futures), force=True)


class _NoWorkerLeftError(Exception):
    """Workers were there, and are not any more."""


class _IdleError(Exception):
    """Workers are there, and do nothing."""


@contextlib.contextmanager
def _told(what: str, kind: type[RequestError] | type[ReleaseError]) -> Iterator[None]:
    """Errors of Dask hold keys and arguments: their types alone are told."""
    try:
        yield
        return
    except Exception as error:
        told = type(error).__name__
    if told == "KilledWorker":
        told = "workers were lost again and again: they may need more memory"
    if told == "_NoWorkerLeftError":
        told = "no worker is left"
    if told == "_IdleError":
        told = "workers were lost or are out of memory, and no other takes their work"
    if told == "NoAnswerError":
        told = "a worker does not answer, or dies whenever it is asked"
    raise kind(f"{what} ({told})")


def _shares(parts: Sequence[Part], workers: int) -> list[tuple[Part, ...]]:
    """Parts in their order, cut into so many pieces of nearly equal length."""
    cuts = [len(parts) * number // workers for number in range(workers + 1)]
    return [tuple(parts[a:b]) for a, b in pairwise(cuts)]


def _pickled(value: object) -> bytes:
    """As bytes: what cannot be read on a worker fails inside a task, which tells its type alone."""
    import cloudpickle

    found: bytes = cloudpickle.dumps(value)
    return found


def _unread(failure: Failure, before: int) -> SourceError:
    """What a worker could not read, as the local engine says it."""
    if failure.misfit is None:
        return SourceError(
            f"a worker cannot read its parts ({failure.told}): it needs the same files, under the "
            "same names"
        )
    column, rule, part, row = failure.misfit
    return MisfitError(column, row, rule).after(0, before + part)
