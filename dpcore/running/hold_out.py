"""HoldOut: the records that learners do not see, a batch at a time, as often as they are needed."""

from __future__ import annotations

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
from dpcore.engines.spool import Spool
from dpcore.records.cells import cells, named
from dpcore.records.source import Columns, Part

Batch = tuple[Table, NDArray[Any]]
"""PRIVATE: declared columns by name, and what predictions of them are compared with, in the file's
units: labels, or zeros where the domain has none."""


class HoldOut(ABC):
    """PRIVATE: the hold-out of one run, in batches."""

    @abstractmethod
    def __len__(self) -> int:
        """Its number of records."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All of it, in the same batches whenever it is read."""

    def __repr__(self) -> str:
        return "HoldOut(private)"

    def table(self) -> Table:
        """All columns in memory."""
        tables = [table for table, _ in self.batches()]
        names = tables[0] if tables else {}
        return {name: joined([cells(table[name]) for table in tables]) for name in names}

    def labels(self) -> NDArray[Any]:
        """All labels in memory."""
        return joined([labels for _, labels in self.batches()])


@attrs.frozen(eq=False, repr=False)
class HoldOutInMemory(HoldOut):
    """Of a table in memory: one batch, however small."""

    columns: Table
    truth: NDArray[Any]

    def __len__(self) -> int:
        return int(self.truth.size)

    def batches(self) -> Iterator[Batch]:
        """The one."""
        yield self.columns, self.truth


class SpooledHoldOut(HoldOut):
    """Of a source: batches on disk, in a file without a name that goes with this object.

    Args:
        domain: What labels are encoded by.
        folder: Where the file is made; the system's own for such files if None.
    """

    def __init__(self, domain: Domain, folder: Path | None) -> None:
        self._domain, self._spool, self._records = domain, Spool(folder), 0
        self._places: list[tuple[int, int]] = []
        weakref.finalize(self, self._spool.close)

    def add(self, table: Table, records: int) -> None:
        """One batch more.

        Raises:
            SpoolError: the disk is full, or fails.
        """
        if records:
            self._places.append(_put(self._spool, table))
            self._records += records

    def __len__(self) -> int:
        return self._records

    def batches(self) -> Iterator[Batch]:
        """As they were added."""
        for place, size in self._places:
            table: Table = pickle.loads(self._spool.read(place, size))  # noqa: S301  # own bytes
            yield table, truth_of(self._domain, table)


class KeptPart(Part):
    """A part that can be read once alone, and what was read of it, on disk until this object goes.

    Args:
        names: The declared columns.
        folder: As for `SpooledHoldOut`.
    """

    def __init__(self, part: Part, names: tuple[str, ...], folder: Path | None) -> None:
        self._part, self._names, self._spool = part, names, Spool(folder)
        self._places: list[tuple[int, int]] = []
        self._whole = False
        weakref.finalize(self, self._spool.close)

    @property
    def stays(self) -> bool:
        """Yes: what was read is kept by this process."""
        return True

    def batches(self) -> Iterator[Columns]:
        """From the part itself; then from what was kept."""
        if self._whole:
            for place, size in self._places:
                yield pickle.loads(self._spool.read(place, size))  # noqa: S301  # own bytes
            return
        for batch in self._part.batches():
            table = named(batch)
            kept = {name: cells(table[name]) for name in self._names if name in table}
            self._places.append(_put(self._spool, kept))
            yield batch
        self._whole = True


def _put(spool: Spool, table: Table) -> tuple[int, int]:
    """Where a table lies, and how many bytes it has."""
    kept = np.frombuffer(pickle.dumps(table, protocol=5), dtype=np.uint8)
    return spool.put([kept]), kept.nbytes


def truth_of(domain: Domain, table: Table) -> NDArray[Any]:
    """Labels in the file's units, as predictions are stated."""
    if not domain.labelled:
        return np.zeros(len(cells(next(iter(table.values())))))
    return domain.uncentre(domain.centre(table[domain.target]))


def joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """One column; cells of several types stay what each is."""
    if not pieces:
        return np.zeros(0)
    if len({piece.dtype for piece in pieces}) == 1:
        return np.concatenate(pieces)
    listed = [cell for piece in pieces for cell in piece.tolist()]
    return np.fromiter(listed, dtype=object, count=len(listed))
