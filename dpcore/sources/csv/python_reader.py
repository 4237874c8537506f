"""`python_reader`: read CSV files with Python's csv module, which defines what a file says."""

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.sources.csv import line as lines
from dpcore.sources.csv.dialect import AmbiguousError, Dialect, LineError, ambiguous, comma
from dpcore.sources.csv.frames import split_frames


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
    """The cells of every record, and which of them stand for a faulty frame."""
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
