"""The laws of engines: the local one keeps them, and liars are found."""

import attrs
import pytest

from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.selection import EVERYTHING
from dpcore_attacks.laws.engines.engines import LAWS, engine_verdicts
from dpcore_attacks.laws.law import Outcome


@pytest.mark.parametrize(("threads", "rows"), [(1, 4096), (2, 64), (7, 33)])
def test_the_local_engine_keeps_every_law(threads, rows):
    found = engine_verdicts(
        lambda: LocalEngine(threads=threads, rows=rows), disturb=lambda engine: None
    )
    assert {verdict.law for verdict in found} == {*LAWS}
    assert all(verdict.outcome is Outcome.PASSED for verdict in found), found


OPEN = []


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Lies(LocalEngine):
    """An engine with one fault."""

    state: dict = attrs.field(factory=dict)
    rows: int = 64


class ForgetsTheLastPart(Lies):
    def load(self, parts, encode):
        return super().load(parts[: max(1, len(parts) - 1)], encode)


class CountsBackwards(Lies):
    def load(self, parts, encode):
        return super().load(parts, encode)[::-1]


class AddsTwiceAfterARetry(Lies):
    def total(self, task):
        found = super().total(task)
        if self.state.pop("killed", False):
            return tuple(one + one for one in found)
        return found


class SplitsNothing(Lies):
    def total(self, task):
        return super().total(attrs.evolve(task, split=EVERYTHING))


class KeepsAnyKey(Lies):
    def total(self, task):
        for blocks in self._held.values():
            blocks.derived = AnyKey(blocks.derived)
        return super().total(task)


class AnyKey:
    """Gives what was derived for the first key, whatever the key is."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.close = blocks.close

    def derived(self, block, key, make):
        return self.blocks.derived(block, (1.0,), make)


class Talks(Lies):
    def total(self, task):
        for blocks in self._held.values():
            for number in range(len(blocks.blocks)):
                task.part(blocks.records(number))
        return super().total(task)


class StaysOpen(Lies):
    def close(self):
        OPEN.append(self)


@pytest.mark.parametrize(
    ("liar", "law"),
    [
        (ForgetsTheLastPart, "engine.same-bits"),
        (CountsBackwards, "engine.counted"),
        (AddsTwiceAfterARetry, "engine.survived"),
        (SplitsNothing, "engine.selected"),
        (KeepsAnyKey, "engine.derived"),
        (Talks, "engine.silent"),
        (StaysOpen, "engine.closed"),
    ],
)
def test_an_engine_that_breaks_a_law_is_found(liar, law):
    def kill(engine):
        engine.state["killed"] = True

    found = engine_verdicts(liar, disturb=kill)
    while OPEN:
        LocalEngine.close(OPEN.pop())
    assert law in {verdict.law.id for verdict in found if verdict.failed}
