"""Clean: a run is told again from its answers before anything of it is published.

The public part of every release is run once more, from copies that were made before any record was
opened, and must ask the same and publish the same, byte for byte. `HERE` does so in this process:
it finds whatever a private function left in an object that it was given. A `CleanProcess` was
started before the records were opened and never holds them: it finds what was left in globals and
class attributes too. Neither finds what is left in files, or in the noise of a clock.
"""

from __future__ import annotations

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

from dpcore.errors import ReleaseError
from dpcore.isolate.isolated_copies import Arrays, published, settled, told_once, transcript
from dpcore.learner import Answer, Published
from dpcore.randomness import PublicCoins
from dpcore.running.schedule import Scheduled

Answers = Sequence[Sequence[Answer]]
"""By release, in order of asking."""


@attrs.frozen(kw_only=True)
class Retold:
    """What the answers alone give, and is to be published.

    Args:
        models: One for each release.
        arrays: What they told when they were compared: a model that tells another thing later
            would not be found out.
        note: Why they were not tried in a clean process, or empty.
    """

    models: tuple[Published, ...]
    arrays: tuple[Arrays, ...]
    note: str = ""


Replayed = Callable[[Answers], Retold]

Told = list[list[str]]
"""By release: a digest of the model, and one of the asks."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dpcore.running.replay_process import answer; answer()"
)


class Replaying(ABC):
    """Where a run is told again."""

    @abstractmethod
    def of(
        self, releases: tuple[Scheduled, ...], coins: PublicCoins
    ) -> AbstractContextManager[Replayed]:
        """Begin, before any record is opened; what is given replays or raises `ReleaseError`."""


class Here(Replaying):
    """In the process that saw the records."""

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """From copies."""

        def replayed(answers: Answers) -> Retold:
            return _again(releases, coins, answers)[0]

        yield replayed


class CleanProcess(Replaying):
    """In a process of its own, and in this one.

    What cannot be imported there by its name (a learner of `__main__`) is told again here only.
    """

    @contextlib.contextmanager
    def of(self, releases: tuple[Scheduled, ...], coins: PublicCoins) -> Iterator[Replayed]:
        """Starts the process, which waits for the answers."""
        try:
            plan = pickle.dumps((releases, coins))
            child = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except Exception as error:  # whatever a field of a third party's class raises
            cause = type(error).__name__
            with HERE.of(releases, coins) as here:
                yield lambda answers: attrs.evolve(here(answers), note=_note(cause))
            return

        def replayed(answers: Answers) -> Retold:
            retold, told = _again(releases, coins, answers)
            values = [[answer.value for answer in given] for given in answers]
            sent = pickle.dumps((plan, values))
            found = json.loads(child.communicate(sent)[0] or b'["none"]')
            if found[0] == "unknown":
                return attrs.evolve(retold, note=_note(found[1]))
            if found != ["told", told]:
                raise ReleaseError(
                    "in a process that saw no record, the answers give other asks or another "
                    "model than here: a private function left something in a global or a class "
                    "attribute, or the public part is not determined by its answers; nothing is "
                    "released"
                )
            return retold

        try:
            yield replayed
        finally:
            child.kill()
            child.communicate()


HERE = Here()


def _note(cause: str) -> str:
    return (
        f"a component cannot be imported in another process ({cause}), so that this one alone "
        f"replayed the answers: globals and class attributes were not checked"
    )


def _again(
    releases: tuple[Scheduled, ...], coins: PublicCoins, answers: Answers
) -> tuple[Retold, Told]:
    """The models with their arrays, and digests.

    Raises:
        ReleaseError: the public part asked, or asks, something else than the answers determine.
    """
    models, arrays, digests = [], [], []
    for scheduled, given in zip(releases, answers, strict=True):
        try:
            model, told = scheduled.retold(coins, [answer.value for answer in given])
            asked = transcript(told)
            same = asked == transcript(given)
        except Exception:
            same = False
        if not same:
            raise ReleaseError(
                f"the public part of the release {scheduled.name!r} does not follow from its "
                f"answers; nothing is released"
            ) from None
        models.append(settled(model))
        arrays.append(told_once(models[-1]))
        digests.append([published(models[-1], arrays[-1]), asked])
    return Retold(models=tuple(models), arrays=tuple(arrays)), digests


def answer() -> None:
    """What the clean process does: read a plan and answers, tell their digests."""
    with os.fdopen(os.dup(1), "wb") as out, open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)  # whatever plugins print
        out.write(json.dumps(_answer(sys.stdin.buffer)).encode())


def _answer(sent: IO[bytes]) -> list[Any]:
    plan, values = pickle.load(sent)  # noqa: S301  # from the process that started this one
    try:
        releases, coins = pickle.loads(plan)  # noqa: S301  # the same
    except Exception as error:
        return ["unknown", type(error).__name__]
    try:
        told = []
        for scheduled, given in zip(releases, values, strict=True):
            model, asked = scheduled.retold(coins, given)
            model = settled(model)
            told.append([published(model, told_once(model)), transcript(asked)])
        return ["told", told]
    except Exception:
        return ["failed"]
