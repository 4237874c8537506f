"""EngineChoice: an engine as its operator names it, on a command line or in a file of theirs.

It is never named in a spec, a lock or what is published: no released number depends on it.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import final

import attrs

from dpcore.checks import positive_integer
from dpcore.errors import RequestError, need
from dpcore.private.engines.base import Engine, Workload


@attrs.frozen(kw_only=True)
class EngineChoice(ABC):
    """What an operator says of an engine. A plugin's extends it, by the hook `dpcore_engines`.

    Args:
        scheduler: The address of anyone who hands out work, where one runs already.
        workers: So many processes on this machine in its place.
        memory: Bytes that it may use on this machine; its own choice if None.
    """

    scheduler: str | None = None
    workers: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )
    memory: int | None = None

    def explain(self, workload: Workload) -> tuple[str, ...]:
        """Return the engine's requests in its own language, one text each; empty if it runs Python.

        Raises:
            RequestError: it cannot say what the plan asks.
        """
        return ()

    @abstractmethod
    def opened(self, spool: Path) -> contextlib.AbstractContextManager[Engine]:
        """Open the engine, before any record is opened, and close it at the end.

        Args:
            spool: The run's folder, for what may lie on this machine's disk meanwhile. It is left
                as it was.

        Raises:
            RequestError: the choice is not one that it can serve, or no one answers.
        """


def require_modules(*names: str) -> None:
    """Refuse an engine some of whose modules are not installed.

    Raises:
        RequestError: with the first of them, and how to install all.
    """
    for name in names:
        refusal = f"{name} is not installed: pip install {' '.join(names)}"
        need(find_spec(name), RequestError, refusal)


@final
class Local(EngineChoice):
    """This process's threads, and this machine's disk."""

    @contextlib.contextmanager
    def opened(self, spool: Path) -> Iterator[Engine]:
        """Open a `LocalEngine` with its spools in `spool`.

        Raises:
            RequestError: a scheduler or workers are named, which it does not have.
        """
        need(
            self.scheduler is None and self.workers is None,
            RequestError,
            "the local engine has no scheduler and no workers: name none",
        )
        from dpcore.private.engines.local import LocalEngine

        with LocalEngine(spool=spool, memory=self.memory) as engine:
            yield engine
