"""`dialect`: fix how a CSV file is written, and which of its columns are read, by its header.

Messages name a declared column or a line, never a value, nor a name from the file: its first line
may be a record.

A frame says the cells of a record, or what is wrong with one that is none. `frames` says where a
frame ends: at a line feed, or at the end of the file; a carriage return before that belongs to the
end. Quotes open at the start of a cell and close at its end; a doubled quote between them is one,
and line ends between them are characters. Elsewhere a quote is a character like any other. This is
the definition: the fast reader looks at chunks, and asks here about every frame that is not plain.
"""

import codecs
import csv
import re
from pathlib import Path
from typing import BinaryIO

import attrs

from dpcore.domain.columns import Holds
from dpcore.errors import ParameterError, SourceError, need
from dpcore.source import Reading
from dpcore.sources.csv import dialect as lines

LONGEST = 1 << 20  # bytes of a record, without its end
LONGEST_CELL = 1 << 17  # characters: the limit of Python's csv module


@attrs.frozen
class Faulty:
    """A frame that is no record.

    Args:
        why: What is wrong with it, without anything that is in it.
    """

    why: str


NO_TEXT = Faulty("not UTF-8 text")
TOO_LONG = Faulty(f"a record is longer than {LONGEST} bytes")

Line = list[str] | Faulty
"""The cells of a frame, none where it is empty; or what is wrong with it."""


def row(line: bytes, delimiter: str, width: int | None) -> Line:
    """Return what one frame is, given without its end.

    Args:
        width: Number of cells of a record; None for a header, which may have any.
    """
    if len(line) > LONGEST:
        return TOO_LONG
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return NO_TEXT
    if "\0" in text:
        return Faulty("not a text file: it holds a NUL")
    # Inside quotes it is a character; the csv module finds it elsewhere, except at the end.
    if "\r" in text and ('"' not in text or text.endswith("\r")):
        return Faulty("a carriage return inside a line; lines end with a line feed")
    fields = cells(text, delimiter)
    # An empty line has no fields, and is no fault: the reader decides what it means.
    if width is not None and isinstance(fields, list) and fields and len(fields) != width:
        return Faulty(f"{width} fields were needed, {len(fields)} came")
    return fields


def cells(text: str, delimiter: str) -> Line:
    """Return the cells of one frame as text, or what is wrong with its quotes or sizes."""
    # Without a quote, splitting is what csv does, and faster.
    if '"' not in text and len(text) <= LONGEST_CELL:
        return text.split(delimiter) if text else []
    try:
        (fields,) = csv.reader([text], delimiter=delimiter, strict=True)
    except csv.Error:
        return Faulty(
            "not a CSV file with these delimiters and quotes: a quote is not closed at the end of "
            "its cell, a carriage return is outside quotes, or a cell is too long"
        )
    return fields


_POINTED = re.compile(r"[+-]?[0-9]*\.[0-9.,]*(?:[eE][+-]?[0-9]+)?\Z")
_DECLARE = "declare what the header names, or correct the header"
_NO_DELIMITERS = '"\r\n\0'


@attrs.frozen(kw_only=True)
class DeclaredColumn:
    """A declared column of a file.

    Args:
        name: As declared.
        place: Where it is in a line, from 0.
        numeric: Whether a number is declared.
    """

    name: str
    place: int
    numeric: bool


@attrs.frozen(kw_only=True)
class Dialect:
    """How every line after the header is read.

    Args:
        width: Number of cells of a record.
        start: Where the first line after the header begins, in bytes.
        total: Whether every frame is one record whatever is in it.
        keep: In a total reading, whether a faulty frame is a record of empty cells, or is left out.
        refuse: Whether a number with a decimal point is refused where the comma is declared.
    """

    delimiter: str
    decimal: str
    width: int
    wanted: tuple[DeclaredColumn, ...]
    start: int
    total: bool
    keep: bool
    refuse: bool


@attrs.define(eq=False)
class LineError(Exception):
    """A frame that is no record.

    Args:
        frame: Its number in what was read, from 0.
        why: What is wrong with it, without anything that is in it.
    """

    frame: int
    why: str


@attrs.define(eq=False)
class AmbiguousError(Exception):
    """A number with a point where the comma is declared.

    Args:
        record: Its number in what was read, from 0.
    """

    column: str
    record: int


def comma(cell: str) -> str:
    """Return a cell with the decimal comma turned into a point; a number with a point becomes
    none.
    """
    return f"{cell} (ambiguous)" if ambiguous(cell) else cell.replace(",", ".")


def ambiguous(cell: str) -> bool:
    """Return whether a cell is a number with a point."""
    return "." in cell and _POINTED.match(cell.strip(" \t")) is not None


def read_header(
    file: BinaryIO, path: Path, reading: Reading
) -> tuple[int, tuple[DeclaredColumn, ...], int]:
    """Number of cells of a record, the wanted columns in the order given, and where records begin.

    Raises:
        SourceError: no header, or not all declared columns in it.
    """
    if reading.delimiter in _NO_DELIMITERS:
        raise ParameterError(
            "csv", "a delimiter that is no quote and no end", "delimiter", reading.delimiter,
            "data.csv.delimiter",
        )  # fmt: skip
    # A bounded read: a file without line feeds is not read whole for its header.
    raw = file.readline(lines.LONGEST + 2)
    body = raw.removesuffix(b"\n").removesuffix(b"\r").removeprefix(codecs.BOM_UTF8)
    header_cells = lines.row(body, reading.delimiter, None)
    if isinstance(header_cells, lines.Faulty):
        from dpcore.yaml.other_files import why_no_text  # where something is wrong

        why = why_no_text(raw) if header_cells is lines.NO_TEXT else header_cells.why
        raise SourceError(f"{path.name}, line 1: {why}")
    need(header_cells, SourceError, f"{path.name}: the file is empty, and begins with no header")
    # Blanks at the ends of a name count only where they are declared.
    names = reading.names
    header = [name if name in names else name.strip() for name in header_cells]
    # Most likely another delimiter. The message shows nothing of the line itself.
    need(
        len(header) != 1 or names[-1] == header[0],
        SourceError,
        f"{path.name}: one column only with the delimiter {reading.delimiter!r}; "
        f"set data.csv.delimiter, or name a CSV file",
    )
    require_columns(path.name, header, names)
    columns = tuple(
        DeclaredColumn(name=name, place=header.index(name), numeric=holds is Holds.NUMBERS)
        for name, holds in reading.columns.items()
    )
    return len(header), columns, len(raw)


def require_columns(source: str, names: list[str], columns: tuple[str, ...]) -> None:
    """Raise `SourceError` unless every wanted name is among the names once."""
    for column in columns:
        # Libraries differ in which of two equal names they take.
        need(
            names.count(column) <= 1,
            SourceError,
            f"{source}: column {column!r} is in the header twice",
        )
        if column not in names:
            raise SourceError(f"{source}: column {column!r} is missing{_way_out(names, columns)}")


def _way_out(names: list[str], declared: tuple[str, ...]) -> str:
    """Return what the header lacks, in declared names only."""
    # Only declared names are shown, since the first line may be a record.
    if not {*names} & {*declared}:
        return "; no declared column is in the first line, which must be the header"
    cased = {name.casefold() for name in names if name not in declared}
    miscased = [name for name in declared if name not in names and name.casefold() in cased]
    way = f"the header writes {miscased[0]!r} with other capitals" if miscased else _DECLARE
    return f"; {way}"
