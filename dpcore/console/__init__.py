"""The command line, one file per command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Entry point of `dpcore`. An interrupt or a termination is one line, whenever it comes."""
    import signal
    import sys

    code: object
    _handle_signals(interrupt)
    try:
        code = _code_of_command()
        _handle_signals(signal.SIG_IGN)  # the command is done: its code is
    except KeyboardInterrupt:
        _handle_signals(signal.SIG_IGN)
        code = 130
    if code == 130:  # an interrupted command's
        print("interrupted", file=sys.stderr)
        code = 1
    sys.exit(code)  # type: ignore[arg-type]  # what SystemExit held


def _code_of_command() -> object:
    """One thread of linear algebra, unless the environment names another number: on matrices of a
    few hundred rows more threads wait for each other, and take the processor meanwhile.
    """
    import os
    import sys

    for library in ("OPENBLAS", "MKL", "OMP"):  # read when numpy is imported
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

    from dpcore.console.app import app  # click is only needed here
    from dpcore.console.console import WANTS_JSON

    WANTS_JSON.set("--json" in sys.argv)
    try:
        app(prog_name="dpcore")
    except SystemExit as end:
        return end.code
    except OSError as error:  # help or version: the commands guard themselves
        print(f"input or output failed: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def interrupt(number: int, frame: Any) -> None:
    """A handler of signals that ends what runs; of what would drop its exception, after that.

    Python drops whatever is raised in a callback of a weak reference, which every import makes, or
    in a finalizer; and raised among its locks of modules, one may stay locked for ever. A library
    may drop what is raised in an import of its own.
    """
    import signal

    place, dropping = frame, ("<frozen importlib._bootstrap>", "weakref.py")
    while place is not None and hasattr(signal, "setitimer"):  # not on every system
        code, place = place.f_code, place.f_back
        if code.co_name == "__del__" or code.co_filename.endswith(dropping):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
    raise KeyboardInterrupt


def _handle_signals(handler: Any) -> None:
    """Have these end a run, in one way; the last is a timer's, of a signal that had to wait."""
    import signal

    for name in ("SIGINT", "SIGTERM", "SIGALRM"):
        # A shell has its background jobs ignore interrupts, and a system may lack the last.
        if signal.getsignal(which := getattr(signal, name, signal.SIGTERM)) is not signal.SIG_IGN:
            signal.signal(which, handler)
