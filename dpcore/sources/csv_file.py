"""CSV files as sources: ranges of bytes that end with a frame, each read on its own."""

import contextlib
import errno
import functools
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import attrs
import numpy as np

from dpcore.errors import SourceError
from dpcore.source import WRITTEN_APART, Columns, Part, Reading, Source
from dpcore.sources.csv.dialect import (
    LONGEST,
    TOO_LONG,
    AmbiguousError,
    Dialect,
    LineError,
    read_header,
)
from dpcore.sources.csv.frames import ParsedChunk, by_lines, frame_breaks, walk_frames

CHUNK = 8 << 20  # bytes of a part, unless it is one frame
SMALL = 1 << 20  # a file that is not worth importing pyarrow for
BATCH = 1 << 14  # records

Reader = Callable[[bytes, Dialect], ParsedChunk]


@attrs.frozen(kw_only=True)
class CsvPart(Part):
    """Whole frames of a file.

    Args:
        start, stop: Where they begin and end, in bytes.
        first: How many frames stand before them.
        exact: The declared number of records, if it is public.
    """

    path: Path
    form: Dialect
    reader: Reader
    start: int
    stop: int
    first: int
    exact: int | None

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the records of these frames."""
        records = self._read_frames()
        for first in range(0, records.count, BATCH):
            yield {name: cells[first : first + BATCH] for name, cells in records.columns.items()}

    def _read_frames(self) -> ParsedChunk:
        with _faults(self.path), self.path.open("rb") as file:
            file.seek(self.start)
            # A longer part is one frame, which is no record: a NUL represents it.
            is_too_long = self.stop - self.start > max(CHUNK, LONGEST + 2)
            chunk = b"\0\n" if is_too_long else file.read(self.stop - self.start)
            if not chunk:
                return ParsedChunk(
                    columns={column.name: [] for column in self.form.wanted}, count=0
                )
            if not chunk.endswith(b"\n"):
                chunk += b"\n"
            try:
                return self._drop_excess(self.reader(chunk, self.form))
            except LineError as error:
                # A part does not know its first line's number: only a message needs it.
                number = self._lines_before(file) + 2
                if error.frame:
                    stop = int(frame_breaks(chunk, self.form.delimiter)[0][error.frame - 1])
                    number += chunk.count(b"\n", 0, stop + 1)
                why = TOO_LONG.why if is_too_long else error.why
            except AmbiguousError as error:
                record = self._records_before(file) + error.record + 1
                raise SourceError(
                    f"{self.path.name}: column {error.column!r}, record {record}: a point in a "
                    f"number is ambiguous where data.csv.decimal is ','"
                ) from None
        raise SourceError(f"{self.path.name}, line {number}: {why}")

    def _drop_excess(self, records: ParsedChunk) -> ParsedChunk:
        """Without faulty frames behind the declared number of records: they are none."""
        if self.exact is None or records.faulty is None or not records.faulty.any():
            return records
        # Faulty frames are kept only where every frame is a record, so that frames count records.
        places = np.arange(self.first, self.first + records.count)
        is_record = ~(records.faulty & (places >= self.exact))
        if is_record.all():
            return records
        return ParsedChunk(
            columns={
                name: _take_cells(cells, is_record) for name, cells in records.columns.items()
            },
            count=int(is_record.sum()),
        )

    def _lines_before(self, file: BinaryIO) -> int:
        """Return how many lines stand between the header and this part."""
        file.seek(self.form.start)
        places = range(self.form.start, self.start, CHUNK)
        return sum(file.read(min(CHUNK, self.start - place)).count(b"\n") for place in places)

    def _records_before(self, file: BinaryIO) -> int:
        """Return how many records stand between the header and this part."""
        form = attrs.evolve(self.form, refuse=False)
        return sum(
            attrs.evolve(self, form=form, start=start, stop=stop, first=first)._read_frames().count
            for start, stop, first in _ranges(file, form, self.start)
        )


def _take_cells(cells: Any, is_record: Any) -> Any:
    if isinstance(cells, list):
        return [cell for cell, stays in zip(cells, is_record, strict=True) if stays]
    return cells.take(np.flatnonzero(is_record))


@attrs.frozen(kw_only=True)
class CsvSource(Source):
    """A CSV file with a header.

    Args:
        reader: `by_lines` or `by_arrow`; both read the same.
    """

    # How the file was written: from it follows that one record moves no frame but its own.
    premises: ClassVar[tuple[str, ...]] = (WRITTEN_APART,)

    path: Path
    reading: Reading
    reader: Reader | None = None

    def require_schema(self) -> None:
        """Refuse a file without the declared columns in its header."""
        with _faults(self.path), self.path.open("rb") as file:
            self._form(file)

    def parts(self) -> Sequence[Part]:
        """PRIVATE: ranges of some megabytes."""
        with _faults(self.path), self.path.open("rb") as file:
            form = self._form(file)
            # The header is read once: a part holds all that reading it takes.
            size = file.seek(0, 2)
            reader = self.reader or _reader(form.delimiter, size)
            make_part = functools.partial(
                CsvPart, path=self.path, form=form, reader=reader, exact=self.reading.exact
            )
            # A file without records is one part, which is empty.
            ranges = [*_ranges(file, form, size)] or [(form.start, size, 0)]
            return [make_part(start=start, stop=stop, first=first) for start, stop, first in ranges]

    def _form(self, file: BinaryIO) -> Dialect:
        reading = self.reading
        width, columns, start = read_header(file, self.path, reading)
        return Dialect(
            delimiter=reading.delimiter,
            decimal=reading.decimal,
            width=width,
            wanted=columns,
            start=start,
            total=reading.total,
            keep=reading.exact is not None,
            refuse=reading.refuse,
        )


def _reader(delimiter: str, size: int) -> Reader:
    """Return the fast one where it is installed and worth it."""
    fast = size >= SMALL and delimiter.isascii() and find_spec("pyarrow") is not None
    if not fast:
        return by_lines
    from dpcore.sources.csv.arrow_reader import by_arrow

    return by_arrow


def _ranges(file: BinaryIO, form: Dialect, size: int) -> Iterator[tuple[int, int, int]]:
    """Where parts begin and end, and how many frames stand before each; memory is bounded.

    The file is looked at once more: only from its start on can quotes say where frames end.
    """
    start, first, lines_until = form.start, 0, form.start
    while size - start > CHUNK:
        file.seek(start)
        window = file.read(CHUNK)
        if start < lines_until:  # behind a quote that never closes, lines are frames
            window = window[: lines_until - start]
        window = window[: window.rfind(b"\n") + 1]
        if b'"' not in window or start < lines_until:
            count = int(np.count_nonzero(np.frombuffer(window, np.uint8) == ord("\n")))
            stop = start + len(window)
        else:
            breaks, count = frame_breaks(window, form.delimiter)
            stop = start + int(breaks[count - 1]) + 1 if count else start
        # A frame that does not end in the window is a part of its own, whatever its length.
        if not count:
            count = 1
            if start >= lines_until:
                stop, is_frame = next(walk_frames(file, start, form.delimiter))
                lines_until = start if is_frame else stop
            if start < lines_until:
                stop = _line_end(file, start)
        yield start, stop, first
        start, first = stop, first + count
    if start < size:
        yield start, size, first


def _line_end(file: BinaryIO, start: int) -> int:
    """Where the line that begins here ends, behind its line feed."""
    file.seek(start)
    while (piece := file.readline(LONGEST)) and not piece.endswith(b"\n"):
        pass
    return file.tell()


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What is wrong with a file, reported as `SourceError`."""
    try:
        # No device, and no folder: one of Parquet files is named by a slash behind it.
        if path.exists() and not path.is_file():
            raise IsADirectoryError(errno.EISDIR, "not a file")
        yield
    except OSError as error:
        from dpcore.yaml.other_files import why_unreadable  # where something is wrong

        raise SourceError(f"{path}: {why_unreadable(path, error)}") from None
