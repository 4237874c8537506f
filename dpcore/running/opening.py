"""Opening: records are encoded, counted and split; in memory, or behind an engine.

A table is shuffled in secret and split by positions. Records behind an engine stay where they are:
the split is a `Selection` by the same secret words, so that the same records are held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain, Table
from dpcore.domain.fit import require_fit, require_fit_of_batch
from dpcore.engines.base import Engine
from dpcore.engines.records import EngineRecords
from dpcore.errors import SourceError
from dpcore.randomness import SecretCoins
from dpcore.records.cells import cells, named
from dpcore.records.records import Records
from dpcore.records.source import Columns, Part, Source
from dpcore.running.parts import held_out
from dpcore.running.request import Request
from dpcore.sampling.selection import EVERYTHING, Coins, Others, Selection, Smallest


@attrs.frozen(eq=False, repr=False)
class Opened:
    """PRIVATE: the projected records, split."""

    train: Records | EngineRecords
    holdout: Table
    holdout_labels: NDArray[Any]


@attrs.frozen(kw_only=True, eq=False)
class Encoding:
    """Columns to records, row by row.

    Args:
        refuse: Whether a record that does not fit is refused, or mapped into the domain.
    """

    domain: Domain
    refuse: bool

    def __call__(self, batch: Columns) -> Records:
        """PRIVATE: the batch's records.

        Raises:
            MisfitError: a record does not fit.
            SourceError: a column is missing.
        """
        table = _declared(self.domain, batch)
        if self.refuse:
            require_fit_of_batch(self.domain, table)
        return self.domain.project(table)


def open_table(request: Request, table: Table, secret: SecretCoins) -> Opened:
    """Project, shuffle in secret, and split: never by values.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the request refuses that.
    """
    domain, table = request.domain, _declared(request.domain, table)
    if request.on_invalid == "refuse":
        require_fit(domain, table)
    records = domain.project(table)
    count = len(records)
    _require_count(domain, count)
    order = secret.runtime("shuffle").permutation(count)
    if request.adjacency.membership:
        kept_out = (secret.runtime("split").uniform(count) < request.holdout)[order]
        holdout, train = order[kept_out], order[~kept_out]
    else:
        cut = held_out(count, request.holdout)
        holdout, train = order[:cut], order[cut:]
    labels = records.labels[holdout]
    return Opened(
        train=records.take(train),
        holdout={name: cells(table[name])[holdout] for name in domain.rules},
        holdout_labels=domain.uncentre(labels) if domain.labelled else labels,
    )


def open_source(request: Request, source: Source, secret: SecretCoins, engine: Engine) -> Opened:
    """Hand a source over to an engine, and read the hold-out alone into memory.

    Where there is a hold-out of a source that can be read once alone, all of it is read.

    Raises:
        SourceError: as `open_table`.
    """
    domain, read = request.domain, source.parts()
    parts = _bounded(read, domain)
    if request.holdout and not all(part.readable_again for part in read):
        return open_table(request, _gathered(parts), secret)
    encoding = _encoding(request)
    counts = engine.load(parts, encoding)
    count = sum(counts)
    _require_count(domain, count)
    out = _kept_out(request.holdout, request.adjacency, count, secret)
    held = {} if out is None else _rows(domain, parts, counts, out)
    train = EngineRecords(
        engine=engine,
        places=count,
        count=count - (len(held[_counted(domain)]) if held else 0),
        split=EVERYTHING if out is None else Others(out),
    )
    labels = np.zeros(0)
    if domain.labelled:
        labels = domain.uncentre(domain.centre(held[domain.target]) if held else labels)
    return Opened(train=train, holdout=held, holdout_labels=labels)


def in_memory(source: Source, domain: Domain) -> Table:
    """A whole source as one table, for what needs all records at once.

    Raises:
        SourceError: it cannot be read.
    """
    return _gathered(_bounded(source.parts(), domain))


def _gathered(parts: Sequence[Part]) -> Table:
    found: dict[str, list[NDArray[Any]]] = {}
    for part in parts:
        for batch in part.batches():
            for name, column in named(batch).items():
                found.setdefault(str(name), []).append(cells(column))
    return {name: _joined(pieces) for name, pieces in found.items()}


@attrs.frozen(eq=False, repr=False)
class _Bounded(Part):
    """A part that ends where there are more records than are declared of the whole source."""

    part: Part
    most: int
    column: str

    @property
    def stays(self) -> bool:
        """As the part itself."""
        return self.part.stays

    def batches(self) -> Iterator[Columns]:
        count = 0
        for batch in self.part.batches():
            columns = named(batch)
            count += len(cells(columns[self.column])) if self.column in columns else 0
            if count > self.most:
                raise SourceError(f"more than the {self.most} records that are declared")
            yield batch


def _bounded(parts: Sequence[Part], domain: Domain) -> Sequence[Part]:
    most = domain.at_most
    return parts if most is None else [_Bounded(part, most, _counted(domain)) for part in parts]


def _declared(domain: Domain, table: Columns) -> Table:
    """By name; every declared column is there."""
    found: Table = named(table)
    absent = [name for name in domain.rules if name not in found]
    if absent:
        raise SourceError(f"column {absent[0]!r} is missing")
    return found


def _encoding(request: Request) -> Encoding:
    return Encoding(domain=request.domain, refuse=request.on_invalid == "refuse")


def _require_count(domain: Domain, count: int) -> None:
    if domain.exact is not None and count != domain.exact:
        raise SourceError(f"{domain.exact} records are declared, the source has {count}")
    if domain.limit is not None and count > domain.limit:
        raise SourceError(f"at most {domain.limit} records are declared, the source has more")


def _kept_out(
    share: float, adjacency: Adjacency, count: int, secret: SecretCoins
) -> Selection | None:
    """The hold-out: a coin for each record, or the smallest of the words that shuffle a table."""
    if adjacency.membership:
        words = secret.runtime("split").by_place
        return Coins.chance(words, share) if share else None
    cut = held_out(count, share)
    words = secret.runtime("shuffle").by_place
    return Smallest.of(words, cut, count) if cut else None


def _rows(
    domain: Domain, parts: Sequence[Part], counts: Sequence[int], chosen: Selection
) -> dict[str, NDArray[Any]]:
    """PRIVATE: the declared columns of the chosen records, read once more."""
    names = tuple(domain.rules)
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    for first, batch, rows in _placed(parts, counts, _counted(domain)):
        kept = np.flatnonzero(chosen.kept(first, rows))
        for name in names:
            found[name].append(cells(batch[name])[kept])
    return {name: _joined(pieces) for name, pieces in found.items()}


def _counted(domain: Domain) -> str:
    """A declared column, by whose cells records are counted."""
    return list(domain.rules)[-1]


def _placed(
    parts: Sequence[Part], counts: Sequence[int], column: str
) -> Iterator[tuple[int, Columns, int]]:
    """Batches with the place of their first record, and how many they have."""
    before = 0
    for part, count in zip(parts, counts, strict=True):
        first = before
        for batch in part.batches():
            table = named(batch)
            rows = len(cells(table[column]))
            yield first, table, rows
            first += rows
        before += count
        if first != before:
            raise SourceError("a part of the source has changed since it was read")


def _joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One column; cells of several types stay what each is."""
    if not pieces:
        return np.zeros(0)
    if len({piece.dtype for piece in pieces}) == 1:
        return np.concatenate(pieces)
    listed = [cell for piece in pieces for cell in piece.tolist()]
    return np.fromiter(listed, dtype=object, count=len(listed))
