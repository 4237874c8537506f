"""Sql on PostgreSQL: the integers of the core, in one snapshot, and the grant for the law."""

import functools

import attrs
import pytest
from hostile_rows import hostile_domain, hostile_table, learners, part_of

from dpcore.errors import RequestError, SourceError
from dpcore.sources.sql import SqlQuery

from sources.people import configure
from sources.test_postgresql import connected, server  # noqa: F401

pytest.importorskip("sqlglot")
pyarrow = pytest.importorskip("pyarrow")

from dpcore.encoding.blocks import Encoding  # noqa: E402
from dpcore.exact import Exact  # noqa: E402
from dpcore.private.engines.base import Workload  # noqa: E402
from dpcore.private.engines.records import EngineRecords  # noqa: E402
from dpcore.sources.opening import open_source  # noqa: E402
from dpcore.specs.grammar import Csv  # noqa: E402
from dpcore_engines.sql.engine import Sql  # noqa: E402

RECORDS = 6_000
QUERY = "select * from hostile"


@pytest.fixture(scope="module")
def filled(server):  # noqa: F811
    """Where a role of few rights reads hostile rows, in columns of the server's own types."""
    table = hostile_table(RECORDS)
    texts = pyarrow.array([None if c is None else str(c) for c in table["paid"].to_pylist()])
    table = table.set_column(table.schema.get_field_index("paid"), "paid", texts)
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.adbc_ingest("staged", table)
        cursor.execute(
            "create table hostile as select age, visited, sex, ward::varchar(40), systolic, cost, "
            "paid::numeric, smoker, score from staged"
        )
        cursor.execute(
            "insert into hostile (paid, visited, sex) values ('NaN', 'infinity', 'F'), "
            "('1e400', '-infinity', 'M'), ('-1e400', '0044-03-15 BC', 'M'), ('1e-400', null, 'M')"
        )
        cursor.execute("revoke temporary on database postgres from public")
        for role in ("poorest", "analyst"):
            cursor.execute(f"create role {role} login")
            cursor.execute(f"grant select on hostile to {role}")
        cursor.execute("grant temporary on database postgres to analyst")
    return server.replace("user=reader", "user=analyst")


@pytest.fixture
def workload(tmp_path, monkeypatch, filled):
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{filled}"}}\n')
    return workload_of("clinic")


def workload_of(connection, sql=QUERY):
    domain = hostile_domain()
    source = open_source(SqlQuery(sql=sql, connection=connection), None, Csv(), domain)
    sums = tuple((name, part_of(learner, domain)) for name, learner in learners().items())
    return Workload(
        source=source, domain=domain, encode=Encoding(domain=domain, refuse=False),
        refuse=False, holdout=0.0, sums=sums, others=False, sealed=False,
    )  # fmt: skip


def test_postgresql_adds_the_integers_of_the_core(workload):
    parts = workload.source.parts()
    blocks = [workload.encode(batch) for piece in parts for batch in piece.batches()]
    with Sql() as engine:
        engine.accept(lambda: workload)
        (count,) = engine.load(parts, workload.encode)
        assert count == RECORDS + 4
        records = EngineRecords(engine=engine, places=count, count=count)
        for name, part in workload.sums:
            total = functools.partial(part.learner.total_of, part.query, public=part.public)
            zero = Exact.zeros(part.query.shape, part.query.sum.unit)
            ours = sum((total(records=block) for block in blocks), start=zero)
            assert total(records=records) == ours, name
        assert engine.premises[0].startswith("the exact sums were added by PostgreSQL ")


def test_a_run_sees_one_snapshot(workload, server):  # noqa: F811
    (name, part), *_ = workload.sums
    one = attrs.evolve(workload, sums=((name, part),))
    with Sql() as engine, connected(server) as opened, opened.cursor() as cursor:
        engine.accept(lambda: one)
        (before,) = engine.load(one.source.parts(), one.encode)
        cursor.execute("insert into hostile (age) values (30)")
        records = EngineRecords(engine=engine, places=before, count=before)
        assert part.learner.total_of(part.query, records, part.public).integers() == [before]
        cursor.execute("delete from hostile where sex is null and ward is null and age = 30")


def test_a_role_without_the_right_to_write_synthetic_rows_is_told_the_grant(
    tmp_path, monkeypatch, workload, filled
):
    address = filled.replace("user=analyst", "user=poorest")
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{address}"}}\n')
    with Sql() as engine, pytest.raises(RequestError, match="GRANT TEMPORARY ON DATABASE"):
        engine.accept(lambda: workload_of("clinic"))


@pytest.mark.parametrize("sql", ["select 1 as age", "select * from nothing"])
def test_a_query_that_the_server_does_not_take_is_refused(workload, sql):
    with Sql() as engine, pytest.raises(SourceError, match=r"is missing|SQLSTATE 42P01"):
        engine.accept(lambda: workload_of("clinic", sql))
