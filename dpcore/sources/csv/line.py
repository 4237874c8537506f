"""Lines: what one frame of a CSV file says, or what is wrong with one that is no record.

`frames` says where a frame ends: at a line feed, or at the end of the file; a carriage return
before that belongs to the end. Quotes open at the start of a cell and close at its end; a doubled
quote between them is one, and line ends between them are characters. Elsewhere a quote is a
character like any other. This module is the definition: the fast reader looks at chunks, and asks
here about every frame that is not plain.
"""

import csv

import attrs

LONGEST = 1 << 20  # bytes of a record, without its end
LONGEST_CELL = 1 << 17  # characters: the limit of Python's csv module


@attrs.frozen
class Faulty:
    """A frame that is no record.

    Args:
        why: What is wrong with it, without anything that stands in it.
    """

    why: str


NO_TEXT = Faulty("not UTF-8 text")
TOO_LONG = Faulty(f"a record is longer than {LONGEST} bytes")

Line = list[str] | Faulty
"""The cells of a frame, none where it is empty; or what is wrong with it."""


def row(line: bytes, delimiter: str, width: int | None) -> Line:
    """What one frame is, given without its end.

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
    """The cells of one frame as text, or what is wrong with its quotes or sizes."""
    # Without a quote, splitting is what csv does, and faster.
    if '"' not in text and len(text) <= LONGEST_CELL:
        return text.split(delimiter) if text else []
    try:
        (fields,) = csv.reader([text], delimiter=delimiter, strict=True)
    except csv.Error:
        return Faulty(
            "not a CSV file with these delimiters and quotes: a quote is not closed at the end of "
            "its cell, a carriage return stands outside quotes, or a cell is too long"
        )
    return fields
