"""`read_all`: read all records of a source into memory, as one table."""

from typing import Any

from dpcore.encoding.pieces import Pieces
from dpcore.errors import SourceError, need
from dpcore.source import Columns, Reading, Source


def read_columns(source: Source, reading: Reading, name: str) -> Columns:
    """Every declared column of a source; it stops early at more records than are declared.

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
    """A column of its pieces; one list, where all of them are lists."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, list) for piece in pieces):
        return [cell for piece in pieces for cell in piece]
    return Pieces(tuple(pieces))
