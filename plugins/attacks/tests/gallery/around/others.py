"""Engines, commands and events: wrong ones, and right ones of unusual form."""

import contextlib
from pathlib import Path

import attrs
import click

from dpcore.engines.choice import EngineChoice
from dpcore.engines.local import LocalEngine
from dpcore.errors import RequestError

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
class Alone(GaussianEvent):
    """A curve that no mechanism of its plugin states."""
