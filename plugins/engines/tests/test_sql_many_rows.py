"""Sql: the integers of the core, of ten million hostile rows on DuckDB and on PostgreSQL."""

import os

import pytest
from hostile_rows import hostile_domain, hostile_table, learners, part_of

from dpcore.encoding.blocks import Encoding
from dpcore.exact import Exact
from dpcore.private.engines.base import Workload
from dpcore.private.engines.records import EngineRecords
from dpcore.sources.opening import open_source
from dpcore.sources.sql import SqlQuery
from dpcore.specs.grammar import Csv

from sources.people import configure
from sources.test_postgresql import connected, server  # noqa: F401

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from dpcore_engines.sql.engine import Sql  # noqa: E402

pytestmark = pytest.mark.slow
RECORDS = int(os.environ.get("DPCORE_SQL_RECORDS", "10000000"))
PIECE = 250_000  # rows of a file, each with its own seed


def workload_of(source):
    domain = hostile_domain()
    sums = tuple((name, part_of(learner, domain)) for name, learner in learners().items())
    return Workload(
        source=open_source(source, None, Csv(), domain), domain=domain,
        encode=Encoding(domain=domain, refuse=False),
        refuse=False, holdout=0.0, sums=sums, others=False, sealed=False,
    )  # fmt: skip


def pieces():
    for number, first in enumerate(range(0, RECORDS, PIECE)):
        yield number, hostile_table(min(PIECE, RECORDS - first), seed=number)


def require_equal_integers(workload):
    """One pass of the core's own reader, block by block, and one statement for each sum."""
    ours = {name: Exact.zeros(p.query.shape, p.query.sum.unit) for name, p in workload.sums}
    for piece in workload.source.parts():
        for batch in piece.batches():
            block = workload.encode(batch)
            for name, part in workload.sums:
                ours[name] += part.learner.total_of(part.query, block, part.public)
    with Sql() as engine:
        engine.accept(lambda: workload)
        (count,) = engine.load(workload.source.parts(), workload.encode)
        assert count == RECORDS
        records = EngineRecords(engine=engine, places=count, count=count)
        for name, part in workload.sums:
            assert part.learner.total_of(part.query, records, part.public) == ours[name], name


def test_duckdb_adds_the_integers_of_the_core(tmp_path):
    for number, table in pieces():
        parquet.write_table(table, tmp_path / f"{number:04}.parquet")
    require_equal_integers(workload_of(f"{tmp_path}/"))


def test_postgresql_adds_the_integers_of_the_core(tmp_path, monkeypatch, server):  # noqa: F811
    with connected(server) as opened, opened.cursor() as cursor:
        for number, table in pieces():
            place = table.schema.get_field_index("paid")
            texts = [None if cell is None else str(cell) for cell in table["paid"].to_pylist()]
            table = table.set_column(place, "paid", pyarrow.array(texts, pyarrow.string()))
            cursor.adbc_ingest("staged_many", table, mode="append" if number else "create")
        cursor.execute(
            "create table many as select age, visited, sex, ward::varchar(40), systolic, cost, "
            "paid::numeric, smoker, score from staged_many"
        )
        cursor.execute("drop table staged_many")
        cursor.execute("create role many_reader login")
        cursor.execute("grant select on many to many_reader")
    address = server.replace("user=reader", "user=many_reader")
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{address}"}}\n')
    require_equal_integers(workload_of(SqlQuery(sql="select * from many", connection="clinic")))
