"""CSV files as sources: ranges of bytes that end with a line, each read on its own."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import numpy as np

from dpcore.errors import SourceError, need
from dpcore.records.location import Location, Reading
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.csv.dialect import AmbiguousError, Dialect, LineError, read_header
from dpcore.sources.csv.line import LONGEST, TOO_LONG
from dpcore.sources.csv.python_reader import ParsedChunk, by_lines

CHUNK = 8 << 20  # bytes of a part, and the rest of its last line
SMALL = 1 << 20  # a file that is not worth importing pyarrow for
BATCH = 1 << 14  # records

Reader = Callable[[bytes, Dialect], ParsedChunk]


@attrs.frozen(kw_only=True)
class CsvPart(Part):
    """Whole lines of a file.

    Args:
        start, stop: Where they begin and end, in bytes.
        exact: The declared number of records, if it is public.
    """

    path: Path
    form: Dialect
    reader: Reader
    start: int
    stop: int
    exact: int | None

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: the records of these lines."""
        records = self._read_lines()
        for first in range(0, records.count, BATCH):
            yield {name: cells[first : first + BATCH] for name, cells in records.columns.items()}

    def _read_lines(self) -> ParsedChunk:
        with _faults(self.path), self.path.open("rb") as file:
            file.seek(self.start)
            # A part is CHUNK bytes and the rest of one line: more means a line that is too long.
            if len(chunk := file.read(self.stop - self.start)) > CHUNK + LONGEST + 2:
                chunk = self._shorten(chunk)
            if not chunk:
                return ParsedChunk(
                    columns={column.name: [] for column in self.form.wanted}, count=0
                )
            if not chunk.endswith(b"\n"):
                chunk += b"\n"
            try:
                return self._drop_excess(self.reader(chunk, self.form), file)
            except LineError as error:
                # A part does not know its first line's number: only a message needs it.
                number = self._read_before(file, self.form.start).count(b"\n") + error.line + 2
                why = error.why
            except AmbiguousError as error:
                earlier = self._read_before(file, self.form.start).split(b"\n")[:-1]
                record = sum(line not in (b"", b"\r") for line in earlier) + error.record + 1
                raise SourceError(
                    f"{self.path.name}: column {error.column!r}, record {record}: a point in a "
                    f"number is ambiguous where data.csv.decimal is ','"
                ) from None
        raise SourceError(f"{self.path.name}, line {number}: {why}")

    def _shorten(self, chunk: bytes) -> bytes:
        """A chunk with a line that is too long, a NUL in the place of that line."""
        need(self.form.total, SourceError, f"{self.path.name}: {TOO_LONG.why}")
        return b"\n".join(
            line if len(line) <= LONGEST + 1 else b"\0" for line in chunk.split(b"\n")
        )

    def _drop_excess(self, records: ParsedChunk, file: BinaryIO) -> ParsedChunk:
        """Without faulty lines behind the declared number of records: they are none."""
        if self.exact is None or records.faulty is None or not records.faulty.any():
            return records
        # Faulty lines are kept only where every line is a record, so that lines count records.
        first = self._read_before(file, self.form.start).count(b"\n")
        is_record = ~(records.faulty & (np.arange(first, first + records.count) >= self.exact))
        if is_record.all():
            return records
        return ParsedChunk(
            columns={
                name: _take_cells(cells, is_record) for name, cells in records.columns.items()
            },
            count=int(is_record.sum()),
        )

    def _read_before(self, file: BinaryIO, start: int) -> bytes:
        """What stands between the header and this part."""
        file.seek(start)
        return file.read(self.start - start)


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

    path: Path
    reading: Reading
    reader: Reader | None = None

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
            cuts = [form.start, *_cuts(file, form.start, size)]
            return [
                make_part(start=start, stop=stop)
                for start, stop in zip(cuts, [*cuts[1:], size], strict=True)
            ]

    def _form(self, file: BinaryIO) -> Dialect:
        reading = self.reading
        width, wanted, start = read_header(file, self.path, reading)
        return Dialect(
            delimiter=reading.delimiter,
            decimal=reading.decimal,
            width=width,
            wanted=wanted,
            start=start,
            total=reading.total,
            keep=reading.exact is not None,
            refuse=reading.refuse,
        )


def _reader(delimiter: str, size: int) -> Reader:
    """The fast one where it is installed and worth it."""
    fast = size >= SMALL and delimiter.isascii() and find_spec("pyarrow") is not None
    if not fast:
        return by_lines
    from dpcore.sources.csv.arrow_reader import by_arrow

    return by_arrow


def _cuts(file: BinaryIO, start: int, size: int) -> Iterator[int]:
    """Where parts begin after the first: behind a line feed."""
    while (target := start + CHUNK) < size:
        # One byte earlier, so that a line that begins at the target begins a part.
        file.seek(target - 1)
        while line := file.readline(LONGEST):
            if line.endswith(b"\n"):
                break
        if (start := file.tell()) >= size:
            return
        yield start


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What is wrong with a file, told as `SourceError`."""
    need(not path.exists() or path.is_file(), SourceError, f"{path}: not a file")
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"no such file: {path}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None


@attrs.frozen(kw_only=True)
class CsvFile(Location):
    """A CSV file of UTF-8 text with a header; `data.csv` says how it is written.

    Args:
        csv: Its path, relative to the spec.
    """

    csv: str

    @property
    def name(self) -> str:
        """The file's name, without its folders."""
        return Path(self.csv).name

    def open(self, reading: Reading) -> Source:
        """The file; it is opened when its parts are asked for."""
        return CsvSource(path=reading.path(self.csv), reading=reading)
