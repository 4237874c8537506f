"""`scan`: find which frames of a chunk of a CSV file are plain records, on its bytes.

A frame that is not plain is no verdict: `lines` says what it is. A plain one has exactly the
declared number of cells under the rules of that module, so any reader of CSV files that knows
quotes reads the same cells in it.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.sources.csv.dialect import LONGEST_CELL
from dpcore.sources.csv.frames import frame_breaks

_FEED, _RETURN, _QUOTE = 10, 13, 34
_ZERO = np.uint8(ord("0"))


@attrs.frozen(kw_only=True, eq=False)
class Structure:
    """What was found in a chunk that ends with a line feed.

    Args:
        breaks: Where its frames end: the places of line feeds, shape (frames,).
        blank: Which frames are empty, shape (frames,).
        doubtful: Numbers of the frames that are neither plain nor empty, ascending.
        ends: Where cells end, frame by frame; meaningful where no frame is doubtful.
    """

    breaks: NDArray[np.intp]
    blank: NDArray[np.bool_]
    doubtful: NDArray[np.intp]
    ends: NDArray[np.intp]

    def line(self, chunk: bytes, number: int) -> bytes:
        """Return a frame without its end."""
        start = 0 if number == 0 else int(self.breaks[number - 1]) + 1
        return chunk[start : int(self.breaks[number])].removesuffix(b"\r")

    def columns_at(self, places: NDArray[np.intp], width: int) -> set[int]:
        """Return the columns in which these places of the chunk lie; no frame may be doubtful."""
        ends = self.ends
        if self.blank.any():
            ends = ends[~np.isin(ends, self.breaks[self.blank])]
        return {*np.unique(np.searchsorted(ends, places) % width).tolist()}


def structure(chunk: bytes, delimiter: str, width: int) -> Structure:
    """Look at whole frames.

    Args:
        chunk: Ends with a line feed.
        delimiter: One character of ASCII, no quote and no end of a line.
        width: Number of cells of a record.
    """
    codes = np.frombuffer(chunk, np.uint8)
    feeds = codes == _FEED
    separators = feeds | (codes == ord(delimiter))
    ends = np.flatnonzero(separators)
    breaks = _breaks(codes, feeds, ends, width)
    doubts = []
    # Separators inside quotes end no cell. Where every line is plain by itself, lines are frames.
    if b'"' in chunk:
        ends, quote_frames = _outside_quotes(codes, separators, breaks)
        if quote_frames.size:
            breaks, _ = frame_breaks(chunk, delimiter)
            ends, quote_frames = _outside_quotes(codes, separators, breaks)
        doubts.append(quote_frames)
    lengths = np.diff(breaks, prepend=-1) - 1
    doubts.append(np.flatnonzero(lengths > LONGEST_CELL))
    # Each test from here on collects the lines that one rule calls not plain.
    blank = lengths == 0
    has_returns = b"\r" in chunk
    if has_returns:
        blank |= (lengths == 1) & (codes[breaks - 1] == _RETURN)
        returns = np.flatnonzero(codes == _RETURN)
        doubts.append(np.searchsorted(breaks, returns[codes[returns + 1] != _FEED]))
    if b"\0" in chunk:
        doubts.append(np.searchsorted(breaks, np.flatnonzero(codes == 0)))
    doubts.append(_undecodable(chunk, codes, breaks))
    # Where all lines have `width` cells, every width-th separator ends a line.
    if ends.size != breaks.size * width or np.any(ends[width - 1 :: width] != breaks):
        cells = np.diff(np.searchsorted(ends, breaks), prepend=-1)
        doubts.append(np.flatnonzero((cells != width) & ~blank))
    doubtful = np.unique(np.concatenate(doubts)).astype(np.intp)
    return Structure(breaks=breaks, blank=blank, doubtful=doubtful, ends=ends)


def _breaks(
    codes: NDArray[np.uint8], feeds: NDArray[np.bool_], ends: NDArray[np.intp], width: int
) -> NDArray[np.intp]:
    """Where the line feeds are; every so many-th separator, where lines are alike."""
    # The usual case first: it saves a pass over the chunk.
    last = ends[width - 1 :: width]
    if last.size == np.count_nonzero(feeds) and np.all(codes[last] == _FEED):
        return last
    return np.flatnonzero(feeds)


def bare_points(chunk: bytes, point: str) -> NDArray[np.intp]:
    """Find decimal signs without a digit behind them, which end no number of ours."""
    codes = np.frombuffer(chunk, np.uint8)
    is_bare = codes[1:] - _ZERO > 9  # unsigned: what lies before the digits is above them
    is_bare &= codes[:-1] == ord(point)
    return np.flatnonzero(is_bare)


def _undecodable(
    chunk: bytes, codes: NDArray[np.uint8], breaks: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Lines that are no UTF-8 text."""
    if chunk.isascii():
        return np.zeros(0, np.intp)
    try:
        chunk.decode("utf-8")
    except UnicodeDecodeError:
        # Only lines with bytes beyond ASCII can fail: these are tried one by one.
        foreign = np.unique(np.searchsorted(breaks, np.flatnonzero(codes > 127)))
        starts = np.concatenate(([0], breaks + 1))
        return np.array(
            [line for line in foreign if not _decodes(chunk[starts[line] : breaks[line]])], np.intp
        )
    return np.zeros(0, np.intp)


def _decodes(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _outside_quotes(
    codes: NDArray[np.uint8], separators: NDArray[np.bool_], breaks: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where cells end, and the frames whose quotes are not plain.

    Quotes are counted from the start of their frame. An odd one opens: before it a cell begins, or
    the quote that it doubles is. An even one closes: behind it the cell ends, or its double
    is. Then what lies behind an odd count is inside quotes.
    """
    places = np.flatnonzero(separators | (codes == _QUOTE))
    kinds = codes[places]
    quoted = kinds == _QUOTE
    # Line feeds inside quotes end no frame.
    is_break = kinds == _FEED
    if np.count_nonzero(is_break) != breaks.size:
        is_break = np.zeros(places.size, np.bool_)
        is_break[np.searchsorted(places, breaks)] = True
    frame = np.cumsum(is_break) - is_break
    quote_counts = np.cumsum(quoted)
    counts_at_breaks = np.concatenate(([0], quote_counts[is_break]))
    # The parity of the quotes since the frame began: odd from an opening quote on.
    odd = (quote_counts - counts_at_breaks[frame]) % 2 == 1
    quotes, opens = places[quoted], odd[quoted]
    before = np.where(quotes > 0, codes[quotes - 1], _FEED)
    behind = codes[quotes + 1]
    # The neighbour that must be a separator or the edge, or the other quote of a double.
    adjacent = np.where(opens, before, behind)
    is_at_edge = separators[np.where(opens, np.maximum(quotes - 1, 0), quotes + 1)]
    is_at_edge |= opens & (quotes == 0)
    plain = is_at_edge | (adjacent == _QUOTE) | (~opens & (behind == _RETURN))
    # An odd number of quotes in a frame leaves the last one open.
    unclosed = np.flatnonzero(np.diff(counts_at_breaks) % 2 == 1)
    doubtful_frames = np.concatenate((frame[quoted][~plain], unclosed))
    return places[~quoted & (~odd | is_break)], doubtful_frames
