"""Clean: a run is told again from its answers before anything of it is published.

The public part of every release is run once more, from copies that were made before any record was
opened, and must ask the same and publish the same, byte for byte. `HERE` does so in this process:
it finds whatever a private function left in an object that it was given. A `CleanProcess` is an
interpreter of its own, which never holds records: it finds what was left in globals and class
attributes too. Neither finds what is left in files, or in the noise of a clock.

One `CleanProcess` may serve many runs. Each release is unpickled anew there; only the globals of
plugins' modules last from run to run. What they hold came from plans and released values, so that
a model which depends on them is post-processing. It may still replay here alone, which is a fault
of the plugin and no leak.
"""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any, Self, cast

import attrs

from dpcore.errors import ContractError, ReleaseError, need
from dpcore.isolate.isolated_copies import Arrays, collect_arrays, published, settled, transcript
from dpcore.learner import Answer, Published
from dpcore.randomness import PublicCoins
from dpcore.running.schedule import Scheduled
from dpcore.single_use import SingleUse

Answers = Sequence[Sequence[Answer]]
"""All answers of a run: by release, and within a release in order of asking."""


@attrs.frozen(kw_only=True)
class Rebuilt:
    """What the answers alone determine, and what the run therefore publishes.

    Args:
        models: One for each release.
        arrays: Of each model, as they were when they were compared: a model that returns other
            arrays later would go unnoticed.
        place: Where the answers were replayed, as the guarantee says it.
        note: Why the answers were not replayed in a clean process, or empty.
    """

    models: tuple[Published, ...]
    arrays: tuple[Arrays, ...]
    place: str = ""
    note: str = ""


Replayed = Callable[[Answers], Rebuilt]

Digests = list[list[str]]
"""By release: a digest of the model, and one of the asks."""

_IN_CLEAN, _ALONE = "in a clean process", "in this process alone: "

_READY = b"ready\n"

_START = """
import json, sys
print("ready", flush=True)
sys.path[:] = json.loads(sys.argv[1])
try:
    from dpcore.running.replay_process import serve
except Exception as error:
    print(json.dumps(["unknown", type(error).__name__]))
else:
    serve()
"""

_PATIENCE = 600.0
"""Seconds that a clean process may take to start, or beyond 100 times what this one took."""


class Replayer(ABC):
    """Where runs are replayed from their answers. As a context, it is closed at the end."""

    @abstractmethod
    def of(
        self, releases: tuple[Scheduled, ...], coins: PublicCoins
    ) -> AbstractContextManager[Replayed]:
        """Begin one run, before any of its records is opened.

        The function that it yields replays the run, or raises `ReleaseError`.
        """

    def start(self) -> bool:
        """Get ready, so that `of` need not wait; whether it can serve."""
        return True

    def close(self) -> None:
        """Free what it holds; `of` begins anew."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Here(Replayer):
    """In the process that saw the records."""

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """Yield a function that replays the answers in this process, on copies of the releases."""
        place = f"{_ALONE}its caller chose so"
        yield lambda answers: attrs.evolve(_replay(releases, coins, answers)[0], place=place)


class CleanProcess(SingleUse, Replayer):
    """In a process of its own, and in this one.

    The process is a fresh interpreter, which does not import the caller's script. It gets plans and
    released values alone, and ends when this is closed, or collected, or when this process ends.
    What cannot be imported there by its name (a learner of `__main__`) is replayed here only.

    Args:
        patience: Seconds after which a process that does not answer is ended, beyond 100 times what
            the replay took here. Nothing is released then.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        super().__init__()
        self._patience = patience
        self._run_lock, self._start_lock = threading.Lock(), threading.Lock()
        self._helper: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = bool  # nothing to end yet

    def start(self) -> bool:
        """Start the process, unless it runs; whether there is one.

        Raises:
            ContractError: in a process that was forked from the one that made this.
        """
        self._require_here(ContractError)
        with self._start_lock:
            if self._helper is not None and self._helper.poll() is None:
                return True
            self.close()
            # A frozen program is its own interpreter: started once more, it would run once more.
            if not sys.executable or getattr(sys, "frozen", False):
                return False
            return self._start_helper()

    def _start_helper(self) -> bool:
        try:
            # A session of its own: an interrupt at the terminal is meant for this process.
            self._helper = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, TypeError, ValueError):  # no such file, no room, no path of plain texts
            return False
        self._end = weakref.finalize(self, _end_process, self._helper)
        with _ended_after(self._patience, self._helper):
            is_ready = _read_line(self._helper) == _READY
        if not is_ready:
            self.close()
        return is_ready

    def close(self) -> None:
        """End the process; the next run starts another."""
        self._end()
        self._helper = None

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """Send the process the plan now; yield a function that sends the answers and compares."""
        # One run at a time: a reply belongs to the request before it.
        with self._run_lock:
            cause = ""
            try:
                # The bytes are written before any record is opened, so nothing that a private
                # function does later can reach them.
                plan = pickle.dumps((releases, coins))
            except Exception as error:  # whatever a field of a third party's class raises
                cause = _unimportable(type(error).__name__)
            if not cause and not self.start():
                cause = "no other interpreter starts beside it"
            helper = self._helper
            if cause or helper is None:
                yield lambda answers: _alone(_replay(releases, coins, answers)[0], cause)
                return
            # It imports the plugins while the records are opened here.
            with _ended_after(self._patience, helper):
                _send(helper, plan)
            in_step = False

            def replay(answers: Answers) -> Rebuilt:
                nonlocal in_step
                start = time.monotonic()
                retold, digests = _replay(releases, coins, answers)
                seconds = self._patience + 100 * (time.monotonic() - start)
                # The process gets the released values alone. They passed the mechanism, so it never
                # holds anything that the noise does not protect.
                with _ended_after(seconds, helper):
                    _send(helper, [[answer.value for answer in group] for group in answers])
                    reply = _parse(_read_line(helper))
                # It cannot import the plan: that is no fault of the learner, so the run goes on
                # with the replay of this process, and a note says which checks are missing.
                if reply[0] == "unknown":
                    in_step = True
                    return _alone(retold, _unimportable(reply[1]))
                need(
                    reply == ["told", digests],
                    ReleaseError,
                    "in a process that saw no record, the answers give other asks or another "
                    "model than here: a private function left something in a global or a class "
                    "attribute, or the public part is not determined by its answers; nothing is "
                    "released",
                )
                in_step = True
                return attrs.evolve(retold, place=_IN_CLEAN)

            try:
                yield replay
            finally:
                # A run that ended early leaves a process that waits for answers, or misreads them.
                if not in_step:
                    self.close()


HERE = Here()


def _end_process(helper: subprocess.Popen[bytes]) -> None:
    """End a process, and do nothing in a fork of its parent, whose child it is not."""
    helper.kill()
    for pipe in (helper.stdin, helper.stdout):
        # What could not be sent to a process that ended is dropped.
        with contextlib.suppress(OSError):
            cast(IO[bytes], pipe).close()
    helper.wait()


def _send(helper: subprocess.Popen[bytes], thing: object) -> None:
    """Write to a process; of one that ended, the reply is missing, and that is an answer."""
    stream = cast(IO[bytes], helper.stdin)
    with contextlib.suppress(OSError, ValueError):
        pickle.dump(thing, stream)
        stream.flush()


def _read_line(helper: subprocess.Popen[bytes]) -> bytes:
    """The next line; empty, or without its end, of a process that ended."""
    return cast(IO[bytes], helper.stdout).readline()


@contextlib.contextmanager
def _ended_after(seconds: float, helper: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a process that keeps the block waiting for so long: what it does not say is missing."""
    timer = threading.Timer(seconds, helper.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _parse(line: bytes) -> list[Any]:
    """A reply, or one that agrees with nothing."""
    try:
        kind, content = json.loads(line)
        return [kind, content]
    except (ValueError, TypeError):
        return ["none", ""]


def _unimportable(error: str) -> str:
    return f"a component cannot be imported in another process ({error})"


def _alone(retold: Rebuilt, cause: str) -> Rebuilt:
    note = (
        f"{cause}, so that this one alone replayed the answers: globals and class attributes were "
        f"not checked"
    )
    return attrs.evolve(retold, place=f"{_ALONE}{cause}", note=note)


def _replay(
    releases: tuple[Scheduled, ...], coins: PublicCoins, answers: Answers
) -> tuple[Rebuilt, Digests]:
    """Rebuild all models from the answers; the models with their arrays, and their digests.

    Raises:
        ReleaseError: the public part asked, or asks, something else than the answers determine.
    """
    models, arrays, digests = [], [], []
    for scheduled, group in zip(releases, answers, strict=True):
        try:
            # Any exception counts as a difference, and its text stays here: it may quote an object
            # into which a private function put records.
            model, asks = scheduled.retold(coins, [answer.value for answer in group])
            digest = transcript(asks)
            is_same = digest == transcript(group)
        except Exception:
            is_same = False
        if not is_same:
            raise ReleaseError(
                f"the public part of the release {scheduled.name!r} does not follow from its "
                f"answers; nothing is released"
            ) from None
        models.append(settled(model))
        # Read each array once: a model that returns another one next time would pass the comparison
        # and publish something else.
        arrays.append(collect_arrays(models[-1]))
        digests.append([published(models[-1], arrays[-1]), digest])
    return Rebuilt(models=tuple(models), arrays=tuple(arrays)), digests


def serve() -> None:
    """The clean process: print digests for every plan and its answers on standard input."""
    with (
        os.fdopen(os.dup(0), "rb") as requests,
        os.fdopen(os.dup(1), "wb") as replies,
        open(os.devnull, "r+b", buffering=0) as nothing,
    ):
        # These two carry plans and digests alone: what plugins print goes nowhere, and what they
        # read is empty.
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
        with contextlib.suppress(EOFError, OSError):  # the other process ended
            while True:
                reply = _rebuild_and_digest(requests)
                replies.write(json.dumps(reply).encode() + b"\n")
                replies.flush()
    os._exit(0)  # a thread that a plugin started would keep it alive


def _rebuild_and_digest(requests: IO[bytes]) -> list[Any]:
    """Read one plan and then its values; the digests, or why there are none."""
    plan = pickle.load(requests)  # noqa: S301  # from the process that started this one
    try:
        releases, coins = pickle.loads(plan)  # noqa: S301  # the same
    except Exception as error:
        pickle.load(requests)  # noqa: S301  # the same; the values are of no use
        return ["unknown", type(error).__name__]
    values = pickle.load(requests)  # noqa: S301  # the same
    try:
        digests = []
        for scheduled, group in zip(releases, values, strict=True):
            model, asks = scheduled.retold(coins, group)
            model = settled(model)
            digests.append([published(model, collect_arrays(model)), transcript(asks)])
        return ["told", digests]
    except Exception:
        return ["failed", ""]
