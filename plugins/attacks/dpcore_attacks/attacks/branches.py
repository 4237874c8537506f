"""Branches: which instructions of a statistic's own code ran, as a fingerprint of one evaluation.

A path on which the fingerprint changes is halved where it does: there the statistic decides
something about the records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

Taken = frozenset[tuple[str, int, int]]
"""File, first line of the code, offset of the instruction."""

_MOST = 30_000  # events, after which the rest is not followed


def followed(work: Callable[[], T], files: frozenset[str]) -> tuple[T, Taken]:
    """What `work` returns, and which instructions of code in `files` ran on the way.

    A tracer that is at work already (a debugger's, a coverage tool's) is put back afterwards.
    """
    seen: set[tuple[str, int, int]] = set()
    left = _MOST

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            code = frame.f_code
            seen.add((code.co_filename, code.co_firstlineno, frame.f_lasti))
            if left <= 0:
                frame.f_trace_opcodes = False
                sys.settrace(None)
                return None
        return inside

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        found = work()
    finally:
        sys.settrace(before)
    return found, frozenset(seen)
