"""Frames: which lines of a CSV file are one record, as RFC 4180 writes records.

A quote at the start of a cell opens it. Inside, two quotes are one, and a line end is a character
like any other. A single quote closes the cell: a delimiter, a line end or the end of the file
is behind it. A quote elsewhere in a cell is a character. A frame begins at the start of a line
and ends at the first line end outside quotes. Where a frame would never end, or a closing quote has
anything else behind it, no writer of RFC 4180 wrote the line at which the frame begins: that line
is a frame only, and the next frame begins behind it.

**One record moves no other.** A writer of RFC 4180 encloses every cell that holds a quote, a
delimiter or a line feed, and doubles its quotes. So what it writes for one list of cells, whatever
they hold, starts outside quotes, ends outside quotes, and is outside quotes at no line feed but its
last: it is one frame. A file is a header and such texts one after the other, so that its frames are
its records, and two files that differ in one record differ in one frame. No limit of length enters
here: a frame that is too long for a record still ends where it ends.

**One pass.** Let a frame that begins at line K fail at line L. The lines between, read from inside
quotes, end inside quotes. A frame that begins at one of them ends on its own line, or comes to its
end inside quotes and fails at L as well. So the lines K to L-1 are frames only, and reading goes
on at L. By the same argument a range of whole frames has the frames of the file, whatever follows
it: a frame that would end behind the range is none, and its lines are frames only either way.

**Two readers.** `by_lines` reads with Python's csv module, which defines what a file says.
"""

import io
import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any, BinaryIO

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.sources.csv import dialect as lines
from dpcore.sources.csv.dialect import AmbiguousError, Dialect, LineError, ambiguous, comma

BLOCK = 1 << 16  # bytes that are looked at together where frames are walked one by one
_CONTEXT = 4  # bytes next to a quote that decide what it is: a delimiter, or two of a line's end
_FEED, _QUOTE = 10, 34
_TOKENS = re.compile(rb'"+|\n')


def frame_breaks(chunk: bytes, delimiter: str) -> tuple[NDArray[np.intp], int]:
    """Return the line feeds at which the frames of whole lines end, and how many of them are
    certain.

    The others end lines of a frame that goes on behind the chunk, or lines only if it never ends.
    """
    codes = np.frombuffer(chunk, np.uint8)
    feeds = np.flatnonzero(codes == _FEED)
    joins = np.zeros(feeds.size, np.bool_)  # line feeds inside quotes
    if b'"' in chunk:
        runs, states, is_broken = _quote_runs(codes, delimiter)
        if is_broken:
            joins = _walked_joins(chunk, feeds, delimiter)
        else:
            before = np.searchsorted(runs, feeds)
            joins = (before > 0) & states[before - 1]
    # A frame that is open at the end leaves its lines only.
    last = int(feeds.size - np.argmin(joins[::-1])) if not joins.all() else 0
    joins[last:] = False
    breaks = feeds[~joins]
    return breaks, breaks.size - (feeds.size - last)


def split_frames(chunk: bytes, delimiter: str) -> list[bytes]:
    """Return the frames of whole lines, without their last line feeds."""
    if b'"' not in chunk:
        return chunk.removesuffix(b"\n").split(b"\n")
    starts = (frame_breaks(chunk, delimiter)[0] + 1).tolist()
    return [chunk[start : stop - 1] for start, stop in zip([0, *starts[:-1]], starts, strict=True)]


def _quote_runs(
    codes: NDArray[np.uint8], delimiter: str
) -> tuple[NDArray[np.intp], NDArray[np.bool_], bool]:
    """Where runs of quotes begin, whether a cell is open behind each, and whether one is wrong.

    An odd run at a cell's start opens a cell, or closes the open one; elsewhere it closes the open
    one, or is text. An even run changes nothing. The states hold up to the first run that is wrong.
    """
    # The last byte is a line feed, so that every run has an end.
    edges = np.flatnonzero(np.diff(codes == _QUOTE, prepend=False))
    runs, behind = edges[::2], edges[1::2]
    odd = (behind - runs) & 1 == 1
    mark = delimiter.encode()
    # No delimiter of UTF-8 ends with its own first byte, so that none begins before the chunk.
    at_start = (codes[runs - 1] == _FEED) | _equals(codes, runs - len(mark), mark)
    at_end = (codes[behind] == _FEED) | _equals(codes, behind, mark)
    # Since the last odd run that cannot open, the number of those that can says what is open.
    count = np.cumsum(odd & at_start, dtype=np.int32)
    states = (count - np.maximum.accumulate(np.where(odd & ~at_start, count, 0))) & 1 == 1
    is_wrong = np.where(np.concatenate(([False], states[:-1])), odd, ~odd & at_start) & ~at_end
    return runs, states, not np.all(_equals(codes, behind[is_wrong], b"\r\n"))


def _equals(codes: NDArray[np.uint8], starts: NDArray[np.intp], text: bytes) -> NDArray[np.bool_]:
    """Return whether these bytes stand from each of these places on."""
    result = np.ones(starts.size, np.bool_)
    for offset, code in enumerate(text):
        result &= codes.take(starts + offset, mode="clip") == code
    return result


def _walked_joins(chunk: bytes, feeds: NDArray[np.intp], delimiter: str) -> NDArray[np.bool_]:
    """Which line feeds end no frame, or a line of a frame that the chunk leaves open."""
    joins = np.ones(feeds.size, np.bool_)
    first = 0
    for stop, is_frame in walk_frames(io.BytesIO(chunk), 0, delimiter):
        following = int(np.searchsorted(feeds, stop))
        if is_frame:
            joins[following - 1] = False
        elif stop < len(chunk):
            joins[first:following] = False
        first = following
    return joins


def walk_frames(file: BinaryIO, start: int, delimiter: str) -> Iterator[tuple[int, bool]]:
    """Find where frames end, from the start of one on, in bounded memory whatever their length.

    Yields:
        A place, and whether what lies before it is one frame, or lines that are frames only.
    """
    restart: int | None = start
    while restart is not None:
        restart = yield from _walk_until_failure(file, restart, delimiter)


def _walk_until_failure(
    file: BinaryIO, start: int, delimiter: str
) -> Generator[tuple[int, bool], None, int | None]:
    """Yield the same until a frame of several lines fails; gives the line at which it does."""
    marks = (delimiter.encode(), b"\n")
    file.seek(start)
    # The line end before the first line; `base` is where the buffer is in the file.
    buffer, base, resume = b"\n", start - 1, 1
    last, is_inside, is_spoiled = 0, False, False
    block = buffer
    while block:
        block = file.read(BLOCK)
        buffer += block
        # What a quote at the edge is, its neighbours in the next block say.
        text = buffer[:-_CONTEXT].rstrip(b'"') if block else buffer
        edge = max(len(text), resume)
        for token in _TOKENS.finditer(buffer, resume, edge):
            begin, end = token.span()
            if token[0] == b"\n":
                last = base + end
                if not is_inside:
                    yield last, True
                    start, is_spoiled = last, False
            elif not is_spoiled:
                odd, at_start = (end - begin) % 2 == 1, buffer.endswith(marks, 0, begin)
                closes = odd if is_inside else at_start and not odd
                at_end = buffer.startswith((*marks, b"\r\n"), end)
                at_end |= end + 1 >= len(buffer) and buffer[end:] in (b"", b"\r")
                if closes and not at_end and last > start:
                    yield last, False
                    return last
                # A frame that fails on its first line ends with it.
                is_spoiled = closes and not at_end
                is_inside = not is_spoiled and (not odd if is_inside else at_start and odd)
        # A run of quotes without end is as long as its parity says.
        excess = max(len(buffer) - _CONTEXT - edge - BLOCK, 0) // 2 * 2
        context = min(edge, _CONTEXT)
        buffer = buffer[edge - context : edge] + buffer[edge + excess :]
        base, resume = base + edge - context + excess, context
    if (size := base + len(buffer)) > start:
        yield size, not is_inside or last <= start
    return None


@attrs.frozen(kw_only=True, eq=False)
class ParsedChunk:
    """The records of a chunk.

    Args:
        columns: By declared name.
        count: How many records.
        faulty: In a total reading that keeps faulty lines, which records are such; else None.
    """

    columns: dict[str, Any]
    count: int
    faulty: NDArray[np.bool_] | None = None


def by_lines(chunk: bytes, form: Dialect) -> ParsedChunk:
    """Read whole frames one by one; columns are lists of texts.

    Raises:
        LineError: at the first frame that is no record, unless the reading is total.
        AmbiguousError: at a number with a point, where the form refuses it.
    """
    parsed_lines = (
        lines.row(frame.removesuffix(b"\r"), form.delimiter, form.width)
        for frame in split_frames(chunk, form.delimiter)
    )
    rows, faulty = _records(parsed_lines, form)
    columns = {column.name: [row[column.place] for row in rows] for column in form.wanted}
    if form.decimal == ",":
        columns = {name: _with_commas(name, cells, form.refuse) for name, cells in columns.items()}
    is_faulty = np.array(faulty, dtype=np.bool_) if form.total and form.keep else None
    return ParsedChunk(columns=columns, count=len(rows), faulty=is_faulty)


def _records(
    parsed_lines: Iterable[lines.Line], form: Dialect
) -> tuple[list[list[str]], list[bool]]:
    """Return the cells of every record, and which of them represent a faulty frame."""
    rows, faulty = [], []
    empty_row = [""] * form.width
    for number, line in enumerate(parsed_lines):
        if isinstance(line, list) and line:
            rows.append(line)
            faulty.append(False)
        # With a public number of records each frame is one, the empty and the faulty too.
        elif form.total and form.keep:
            rows.append(empty_row)
            faulty.append(True)
        elif isinstance(line, lines.Faulty) and not form.total:
            raise LineError(number, line.why)
    return rows, faulty


def _with_commas(name: str, cells: list[str], refuse: bool) -> list[str]:
    """Cells with the decimal comma turned into a point; one with a point is no number."""
    if refuse:
        for record, cell in enumerate(cells):
            if ambiguous(cell):
                raise AmbiguousError(name, record)
    return [comma(cell) for cell in cells]
