"""`arrow_reader`: read CSV files fast: check a chunk's structure, then convert it with pyarrow.

pyarrow by itself is not strict: an open quote swallows the records behind it, and its messages show
cells. So it only sees frames that `structure` found plain, and its messages go nowhere. It converts
to numbers at once where every cell of a column is one; else the column stays text, and the rule of
`dpcore.encoding.cells` reads it. Which of the two happened changes no value.
"""

import codecs
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.encoding.pieces import fixed_width
from dpcore.sources.csv import dialect as lines
from dpcore.sources.csv.dialect import AmbiguousError, Dialect, LineError, ambiguous, comma
from dpcore.sources.csv.frames import ParsedChunk, by_lines
from dpcore.sources.csv.scan import Structure, bare_points, structure


def by_arrow(chunk: bytes, form: Dialect) -> ParsedChunk:
    """Read whole frames at once; columns are arrays of pyarrow, or lists of texts.

    Raises:
        LineError, AmbiguousError: as `by_lines` does.
    """
    # The structure decides what is a record; pyarrow converts only what is plain.
    layout = structure(chunk, form.delimiter, form.width)
    faulty = None
    # Some doubtful frames may be records, written in a way that is rare.
    if layout.doubtful.size and len(_faulty_lines(chunk, layout, form)) < layout.doubtful.size:
        return by_lines(chunk, form)
    # Faulty frames become empty cells, or go, before pyarrow sees the chunk.
    if form.total:
        faults = np.zeros(layout.breaks.size, dtype=np.bool_)
        faults[layout.doubtful] = True
        faults |= layout.blank
        if faults.any():
            chunk = _mask_lines(chunk, layout, faults, form)
            layout = structure(chunk, form.delimiter, form.width)
        faulty = faults if form.keep else None
    count = int(layout.breaks.size - layout.blank.sum())
    table = _convert(chunk, layout, form) if count else {}
    # Where pyarrow disagrees with the structure, the slow reader decides: it is the rule.
    if table is None or any(len(column) != count for column in table.values()):
        return attrs.evolve(by_lines(chunk, form), faulty=faulty)
    if form.decimal == ",":
        table = {name: _with_commas(name, column, form.refuse) for name, column in table.items()}
    empty: dict[str, Any] = {field.name: [] for field in form.wanted}
    return ParsedChunk(columns=table or empty, count=count, faulty=faulty)


def _faulty_lines(chunk: bytes, layout: Structure, form: Dialect) -> list[int]:
    """Return the doubtful frames that are no records.

    Raises:
        LineError: at the first of them, unless the reading is total.
    """
    line_numbers = []
    for number in layout.doubtful.tolist():
        line = lines.row(layout.line(chunk, number), form.delimiter, form.width)
        if isinstance(line, lines.Faulty):
            if not form.total:
                raise LineError(number, line.why)
            line_numbers.append(number)
    return line_numbers


def _mask_lines(chunk: bytes, layout: Structure, faults: NDArray[np.bool_], form: Dialect) -> bytes:
    """Return the chunk with lines of empty cells in place of faulty frames, or without these."""
    empty = b'""' + form.delimiter.encode() * (form.width - 1) + b"\n"  # of one cell, no empty line
    substitute = empty if form.keep else b""
    parts, resume = [], 0
    for number in np.flatnonzero(faults).tolist():
        start = 0 if number == 0 else int(layout.breaks[number - 1]) + 1
        parts += [chunk[resume:start], substitute]
        resume = int(layout.breaks[number]) + 1
    return b"".join([*parts, chunk[resume:]])


def _convert(chunk: bytes, layout: Structure, form: Dialect) -> dict[str, Any] | None:
    """Return the wanted columns; None where pyarrow fails on texts too."""
    # Pyarrow takes `1.` for a number, and the grammar does not: such columns stay texts.
    bare = bare_points(chunk, form.decimal)
    spoiled = layout.columns_at(bare, form.width) if bare.size else set()
    numeric = {field.place for field in form.wanted if field.numeric} - spoiled
    if (table := _parse_columns(chunk, form, numeric, "double")) is not None:
        worded = {
            field.place for field in form.wanted if _has_nan(table[field.name])
        }  # the text nan
        return _parse_columns(chunk, form, numeric - worded, "double") if worded else table
    # Some cell is no number: each column is converted from texts, or stays what it is.
    table = _parse_columns(chunk, form, numeric, "string")
    if table is None or form.decimal == ",":
        return table
    texts = {field.name for field in form.wanted if field.place in numeric}
    return {name: _numbers(column) if name in texts else column for name, column in table.items()}


def _has_nan(column: Any) -> bool:
    """Return whether a column of numbers holds one that is none, other than a null."""
    import pyarrow
    from pyarrow import compute

    return pyarrow.types.is_floating(column.type) and bool(
        compute.any(compute.is_nan(column)).as_py()
    )


def _parse_columns(
    chunk: bytes, form: Dialect, places: set[int], kind: str
) -> dict[str, Any] | None:
    """Columns at these places as of this kind, the others as texts; None if one does not fit."""
    import pyarrow
    from pyarrow import csv

    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    typed = pyarrow.type_for_alias(kind)
    fields = {str(field.place): field for field in form.wanted}
    if chunk.startswith(codecs.BOM_UTF8):
        chunk = b"\n" + chunk  # pyarrow would take a record's first character for a mark
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(chunk),
            csv.ReadOptions(
                column_names=[str(place) for place in range(form.width)],
                use_threads=False,
                block_size=len(chunk) + 1,
            ),
            csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=b'"' in chunk),
            csv.ConvertOptions(
                column_types={name: typed if int(name) in places else text for name in fields},
                include_columns=list(fields),
                null_values=[],
                strings_can_be_null=False,
                decimal_point=form.decimal,
                check_utf8=False,  # the structure has checked it
            ),
        )
    except (pyarrow.ArrowException, ValueError):  # its message shows a cell
        return None
    # One array of a column, without a copy where it has one chunk, as a block of a file has.
    columns = {fields[name].name: table.column(name) for name in fields}
    return {
        name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for name, column in columns.items()
    }


def _numbers(column: Any) -> Any:
    """Texts as numbers, null where the cell is empty; the texts, where one is anything else."""
    import pyarrow
    from pyarrow import compute

    try:
        # A scalar of Python's among the arguments would have pyarrow import pandas.
        is_filled = compute.cast(compute.binary_length(column), pyarrow.bool_())
        filled = compute.if_else(is_filled, column, pyarrow.nulls(1, column.type)[0])
        numeric = compute.cast(filled, pyarrow.float64())
        return column if _has_nan(numeric) else numeric
    except pyarrow.ArrowException:  # its message shows a cell
        return column


def _with_commas(name: str, column: Any, refuse: bool) -> Any:
    """Texts with the decimal comma turned into a point; numbers were read with the comma."""
    import pyarrow
    from pyarrow import compute

    if isinstance(column, list) or pyarrow.types.is_floating(column.type):
        return column
    if pyarrow.types.is_string(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    pointed = [place for place, value in enumerate(values) if ambiguous(value)]
    if refuse and pointed:
        places: Any = fixed_width(column.indices)
        raise AmbiguousError(name, int(np.flatnonzero(np.isin(places, pointed))[0]))
    if pointed:
        return [comma(cell) for cell in column.to_pylist()]
    mapped = compute.replace_substring(column.dictionary, ",", ".")
    return pyarrow.DictionaryArray.from_arrays(column.indices, mapped)
