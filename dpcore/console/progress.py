"""Progress of whatever lasts over a second, on standard error: what is done, and what is left."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dpcore.console.console import VOLUME, Volume, err

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpcore.runs.run_spec import Progress

_EVERY = 10.0  # seconds between two lines


class SlowProgress:
    """A bar that appears after a second; lines where there is no terminal and --verbose is given.

    Args:
        total: How many steps there are; None where nobody knows, until `reach` says so.
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
        self.reach(self._done + 1)

    def reach(self, done: int, total: int | None = None, label: str | None = None) -> None:
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
        yield lambda done, total: bar.reach(done, total, label)
