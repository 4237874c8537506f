"""Source: a CSV file or a named data set, to columns by name. Faults are the operator's errors.

Everything here sees records; nothing here is published. Messages name a column or a line, never a
value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpcore.domain import Domain, Table
from dpcore.errors import SourceError
from dpcore.grammar import Csv
from dpcore.strict import nearest

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
    return _read_csv(path, layout, domain)


def _sklearn(name: str, domain: Domain) -> Table:
    """A toy data set that ships inside scikit-learn, in its original units."""
    try:
        from sklearn import datasets  # an optional extra
    except ImportError:
        raise SourceError("sklearn:... needs scikit-learn: pip install dpcore[sklearn]") from None
    bundles = {
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast_cancer": datasets.load_breast_cancer,
    }
    if name not in bundles:
        raise SourceError(f"no data set sklearn:{name}{nearest(name, bundles)}")
    bundle = bundles[name]()
    table = {str(n): bundle.data[:, i] for i, n in enumerate(bundle.feature_names)}
    table["target"] = np.asarray(bundle.target, dtype=np.float64)
    _require_columns(list(table), domain)
    return table


def _require_columns(names: list[str], domain: Domain) -> None:
    for needed in (*domain.columns, domain.target):
        if names.count(needed) != 1:
            how = "is missing" if needed not in names else "stands in the header twice"
            raise SourceError(f"column {needed!r} {how}{nearest(needed, names)}")


def _lines(path: Path) -> Iterator[str]:
    """Lines of bounded length, UTF-8, with or without a byte-order mark."""
    with path.open("r", encoding="utf-8-sig", newline="") as file:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise SourceError(f"{path.name}: a line is longer than {LONGEST_LINE} characters")
            if "\0" in line:
                raise SourceError(f"{path.name}: not a text file")
            yield line


def _read_csv(path: Path, layout: Csv, domain: Domain) -> Table:
    try:
        return _parse_csv(path, layout, domain)
    except FileNotFoundError:
        raise SourceError(f"no such file: {path}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path.name}: not UTF-8 text") from None
    except csv.Error:
        raise SourceError(f"{path.name}: not a CSV file with these delimiters and quotes") from None


def _parse_csv(path: Path, layout: Csv, domain: Domain) -> Table:
    rows = csv.reader(_lines(path), delimiter=layout.delimiter, strict=True)
    header = next(rows, None)
    if not header:
        raise SourceError(f"{path.name}: the file is empty")
    header = [name.strip() for name in header]
    if len(header) == 1 and domain.target != header[0]:
        raise SourceError(
            f"{path.name}: one column only with the delimiter {layout.delimiter!r}; "
            f"set data.csv.delimiter"
        )
    _require_columns(header, domain)
    wanted = [(name, header.index(name)) for name in (*domain.columns, domain.target)]
    most = domain.at_most
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
            columns[name].append(row[index].strip())
        if most is not None and len(columns[domain.target]) > most:
            raise SourceError(f"{path.name}: more than the {most} records that are declared")
    if not columns[domain.target]:
        raise SourceError(f"{path.name}: a header and no records")
    if layout.decimal == ",":
        return {name: [v.replace(",", ".") for v in values] for name, values in columns.items()}
    return dict(columns)
