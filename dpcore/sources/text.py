"""The public points of a file. Faults are the operator's errors."""

from pathlib import Path

import attrs
import numpy as np

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.columns import find_misfits
from dpcore.encoding.tables import derive_columns
from dpcore.errors import SourceError, need
from dpcore.source import Layout
from dpcore.sources.opening import CsvFile, reading
from dpcore.sources.read_all import read_columns


def load_points(source: str, folder: Path | None, layout: Layout, domain: Domain) -> Table:
    """The feature columns of a public CSV file of points to predict at, relative to `folder`.

    Raises:
        SourceError: missing, unreadable, or holding a point outside the declared columns.
    """
    # Points are public, so that a misfit may be named, and is refused.
    declared = reading(domain, folder, layout, refuse=True).of_points(
        attrs.evolve(domain, target=None, labels=None, groups={}, people=None, only={}).raw
    )
    place = CsvFile(csv=source)
    table = read_columns(place.open(declared), declared, place.name)
    need(len(table[declared.names[-1]]), SourceError, f"{place.name}: a header and no records")
    prepared = derive_columns(domain, table)
    for name, column in domain.columns.items():
        for misfit in np.flatnonzero(find_misfits(column, prepared[name])):
            raise SourceError(
                f"{place.name}: column {name!r}, point {misfit + 1}: needs {column.describe()}"
            )
    return prepared
