"""Opening: records are encoded, counted and split; in memory, or behind an engine.

A table is shuffled in secret and split by positions. Records behind an engine stay where they are:
the split is a `Selection` by the same secret words, so that the same records are held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain, Table
from dpcore.domain.fit import require_fit, require_fit_of_batch
from dpcore.domain.people import People
from dpcore.engines.base import Engine
from dpcore.engines.records import EngineRecords
from dpcore.errors import SourceError
from dpcore.plan.parts import held_out
from dpcore.plan.request import Request
from dpcore.randomness import SecretCoins, Words
from dpcore.records.bounding import Bounding, bounded
from dpcore.records.cells import cells, named
from dpcore.records.pieces import Pieces
from dpcore.records.records import Records
from dpcore.records.source import Columns, Part, Source
from dpcore.running.hold_out import HoldOut, HoldOutInMemory, KeptPart, SpooledHoldOut
from dpcore.sampling.selection import EVERYTHING, Coins, OfPersons, Others, Selection, Smallest

_NONE = HoldOutInMemory({}, np.zeros(0))


@attrs.frozen(eq=False, repr=False)
class Opened:
    """PRIVATE: the projected records, split."""

    train: Records | EngineRecords
    held: HoldOut

    @property
    def holdout(self) -> Table:
        """The whole hold-out in memory."""
        return self.held.table()

    @property
    def holdout_labels(self) -> NDArray[Any]:
        """What predictions of it are compared with."""
        return self.held.labels()


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
    """Project, shuffle in secret, and split: never by values, and persons as a whole.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the request refuses that.
    """
    domain, table = request.domain, _declared(request.domain, table)
    if request.on_invalid == "refuse":
        require_fit(domain, table)
    used = None
    if domain.people is not None:
        used = bounded(table[domain.people.column], domain.people.records, _tags(secret))
        table = {name: cells(table[name])[used.rows] for name in domain.rules}
    records = domain.project(table)
    count = len(records)
    _require_count(domain, count)
    order = secret.runtime("shuffle").permutation(count)
    if used is not None:
        persons = used.codes[used.rows]
        records = attrs.evolve(records, persons=persons)
        kept_out = (secret.runtime("split").uniform(used.persons) < request.holdout)[persons][order]
        holdout, train = order[kept_out], order[~kept_out]
    elif request.adjacency.membership:
        kept_out = (secret.runtime("split").uniform(count) < request.holdout)[order]
        holdout, train = order[kept_out], order[~kept_out]
    else:
        cut = held_out(count, request.holdout)
        holdout, train = order[:cut], order[cut:]
    labels = records.labels[holdout]
    held = HoldOutInMemory(
        {name: cells(table[name])[holdout] for name in domain.rules},
        domain.uncentre(labels) if domain.labelled else labels,
    )
    return Opened(train=records.take(train), held=held)


def open_source(request: Request, source: Source, secret: SecretCoins, engine: Engine) -> Opened:
    """Hand a source over to an engine, and read the hold-out once more, into a spool.

    Where there is a hold-out of a source that can be read once alone, what is read is kept on disk
    until the hold-out is known.

    Raises:
        SourceError: as `open_table`.
    """
    domain, read = request.domain, source.parts()
    if request.holdout:
        names, folder = tuple(domain.read), engine.spool
        read = [p if p.readable_again else KeptPart(p, names, folder) for p in read]
    parts = _bounded(read, domain)
    encoding = _encoding(request)
    if domain.people is not None:
        return _open_persons(request, domain.people, parts, secret, engine)
    counts = engine.load(parts, encoding)
    count = sum(counts)
    _require_count(domain, count)
    out = _kept_out(request.holdout, request.adjacency, count, secret)
    held = _NONE if out is None else _read(domain, parts, counts, out, engine.spool)
    train = EngineRecords(
        engine=engine,
        places=count,
        count=count - len(held),
        split=EVERYTHING if out is None else Others(out),
    )
    return Opened(train=train, held=held)


def _open_persons(
    request: Request, people: People, parts: Sequence[Part], secret: SecretCoins, engine: Engine
) -> Opened:
    """The same by persons: whose records are is read with them, chosen from at the end."""
    domain, bounding = request.domain, Bounding(people.records, _tags(secret))
    watched = [_Watched(part, people.column, bounding) for part in parts]
    counts = engine.load(watched, _encoding(request))
    used = bounding.used(sum(counts))
    _require_count(domain, used.rows.size)
    out = np.zeros(used.persons, dtype=np.bool_)
    held: HoldOut = _NONE
    if request.holdout:
        words = secret.runtime("split").by_place
        out = Coins.chance(words, request.holdout).kept(0, used.persons)
        held = _read(domain, parts, counts, OfPersons(used, out), engine.spool)
    train = EngineRecords(
        engine=engine,
        places=sum(counts),
        count=used.rows.size - len(held),
        split=OfPersons(used, ~out),
        used=used,
    )
    return Opened(train=train, held=held)


def _tags(secret: SecretCoins) -> Words:
    """By which a person's records are chosen, for a whole run."""
    return secret.runtime("people").by_place


def in_memory(source: Source, domain: Domain) -> Table:
    """A whole source as one table, for what needs all records at once.

    Raises:
        SourceError: it cannot be read.
    """
    return _gathered(_bounded(source.parts(), domain))


def _gathered(parts: Sequence[Part]) -> Table:
    """Every column in the pieces that it was read in: nothing is converted."""
    found: dict[str, list[Any]] = {}
    for part in parts:
        for batch in part.batches():
            for name, column in named(batch).items():
                found.setdefault(str(name), []).append(column)
    return {
        name: held[0] if len(held) == 1 else Pieces(tuple(held)) for name, held in found.items()
    }


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


@attrs.frozen(eq=False, repr=False)
class _Watched(Part):
    """A part whose records are told to a bounding as they are read, in the order of the source."""

    part: Part
    column: str
    bounding: Bounding

    @property
    def stays(self) -> bool:
        """Yes: whose the records are is told to a bounding of this process."""
        return True

    def batches(self) -> Iterator[Columns]:
        for batch in self.part.batches():
            columns = named(batch)
            if self.column not in columns:
                raise SourceError(f"column {self.column!r} is missing")
            self.bounding.add(columns[self.column])
            yield columns


def _bounded(parts: Sequence[Part], domain: Domain) -> Sequence[Part]:
    most = None if domain.people is not None else domain.at_most  # of persons, those that are used
    return parts if most is None else [_Bounded(part, most, _counted(domain)) for part in parts]


def _declared(domain: Domain, table: Columns) -> Table:
    """By name; every declared column is there."""
    found: Table = named(table)
    absent = [name for name in domain.read if name not in found]
    if absent:
        raise SourceError(f"column {absent[0]!r} is missing")
    return found


def _encoding(request: Request) -> Encoding:
    return Encoding(domain=request.domain, refuse=request.on_invalid == "refuse")


def _require_count(domain: Domain, count: int) -> None:
    if domain.exact is not None and count == 0:
        raise SourceError(
            f"{domain.exact} records are declared, the source has none (a file of a header and no "
            f"records, an empty folder, a query without rows)"
        )
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


def _read(
    domain: Domain,
    parts: Sequence[Part],
    counts: Sequence[int],
    chosen: Selection,
    folder: Path | None,
) -> HoldOut:
    """PRIVATE: the declared columns of the chosen records, read once more."""
    held = SpooledHoldOut(domain, folder)
    for first, batch, rows in _placed(parts, counts, _counted(domain)):
        kept = np.flatnonzero(chosen.kept(first, rows))
        held.add({name: cells(batch[name])[kept] for name in domain.rules}, kept.size)
    return held


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
