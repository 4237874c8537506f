"""Sql: an engine whose records never leave their server: totals do.

Before anything is spent, every sum of the plan is written as SQL, or refused with the reason, and
the law `sql.same-integer` runs: on synthetic rows in the server's own storage the same statements
must give the integers of the core. Nothing but these statements is asked of the records.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Texts
from dpcore.errors import ContractError, EngineError, RequestError, SourceError, need, need_value
from dpcore.exact import Exact
from dpcore.learners.sums import SumPart
from dpcore.private.engines.base import Encode, Engine, Task, Workload
from dpcore.private.engines.selection import EVERYTHING
from dpcore.records import Folded
from dpcore.source import Part
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.parquet import ParquetSource
from dpcore.sources.sql import PostgresqlPart, SqlSource
from dpcore.summing import Tally
from dpcore_engines.duckdb_file import DuckDbPart
from dpcore_engines.sql.columns import Columns
from dpcore_engines.sql.servers import FailureError, Rows, Server, kinds_of, over
from dpcore_engines.sql.statement import check_statement, tally_statement
from dpcore_engines.sql.synthetic import synthetic_tables

LAW = "sql.same-integer"


@attrs.define(kw_only=True, eq=False, slots=False, repr=False)
class Sql(Engine):
    """Parquet or CSV files on DuckDB, or a query on PostgreSQL.

    Args:
        spool: The operator's folder, for synthetic rows only; the system's if None.
        memory: Bytes that the process may use: DuckDB gets half of them.
    """

    is_local: bool = attrs.field(default=False, init=False)

    spool: Path | None = None
    memory: int | None = None
    _session: _Session | None = attrs.field(default=None, init=False)
    _premises: tuple[str, ...] = attrs.field(default=(), init=False)

    @property
    def premises(self) -> tuple[str, ...]:
        """That the server adds as it did on synthetic rows; with the law's digest."""
        return self._premises

    def accept(self, workload: Callable[[], Workload]) -> None:
        """Write every sum as SQL, and hold the law.

        Raises:
            RequestError: something cannot be said in SQL, or the server's integers are others.
        """
        task = workload()
        # A run asks twice: before it reserves, and before it opens.
        if self._session is not None and self._session.serves(task):
            return
        self.close()
        session = _Session.of(task, self.memory, self.spool)
        try:
            digest = _hold_rules(session)
        except BaseException:
            session.server.close()
            raise
        # Held, or there is no session: nothing is asked of records before.
        self._session = session
        self._premises = (
            f"the exact sums were added by {session.server.name}, which on synthetic rows gave "
            f"dpcore's own integers (law {LAW}, digest {digest})",
        )

    def explain(self, workload: Workload) -> tuple[str, ...]:
        """Return every statement of a plan, after its release's name; no record is read.

        Raises:
            RequestError: something cannot be said in SQL.
        """
        session = _Session.of(workload, self.memory, self.spool)
        session.server.close()
        return tuple(
            f"-- {release}, by {session.server.name}\n{text};"
            for release, part in workload.sums
            for text in session.statements(part, pretty=True)
        )

    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """Count the records, and refuse those that do not fit where the plan says so."""
        session = self._begun()
        try:
            (counts,) = session.ask(session.check)
        except FailureError as failure:
            raise SourceError(f"the server cannot read the records ({failure})") from None
        count, *misfits = (int(number or 0) for number in counts)
        need(not (doubt := session.server.doubt(count)), SourceError, doubt)
        rules = session.columns.domain.rules.items()
        for (name, rule), number in zip(rules, misfits, strict=True):
            # Where the record is, and how many there are, stays on the server.
            need(
                not (number and session.workload.refuse),
                SourceError,
                f"column {name!r}: a record needs {rule.describe()}, and has none: declare what "
                f"the column holds, or set on_invalid: project (the local engine says which)",
            )
        return (count,)

    def total(self, task: Task) -> Folded:
        """Return the sums of a task's tallies; only of sums that the law was held for."""
        session, part = self._begun(), getattr(task.part, "part", None)  # of a block's pieces
        is_of_all = task.split is task.sample is EVERYTHING
        if not (isinstance(part, SumPart) and is_of_all):
            raise ContractError("the sql engine adds sums of all records only")
        texts = session.statements(part)
        need({*texts} <= session.planned, ContractError, "a sum was not in the plan")
        try:
            return (_exact(part, [*map(session.ask, texts)]),)
        except FailureError as failure:
            kind = str(failure)
        raise EngineError(f"the server failed after records were counted ({kind})")

    def close(self) -> None:
        """End the connection; the engine can serve another run."""
        if self._session is not None:
            self._session.server.close()
        self._session = None

    def _begun(self) -> _Session:
        return need_value(self._session, ContractError, "the sql engine has accepted no plan")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Session:
    """One plan on one server.

    Args:
        planned: Every statement of its sums: nothing else is asked of the records but `check`.
    """

    workload: Workload
    server: Server
    columns: Columns
    check: str
    planned: frozenset[str] = frozenset()

    @classmethod
    def of(cls, workload: Workload, memory: int | None, spool: Path | None) -> _Session:
        """Connect, and write every statement.

        Raises:
            RequestError: something cannot be said in SQL.
        """
        _require_words(workload)
        with contextlib.ExitStack() as stack:
            server = server_of(workload.source, memory, spool)
            stack.callback(server.close)
            columns = Columns(domain=workload.domain, kinds=kinds_of(server.schema))
            check = server.dialect.write(check_statement(columns, workload.domain.rules))
            session = cls(workload=workload, server=server, columns=columns, check=check)
            texts = [text for _, part in workload.sums for text in session.statements(part)]
            stack.pop_all()  # anyone who has the session closes it
        return attrs.evolve(session, planned=frozenset(texts))

    def statements(self, part: SumPart, pretty: bool = False) -> list[str]:
        """Return one for each tally of a sum."""
        tallies = part.learner.tallies(part.query, part.public)
        layers = [tally_statement(tally, part.query, self.columns) for tally in tallies]
        return [self.server.dialect.write(layer, pretty) for layer in layers]

    def serves(self, workload: Workload) -> bool:
        """Return whether the same is asked of the same source, so that the law was held for it."""
        texts = {text for _, part in workload.sums for text in self.statements(part)}
        return self.workload.source == workload.source and texts <= self.planned

    def ask(self, text: str) -> Rows:
        """PRIVATE: return the rows of a statement on the records."""
        return self.server.execute(over(self.server.relation, text))


def server_of(source: Any, memory: int | None, spool: Path | None) -> Server:
    """Return the server for a source, by its class.

    Raises:
        RequestError: its records lie elsewhere, or something is not installed.
    """
    place = source.rows if isinstance(source, SqlSource) else source
    # The servers' modules need what only they use.
    if isinstance(place, PostgresqlPart):
        from dpcore_engines.sql.postgresql import PostgreSql

        return PostgreSql.of(place)
    need(
        isinstance(place, ParquetSource | CsvSource | DuckDbPart),
        RequestError,
        "the sql engine adds where records lie: in Parquet and CSV files and DuckDB's own, or "
        "behind a query on PostgreSQL; what another source's cells are is decided by dpcore's "
        "own reader: use the local engine",
    )
    from dpcore_engines.sql.duckdb import DuckDb
    from dpcore_engines.sql.storage import storage_of

    return DuckDb.of(storage_of(place), memory=memory, spool=spool)


def _hold_rules(session: _Session) -> str:
    """Return the digest of statements and of their integers on synthetic rows, which are the
    core's.

    Raises:
        RequestError: they are not, or the server cannot be asked.
    """
    server, columns, workload = session.server, session.columns, session.workload
    digest = hashlib.sha256(f"{LAW} {server.name}".encode())
    # Values at every edge that is asked about, and next to it, are among the synthetic cells.
    edges: dict[str, list[float]] = {}
    for _, part in workload.sums:
        for tally in part.learner.tallies(part.query, part.public):
            for cut in (*tally.cuts, *(cut for cut, _ in tally.where)):
                edges.setdefault(cut.column, []).extend(cut.edges or ())
    tables = synthetic_tables(workload.domain, server.schema, columns.kinds, edges)
    way = f"(law {LAW}); nothing was spent: use the local engine"
    with server.written(tables) as written:
        for rows, (release, part) in itertools.product(written, workload.sums):
            texts = session.statements(part)
            try:
                answers = [rows.execute(over(rows.relation, text)) for text in texts]
            except FailureError as failure:
                why = f"{release}: {server.name} fails on synthetic rows: {failure}"
                raise RequestError(f"{why} {way}") from None
            expected = Exact.zeros(part.query.shape, part.query.sum.unit)
            for batch in rows.batches:
                expected += part.learner.total_of(part.query, workload.encode(batch), part.public)
            same = f"{release}: on synthetic rows {server.name} gives other integers than dpcore"
            need(_exact(part, answers) == expected, RequestError, f"{same} {way}")
            digest.update(repr((texts, expected.integers())).encode())
    return digest.hexdigest()


def _require_words(workload: Workload) -> None:
    """Refuse what no statement says.

    Raises:
        RequestError: with the reason.
    """
    rules = workload.domain.rules.values()
    refusals = {
        "a hold-out, whose records are drawn in secret": workload.holdout > 0,
        "persons, whose records are chosen in secret": workload.domain.people is not None,
        "columns derived from others": bool(workload.domain.derived),
        "rows that are left out": bool(workload.domain.only),
        "texts that no one listed": any(isinstance(rule, Texts) for rule in rules),
        "rows scaled to a norm": workload.domain.norm is not None,
        "releases that are no sums": workload.others,
        # DuckDB ends a statement at a text that is no UTF-8: whether it does depends on a record.
        "a sealed run, which a server's failure would say of": workload.sealed,
    }
    for release, part in workload.sums:
        is_said = part.learner.tallies(part.query, part.public)
        refusals[f"the sums of {type(part.learner).__name__} ({release})"] = not is_said
    parts = [part for _, part in workload.sums]
    refusals |= {
        "a sample of the records, drawn in secret": any(p.query.sampling for p in parts),
        "persons, who are clipped": any(p.query.sum.person for p in parts),
        "learners that get one record a call (isolate)": any(p.learner.isolate for p in parts),
    }
    for what, is_there in refusals.items():
        message = f"the sql engine has no words for {what}: use the local engine"
        need(not is_there, RequestError, message)


def _exact(part: SumPart, answers: Sequence[Rows]) -> Exact:
    """Return the learner's sum, from the rows of its tallies' statements."""
    tallies = part.learner.tallies(part.query, part.public)
    sums = [_integers(part, *pair) for pair in zip(tallies, answers, strict=True)]
    return part.learner.from_tallies(part.query, sums, part.public)


def _integers(part: SumPart, tally: Tally, rows: Rows) -> NDArray[np.object_]:
    """Shape (cells, terms), of Python's integers; the cell null adds nothing."""
    cells = int(np.prod([cut.places for cut in tally.cuts], dtype=np.int64))
    width = 1 if tally.terms is None else part.query.real_size // cells
    sums = np.full((cells, width), 0, dtype=object)
    for cell, *totals in rows:
        if cell is not None:
            sums[int(cell)] = [int(total or 0) for total in totals]
    return sums
