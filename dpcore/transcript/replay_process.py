"""`replay_process`: replay a run from its answers, and compare byte for byte, before publishing.

The public part of every release is run once more, from copies that were made before any record was
opened, and must ask the same and publish the same, byte for byte. `HERE` does so in this process:
it finds whatever a private function left in an object that it was given. A `CleanProcess` is an
interpreter of its own, which never holds records: it finds what was left in globals and class
attributes too. Neither finds what is left in files, or in the noise of a clock.

Where a clean process answers, nothing is replayed here: the run's own asks, and the model at the
end of its own conversation, must be those of the clean process. A replay here could differ from
these two only by what is in this process, and nothing of this process is published: the objects
that are come from the clean process, where they were made from answers only. Anything that
differs, or cannot travel back, is replayed here as well, and judged by that.

One `CleanProcess` may serve many runs. Each release is unpickled anew there; only the globals of
plugins' modules last from run to run. What they hold came from plans and released values, so that
a model which depends on them is post-processing. It may still replay here only, which is a fault
of the plugin and no leak.
"""

import base64
import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, cast

import attrs

from dpcore.errors import ContractError, ReleaseError, need
from dpcore.learner import Answer, Published
from dpcore.models.description import Description, describe
from dpcore.randomness import PublicRandomness
from dpcore.single_use import SingleUse
from dpcore.transcript.isolated_copies import Arrays, collect_arrays, published, settled, transcript
from dpcore.transcript.rebuild import Handover, IsolatedRelease, Rebuild

Answers = Sequence[Sequence[Answer]]
"""All answers of a run: by release, and within a release in order of asking."""


@attrs.frozen(kw_only=True)
class Rebuilt:
    """What the answers only determine, and what the run therefore publishes.

    Args:
        models: One for each release.
        arrays: Of each model, as they were when they were compared: a model that returns other
            arrays later would go unnoticed.
        descriptions: Of each model, likewise; empty where it hands over none.
        place: Where the answers were replayed, as the guarantee says it.
        note: Why the answers were not replayed in a clean process, or empty.
    """

    models: tuple[Published, ...]
    arrays: tuple[Arrays, ...]
    descriptions: tuple[Description, ...]
    place: str = ""
    note: str = ""


# From a run's answers, and what makes the models at the ends of its conversations.
Replayed = Callable[[Answers, Sequence[Rebuild]], Rebuilt]
Digests = list[list[str]]
"""By release: a digest of the model, and one of the queries."""

_ONLY, _CLEAN = "in this process only: ", "in a clean process"

_START = """
import json, sys
print("ready", flush=True)
sys.path[:] = json.loads(sys.argv[1])
try:
    from dpcore.transcript.replay_process import serve
except Exception as error:
    print("unknown", type(error).__name__)
else:
    serve()
"""

_PATIENCE = 600.0


class Replayer(AbstractContextManager["Replayer"]):
    """Where runs are replayed from their answers. As a context, it is closed at the end."""

    @abstractmethod
    def of(
        self, releases: tuple[IsolatedRelease, ...], randomness: PublicRandomness
    ) -> AbstractContextManager[Replayed]:
        """Begin one run, before any of its records is opened.

        The function that it yields replays the run, or raises `ReleaseError`.
        """

    def start(self) -> None:  # most have nothing to get ready
        """Get ready while other work goes on; otherwise `of` would do it."""

    def close(self) -> None:  # nor to free
        """Free all resources; `of` begins anew."""

    def __exit__(self, *exception: object) -> None:
        self.close()


class Here(Replayer):
    """In the process that saw the records."""

    @contextlib.contextmanager
    def of(
        self, releases: tuple[IsolatedRelease, ...], randomness: PublicRandomness
    ) -> Iterator[Replayed]:
        """Yield a function that replays the answers in this process, on copies of the releases."""
        place = f"{_ONLY}its caller chose so"
        yield lambda answers, _: attrs.evolve(
            _replay(releases, randomness, answers)[0], place=place
        )


class CleanProcess(SingleUse, Replayer):
    """In a process of its own.

    The process is a fresh interpreter, which does not import the caller's script. It gets plans and
    released values only, and ends when this is closed, or collected, or when this process ends.
    What cannot be imported there by its name (a learner of `__main__`) is replayed here only.

    Args:
        patience: Seconds after which a process that does not answer is ended, beyond 100 times what
            the run took here. Nothing is released then.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        super().__init__()
        self._patience, self._lock = patience, threading.RLock()
        self._helper: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = bool  # nothing to end yet

    def start(self) -> None:
        """Start the process, unless it runs.

        Raises:
            ContractError: in a process that was forked from the one that made this.
        """
        self._require_here(ContractError)
        with self._lock:
            if self._helper is None or self._helper.poll() is not None:
                self.close()
                self._helper = _start_helper(self._patience)
                if self._helper is not None:
                    self._end = weakref.finalize(self, _end_helper, self._helper)

    def close(self) -> None:
        """End the process; the next run starts another."""
        self._end()
        self._helper = None

    @contextlib.contextmanager
    def of(
        self, releases: tuple[IsolatedRelease, ...], randomness: PublicRandomness
    ) -> Iterator[Replayed]:
        """Start the process if none runs; yield a function that sends it the answers."""
        self._require_here(ContractError)
        # One run at a time: a reply belongs to the request before it.
        with self._lock:
            self.start()
            helper, cause = self._helper, "no other interpreter starts next to it"
            try:
                # The bytes are written before any record is opened, so nothing that a private
                # function does later can reach them.
                plan = pickle.dumps((releases, randomness))
            except Exception as error:  # whatever a field of a third party's class raises
                helper, cause = None, _unimportable(type(error).__name__)

            start = time.monotonic()

            def replay(answers: Answers, ends: Sequence[Rebuild]) -> Rebuilt:
                if helper is None:
                    return _only(_replay(releases, randomness, answers)[0], cause)
                # The process gets the released values only. They passed the mechanism, so it never
                # holds anything that the noise does not protect.
                values = [[answer.value for answer in group] for group in answers]
                patience = self._patience + 100 * (time.monotonic() - start)
                kind, _, content = _ask(helper, patience, (plan, values)).partition(" ")
                objects, _, digests = content.partition(" ")
                if kind == "told" and (rebuilt := _accept(answers, ends, objects, digests)):
                    return rebuilt
                replayed, own_digests = _replay(releases, randomness, answers)
                # It cannot import the plan: that is no fault of the learner, so the run goes on
                # with the replay of this process, and a note says which checks are missing.
                if kind == "unknown":
                    return _only(replayed, _unimportable(content.strip()))
                need(
                    (kind, digests) == ("told", f"{json.dumps(own_digests)}\n"),
                    ReleaseError,
                    "in a process that saw no record, the answers give other queries or another "
                    "model than here: a private function left something in a global or a class "
                    "attribute, or the public part is not determined by its answers; nothing is "
                    "released",
                )
                return attrs.evolve(replayed, place=_CLEAN)

            try:
                yield replay
            except BaseException:
                # A late reply must not be taken for the next run's, nor this one be asked again.
                self.close()
                raise


HERE = Here()


def _start_helper(patience: float) -> subprocess.Popen[bytes] | None:
    """Return a fresh interpreter that waits for requests; None where there is none."""
    # A frozen program is its own interpreter: started once more, it would run once more.
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    try:
        # A session of its own: an interrupt at the terminal is meant for this process.
        helper = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, TypeError, ValueError):  # no such file, no room, no path of plain texts
        return None
    if _ask(helper, patience) == "ready\n":
        return helper
    _end_helper(helper)
    return None


def _end_helper(helper: subprocess.Popen[bytes]) -> None:
    """End a process, and do nothing in a fork of its parent, whose child it is not."""
    helper.kill()
    for pipe in (helper.stdin, helper.stdout):
        # What could not be sent to a process that ended is dropped.
        with contextlib.suppress(OSError):
            cast(IO[bytes], pipe).close()
    helper.wait()


def _ask(helper: subprocess.Popen[bytes], patience: float, *request: object) -> str:
    """Return the next line of a process, or as much as there is if it ended or takes too long."""
    timer = threading.Timer(patience, helper.kill)
    timer.daemon = True
    timer.start()
    try:
        # A process that ended reads nothing, and may have said why.
        with contextlib.suppress(OSError):
            cast(IO[bytes], helper.stdin).write(b"".join(map(pickle.dumps, request)))
            cast(IO[bytes], helper.stdin).flush()
        return cast(IO[bytes], helper.stdout).readline().decode(errors="replace")
    finally:
        timer.cancel()


def _unimportable(error: str) -> str:
    return f"a component cannot be imported in another process ({error})"


def _only(replayed: Rebuilt, cause: str) -> Rebuilt:
    return attrs.evolve(
        replayed,
        place=f"{_ONLY}{cause}",
        note=f"{cause}, so that this one only replayed the answers: globals and class attributes "
        f"were not checked",
    )


def _accept(
    answers: Answers, ends: Sequence[Rebuild], objects: str, digests: str
) -> Rebuilt | None:
    """Return what a clean process made if it agrees with this run's queries and results.

    None if it does not.

    Args:
        objects, digests: As the process says them.
    """
    try:
        models = pickle.loads(base64.b64decode(objects))  # noqa: S301  # it holds no record
        # Whatever fails here is judged by a replay, and its text stays here.
        rebuilt = Rebuilt(
            models=models,
            arrays=tuple(map(collect_arrays, models)),
            descriptions=tuple(map(describe, models)),
            place=_CLEAN,
        )
        travelled = map(published, models, rebuilt.arrays, rebuilt.descriptions)
        queries = [transcript(group) for group in answers]
        local_digests = [_digest(settled(end())) for end in ends]
        digest_pairs = [
            [list(pair) for pair in zip(group, queries, strict=True)]
            for group in (travelled, local_digests)
        ]
        return rebuilt if digest_pairs == [json.loads(digests)] * 2 else None
    except Exception:
        return None


def _digest(model: Published) -> str:
    return published(model, collect_arrays(model), describe(model))


def _replay(
    releases: tuple[IsolatedRelease, ...], randomness: PublicRandomness, answers: Answers
) -> tuple[Rebuilt, Digests]:
    """Rebuild all models from the answers; the models with their arrays, and their digests.

    Raises:
        ReleaseError: the public part asked, or asks, something else than the answers determine.
    """
    models, arrays, descriptions, digests = [], [], [], []
    handover = Handover(releases)
    for release, group in zip(releases, answers, strict=True):
        try:
            # Any exception counts as a difference, and its text stays here: it may quote an object
            # into which a private function put records.
            values, inputs = [answer.value for answer in group], handover.inputs(release)
            model, queries = release.replay(randomness, values, inputs)
            digest = transcript(queries)
            is_same = digest == transcript(group)
            handover.keep(release.name, model)
        except Exception:
            is_same = False
        if not is_same:
            raise ReleaseError(
                f"the public part of the release {release.name!r} does not follow from its "
                f"answers; nothing is released"
            ) from None
        models.append(settled(model))
        # Read each array once: a model that returns another one next time would pass the comparison
        # and publish something else.
        arrays.append(collect_arrays(models[-1]))
        descriptions.append(_describe(models[-1], release.name))
        digests.append([published(models[-1], arrays[-1], descriptions[-1]), digest])
    rebuilt = Rebuilt(models=tuple(models), arrays=tuple(arrays), descriptions=tuple(descriptions))
    return rebuilt, digests


def _describe(model: Published, name: str) -> Description:
    """Return the description of a release.

    Raises:
        ReleaseError: it fails; the error's own text may quote what a private function left.
    """
    try:
        return describe(model)
    except Exception as error:
        raise ReleaseError(
            f"the description of what the release {name!r} publishes failed "
            f"({type(error).__name__}); nothing is released"
        ) from None


def serve() -> None:
    """Serve as the clean process: read plans and their values, and print lines of digests."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    # These two carry requests and digests only: what plugins print goes nowhere, and what they
    # read is empty.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    with contextlib.suppress(EOFError, OSError):  # the other process ended
        while True:
            print(_rebuild_and_digest(requests), file=replies, flush=True)
    os._exit(0)  # a thread that a plugin started would keep it alive


def _rebuild_and_digest(requests: IO[bytes]) -> str:
    plan, values = pickle.load(requests)  # noqa: S301  # from the process that started this one
    try:
        releases, randomness = pickle.loads(plan)  # noqa: S301  # the same
    except Exception as error:
        return f"unknown {type(error).__name__}"
    try:
        models, digests, handover = [], [], Handover(releases)
        for release, group in zip(releases, values, strict=True):
            model, queries = release.replay(randomness, group, handover.inputs(release))
            models.append(settled(model))
            handover.keep(release.name, models[-1])
            digests.append([_digest(models[-1]), transcript(queries)])
    except Exception:
        return "failed"
    objects = ""
    with contextlib.suppress(Exception):  # whatever a field of a third party's class raises
        objects = base64.b64encode(pickle.dumps(tuple(models))).decode()
    return f"told {objects} {json.dumps(digests)}"
