"""DaskCluster: a Dask engine by the address of a scheduler, or on this machine's own processes."""

import contextlib
import logging
import signal
import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, final

from dpcore.errors import RequestError, need
from dpcore.private.engines.base import Engine
from dpcore.private.engines.choice import EngineChoice, require_modules
from dpcore_engines.dask import Dask

_PATIENCE = "20s"
_WORKER = 400_000_000  # bytes: twice a worker with its imports and some blocks
_ANY_PORT = "127.0.0.1:0"  # Dask always opens one for HTTP, without TLS: 8787 if none is named
_NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Those pages show tasks, logs and call stacks to anyone who asks, dashboard or not."""


@final
class DaskCluster(EngineChoice):
    """Workers of a Dask cluster.

    A cluster of this machine's own speaks TLS with certificates of the moment, so that no other
    user of the machine reads or runs anything there; it has no dashboard, serves no page by HTTP
    and keeps no log. Of a scheduler that runs already, TLS is its operator's, as Dask's own
    configuration says.
    """

    @contextlib.contextmanager
    def opened(self, spool: Path) -> Iterator[Engine]:
        """A `Dask` engine whose client is closed at the end."""
        # Exactly one of the two: an address, or a number of processes here.
        need(
            (self.scheduler is None) != (self.workers is None),
            RequestError,
            "dask needs the address of a scheduler (--scheduler), or a number of workers here "
            "(--local-cluster)",
        )
        if self.memory is not None and self.workers is not None:
            # Dask kills a worker above its limit, which would cost the budget.
            need(
                self.memory // self.workers >= _WORKER,
                RequestError,
                f"dask needs --memory of at least {_WORKER // 10**6} MB for each of its "
                f"{self.workers} workers; no record was opened",
            )
        require_modules("cloudpickle", "cryptography", "distributed")
        # Closed in reverse: the client first, then the cluster, then its folder.
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(_client(self.scheduler or self._start_local(stack, spool)))
            is_local = self.scheduler is None
            with Dask(client, spool=spool, is_local=is_local) as engine:
                engine.ready()
                yield engine

    def _start_local(self, stack: contextlib.ExitStack, spool: Path) -> Any:
        """Return a cluster of processes on this machine."""
        import dask
        from distributed import LocalCluster

        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=spool, prefix="workers-"))
        with dask.config.set(_NO_PAGES), _unheard_by_workers():  # workers get both along
            cluster = LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                memory_limit="auto" if self.memory is None else self.memory // (self.workers or 1),
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": _ANY_PORT},
                local_directory=folder,
                # Workers' logs quote arguments of tasks, which are private.
                silence_logs=logging.CRITICAL,
                security=True,
                protocol="tls://",
            )
            return stack.enter_context(cluster)


@contextlib.contextmanager
def _unheard_by_workers() -> Iterator[None]:
    """Processes and threads that start meanwhile leave an interrupt to this thread.

    At a terminal every process of a command gets it; a worker would print where it was. One that
    comes meanwhile is heard at the end.
    """
    # Its own start would have this signal heard again; it starts once.
    resource_tracker.ensure_running()
    block = getattr(signal, "pthread_sigmask", lambda *given: ())  # not on every system
    mask = block(getattr(signal, "SIG_BLOCK", 0), [signal.SIGINT])
    try:
        yield
    finally:
        block(getattr(signal, "SIG_SETMASK", 0), mask)


def _client(where: Any) -> Any:
    """Return a client of a cluster or an address.

    Raises:
        RequestError: no one answers.
    """
    from distributed import Client

    try:
        return Client(where, timeout=_PATIENCE, set_as_default=False)
    except Exception as error:
        reason = type(error).__name__
    # Raised after the `except`: Dask's own error would be chained to it.
    raise RequestError(f"no Dask scheduler answers at {where} ({reason}); no record was opened")
