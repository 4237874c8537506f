"""Clean: a run is told again from its answers before anything of it is published.

The public part of every release is run once more, from copies that were made before any record was
opened, and must ask the same and publish the same, byte for byte. `HERE` does so in this process:
it finds whatever a private function left in an object that it was given. A `CleanProcess` was
started before the records were opened and never holds them: it finds what was left in globals and
class attributes too. Neither finds what is left in files, or in the noise of a clock.
"""

import contextlib
import json
import os
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any

import attrs

from dpcore.errors import ReleaseError, need
from dpcore.isolate.isolated_copies import Arrays, collect_arrays, published, settled, transcript
from dpcore.learner import Answer, Published
from dpcore.randomness import PublicCoins
from dpcore.running.schedule import Scheduled

Answers = Sequence[Sequence[Answer]]
"""All answers of a run: by release, and within a release in order of asking."""


@attrs.frozen(kw_only=True)
class Rebuilt:
    """What the answers alone determine, and what the run therefore publishes.

    Args:
        models: One for each release.
        arrays: Of each model, as they were when they were compared: a model that returns other
            arrays later would go unnoticed.
        note: Why the answers were not replayed in a clean process, or empty.
    """

    models: tuple[Published, ...]
    arrays: tuple[Arrays, ...]
    note: str = ""


Replayed = Callable[[Answers], Rebuilt]

Digests = list[list[str]]
"""By release: a digest of the model, and one of the asks."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dpcore.running.replay_process import answer; answer()"
)


class Replayer(ABC):
    """Where a run is replayed from its answers."""

    @abstractmethod
    def of(
        self, releases: tuple[Scheduled, ...], coins: PublicCoins
    ) -> AbstractContextManager[Replayed]:
        """Begin, before any record is opened.

        The function that it yields replays a run, or raises `ReleaseError`.
        """


class Here(Replayer):
    """In the process that saw the records."""

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """Yield a function that replays the answers in this process, on copies of the releases."""

        yield lambda answers: _replay(releases, coins, answers)[0]


class CleanProcess(Replayer):
    """In a process of its own, and in this one.

    What cannot be imported there by its name (a learner of `__main__`) is replayed here only.
    """

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """Start the process now; yield a function that sends it the answers and compares."""
        try:
            # The bytes are written before any record is opened, so nothing that a private function
            # does later can reach them.
            plan = pickle.dumps((releases, coins))
            child = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except Exception as error:  # whatever a field of a third party's class raises
            cause = type(error).__name__
            with HERE.of(releases, coins) as replay_here:
                yield lambda answers: attrs.evolve(replay_here(answers), note=_note(cause))
            return

        def replay(answers: Answers) -> Rebuilt:
            retold, digests = _replay(releases, coins, answers)
            # The child gets the released values alone. They passed the mechanism, so it never holds
            # anything that the noise does not protect.
            values = [[answer.value for answer in group] for group in answers]
            reply = json.loads(child.communicate(pickle.dumps((plan, values)))[0] or b'["none"]')
            # The child cannot import the plan: that is no fault of the learner, so the run goes on
            # with the replay of this process, and a note says which checks are missing.
            if reply[0] == "unknown":
                return attrs.evolve(retold, note=_note(reply[1]))
            need(
                reply == ["told", digests],
                ReleaseError,
                "in a process that saw no record, the answers give other asks or another "
                "model than here: a private function left something in a global or a class "
                "attribute, or the public part is not determined by its answers; nothing is "
                "released",
            )
            return retold

        try:
            yield replay
        finally:
            # No child outlives the run, whether it answered, failed or was never asked.
            child.kill()
            child.communicate()


HERE = Here()


def _note(cause: str) -> str:
    return (
        f"a component cannot be imported in another process ({cause}), so that this one alone "
        f"replayed the answers: globals and class attributes were not checked"
    )


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


def answer() -> None:
    """The clean process: read a plan and answers from standard input, print their digests."""
    with os.fdopen(os.dup(1), "wb") as out, open(os.devnull, "wb") as nothing:
        # Standard output carries the digests alone, so everything else that prints goes nowhere.
        os.dup2(nothing.fileno(), 1)  # whatever plugins print
        out.write(json.dumps(_rebuild_and_digest(sys.stdin.buffer)).encode())


def _rebuild_and_digest(stream: IO[bytes]) -> list[Any]:
    plan, values = pickle.load(stream)  # noqa: S301  # from the process that started this one
    try:
        releases, coins = pickle.loads(plan)  # noqa: S301  # the same
    except Exception as error:
        return ["unknown", type(error).__name__]
    try:
        digests = []
        for scheduled, group in zip(releases, values, strict=True):
            model, asks = scheduled.retold(coins, group)
            model = settled(model)
            digests.append([published(model, collect_arrays(model)), transcript(asks)])
        return ["told", digests]
    except Exception:
        return ["failed"]
