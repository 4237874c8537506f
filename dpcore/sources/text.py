"""Tables: the records of a source in memory, and the public points of a file.

Everything here sees records; nothing here is published. Faults are the operator's errors.
"""

from pathlib import Path

import numpy as np

from dpcore.domain.domain import Domain, Table
from dpcore.errors import SourceError, need
from dpcore.records.location import Layout, Location
from dpcore.sources.csv_file import CsvFile
from dpcore.sources.opening import location, reading
from dpcore.sources.read_all import whole


def load_table(
    source: Location | str,
    folder: Path | None,
    layout: Layout,
    domain: Domain,
    *,
    refuse: bool = False,
    total: bool = False,
) -> Table:
    """The declared columns of a source, in memory; arguments as `open_source` takes them.

    Raises:
        SourceError: missing, unreadable, or not holding the declared columns.
    """
    declared = reading(domain, folder, layout, refuse=refuse, total=total)
    place = location(source)
    table = whole(place.open(declared), declared, place.name)
    need(
        total or domain.exact is None or len(table[declared.names[-1]]),
        SourceError,
        f"{place.name}: a header and no records",
    )
    return table


def load_points(source: str, folder: Path | None, layout: Layout, domain: Domain) -> Table:
    """The feature columns of a public CSV file of points to predict at, relative to `folder`.

    Raises:
        SourceError: missing, unreadable, or holding a point outside the declared columns.
    """
    # Points are public, so that a misfit may be named, and is refused.
    declared = reading(domain, folder, layout, refuse=True).of_points(domain.columns)
    place = CsvFile(csv=source)
    table = whole(place.open(declared), declared, place.name)
    need(len(table[declared.names[-1]]), SourceError, f"{place.name}: a header and no records")
    for name, column in domain.columns.items():
        for misfit in np.flatnonzero(column.misfits(table[name])):
            raise SourceError(
                f"{place.name}: column {name!r}, point {misfit + 1}: needs {column.describe()}"
            )
    return table
