"""Every engine counts a number on an edge in the cell that begins there."""

import contextlib

import pytest
from edge_rows import (
    BINS,
    edge_domain,
    edge_learners,
    edge_table,
    expected_counts,
    expected_from,
)
from hostile_rows import part_of

from dpcore.encoding.blocks import Encoding
from dpcore.encoding.tables import project_table
from dpcore.private.engines.base import Workload
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.records import EngineRecords
from dpcore.source import TablePart
from dpcore.sources.opening import open_source
from dpcore.sources.sql import SqlQuery
from dpcore.specs.grammar import Csv

from sources.people import configure
from sources.test_postgresql import connected, server  # noqa: F401

pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

DOMAIN = edge_domain()
PARTS = {name: part_of(learner, DOMAIN) for name, learner in edge_learners().items()}


def workload_of(source, encode):
    return Workload(
        source=source, domain=DOMAIN, encode=encode, refuse=False, holdout=0.0,
        sums=tuple(PARTS.items()), others=False, sealed=False,
    )  # fmt: skip


def require_counts(engine, parts, encode):
    """Every statistic by an engine, against fractions, and against records in memory."""
    table = edge_table()
    (count,) = engine.load(parts, encode)
    assert count == table.num_rows
    records = EngineRecords(engine=engine, places=count, count=count)
    inside = project_table(DOMAIN, table)
    for name, part in PARTS.items():
        total = part.learner.total_of(part.query, records, part.public)
        assert total == part.learner.total_of(part.query, inside, part.public), name
        if name in BINS:
            assert total.integers() == expected_counts(table, name), name
        if name == "from":
            assert total.integers() == expected_from(table)


def cut_columns():
    """What a run keeps next to encoded columns: of these learners, all but nothing."""
    return tuple({n for p in PARTS.values() for n in p.learner.cut_columns(DOMAIN)})


@pytest.mark.parametrize("rows", [4096, 7])
def test_the_local_engine_places_every_number_as_fractions_do(rows):
    with LocalEngine(threads=2, rows=rows) as engine:
        encode = Encoding(domain=DOMAIN, refuse=False, numbers=cut_columns())
        require_counts(engine, [TablePart(edge_table())], encode)


def test_an_engine_holds_the_numbers_of_cut_columns_alone():
    assert set(cut_columns()) == {*BINS}
    records = Encoding(domain=DOMAIN, refuse=False, numbers=("wide",))(edge_table())
    assert records.number_names == ("wide",)
    assert records.numbers.shape == (400, 1)
    assert PARTS["means"].learner.cut_columns(DOMAIN) == ("wide",)


def test_duckdb_places_every_number_as_fractions_do(tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    from dpcore_engines.sql.engine import Sql

    parquet.write_table(edge_table(), tmp_path / "edges.parquet")
    source = open_source(str(tmp_path / "edges.parquet"), None, Csv(), DOMAIN)
    encode = Encoding(domain=DOMAIN, refuse=False)
    with Sql() as engine:
        engine.accept(lambda: workload_of(source, encode))
        require_counts(engine, source.parts(), encode)


def test_postgresql_places_every_number_as_fractions_do(
    server,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    pytest.importorskip("sqlglot")
    from dpcore_engines.sql.engine import Sql

    table = edge_table()
    texts = [str(cell) for cell in table["paid"].to_pylist()]
    import pyarrow

    staged = table.set_column(3, "paid", pyarrow.array(texts))
    with contextlib.ExitStack() as stack:
        cursor = stack.enter_context(stack.enter_context(connected(server)).cursor())
        cursor.adbc_ingest("staged_edges", staged)
        cursor.execute(
            "create table edges as select whole, tenths, wide, paid::numeric, day, y "
            "from staged_edges"
        )
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{server}"}}\n')
    query = SqlQuery(sql="select * from edges", connection="clinic")
    source = open_source(query, None, Csv(), DOMAIN, rich_role=True)
    encode = Encoding(domain=DOMAIN, refuse=False)
    with Sql() as engine:
        engine.accept(lambda: workload_of(source, encode))
        require_counts(engine, source.parts(), encode)


def test_dask_places_every_number_as_fractions_do():
    distributed = pytest.importorskip("distributed")
    from dpcore_engines.dask import Dask

    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        Dask(client) as engine,
    ):
        encode = Encoding(domain=DOMAIN, refuse=False, numbers=cut_columns())
        require_counts(engine, [Again(edge_table())], encode)


class Again(TablePart):
    """A table that a worker may read."""

    @property
    def stays(self):
        return False
