"""Names: what the columns of a file are called, and their logical types; nothing else of it.

Of a CSV file only the header's bytes are read. Of a Parquet file the schema's names and logical
types are used: not how many rows there are, no statistics, no dictionary, and no metadata by key,
where a writer keeps the categories that it found.
"""

import csv
import enum
import math
from pathlib import Path
from typing import Any

import attrs

from dpcore.domain.cell import day, number
from dpcore.errors import SourceError, need, unpassed
from dpcore.sources.arrow_columns import needs_arrow
from dpcore.yaml.other_files import why_no_text

_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 20  # bytes


class Kind(enum.Enum):
    """What a column holds, as far as its type says it."""

    UNKNOWN = "unknown"
    NUMBERS = "numbers"
    DATES = "dates"
    TRUTHS = "truths"
    WORDS = "words"


_PHYSICAL = {
    "BOOLEAN": Kind.TRUTHS,
    "INT32": Kind.NUMBERS,
    "INT64": Kind.NUMBERS,
    "INT96": Kind.DATES,
    "FLOAT": Kind.NUMBERS,
    "DOUBLE": Kind.NUMBERS,
}
_LOGICAL = {
    "STRING": Kind.WORDS,
    "ENUM": Kind.WORDS,
    "DATE": Kind.DATES,
    "TIMESTAMP": Kind.DATES,
    "DECIMAL": Kind.NUMBERS,
    "TIME": Kind.UNKNOWN,
}


@attrs.frozen
class NamedFile:
    """What is known of a file without a record of it.

    Args:
        columns: What each column holds, by name, in the file's order.
        delimiter: Of a CSV file, the character between two names.
    """

    columns: dict[str, Kind]
    delimiter: str = ","


def names_of(path: Path) -> NamedFile:
    """Return the names of a CSV or Parquet file's columns, or of a folder of Parquet files.

    Raises:
        SourceError: it cannot be read; or its first line is no header. No cell is shown.
    """
    need(path.exists(), SourceError, f"{path}: no such file")
    if path.is_dir() or path.suffix in (".parquet", ".pq"):
        return _parquet_names(path)
    # Without a buffer, so that no byte behind the header is read.
    with path.open("rb", buffering=0) as file:
        raw = file.readline(_LONGEST_HEADER)
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SourceError(f"{path.name}: the header is {why_no_text(raw)}") from None
    need(
        line.strip(),
        SourceError,
        f"{path.name}: the first line is empty; it must be a header, which names every column",
    )
    need(
        line.lstrip()[:1] not in ("{", "["),
        SourceError,
        f"{path.name}: this looks like JSON, which is not read; save the table as CSV or Parquet",
    )
    delimiter = max(_DELIMITERS, key=line.count)
    (names,) = csv.reader([line], delimiter=delimiter)
    stripped_names = [name.strip() for name in names]
    need(
        all(map(_is_name, stripped_names)),
        SourceError,
        f"{path.name}: the first line looks like a record; write a header above it, which names "
        f"every column",
    )
    need(
        len({*stripped_names}) == len(stripped_names),
        SourceError,
        f"{path.name}: two columns have the same name; rename one of them in the header",
    )
    return NamedFile(dict.fromkeys(stripped_names, Kind.UNKNOWN), delimiter)


def _is_name(text: str) -> bool:
    """Return whether a cell may be a name: not empty, no number and no date."""
    return bool(text) and math.isnan(number(text)) and math.isnan(day(text))


def _parquet_names(path: Path) -> NamedFile:
    needs_arrow("a Parquet file")
    from pyarrow import parquet

    files = sorted(p for p in path.rglob("*") if p.suffix in (".parquet", ".pq"))
    need(files or path.is_file(), SourceError, f"{path}: no Parquet file in this folder")
    with unpassed(f"{path.name} cannot be read"):
        # The file's own schema: Arrow's is among the metadata by key.
        schema = parquet.ParquetFile(path if path.is_file() else files[0]).schema
        listed = [schema.column(place) for place in range(len(schema.names))]
        return NamedFile({c.path: _kind(c) for c in listed if c.path == c.name})


def _kind(column: Any) -> Kind:
    logical = str(column.logical_type.type)
    return _LOGICAL.get(logical, _PHYSICAL.get(str(column.physical_type), Kind.UNKNOWN))
