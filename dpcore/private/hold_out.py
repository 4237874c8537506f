"""`hold_out`: the records that learners do not see, a batch at a time, as often as needed."""

import pickle
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.cells import cells, columns_by_name
from dpcore.encoding.columns import centre_labels
from dpcore.private.engines.spool import Spool
from dpcore.source import Columns, Part

Batch = tuple[Table, NDArray[Any]]
"""PRIVATE: declared columns by name, and what predictions of them are compared with, in the file's
units: labels, or zeros where the domain has none."""


class HoldOut(ABC):
    """PRIVATE: the hold-out of one run, in batches."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records in the hold-out."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield the whole hold-out, in the same batches at every reading."""

    def __repr__(self) -> str:
        return "HoldOut(private)"

    def table(self) -> Table:
        """Return every declared column of the whole hold-out in memory, by name."""
        tables = [table for table, _ in self.batches()]
        names = tables[0] if tables else {}
        return {name: joined([cells(table[name]) for table in tables]) for name in names}

    def labels(self) -> NDArray[Any]:
        """Return all labels of the hold-out in memory, in the file's units, shape (n,)."""
        return joined([labels for _, labels in self.batches()])


@attrs.frozen(eq=False, repr=False)
class HoldOutInMemory(HoldOut):
    """The hold-out of a table in memory: one batch, however small."""

    columns: Table
    truth: NDArray[Any]

    def __len__(self) -> int:
        return int(self.truth.size)

    def batches(self) -> Iterator[Batch]:
        """Yield all columns and labels as the only batch."""
        yield self.columns, self.truth


class SpooledHoldOut(HoldOut):
    """The hold-out of a source: batches on disk, in a nameless file that goes with this object.

    Args:
        domain: What labels are encoded by.
        folder: Where the file is made; the system's own for such files if None.
    """

    def __init__(self, domain: Domain, folder: Path | None) -> None:
        self._domain, self._spool, self._records = domain, Spool(folder), 0
        self._places: list[tuple[int, int]] = []
        # The finalizer holds the spool, not this object, so the file closes when the object goes.
        weakref.finalize(self, self._spool.close)

    def add(self, table: Table, records: int) -> None:
        """Append a batch of `records` records; an empty one is dropped.

        Raises:
            SpoolError: the disk is full, or fails.
        """
        # An empty batch would have arrays of unknown types, and reading it back would change the
        # types of joined columns.
        if records:
            self._places.append(_put(self._spool, table))
            self._records += records

    def __len__(self) -> int:
        return self._records

    def batches(self) -> Iterator[Batch]:
        """Yield every batch in the order in which it was added, read back from disk."""
        for place, size in self._places:
            table: Table = pickle.loads(self._spool.read(place, size))  # noqa: S301  # own bytes
            yield table, truth_of(self._domain, table)


class KeptPart(Part):
    """A part that can be read once only, and what was read of it, on disk until this object goes.

    Args:
        names: The declared columns.
        folder: As for `SpooledHoldOut`.
    """

    def __init__(self, part: Part, names: tuple[str, ...], folder: Path | None) -> None:
        self._part, self._names, self._spool = part, names, Spool(folder)
        self._places: list[tuple[int, int]] = []
        self._is_complete = False
        weakref.finalize(self, self._spool.close)

    @property
    def stays(self) -> bool:
        """Yes: what was read is kept by this process."""
        return True

    def batches(self) -> Iterator[Columns]:
        """Yield the part itself the first time, and copy it to disk; later yield the copy."""
        if self._is_complete:
            for place, size in self._places:
                yield pickle.loads(self._spool.read(place, size))  # noqa: S301  # own bytes
            return
        # The first pass copies the declared columns while the caller reads. A pass that breaks off
        # never counts as complete, so no one reads half a part.
        for batch in self._part.batches():
            table = columns_by_name(batch)
            columns = {name: cells(table[name]) for name in self._names if name in table}
            self._places.append(_put(self._spool, columns))
            yield batch
        self._is_complete = True


def _put(spool: Spool, table: Table) -> tuple[int, int]:
    """Write a table, and return its place and its number of bytes."""
    content = np.frombuffer(pickle.dumps(table, protocol=5), dtype=np.uint8)
    return spool.put([content]), content.nbytes


def truth_of(domain: Domain, table: Table) -> NDArray[Any]:
    """Return labels in the file's units, as predictions are stated."""
    return (
        domain.uncentre(centre_labels(domain.labels, table[domain.target]))
        if domain.labelled
        else np.zeros(len(cells(next(iter(table.values())))))
    )


def joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Join pieces into one column; cells of several types keep their types."""
    if not pieces:
        return np.zeros(0)
    # Concatenating mixed types would turn numbers into text, and then labels would not match what
    # records were encoded from.
    if len({piece.dtype for piece in pieces}) == 1:
        return np.concatenate(pieces)
    items = [cell for piece in pieces for cell in piece.tolist()]
    return np.fromiter(items, dtype=object, count=len(items))
