"""Opening: records are encoded, counted and split; in memory, or behind an engine.

A table is shuffled in secret and split by positions. Records behind an engine stay where they are:
the split is a `Selection` by the same secret words, so that the same records are in the hold-out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.claims.plan.parts import hold_out_size
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.blocks import (
    Encoding,
    bound_parts,
    counting_column,
    require_columns,
    require_fit,
)
from dpcore.encoding.cells import cells, columns_by_name
from dpcore.encoding.tables import derive_columns, parse_table, project_table, rows_that_count
from dpcore.errors import SourceError
from dpcore.private.bounding import Bounding, PersonCodes, bounded
from dpcore.private.engines.base import Engine
from dpcore.private.engines.records import EngineRecords
from dpcore.private.engines.selection import (
    EVERYTHING,
    BernoulliSelection,
    Complement,
    OfPersons,
    Selection,
    Smallest,
)
from dpcore.private.hold_out import HoldOut, HoldOutInMemory, KeptPart, SpooledHoldOut
from dpcore.randomness import SecretRandomness, Words
from dpcore.records import Records
from dpcore.single_use import NeverCopied
from dpcore.source import Columns, Part, Source

if TYPE_CHECKING:
    from dpcore.claims.plan.request import Request

_NONE = HoldOutInMemory({}, np.zeros(0))


class Opened(NeverCopied):
    """PRIVATE: the projected records, split. No class of `attrs`: `asdict` would take it apart."""

    __slots__ = ("hold_out", "train")

    def __init__(self, *, train: Records | EngineRecords, hold_out: HoldOut) -> None:
        self.train, self.hold_out = train, hold_out

    @property
    def holdout(self) -> Table:
        """Every declared column of the hold-out in memory, by name, in the file's units."""
        return self.hold_out.table()

    @property
    def holdout_labels(self) -> NDArray[Any]:
        """What predictions of it are compared with."""
        return self.hold_out.labels()


def open_table(request: Request, table: Table, secret: SecretRandomness) -> Opened:
    """Project, shuffle in secret, and split: never by values, and persons as a whole.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the request refuses that.
    """
    domain = request.domain
    table = derive_columns(domain, require_columns(domain, table))
    parsed = parse_table(domain, table)
    if request.records.on_invalid == "refuse":
        require_fit(domain, table, parsed)
    # Where a person is the unit, bound each person's records first: which ones stay is drawn in
    # secret, so the order of the file says nothing about it.
    # Projection maps each record into the domain by itself; every later bound relies on that.
    records = project_table(domain, parsed, request.cut_columns)
    # Where no person is the unit, every row is one of its own.
    person_codes = PersonCodes(codes=np.arange(len(records), dtype=np.int32), persons=len(records))
    if domain.people is not None:
        person_codes = bounded(table[domain.people.column], domain.people.records, _tags(secret))
    _require_count(domain, person_codes.rows.size)
    # Which of a person's records are used was decided among all of them.
    person_codes = person_codes.only(rows_that_count(domain.only, domain.rules, table))
    rows, owners = person_codes.rows, person_codes.codes[person_codes.rows]
    if domain.people is not None or domain.only:
        persons = None if domain.people is None else owners
        records = attrs.evolve(records.take(rows), persons=persons)
    count = len(records)
    # A secret order: learners that read in file order, or blocks, get no information from places.
    order = secret.runtime("shuffle").permutation(count)
    if request.adjacency.replaces:
        # The count is public, so the split may have exact sizes.
        cut = hold_out_size(count, request.records.holdout)
        holdout, train = order[:cut], order[cut:]
    else:
        # The number of records is private, so each record, or each person, gets one coin: a
        # neighbour changes one side of the split only. A cut at a proportion of the count would
        # move other records when one is added.
        is_out = secret.runtime("split").uniform(person_codes.persons) < request.records.holdout
        is_out = is_out[owners][order]
        holdout, train = order[is_out], order[~is_out]
    # The hold-out keeps cells as they are in the file: a model encodes them itself, as it would for
    # anyone who uses it later.
    hold_out, labels = _NONE, records.labels[holdout]
    if request.records.holdout:
        hold_out = HoldOutInMemory(
            {name: cells(table[name])[rows[holdout]] for name in domain.rules},
            domain.uncentre(labels) if domain.labelled else labels,
        )
    return Opened(train=records.take(train), hold_out=hold_out)


def open_source(
    request: Request, source: Source, secret: SecretRandomness, engine: Engine
) -> Opened:
    """Hand a source over to an engine, and read the hold-out once more, into a spool.

    If the hold-out is of a source that can be read only once, all that is read is kept on disk
    until the hold-out is known.

    Raises:
        SourceError: as `open_table`.
    """
    domain, source_parts = request.domain, source.parts()
    if request.records.holdout:
        # Records are read twice, to load and to hold out, so a stream must be copied at the first
        # pass. Without a hold-out nothing is copied.
        names, folder = tuple(domain.raw), engine.spool
        source_parts = [p if p.readable_again else KeptPart(p, names, folder) for p in source_parts]
    # A source that is longer than declared stops while it is read, not after it filled the disk.
    parts = bound_parts(source_parts, domain)
    encoding = _encoding(request)
    if domain.people is not None or domain.only:
        return _open_watched(request, parts, secret, engine)
    # Places in the source are counts of parts added up, so the same secret words name the same
    # records here and on every machine.
    counts = engine.load(parts, encoding)
    count = sum(counts)
    _require_count(domain, count)
    # The split is a rule over places, not a list: the engine applies it where the records are.
    out = _select_holdout(request.records.holdout, request.adjacency, count, secret)
    hold_out = _NONE if out is None else _read_holdout(domain, parts, counts, out, engine.spool)
    train = EngineRecords(
        engine=engine,
        places=count,
        count=count - len(hold_out),
        split=EVERYTHING if out is None else Complement(out),
    )
    return Opened(train=train, hold_out=hold_out)


def _open_watched(
    request: Request, parts: Sequence[Part], secret: SecretRandomness, engine: Engine
) -> Opened:
    """Open a source whose records are not all used: of a person too many, or rows left out."""
    domain, people, masks = request.domain, request.domain.people, list[NDArray[np.bool_]]()
    bounding = None if people is None else Bounding(people.records, _tags(secret))
    # Identifiers and conditions are read in this process as the records pass; the engine keeps no
    # identifier.
    watched_parts = [_Watched(part, domain, bounding, masks) for part in parts]
    counts = engine.load(watched_parts, _encoding(request))
    # Bounding needs all identifiers, so it is decided after the load; records that are over a
    # person's bound, and rows that are left out, stay in the engine but take part in nothing.
    places = sum(counts)
    person_codes = (
        PersonCodes(codes=np.arange(places, dtype=np.int32), persons=places)
        if bounding is None
        else bounding.person_codes(places)
    )
    _require_count(domain, person_codes.rows.size)
    person_codes = person_codes.only(np.concatenate(masks) if masks else None)
    # One coin per person, in the order in which persons first appear: persons are in the hold-out
    # whole. Where a row is the unit, each has a coin of its own.
    is_out = np.zeros(person_codes.persons, dtype=np.bool_)
    hold_out: HoldOut = _NONE
    if request.records.holdout:
        words = secret.runtime("split").by_place
        is_out = BernoulliSelection.chance(words, request.records.holdout).contains(
            0, person_codes.persons
        )
        hold_out = _read_holdout(
            domain, parts, counts, OfPersons(person_codes, is_out), engine.spool
        )
    train = EngineRecords(
        engine=engine,
        places=sum(counts),
        count=person_codes.rows.size - len(hold_out),
        split=OfPersons(person_codes, ~is_out),
        used=None if people is None else person_codes,
    )
    return Opened(train=train, hold_out=hold_out)


def _tags(secret: SecretRandomness) -> Words:
    """Return the secret words by which a person's records are chosen, the same for a whole run."""
    return secret.runtime("people").by_place


@attrs.frozen(eq=False, repr=False)
class _Watched(Part):
    """A part that says, as it is read in the order of the source, whose its rows are, and which
    of them count."""

    part: Part
    domain: Domain
    bounding: Bounding | None
    masks: list[NDArray[np.bool_]]

    @property
    def stays(self) -> bool:
        """Yes: what it says goes to objects that this process holds."""
        return True

    def batches(self) -> Iterator[Columns]:
        for batch in self.part.batches():
            columns = require_columns(self.domain, batch)
            # Stated batch by batch, so the order is that of the places of records.
            if self.bounding is not None and self.domain.people is not None:
                self.bounding.add(columns[self.domain.people.column])
            table = derive_columns(self.domain, columns)
            mask = rows_that_count(self.domain.only, self.domain.rules, table)
            if mask is not None:
                self.masks.append(mask)
            yield columns


def _encoding(request: Request) -> Encoding:
    return Encoding(
        domain=request.domain,
        refuse=request.records.on_invalid == "refuse",
        numbers=request.cut_columns,
    )


def _require_count(domain: Domain, count: int) -> None:
    # A declared count is public, so a mismatch may be reported. Of a limit the real count is
    # private and stays out of the message.
    if domain.exact is not None and count == 0:
        raise SourceError(
            f"{domain.exact} records are declared, the source has none (a file of a header and no "
            f"records, an empty folder, a query without rows)"
        )
    if domain.exact is not None and count != domain.exact:
        raise SourceError(
            f"{domain.exact} records are declared, the source has {count}: declare records: "
            f"{count} where their number is public"
        )
    if domain.limit is not None and count > domain.limit:
        raise SourceError(f"at most {domain.limit} records are declared, the source has more")


def _select_holdout(
    fraction: float, adjacency: Adjacency, count: int, secret: SecretRandomness
) -> Selection | None:
    """Select the hold-out: by a trial a record, or by the smallest words of a table's shuffle."""
    if not adjacency.replaces:
        # The same named streams as for a table, so a run in blocks holds out the records that the
        # same run in memory does.
        return (
            BernoulliSelection.chance(secret.runtime("split").by_place, fraction)
            if fraction
            else None
        )
    cut = hold_out_size(count, fraction)
    return Smallest.of(secret.runtime("shuffle").by_place, cut, count) if cut else None


def _read_holdout(
    domain: Domain,
    parts: Sequence[Part],
    counts: Sequence[int],
    selection: Selection,
    folder: Path | None,
) -> HoldOut:
    """PRIVATE: return the declared columns of the chosen records, read once more."""
    holdout = SpooledHoldOut(domain, folder)
    for first, batch, rows in _locate_batches(parts, counts, counting_column(domain)):
        # Only hold-out rows reach the spool, and only the declared columns of them.
        indices = np.flatnonzero(selection.contains(first, rows))
        table = derive_columns(domain, batch)
        holdout.add({name: cells(table[name])[indices] for name in domain.rules}, indices.size)
    return holdout


def _locate_batches(
    parts: Sequence[Part], counts: Sequence[int], column: str
) -> Iterator[tuple[int, Columns, int]]:
    """Yield batches with the place of their first record, and their numbers of records."""
    offset = 0
    for part, count in zip(parts, counts, strict=True):
        first = offset
        for batch in part.batches():
            table = columns_by_name(batch)
            rows = len(cells(table[column]))
            yield first, table, rows
            first += rows
        offset += count
        # Places would no longer mean the records that were loaded, so hold-out records could be
        # among the learners' too.
        if first != offset:
            raise SourceError("a part of the source has changed since it was read")
