"""Lines: a CSV file in which one line is one record, whatever stands in it.

For runs whose success may not depend on the text of one record. A line that is not the declared
number of fields is *malformed*: no UTF-8 text, a stray or open quote, a NUL, a carriage return
inside, too many or too few fields, longer than a limit, or empty. Its neighbours are read as ever.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

LONGEST = 1 << 20  # bytes of a line


def rows(file: BinaryIO, delimiter: str, width: int) -> Iterator[list[str] | None]:
    """The fields of every line from here on; None for a malformed one.

    Args:
        width: Number of fields of a record.
    """
    for line in _lines(file):
        yield None if line is None else _fields(line, delimiter, width)


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines without their ends; None for one that is too long, of which no more is kept."""
    while line := file.readline(LONGEST + 2):
        if line.endswith(b"\n") or len(line) <= LONGEST:
            yield line.removesuffix(b"\n").removesuffix(b"\r")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST)
        yield None


def _fields(line: bytes, delimiter: str, width: int) -> list[str] | None:
    try:
        text = line.decode("utf-8")
        (found,) = csv.reader([text], delimiter=delimiter, strict=True)
    except (UnicodeDecodeError, csv.Error, ValueError):
        return None
    return found if len(found) == width and "\0" not in text else None
