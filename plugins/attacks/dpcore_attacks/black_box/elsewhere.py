"""Elsewhere: a function in another Python environment, where its library is installed.

Libraries pin one another's versions, so that few fit next to the code that judges them; and a judge
should not share a process with what it judges. Records and answers travel as JSON.
"""

import contextlib
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpcore.errors import SpecError, need

_CHILD = Path(__file__).with_name("child.py")


class NoAnswerError(SpecError):
    """A function elsewhere gave no answer: an attack ends, because this is not the function's."""


class RefusedElsewhereError(Exception):
    """Raised here, as a class of the same name, where the function raised an exception there."""


class Elsewhere:
    """A function that answers in a process of another interpreter; close it, or use `with`.

    Args:
        python: The interpreter of the environment.
        place: MODULE:NAME or FILE.py:NAME.
        wants_claim: Whether it answers what the object there claims (`child.stated_claim`).

    Raises:
        NoAnswerError: the interpreter cannot be started, or the function cannot be imported there.
    """

    def __init__(self, python: Path | str, place: str, *, wants_claim: bool = False) -> None:
        self.__qualname__ = place
        source, _, name = place.rpartition(":")
        command = [str(python), str(_CHILD), source, name, *(["claim"] if wants_claim else [])]
        try:
            # The paths of this process hold other versions of what is installed there.
            environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise NoAnswerError(f"{python} cannot be started: {error.strerror}") from None
        self._reply()

    def __call__(self, records: Any) -> Any:
        """Return what the function answers; an exception of the class's name where it raised one.

        Raises:
            NoAnswerError: the process ended, or an answer cannot be sent.
        """
        assert self._process.stdin is not None
        # A process that ended is reported by its missing reply.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(records) + "\n")
            self._process.stdin.flush()
        reply = self._reply()
        if "refused" in reply:
            # A class of that name, so that the answer is reported by it as if it were raised here.
            raise type(reply["refused"], (RefusedElsewhereError,), {})
        return reply["answer"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process that answers."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        reply: dict[str, Any] = json.loads(line) if line else {"error": "its process ended"}
        need("error" not in reply, NoAnswerError, f"{self.__qualname__}: {reply.get('error')}")
        return reply
