"""Source: a CSV file or a named data set, to columns by name. Faults are the operator's errors.

Everything here sees records; nothing here is published. Messages name a column or a line, never a
value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from dpcore.domain.domain import Domain, Table
from dpcore.errors import SourceError, near, nearest
from dpcore.spec.grammar import Csv

LONGEST_LINE = 1 << 20  # characters
_LOADERS = "sklearn"


def load_table(source: str, folder: Path | None, layout: Csv, domain: Domain) -> Table:
    """The declared columns of a source.

    Args:
        source: A path relative to `folder`, or LOADER:NAME (`sklearn:diabetes`).

    Raises:
        SourceError: missing, unreadable, or not holding the declared columns.
    """
    loader, _, name = source.partition(":")
    if loader == _LOADERS and name:
        return _sklearn(name, domain)
    path = Path(source) if folder is None else folder / source
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: not a file")
    return _read_csv(path, layout, (*domain.columns, domain.target), domain.at_most)


def load_points(source: str, folder: Path | None, layout: Csv, domain: Domain) -> Table:
    """The feature columns of a public CSV file of points to predict at, relative to `folder`.

    Raises:
        SourceError: missing, unreadable, or holding a point outside the declared columns.
    """
    path = Path(source) if folder is None else folder / source
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: not a file")
    table = _read_csv(path, layout, tuple(domain.columns), None)
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
    _require_columns(f"sklearn:{name}", list(table), (*domain.columns, domain.target))
    return table


def _require_columns(source: str, names: list[str], wanted: tuple[str, ...]) -> None:
    for needed in wanted:
        if names.count(needed) != 1:
            how = "is missing" if needed not in names else "stands in the header twice"
            raise SourceError(f"{source}: column {needed!r} {how}{near(needed, names)}")


def _lines(file: TextIO, name: str) -> Iterator[str]:
    """Lines of bounded length."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise SourceError(f"{name}: a line is longer than {LONGEST_LINE} characters")
        if "\0" in line:
            raise SourceError(f"{name}: not a text file")
        yield line


def _read_csv(path: Path, layout: Csv, names: tuple[str, ...], most: int | None) -> Table:
    try:
        # UTF-8, with or without a byte-order mark
        with path.open("r", encoding="utf-8-sig", newline="") as file:
            return _parse_csv(file, path, layout, names, most)
    except FileNotFoundError:
        raise SourceError(f"no such file: {path}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path.name}: not UTF-8 text") from None
    except csv.Error:
        raise SourceError(f"{path.name}: not a CSV file with these delimiters and quotes") from None


def _parse_csv(
    file: TextIO, path: Path, layout: Csv, names: tuple[str, ...], most: int | None
) -> Table:
    rows = csv.reader(_lines(file, path.name), delimiter=layout.delimiter, strict=True)
    header = next(rows, None)
    if not header:
        raise SourceError(f"{path.name}: the file is empty")
    header = [name.strip() for name in header]
    if len(header) == 1 and names[-1] != header[0]:
        raise SourceError(
            f"{path.name}: one column only with the delimiter {layout.delimiter!r}; "
            f"set data.csv.delimiter"
        )
    _require_columns(path.name, header, names)
    wanted = [(name, header.index(name)) for name in names]
    columns: dict[str, list[str]] = {name: [] for name, _ in wanted}
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            raise SourceError(
                f"{path.name}, line {rows.line_num}: {len(header)} fields were needed, "
                f"{len(row)} came"
            )
        for name, index in wanted:
            columns[name].append(row[index].strip(" \t"))
        if most is not None and len(columns[names[-1]]) > most:
            raise SourceError(f"{path.name}: more than the {most} records that are declared")
    if not columns[names[-1]]:
        raise SourceError(f"{path.name}: a header and no records")
    if layout.decimal == ",":
        return {name: [v.replace(",", ".") for v in values] for name, values in columns.items()}
    return dict(columns)
