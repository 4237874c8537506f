"""Tables in DuckDB files: read as other sources are, and added by the sql engine where they lie."""

import contextlib

import attrs
import numpy as np
import pyarrow
import pytest
from hostile_rows import hostile_domain, hostile_table, learners, part_of
from pyarrow import parquet

from dpcore.encoding.blocks import Encoding
from dpcore.errors import RequestError, SourceError
from dpcore.exact import Exact
from dpcore.private.engines.base import Workload
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.records import EngineRecords
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_attacks.laws.engines.choices import choice_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.sources.sources import source_verdicts
from dpcore_engines import duckdb_file
from dpcore_engines.duckdb_file import DuckDbFile
from dpcore_statistics.count import Count

from sources.queries import NO_QUERIES

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

from dpcore_engines.sql import duckdb as duckdb_module  # noqa: E402
from dpcore_engines.sql.choice import SqlChoice  # noqa: E402
from dpcore_engines.sql.engine import Sql, server_of  # noqa: E402
from dpcore_engines.sql.number import Number  # noqa: E402

RECORDS = 20_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file whose columns are compressed, as those of large tables are."""
    found = tmp_path_factory.mktemp("hostile") / "clinic.db"
    with duckdb.connect(str(found)) as opened:
        opened.register("rows", hostile_table(RECORDS))
        opened.execute('CREATE TABLE "visits ""of"" 2024" AS SELECT * FROM rows')
        opened.execute("CREATE TYPE ward AS ENUM ('surgery', 'general')")
        opened.execute("CREATE TABLE enums AS SELECT 'surgery'::ward AS ward, 7::HUGEINT AS age")
        opened.execute("CREATE TABLE timed AS SELECT '2024-01-01 10:00'::TIMESTAMP AS visited")
        opened.execute("CREATE TABLE victim AS SELECT 1.0 AS age")
        opened.execute("CREATE VIEW outside AS SELECT * FROM read_csv('/etc/hostname')")
    return found


def workload_of(path, table, domain, parts):
    source = open_source(DuckDbFile(duckdb=str(path), table=table), None, Csv(), domain)
    return Workload(
        source=source, domain=domain, encode=Encoding(domain=domain, refuse=False),
        refuse=False, holdout=0.0, sums=tuple(parts.items()), others=False, sealed=False,
    )  # fmt: skip


def of_core(workload, part):
    total = Exact.zeros(part.query.shape, part.query.sum.unit)
    for piece in workload.source.parts():
        for batch in piece.batches():
            total += part.learner.total_of(part.query, workload.encode(batch), part.public)
    return total


def of_engine(workload, engine, part):
    (count,) = engine.load(workload.source.parts(), workload.encode)
    records = EngineRecords(engine=engine, places=count, count=count)
    return part.learner.total_of(part.query, records, part.public)


@pytest.fixture(scope="module")
def hostile(path):
    domain = hostile_domain()
    parts = {name: part_of(learner, domain) for name, learner in learners().items()}
    return workload_of(path, 'visits "of" 2024', domain, parts)


@pytest.fixture(scope="module")
def engine(hostile):
    with Sql() as opened:
        opened.accept(lambda: hostile)
        yield opened


@pytest.mark.parametrize("name", learners())
def test_duckdb_adds_the_integers_of_the_core_over_its_own_file(hostile, engine, name):
    part = dict(hostile.sums)[name]
    ours = of_core(hostile, part)
    assert of_engine(hostile, engine, part) == ours
    assert any(ours.integers())


def test_the_local_engine_reads_the_same_records(hostile):
    part = dict(hostile.sums)["total"]
    with LocalEngine(threads=1) as engine:
        assert of_engine(hostile, engine, part) == of_core(hostile, part)


def only(domain, *names):
    rules = {name: domain.columns[name] for name in names}
    return attrs.evolve(domain, columns=rules, target=None, labels=None)


def test_listed_texts_and_wide_integers_of_duckdb_are_added(path):
    domain = only(hostile_domain(), "ward", "age")
    part = part_of(Count(by=("ward",)), domain)
    workload = workload_of(path, "enums", domain, {"wards": part})
    with Sql() as engine:
        engine.accept(lambda: workload)
        assert of_engine(workload, engine, part) == of_core(workload, part)


def test_other_types_and_missing_tables_are_refused(path):
    domain = only(hostile_domain(), "visited")
    parts = {"one": part_of(Count(), domain)}
    for table, error in [
        ("timed", RequestError),
        ("nothing", SourceError),
        ("victim", SourceError),
    ]:
        with Sql() as engine, pytest.raises(error):
            engine.accept(lambda table=table: workload_of(path, table, domain, parts))
    with pytest.raises(SourceError, match="no such file"):
        workload_of(path.with_name("other.db"), "timed", domain, parts)


def test_a_file_reads_no_other_file_and_is_not_written(path):
    """A view in a file from others may name any file of this machine."""
    domain = only(hostile_domain(), "age")
    before = path.read_bytes()
    for table in ("outside", 'victim"; DROP TABLE victim; --', "victim; DROP TABLE victim"):
        workload = workload_of(path, table, domain, {"one": part_of(Count(), domain)})
        (part,) = workload.source.parts()
        with pytest.raises(SourceError) as caught:
            list(part.batches())
        assert np.all([word not in str(caught.value) for word in ("hostname", "DROP", "etc")])
        with Sql() as engine, pytest.raises(SourceError):
            engine.accept(lambda workload=workload: workload)
    assert path.read_bytes() == before


def test_the_law_runs_in_a_file_of_duckdbs_own(hostile, monkeypatch):
    one = attrs.evolve(hostile, sums=tuple(s for s in hostile.sums if s[0] == "total"))
    written, real = [], duckdb_module.DuckDb._write

    def write(self, path, *args):
        found = real(self, path, *args)
        written.append(path.read_bytes()[8:12])
        return found

    monkeypatch.setattr(duckdb_module.DuckDb, "_write", write)
    monkeypatch.setattr("dpcore_engines.sql.columns._decimal", _wrong)
    with Sql() as engine, pytest.raises(RequestError, match=r"sql\.same-integer"):
        engine.accept(lambda: one)
    assert written == [b"DUCK"] * 3


def _wrong(cell):
    from sqlglot import exp

    from dpcore_engines.sql.number import Number

    return Number(exp.cast(exp.cast(cell, "FLOAT"), "DOUBLE"))


def test_a_table_keeps_the_laws_of_sources():
    verdicts = source_verdicts(DuckDbFile, "duckdb")
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_the_sql_engine_keeps_the_laws_of_engines_on_files_of_every_kind():
    verdicts = {v.law.id: v for v in choice_verdicts(SqlChoice, "sql", kinds=[DuckDbFile])}
    assert {v.law.id for v in verdicts.values() if v.failed or v.untested} == set()
    # What it cannot be asked is distinguished.
    apart = {"engine.derived", "engine.survived"}
    assert {v for v in verdicts if verdicts[v].outcome is Outcome.NOT_APPLICABLE} == apart
    files = verdicts["engine.same-bits"].detail
    assert all(kind in files for kind in ("CsvFile", "ParquetFiles", "DuckDbFile"))


def test_the_laws_of_engines_find_a_server_that_clips_nothing(monkeypatch):
    # The engine's own law would see it first, and take no file at all.
    monkeypatch.setattr("dpcore_engines.sql.engine._hold_rules", lambda session: "")
    monkeypatch.setattr(Number, "clip", lambda self, low, high: self)
    verdicts = choice_verdicts(SqlChoice, "sql", kinds=[DuckDbFile])
    assert {v.law.id for v in verdicts if v.failed} == {"engine.same-bits"}


@pytest.mark.parametrize("statement", NO_QUERIES["duckdb"])
def test_duckdb_is_sent_one_select_and_nothing_else(path, tmp_path, statement):
    """Each guard only: what the name of a table may hold, what is sent, and what DuckDB may do."""
    text, before = statement.replace("{out}", str(tmp_path / "copy")), path.read_bytes()
    domain = only(hostile_domain(), "age")
    for table in (text, f'victim"; {text}; --', f"victim; {text}"):
        workload = workload_of(path, table, domain, {"one": part_of(Count(), domain)})
        with pytest.raises(SourceError):
            workload.source.require_schema()
        with pytest.raises(SourceError):
            list(workload.source.parts()[0].batches())
        with Sql() as engine, pytest.raises(SourceError):
            engine.accept(lambda workload=workload: workload)
    with duckdb_file.connect(path) as opened:
        for sent in (text, f"select 1; {text}", f"{text}; select 1"):
            with pytest.raises((SourceError, duckdb.Error)):
                duckdb_file.one_select(opened, sent)
        with contextlib.suppress(duckdb.Error):
            opened.execute(text)
    assert not [*tmp_path.iterdir()]
    assert path.read_bytes() == before


def test_settings_are_locked_and_files_of_others_are_closed(path, tmp_path):
    (tmp_path / "other.csv").write_text("age\n1\n")
    parquet.write_table(pyarrow.table({"age": [1.0]}), tmp_path / "rows.parquet")
    with duckdb_file.connect(path) as opened:
        in_file = [
            opened.execute("SELECT count(*) FROM victim").fetchall(),
            *denied(opened, tmp_path),
        ]
    (tmp_path / "rows.csv").write_text("age\n1\n")
    domain = only(hostile_domain(), "age")
    found = []
    for name in ("rows.parquet", "rows.csv"):
        source = open_source(str(tmp_path / name), None, Csv(), domain)
        server = server_of(source, 2**29, None)
        found += [server.execute(f"SELECT count(*) FROM ({server.relation})")]
        found += denied(server.connection, tmp_path)
        server.close()
    assert in_file == [[(1,)]]
    assert found == [[(1,)]] * 2


def denied(connection, folder):
    """What a connection may do beyond its own files: nothing."""
    allowed = []
    for text in (
        f"SELECT * FROM read_csv('{folder / 'other.csv'}')",
        f"SELECT * FROM glob('{folder}/*')",
        f"COPY (SELECT 1) TO '{folder / 'copy'}'",
        f"ATTACH '{folder / 'copy'}'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_paths = ['/']",
        "RESET allowed_paths",
        "LOAD httpfs",
    ):
        with contextlib.suppress(duckdb.Error):
            allowed.append(connection.execute(text).fetchall())
    return allowed
