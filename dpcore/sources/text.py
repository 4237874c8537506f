"""Source: a CSV file or a named data set, to columns by name. Faults are the operator's errors.

Everything here sees records; nothing here is published. Messages name a declared column or a line,
never a value, nor a name from the file: its first line may be a record.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np

from dpcore.domain.domain import Domain, Table
from dpcore.errors import SourceError, nearest
from dpcore.sources import lines
from dpcore.spec.grammar import Csv

LONGEST_LINE = 1 << 20  # characters
_LOADERS = "sklearn"
_POINTED = re.compile(r"[+-]?[0-9]*\.[0-9.,]*(?:[eE][+-]?[0-9]+)?\Z")


def load_table(
    source: str,
    folder: Path | None,
    layout: Csv,
    domain: Domain,
    *,
    refuse: bool = False,
    total: bool = False,
) -> Table:
    """The declared columns of a source.

    Args:
        source: A path relative to `folder`, or LOADER:NAME (`sklearn:diabetes`).
        refuse: Whether a number with a decimal point is refused where the comma is declared: it
            may be meant either way. Else it is no number, and is mapped in as any misfit.
        total: Whether every line is one record whatever stands in it. A malformed one is a record
            of empty cells where the number of records is public, and is left out where it is not;
            a record may then not go on in the next line, and empty lines at the end are no records
            only where the declared number is reached without them.

    Raises:
        SourceError: missing, unreadable, or not holding the declared columns.
    """
    loader, _, name = source.partition(":")
    if loader == _LOADERS and name:
        return _sklearn(name, domain)
    path = Path(source) if folder is None else folder / source
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: not a file")
    names = tuple(domain.rules)
    if total:
        return _read_total(path, layout, names, domain)
    return _read_csv(path, layout, names, domain, refuse)


def load_points(source: str, folder: Path | None, layout: Csv, domain: Domain) -> Table:
    """The feature columns of a public CSV file of points to predict at, relative to `folder`.

    Raises:
        SourceError: missing, unreadable, or holding a point outside the declared columns.
    """
    path = Path(source) if folder is None else folder / source
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: not a file")
    table = _read_csv(path, layout, tuple(domain.columns), None, True)
    for name, column in domain.columns.items():
        for wrong in np.flatnonzero(column.misfits(table[name])):
            raise SourceError(
                f"{path.name}: column {name!r}, point {wrong + 1}: needs {column.describe()}"
            )
    return table


def _sklearn(name: str, domain: Domain) -> Table:
    """A toy data set that ships inside scikit-learn, in its original units."""
    try:
        from sklearn import datasets  # an optional extra
    except ImportError:
        raise SourceError("sklearn:... needs scikit-learn: pip install dpcore[sklearn]") from None
    bundles = {
        "digits": datasets.load_digits,
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast_cancer": datasets.load_breast_cancer,
    }
    if name not in bundles:
        raise SourceError(f"no data set sklearn:{name}{nearest(name, bundles)}", "data.source")
    bundle = bundles[name]()
    table = {str(n): bundle.data[:, i] for i, n in enumerate(bundle.feature_names)}
    table["target"] = np.asarray(bundle.target, dtype=np.float64)
    _require_columns(f"sklearn:{name}", list(table), tuple(domain.rules))
    return table


def _require_columns(source: str, names: list[str], wanted: tuple[str, ...]) -> None:
    for needed in wanted:
        if names.count(needed) > 1:
            raise SourceError(f"{source}: column {needed!r} stands in the header twice")
        if needed not in names:
            raise SourceError(f"{source}: column {needed!r} is missing{_way_out(names, wanted)}")


def _way_out(names: list[str], wanted: tuple[str, ...]) -> str:
    """What the header lacks, in declared names alone."""
    if not {*names} & {*wanted}:
        return "; no declared column stands in the first line, which must be the header"
    cased = {name.casefold() for name in names if name not in wanted}
    other = [name for name in wanted if name not in names and name.casefold() in cased]
    return f"; the header writes {other[0]!r} with other capitals" if other else ""


def _lines(file: TextIO, name: str) -> Iterator[str]:
    """Lines of bounded length."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise SourceError(f"{name}: a line is longer than {LONGEST_LINE} characters")
        if "\0" in line:
            raise SourceError(f"{name}: not a text file")
        yield line


def _read_csv(
    path: Path, layout: Csv, names: tuple[str, ...], domain: Domain | None, refuse: bool
) -> Table:
    with _faults(path), path.open("r", encoding="utf-8-sig", newline="") as file:
        # UTF-8, with or without a byte-order mark
        return _parse_csv(file, path, layout, names, domain, refuse)


def _read_total(path: Path, layout: Csv, names: tuple[str, ...], domain: Domain) -> Table:
    with _faults(path), path.open("rb") as file:
        return _parse_total(file, path, layout, names, domain)


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What is wrong with a file, told as `SourceError`."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"no such file: {path}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path.name}: not UTF-8 text") from None
    except csv.Error:
        raise SourceError(f"{path.name}: not a CSV file with these delimiters and quotes") from None


def _parse_csv(
    file: TextIO,
    path: Path,
    layout: Csv,
    names: tuple[str, ...],
    domain: Domain | None,
    refuse: bool,
) -> Table:
    rows = csv.reader(_lines(file, path.name), delimiter=layout.delimiter, strict=True)
    width, wanted = _header(next(rows, None), path, layout, names)
    columns: dict[str, list[str]] = {name: [] for name, _ in wanted}
    most = None if domain is None else domain.at_most
    for row in rows:
        if not row:
            continue
        if len(row) != width:
            raise SourceError(
                f"{path.name}, line {rows.line_num}: {width} fields were needed, {len(row)} came"
            )
        for name, index in wanted:
            columns[name].append(row[index].strip(" \t"))
        if most is not None and len(columns[names[-1]]) > most:
            raise SourceError(f"{path.name}: more than the {most} records that are declared")
    if not columns[names[-1]] and (domain is None or domain.exact is not None):
        raise SourceError(f"{path.name}: a header and no records")
    if layout.decimal == ",":
        return {name: _with_commas(path.name, name, columns[name], refuse) for name in columns}
    return dict(columns)


def _parse_total(
    file: BinaryIO, path: Path, layout: Csv, names: tuple[str, ...], domain: Domain
) -> Table:
    first = file.readline(LONGEST_LINE).removeprefix(codecs.BOM_UTF8).decode("utf-8")
    header = next(csv.reader([first], delimiter=layout.delimiter, strict=True), None)
    width, wanted = _header(header, path, layout, names)
    columns: dict[str, list[str]] = {name: [] for name in names}
    exact, most, empty = domain.exact, domain.at_most, 0
    for row in lines.rows(file, layout.delimiter, width):
        if row is None and exact is None:
            continue
        empty = 0 if row is not None else empty + 1
        for name, index in wanted:
            columns[name].append("" if row is None else row[index].strip(" \t"))
        if most is not None and len(columns[names[-1]]) - empty > most:
            raise SourceError(f"{path.name}: more than the {most} records that are declared")
    if exact is not None and len(columns[names[-1]]) - empty <= exact:
        columns = {name: cells[:exact] for name, cells in columns.items()}
    if layout.decimal == ",":
        return {name: _with_commas(path.name, name, columns[name], False) for name in columns}
    return dict(columns)


def _header(
    header: list[str] | None, path: Path, layout: Csv, names: tuple[str, ...]
) -> tuple[int, list[tuple[str, int]]]:
    """Number of fields, and where the declared columns stand."""
    if not header:
        raise SourceError(f"{path.name}: the file is empty")
    header = [name.strip() for name in header]
    if len(header) == 1 and names[-1] != header[0]:
        raise SourceError(
            f"{path.name}: one column only with the delimiter {layout.delimiter!r}; "
            f"set data.csv.delimiter"
        )
    _require_columns(path.name, header, names)
    return len(header), [(name, header.index(name)) for name in names]


def _with_commas(source: str, name: str, cells: list[str], refuse: bool) -> list[str]:
    """Cells with the decimal comma turned into a point; one with a point is no number."""
    found = []
    for record, cell in enumerate(cells, start=1):
        pointed = "." in cell and _POINTED.match(cell) is not None
        if pointed and refuse:
            raise SourceError(
                f"{source}: column {name!r}, record {record}: a point in a number is ambiguous "
                f"where data.csv.decimal is ','"
            )
        found.append(f"{cell} (ambiguous)" if pointed else cell.replace(",", "."))
    return found
