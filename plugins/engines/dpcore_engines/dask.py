"""Dask: the records of a run on the workers of a Dask cluster, one bundle on each.

Out go the places of parts, pickled tasks and keyed words that select records; back come counts and
exact totals. Workers read the parts themselves, so that every worker needs the files under the same
names. All of that is private: anyone who sees the cluster's messages is left of the release
boundary.

However many workers there are, this process sends a task once and gets one answer: workers hand the
task on to each other, and add their totals in a tree.
"""

import contextlib
import itertools
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from dpcore.errors import EngineError, RequestError, need
from dpcore.private.engines.base import Encode, Task
from dpcore.records import Folded
from dpcore.source import Part
from dpcore_engines import dask_workers
from dpcore_engines.bundle import (
    Contents,
    Failure,
    Recipe,
    Room,
    add,
    contents_of,
    hand_on,
    join,
    read,
    total_of,
)
from dpcore_engines.cluster import (
    ClusterEngine,
    cut_parts,
    distributions,
    require_same_versions,
    reword_errors,
    versions,
)
from dpcore_engines.dask_workers import answers

_ADDED = 8  # totals that one task adds: a worker holds no more of others' at a time
_SERVED = 32  # workers that get a task from one that has it


def room_of_worker() -> Room:
    """Return the worker's own folder and threads."""
    from distributed import get_worker

    worker = get_worker()
    return Room(Path(worker.local_directory), worker.state.nthreads)


@attrs.frozen(eq=False, repr=False, slots=False)
class Dask(ClusterEngine):
    """Records on the workers of a Dask cluster.

    A worker that is lost takes its bundle along: another worker reads the parts again, and totals
    have the same bits.

    Args:
        client: A `distributed.Client`. It is the caller's to close.
        progress: PRIVATE: reported how many bundles of how many have answered, whenever more have.
            A sealed run refuses it, for a cluster's pace may follow the records.
    """

    client: Any
    progress: Callable[[int, int], None] | None = None

    def ready(self) -> None:
        """Compare versions with every worker's.

        Raises:
            RequestError: there is no worker, or one has other versions.
        """
        self._workers()

    @property
    def reports_misfits(self) -> bool:
        """Whether it has somebody to say."""
        return self.progress is not None

    def _read(
        self, parts: Sequence[Part], encode: Encode
    ) -> tuple[Sequence[Sequence[Part]], Sequence[Contents | Failure]]:
        # The key is fresh for each run and is sent only inside the recipe.
        workers, key, run = self._workers(), secrets.token_bytes(32), secrets.token_hex(8)
        fractions = cut_parts(parts, len(workers))
        # One bundle for each worker, on neighbouring parts, so that places in the source add up.
        self._frames[:] = [
            self.client.submit(
                read,
                _pickle(Recipe(fraction, encode, key)),
                room_of_worker,
                key=f"dpcore-records-{run}-{number}",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            for number, (fraction, worker) in enumerate(zip(fractions, workers, strict=False))
        ]
        return fractions, self._answer([self._ask(contents_of, f) for f in self._frames], join)

    def _add(self, task: Task) -> Folded | Failure:
        return cast(Folded | Failure, self._answer(self._totals(_pickle(task)), add))

    def _forget(self) -> None:
        # And whatever a worker would still do for them.
        self._release(self._frames)

    def _workers(self) -> list[str]:
        """Addresses of all workers, which all have this process's versions."""
        # Other versions might encode or add otherwise, and the totals would not replay.
        own_versions = versions(distributions())
        require_same_versions(own_versions, ())
        with reword_errors("no answer from the scheduler, so no record was opened", RequestError):
            worker_versions = answers(self.client, versions, distributions())
        need(worker_versions, RequestError, "the cluster has no workers, so no record was opened")
        require_same_versions(own_versions, [*worker_versions.values()])
        return sorted(worker_versions)

    def _ask(
        self, work: Callable[..., Any], *args: Any, workers: Sequence[str] | None = None
    ) -> Any:
        # A fresh key: Dask would answer a known one from its cache.
        key = f"dpcore-ask-{secrets.token_hex(8)}"
        return self.client.submit(
            work, *args, key=key, pure=False, workers=workers or None,
            allow_other_workers=bool(workers),
        )  # fmt: skip

    def _totals(self, task: bytes) -> list[Any]:
        """Return a request to every bundle, in their order."""
        # Where the bundles are now: a task that goes elsewhere would have its parts read again.
        with reword_errors("the cluster failed after records were opened", EngineError):
            holders = self.client.who_has(self._frames)
        places = [[*holders.get(future.key, ())] for future in self._frames]
        firsts = itertools.accumulate((sum(c.counts) for c in self._contents), initial=0)
        bundles = [*zip(self._frames, firsts, self._contents, places, strict=False)]
        # To a worker that hands it on to others: elsewhere it would be handed back.
        requests, sent = [], self._ask(hand_on, task, workers=places[0])
        for start in range(0, len(bundles), _SERVED):
            near = self._ask(hand_on, sent, workers=places[start])
            requests += [
                self._ask(total_of, future, near, first, contents, workers=place)
                for future, first, contents, place in bundles[start : start + _SERVED]
            ]
        return requests

    def _answer(self, requests: list[Any], merge: Callable[..., Any]) -> Any:
        """Return what workers make of all results, in their order; of whatever ends the wait,
        nothing stays on the workers. Empties `requests`.

        Raises:
            EngineError: the cluster was lost, or its workers one after the other.
        """
        watched, level = [*requests] if self.progress else [], [*requests]
        # Nothing holds what is merged, here or on the workers.
        requests.clear()
        while len(level) > 1:
            # Exact sums: the order in which they are added changes no bit.
            starts = range(0, len(level), _ADDED)
            level = [self._ask(merge, *level[first : first + _ADDED]) for first in starts]
        try:
            with reword_errors("the cluster failed after records were opened", EngineError):
                self._wait(watched, self.progress)
                self._wait(level)
                return merge(*(future.result() for future in level))
        # Also when the user interrupts: tasks hold secret words, and must not stay queued.
        except BaseException:
            self._release([*watched, *level])
            raise

    def _wait(
        self, requests: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Until all have answered, or no worker is left that could, or none does anything.

        A task whose worker is lost while there is no other is left lying by Dask, even when a
        worker comes; so are the tasks of workers that pause for want of memory.
        """
        from distributed import wait

        waiting, timeouts, idle_evaluations = list(requests), 0, 0
        while waiting:
            try:
                with self.client.as_current():
                    waiting = list(wait(waiting, dask_workers.WAIT, "FIRST_COMPLETED").not_done)
            except TimeoutError:
                # A timeout by itself is no fault: a slow task is waited for as long as a worker has
                # it.
                doing = self.client.processing()
                timeouts = 0 if doing else timeouts + 1
                idle_evaluations = idle_evaluations + 1 if doing and not any(doing.values()) else 0
                if timeouts == dask_workers.ATTEMPTS:
                    raise NoWorkerLeftError from None
                if idle_evaluations == dask_workers.ATTEMPTS:
                    raise IdleError from None
                continue
            timeouts = idle_evaluations = 0
            if progress is not None:
                progress(len(requests) - len(waiting), len(requests))

    def _release(self, futures: Sequence[Any]) -> None:
        # No `cancel`: Dask's scheduler drops a client that cancels what no one waits for.
        for future in futures:
            with contextlib.suppress(Exception):  # the cluster is gone, and all it held with it
                future.release()


class NoWorkerLeftError(Exception):
    """Workers were there, and are not any more."""


class IdleError(Exception):
    """Workers are there, and do nothing."""


def _pickle(value: object) -> bytes:
    """As bytes: what cannot be read on a worker fails inside a task, which says its type only."""
    import cloudpickle

    return cast(bytes, cloudpickle.dumps(value))
