"""The public points of a file, read into memory as one table. Faults are the operator's errors."""

from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.columns import find_misfits
from dpcore.encoding.pieces import Pieces
from dpcore.encoding.tables import derive_columns
from dpcore.errors import SourceError, need
from dpcore.source import Columns, Layout, Reading, Source
from dpcore.sources.opening import CsvFile, reading


def read_columns(source: Source, reading: Reading, name: str) -> Columns:
    """Read every declared column of a source; it stops early at more records than are declared.

    Args:
        name: Of the source, for messages.

    Raises:
        SourceError: as its parts do; more records than declared; none where some are declared.
    """
    batches: dict[str, list[Any]] = {column: [] for column in reading.names}
    count, upper_bound = 0, reading.at_most
    for part in source.parts():
        for batch in part.batches():
            for column in reading.names:
                batches[column].append(batch[column])
            count += len(batch[reading.names[-1]])
            # Memory stays within what was declared, however long the source is.
            need(
                upper_bound is None or count <= upper_bound,
                SourceError,
                f"{name}: more than the {upper_bound} records that are declared",
            )
    return {column: _joined(pieces) for column, pieces in batches.items()}


def _joined(pieces: list[Any]) -> Any:
    """Return a column of its pieces; one list, where all of them are lists."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, list) for piece in pieces):
        return [cell for piece in pieces for cell in piece]
    return Pieces(tuple(pieces))


def load_points(source: str, folder: Path | None, layout: Layout, domain: Domain) -> Table:
    """Return the feature columns of a public CSV file of points to predict at, relative to
    `folder`.

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
