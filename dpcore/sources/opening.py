"""Opening: from what a spec says of its source to a source of the declared columns."""

from pathlib import Path

from dpcore.domain.columns import Dates, Range
from dpcore.domain.domain import Domain
from dpcore.records.location import Holds, Layout, Location, Reading
from dpcore.records.source import Source
from dpcore.sources.csv_file import CsvFile

_SKLEARN = "sklearn"
_PARQUET = (".parquet", ".pq", "/")


def location(source: Location | str) -> Location:
    """What a text means: `sklearn:NAME`; Parquet by its end .parquet, .pq or /; else a CSV file."""
    if isinstance(source, Location):
        return source
    # The text alone decides: no file is looked at, so that a spec means the same everywhere.
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
) -> Reading:
    """What a reader of records must know of their domain."""
    return Reading(
        columns={name: _cell_kind(rule) for name, rule in domain.read.items()},
        folder=folder,
        exact=domain.exact,
        limit=domain.limit,
        refuse=refuse,
        total=total,
        delimiter=layout.delimiter,
        decimal=layout.decimal,
    )


def _cell_kind(rule: object) -> Holds:
    """What a column's cells hold under a declared rule."""
    if isinstance(rule, Dates):
        return Holds.DATES
    return Holds.NUMBERS if isinstance(rule, Range) else Holds.CATEGORIES


def open_source(
    source: Location | str,
    folder: Path | None,
    layout: Layout,
    domain: Domain,
    *,
    refuse: bool = False,
    total: bool = False,
) -> Source:
    """The records of a source; none is read yet.

    Args:
        source: A location, or a text: a path relative to `folder`, or `sklearn:NAME`.
        refuse: Whether a number with a decimal point is refused where the comma is declared: it
            may be meant either way. Else it is no number, and is mapped in as any misfit.
        total: Whether every line of a text file is one record whatever stands in it. A faulty one
            is a record of empty cells where the number of records is public, and is left out where
            it is not. Faulty lines behind the declared number are no records.

    Raises:
        SourceError: it cannot be opened here: an extra is missing, or a connection.
    """
    return location(source).open(reading(domain, folder, layout, refuse=refuse, total=total))
