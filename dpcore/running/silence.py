"""Silence: what a sealed run tells once its records are opened: nothing, or one fixed sentence."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
import warnings
from collections.abc import Iterator

from dpcore.errors import ReleaseError

SEALED_FAILURE = "The sealed run failed; nothing was released."


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Drop all output of this process, also what is written below Python; hide why it failed.

    Raises:
        ReleaseError: the fixed sentence, whatever was raised inside.
    """
    failed = False
    with (
        _descriptors_to_nowhere(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        except (Exception, SystemExit):
            failed = True
    if failed:
        raise ReleaseError(SEALED_FAILURE)


@contextlib.contextmanager
def _descriptors_to_nowhere() -> Iterator[None]:
    """Descriptors 1 and 2 lead nowhere meanwhile: compiled code and child processes use them."""
    _flush()
    kept = []
    with open(os.devnull, "wb") as nowhere:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # it is closed
                kept.append((descriptor, os.dup(descriptor)))
                os.dup2(nowhere.fileno(), descriptor)
    try:
        yield
    finally:
        _flush()
        for descriptor, own in kept:
            os.dup2(own, descriptor)
            os.close(own)


def _flush() -> None:
    """Write what is buffered, in Python and in C, to where the descriptors lead now."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # None, closed, or of the host's making
            stream.flush()
    with contextlib.suppress(Exception):  # a platform without that symbol
        ctypes.CDLL(None).fflush(None)
