"""What every command shares: two consoles, tables, one-line errors, exit codes, slow progress.

Rich is imported when something is shown by it; an error is told without.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpcore.errors import DpcoreError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, 120)  # files and pipes need no wrapping at 80
    return console


def out() -> Console:
    """Standard output: results."""
    return _console(stderr=False)


def err() -> Console:
    """Standard error: progress and hints."""
    return _console(stderr=True)


def columns(*headings: str, title: str | None = None) -> Table:
    """An empty table whose long cells go on in the next line."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


@contextmanager
def guarded() -> Iterator[None]:
    """Turn errors into one line and an exit code; never a traceback, which could hold records."""
    try:
        yield
        flush()
    except DpcoreError as error:
        _tell(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt as interrupt:
        _tell(": ".join(["interrupted", *map(str, interrupt.args)]))
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:  # whoever read has seen enough
        give_up()
        raise typer.Exit(1) from None
    except OSError as error:
        give_up()
        _tell(f"input or output failed: {error.strerror or type(error).__name__}")
        raise typer.Exit(1) from None
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        _tell(f"internal error: {type(error).__name__} at {place}")
        raise typer.Exit(1) from None


def flush() -> None:
    """Put out what was printed.

    Raises:
        OSError: it cannot be, as on a full disk.
    """
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up() -> None:
    """Nothing more is printed: what is left in the buffer cannot be put out either."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _tell(message: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens; the exit code remains
        typer.secho(message, err=True, fg="red")


class SlowProgress:
    """A progress bar on standard error that appears only after a second."""

    def __init__(self, total: int, label: str) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        console = err()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # a file would only get an empty line
        )
        self._task = self._bar.add_task(label, total=total)
        self._timer = threading.Timer(1.0, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> SlowProgress:
        self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()

    def step(self) -> None:
        """One more answer."""
        self._bar.advance(self._task)

    def reach(self, done: int) -> None:
        """So many in all."""
        self._bar.update(self._task, completed=done)
