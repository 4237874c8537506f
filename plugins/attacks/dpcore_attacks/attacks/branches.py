"""Branches: which instructions of a statistic's own code ran, as a fingerprint of one evaluation.

A path on which the fingerprint changes is halved where it does: there the statistic decides
something about the records.
"""

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

Taken = frozenset[tuple[str, int, int]]
"""File, first line of the code (or the instruction's own), offset of the instruction."""

_SHOWN = 2  # lines
_MOST = 30_000  # events, after which the rest is not followed


def followed(
    work: Callable[[], T], files: frozenset[str], *, lines: bool = False
) -> tuple[T, Taken]:
    """Return what `work` returns, and which instructions of code in `files` ran on the way.

    Args:
        lines: Say each instruction's own line, which takes longer, in place of its code's first.

    A tracer that is at work already (a debugger's, a coverage tool's) is put back afterwards.
    """
    instructions: set[tuple[str, int, int]] = set()
    budget = _MOST

    # a tracer of instructions is slow: after `_MOST` events the work goes on without one
    def trace_instruction(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal budget
        if event == "opcode":
            budget -= 1
            code = frame.f_code
            line = frame.f_lineno if lines else code.co_firstlineno
            instructions.add((code.co_filename, line, frame.f_lasti))
            if budget <= 0:
                frame.f_trace_opcodes = False
                sys.settrace(None)
                return None
        return trace_instruction

    def trace_call(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        # instructions say both branches of a one-line condition apart; lines do not
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace_instruction

    # the tracer is taken off whatever `work` raises
    previous_tracer = sys.gettrace()
    sys.settrace(trace_call)
    try:
        result = work()
    finally:
        sys.settrace(previous_tracer)
    return result, frozenset(instructions)


def lines_apart(
    works: tuple[Callable[[], object], Callable[[], object]], files: frozenset[str]
) -> str:
    """Return the first lines of which some instructions run in one of two works only, in words.

    Empty where the same instructions run in both.
    """
    first, second = (followed(work, files, lines=True)[1] for work in works)
    places = sorted({(file, line) for file, line, _ in first ^ second})
    texts = [
        f"{Path(file).name}:{line} `{linecache.getline(file, line).strip()}`"
        for file, line in places[:_SHOWN]
    ]
    return f"{' and '.join(texts)} ran otherwise for the two" if texts else ""
