"""What every worker of a Dask cluster answers, or that one does not: never an endless wait.

A worker that dies while it is asked may leave `Client.run` waiting for ever. So the call waits in a
thread of its own; if that is silent, all workers are asked again, a few times.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

WAIT = 5.0
"""Seconds between looks at a cluster that does not answer."""

ATTEMPTS = 3
"""Looks in a row at which nothing has changed, until no one waits any more."""

TRIES = 3
"""Times that workers are asked which do not answer."""


class NoAnswerError(Exception):
    """A worker neither answers nor leaves."""


def answers(client: Any, work: Callable[..., Any], *args: Any) -> Mapping[str, Any]:
    """By address, what `work` returns on every worker, or its error.

    Args:
        client: A `distributed.Client`.
        work: May run again.

    Raises:
        NoAnswerError: some worker is silent whenever it is asked.
        Exception: the scheduler cannot be asked.
    """
    # A fresh call may reach workers that the hanging one lost.
    for _ in range(TRIES):
        replies = _ask_in_thread(client, work, args)
        for _ in range(ATTEMPTS):
            try:
                reply = replies.get(timeout=WAIT)
            except queue.Empty:
                continue
            if isinstance(reply, BaseException):
                raise reply
            return reply
    raise NoAnswerError


def _ask_in_thread(
    client: Any, work: Callable[..., Any], args: tuple[Any, ...]
) -> queue.SimpleQueue[dict[str, Any] | BaseException]:
    """Where the answers come, or the error."""
    replies: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            replies.put(dict(client.run(work, *args, on_error="return")))
        except BaseException as error:
            replies.put(error)

    # A daemon: a call that never returns must not keep the process alive.
    threading.Thread(target=ask, name="dpcore-workers", daemon=True).start()
    return replies
