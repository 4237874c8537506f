"""Engines, commands and events: wrong ones, and right ones of unusual form."""

import contextlib
from pathlib import Path

import attrs
import click
import numpy as np

from dpcore.errors import ContractError, RequestError, SourceError
from dpcore.exact import Exact
from dpcore.private.engines.choice import EngineChoice
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.selection import EVERYTHING
from dpcore.sources.parquet import ParquetSource

from gallery.core import GaussianEvent


@attrs.frozen(kw_only=True, eq=False, slots=False)
class DoubleTotals(LocalEngine):
    """Every block is added twice."""

    def total(self, task):
        return tuple(total + total for total in super().total(task))


@attrs.frozen(kw_only=True)
class Opened(EngineChoice):
    """Opens one kind of engine."""

    engine = LocalEngine

    @contextlib.contextmanager
    def opened(self, spool):
        with self.engine(spool=spool) as engine:
            yield engine


@attrs.frozen(kw_only=True)
class AddsTwice(Opened):
    """Totals are not those of the local engine."""

    engine = DoubleTotals


@attrs.frozen(kw_only=True)
class SmallBlocks(Opened):
    """The local engine with blocks of seven records."""

    @contextlib.contextmanager
    def opened(self, spool):
        with LocalEngine(spool=spool, threads=3, rows=7) as engine:
            yield engine


@attrs.frozen(kw_only=True)
class NeedsAServer(EngineChoice):
    """Nothing answers here."""

    def opened(self, spool):
        raise RequestError("no server answers")


@click.command()
def silent():
    pass


class Writes(click.Command):
    def get_help(self, ctx):
        Path("help.txt").write_text("")
        return super().get_help(ctx)


@click.command(cls=Writes)
def writes():
    """Write a file when help is asked for."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def forgiving():
    """Take any option for an argument, and go on."""


@click.group()
def several():
    """A group of commands."""


@attrs.frozen
class Single(GaussianEvent):
    """A curve that no mechanism of its plugin states."""


@attrs.frozen(kw_only=True, eq=False, slots=False)
class WhereTheyLie(LocalEngine):
    """Adds records of Parquet files only, and all of them, once it has accepted a plan."""

    state: dict = attrs.field(factory=dict)

    def accept(self, workload):
        if not isinstance(workload().source, ParquetSource):
            raise RequestError("only Parquet files are added here")
        self.state["plan"] = workload()

    def load(self, parts, encode):
        if "plan" not in self.state:
            raise ContractError("no plan was accepted")
        return super().load(parts, encode)

    def total(self, task):
        if task.split is not EVERYTHING:
            raise ContractError("all records are added, or none")
        return super().total(task)


class WhereverTheyLie(WhereTheyLie):
    """Adds any file, and any split of it."""

    def accept(self, workload):
        self.state["plan"] = workload()

    def total(self, task):
        return LocalEngine.total(self, task)


class AddsNowhere(WhereTheyLie):
    def accept(self, workload):
        raise RequestError("no file is added here")


class AddsAgain(WhereTheyLie):
    def total(self, task):
        total = super().total(task)
        before = self.state.setdefault(task.zero[0].shape, total)
        self.state[task.zero[0].shape] = tuple(a + b for a, b in zip(before, total, strict=True))
        return before


class AddsInSingles(WhereTheyLie):
    """Totals are rounded to 24 bits."""

    def total(self, task):
        return tuple(
            Exact.of(np.array(total.integers()).astype(np.float32).astype(np.int64), total.exponent)
            for total in super().total(task)
        )


class SplitsNothing(WhereverTheyLie):
    def total(self, task):
        return super().total(attrs.evolve(task, split=EVERYTHING))


class MissingIsLow(WhereTheyLie):
    """What is missing counts as the low end of a range."""

    def load(self, parts, encode):
        def filled(batch):
            lows = np.nan_to_num(np.array(batch["a"], dtype=np.float64), nan=-1.0)
            return encode({**batch, "a": lows})

        return super().load(parts, filled)


class TakesMisfits(WhereTheyLie):
    def load(self, parts, encode):
        return super().load(parts, attrs.evolve(encode, refuse=False))


class ReportsMisfits(WhereTheyLie):
    def load(self, parts, encode):
        try:
            return super().load(parts, encode)
        except SourceError:
            cells = [batch["y"] for part in parts for batch in part.batches()]
            raise SourceError(f"{cells} do not fit") from None


class CountsOneMore(WhereTheyLie):
    def load(self, parts, encode):
        first, *rest = super().load(parts, encode)
        return (first + 1, *rest)


class StaysOpen(WhereTheyLie):
    def close(self):
        pass

    def __exit__(self, *failure):
        super().close()


def choice_of(kind):
    """An operator's choice that opens one kind of engine."""
    return type(f"{kind.__name__}Choice", (Opened,), {"engine": kind})


WRONG_IN_PLACE = {
    AddsAgain: "engine.same-bits",
    AddsInSingles: "engine.same-bits",
    MissingIsLow: "engine.same-bits",
    CountsOneMore: "engine.counted",
    SplitsNothing: "engine.selected",
    TakesMisfits: "engine.silent",
    ReportsMisfits: "engine.silent",
    StaysOpen: "engine.closed",
}
RIGHT_IN_PLACE = (WhereTheyLie, WhereverTheyLie)
