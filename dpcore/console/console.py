"""What every command shares: two consoles, tables, one-line errors, exit codes, slow progress.

Rich is imported when something is shown by it; an error is reported without.

Progress of whatever lasts over a second, on standard error: what is done, and what is left.
"""

from __future__ import annotations

import contextlib
import enum
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from dpcore.errors import DpcoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpcore.console.layout import Listing, Page
    from dpcore.runs.run_spec import Progress


def out() -> Page:
    """Return the console of standard output, for results only."""
    from dpcore.console.layout import Page

    return Page(sys.stdout)


def err() -> Page:
    """Return the console of standard error, for progress and hints."""
    from dpcore.console.layout import Page

    return Page(sys.stderr)


def columns(
    *headings: str, title: str | None = None, rows: Iterable[Iterable[str]] = ()
) -> Listing:
    """Return a table whose long cells go on in the next line."""
    from dpcore.console.layout import Listing

    return Listing(headings=headings, title=title, rows=[tuple(row) for row in rows])


def show_list(table: Listing, where_empty: str) -> None:
    """A table; in place of one without rows, a sentence that says how there come to be some."""
    out().print(table if table.rows else where_empty)


def show_json(data: object) -> None:
    """Data on standard output, for another program."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    WANTS_JSON.set(False)  # one document is all that standard output holds


@contextmanager
def guarded() -> Iterator[None]:
    """Turn errors into one line and an exit code; never a traceback, which could hold records."""
    try:
        with warnings.catch_warnings():
            # A line next to the others, without the place in a program that Python says.
            warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
            warnings.simplefilter("always", UserWarning)  # whatever Python was reported of warnings
            yield
        flush()
    # Our own errors are written to be read: their text shows parameters, never a record.
    except DpcoreError as error:
        raise fail(str(error), error.exit_code) from None
    except KeyboardInterrupt as interrupt:
        raise fail(": ".join(["interrupted", *map(str, interrupt.args)])) from None
    except (Exit, click.Abort):
        raise
    except BrokenPipeError:  # anyone who read has seen enough
        give_up()
        raise Exit(1) from None
    except MemoryError:
        raise fail("it needs more memory than it may use") from None
    # The system's text for the error number, not the error's own text, which may quote content.
    except OSError as error:
        give_up()
        tell(f"input or output failed: {error.strerror or type(error).__name__}")
        raise Exit(1) from None
    except Exception as error:
        # Type and place only: the text of an unexpected error may hold values of records.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        raise fail(f"internal error: {type(error).__name__} at {place}") from None


class Volume(enum.Enum):
    """How much is said on standard error also errors."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


VOLUME: ContextVar[Volume] = ContextVar("volume", default=Volume.NORMAL)
"""The volume of the command that runs, and of no other."""


WANTS_JSON: ContextVar[bool] = ContextVar("wants_json", default=False)
"""Whether the command that runs is to answer in JSON, and has not answered yet."""


def note(text: str) -> None:
    """A hint on standard error; none where the command is to be quiet."""
    if text and VOLUME.get() is not Volume.QUIET:
        err().print(f"note: {text}")


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
        # Python flushes again at exit; into the null device that cannot fail a second time.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def tell(message: str) -> None:
    """An error, in one line: red on a terminal, unless NO_COLOR is set."""
    with contextlib.suppress(OSError):  # no one listens; the exit code remains
        colored = False if os.environ.get("NO_COLOR") else None
        click.secho(message, err=True, fg="red", color=colored)


def fail(message: str, code: int = 1) -> Exit:
    """Say an error, on standard output too where JSON was asked for; what to raise."""
    tell(message)
    if WANTS_JSON.get():
        show_json({"error": message, "exit_code": code})
    return Exit(code)


_EVERY = 10.0  # seconds between two lines


class SlowProgress:
    """A bar that appears after a second; lines where there is no terminal and --verbose is given.

    Args:
        total: How many steps there are; None where no one knows, until `advance` says so.
        label: What is done.
    """

    def __init__(self, total: int | None, label: str) -> None:
        self._total, self._label, self._done = total, label, 0
        self._start = self._last_line_at = time.monotonic()
        console = err()
        self._lines = VOLUME.get() is Volume.VERBOSE and not console.is_terminal
        self._bar = None
        if console.is_terminal and VOLUME.get() is not Volume.QUIET:
            from dpcore.console.progress_bar import bar  # imports Rich

            self._bar = bar()
            self._task = self._bar.add_task(label, total=total)
            self._timer = threading.Timer(1.0, self._bar.start)
            self._timer.daemon = True

    def __enter__(self) -> SlowProgress:
        if self._bar is not None:
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()

    def step(self) -> None:
        """Count one more step as done."""
        self.advance(self._done + 1)

    def advance(self, done: int, total: int | None = None, label: str | None = None) -> None:
        """Show `done` steps of `total`; the known total and label stay where None is passed."""
        self._done, self._total = done, self._total if total is None else total
        if label is not None and label != self._label:
            self._label, self._start = label, time.monotonic()  # each part has a speed of its own
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self._total, description=self._label)
        elif self._lines and time.monotonic() - self._last_line_at >= _EVERY:
            self._last_line_at = time.monotonic()
            err().print(self._line(self._last_line_at - self._start))

    def _line(self, seconds: float) -> str:
        if not self._total or not self._done:
            return f"{self._label}: {self._done}, {seconds:.0f} s so far"
        # At the pace of this part so far.
        seconds_left = seconds * (self._total - self._done) / self._done
        return f"{self._label}: {self._done} of {self._total}, about {seconds_left:.0f} s left"


@contextmanager
def slow_progress(label: str = "releasing", before: str = "reading") -> Iterator[Progress]:
    """For a library's `Progress`: what comes before the first step has no number of steps."""
    with SlowProgress(None, before) as bar:
        yield lambda done, total: bar.advance(done, total, label)
