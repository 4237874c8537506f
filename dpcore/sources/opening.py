"""Opening: from what a spec, or a call in Python, says of a source to its declared columns."""

from pathlib import Path
from typing import Literal

import attrs

from dpcore.checks import describe_type
from dpcore.domain.domain import Domain, kind_of_cells
from dpcore.errors import need
from dpcore.source import DeclaredSource, Layout, Location, Reading, Source

_SKLEARN = "sklearn"
_PARQUET = (".parquet", ".pq", "/")


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
        """Return the file; it is opened when its parts are asked for."""
        from dpcore.sources.csv_file import CsvSource

        return CsvSource(path=reading.path(self.csv), reading=reading)


def location(source: Location | str) -> Location:
    """Return what a text means: `sklearn:NAME`; Parquet by its end .parquet, .pq or /; else a CSV
    file.
    """
    if isinstance(source, Location):
        return source
    # The text by itself decides: no file is looked at, so that a spec means the same everywhere.
    loader, _, name = source.partition(":")
    if loader == _SKLEARN and name:
        from dpcore.sources.sklearn_data import SklearnData

        return SklearnData(sklearn=name)
    if not source.endswith(_PARQUET):
        return CsvFile(csv=source)
    from dpcore.sources.parquet import ParquetFiles

    return ParquetFiles(parquet=source)


def reading(
    domain: Domain,
    folder: Path | None,
    layout: Layout,
    *,
    refuse: bool = False,
    total: bool = False,
    rich_role: bool = False,
) -> Reading:
    """Return what a reader of records must know of their domain."""
    return Reading(
        columns={name: kind_of_cells(rule) for name, rule in domain.raw.items()},
        folder=folder,
        exact=domain.exact,
        limit=domain.limit,
        refuse=refuse,
        total=total,
        delimiter=layout.delimiter,
        decimal=layout.decimal,
        rich_role=rich_role,
    )


def open_source(
    source: Location | str,
    folder: Path | None,
    layout: Layout,
    domain: Domain,
    *,
    refuse: bool = False,
    total: bool = False,
    rich_role: bool = False,
) -> Source:
    """Return the records of a source; none is read yet.

    Args:
        source: A location, or a text: a path relative to `folder`, or `sklearn:NAME`.
        refuse: Whether a number with a decimal point is refused where the comma is declared: it
            may be meant either way. Else it is no number, and is mapped in as any misfit.
        total: Whether every line of a text file is one record whatever is in it. A faulty one
            is a record of empty cells where the number of records is public, and is left out where
            it is not. Faulty lines behind the declared number are no records.
        rich_role: Whether the operator lets a query reach a server as a role of many rights.

    Raises:
        SourceError: it cannot be opened here: an extra is missing, or a connection.
    """
    # The location by itself decides what it is read with: nothing is opened here.
    facts = reading(domain, folder, layout, refuse=refuse, total=total, rich_role=rich_role)
    return location(source).open(facts)


@attrs.frozen(kw_only=True)
class Unopened(DeclaredSource):
    """Records that no one has read yet: where they stand, and how their file is written.

    Every entry point that takes a table takes it: `Plan.run`, `Plan.open`, `Session` and `run`.

    Args:
        location: The file, the folder or the query.
        delimiter, decimal: How a text file is written.
        folder: What a relative path is relative to; the working directory if None.
        rich_role: Whether a query may reach a server as a role of many rights.
    """

    location: Location
    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    folder: Path | None = None
    rich_role: bool = False

    def open(self, domain: Domain, *, refuse: bool) -> Source:
        """Return a source of the columns that a domain declares; no record is read yet.

        Args:
            refuse: Whether a record that does not fit is refused, or mapped into the domain.

        Raises:
            SourceError: an extra is not installed, or no such connection is configured.
        """
        return open_source(
            self.location, self.folder, self, domain, refuse=refuse, total=not refuse,
            rich_role=self.rich_role,
        )  # fmt: skip


def read_csv(path: Path | str, *, delimiter: str = ",", decimal: str = ".") -> Unopened:
    """Describe a CSV file for a release boundary of dpcore, which reads it by what is declared.

    Args:
        path: Of UTF-8 text with a header; relative to the working directory of this call.
        delimiter: The character between two cells.
        decimal: The character before the decimals of a number: a point or a comma.

    Raises:
        ParameterError: the delimiter is not one character, or the decimal neither of the two.
    """
    is_character = isinstance(delimiter, str) and len(delimiter) == 1
    need(is_character, "read_csv", "one character", "delimiter", delimiter)
    comma = decimal == ","
    need(comma or decimal == ".", "read_csv", "a point or a comma", "decimal", decimal)
    return Unopened(
        location=CsvFile(csv=_absolute(path)), delimiter=delimiter, decimal="," if comma else "."
    )


def read_parquet(path: Path | str) -> Unopened:
    """Describe a Parquet file, or a folder of them, for a release boundary of dpcore; its own types
    decide.

    Args:
        path: Relative to the working directory of this call.
    """
    from dpcore.sources.parquet import ParquetFiles

    return Unopened(location=ParquetFiles(parquet=_absolute(path)))


def read_sql(query: str, connection: str, *, rich_role: bool = False) -> Unopened:
    """Describe the rows of an SQL query for a release boundary of dpcore; the database's types
    decide.

    Args:
        query: In the database's own SQL; it is sent when records are read.
        connection: The name of a database in the operator's `connections.yaml`.
        rich_role: Whether a role of PostgreSQL may be a superuser, or read, write or execute on
            the server: what the operator by itself can answer for.

    Raises:
        SpecError: the text is no query, or calls a function that no query is sent with.
    """
    from dpcore.sources.sql import SqlQuery

    return Unopened(location=SqlQuery(sql=query, connection=connection), rich_role=rich_role)


def _absolute(path: Path | str) -> str:
    """The same file, wherever the working directory goes before a release boundary opens it."""
    is_path = isinstance(path, Path | str)
    need(is_path, "read_csv or read_parquet", "a path", "path", describe_type(path))
    return str(Path(path).absolute())
