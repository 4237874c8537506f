"""`sealed_output`: silence a sealed run once its records are opened, but for one fixed sentence."""

import contextlib
import ctypes
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

from dpcore.errors import ReleaseError, need

Result = TypeVar("Result")

SEALED_FAILURE = "The sealed run failed; nothing was released."


def run_silenced(work: Callable[[], Result], sealed: bool = True) -> Result:
    """Return what `work` returns, and drop all output of this process meanwhile, also below Python.

    Args:
        sealed: Whether the run is sealed; of another one nothing is dropped or reworded.

    Raises:
        ReleaseError: the fixed sentence, whatever `work` raised, and nothing else in its context.
    """
    if not sealed:
        return work()
    results: list[Result] = []
    with (
        no_output(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception, SystemExit):  # a context could hold records
            results.append(work())
    # One sentence for every failure: even its kind could depend on a record.
    need(results, ReleaseError, SEALED_FAILURE)
    return results[0]


@contextlib.contextmanager
def no_output() -> Iterator[None]:
    """Redirect descriptors 1 and 2 to nowhere, since compiled code and child processes use them."""
    _flush()
    duplicates = []
    # Python's own streams are not enough: compiled code writes to the descriptors.
    with open(os.devnull, "wb") as null_device:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # it is closed
                duplicates.append((descriptor, os.dup(descriptor)))
                os.dup2(null_device.fileno(), descriptor)
    try:
        yield
    finally:
        _flush()
        for descriptor, duplicate in duplicates:
            os.dup2(duplicate, descriptor)
            os.close(duplicate)


def _flush() -> None:
    """Write what is buffered, in Python and in C, to where the descriptors lead now."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # None, closed, or of the host's making
            stream.flush()
    with contextlib.suppress(Exception):  # a platform without that symbol
        ctypes.CDLL(None).fflush(None)
