"""Sql: the integers of the core, of records that stay on DuckDB or PostgreSQL."""

import functools
import math

import attrs
import numpy as np
import pytest
from hostile_rows import hostile_domain, hostile_table, learners, part_of

from dpcore import Categories, Domain
from dpcore.domain.domain import People
from dpcore.encoding.blocks import Encoding
from dpcore.errors import EngineError, RequestError, SourceError
from dpcore.exact import Exact
from dpcore.private.engines.base import Workload
from dpcore.private.engines.choice import Local
from dpcore.private.engines.records import EngineRecords
from dpcore.published.replay import replay
from dpcore.runs.run_spec import run
from dpcore.source import TableSource
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_statistics.count import Count

duckdb = pytest.importorskip("duckdb")
exp = pytest.importorskip("sqlglot").exp
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from dpcore_engines.sql import columns as columns_module, duckdb as duckdb_module  # noqa: E402
from dpcore_engines.sql.choice import SqlChoice  # noqa: E402
from dpcore_engines.sql.clipped import Clipping  # noqa: E402
from dpcore_engines.sql.columns import Columns  # noqa: E402
from dpcore_engines.sql.engine import Sql  # noqa: E402
from dpcore_engines.sql.number import Number, chosen, named  # noqa: E402

RECORDS = 60_000


def workload_of(path, domain, parts, **changes):
    source = open_source(str(path), None, Csv(), domain)
    sums = tuple((name, part) for name, part in parts.items())
    workload = Workload(
        source=source, domain=domain, encode=Encoding(domain=domain, refuse=False),
        refuse=False, holdout=0.0, sums=sums, others=False, sealed=False,
    )  # fmt: skip
    return attrs.evolve(workload, **changes)


@functools.cache
def blocks_of(workload):
    """The records by the core's own reader, in blocks of its own."""
    parts = workload.source.parts()
    return [workload.encode(batch) for piece in parts for batch in piece.batches()]


def of_core(workload, part):
    """Their sum."""
    total = Exact.zeros(part.query.shape, part.query.sum.unit)
    for block in blocks_of(workload):
        total += part.learner.total_of(part.query, block, part.public)
    return total


def of_server(workload, engine, part):
    parts = workload.source.parts()
    (count,) = engine.load(parts, workload.encode)
    records = EngineRecords(engine=engine, places=count, count=count)
    return part.learner.total_of(part.query, records, part.public)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder of three files, one of which has no infinity, and its workload."""
    folder = tmp_path_factory.mktemp("hostile")
    table = hostile_table(RECORDS)
    for number, rows in enumerate((2 * RECORDS // 3, RECORDS // 3)):
        piece = table.slice(number * (RECORDS // 3), rows)
        parquet.write_table(piece, folder / f"{number}.parquet", row_group_size=30_000)
    domain = hostile_domain()
    parts = {name: part_of(learner, domain) for name, learner in learners().items()}
    return workload_of(f"{folder}/", domain, parts)


@pytest.fixture(scope="module")
def engine(hostile):
    with Sql() as opened:
        opened.accept(lambda: hostile)
        yield opened


@pytest.mark.parametrize("name", learners())
def test_duckdb_adds_the_integers_of_the_core(hostile, engine, name):
    part = dict(hostile.sums)[name]
    ours = of_core(hostile, part)
    assert of_server(hostile, engine, part) == ours
    assert any(ours.integers())


def refused(workload):
    with Sql() as engine, pytest.raises(RequestError) as caught:
        engine.accept(lambda: workload)
    assert engine.premises == ()
    return str(caught.value)


def only(workload, *names):
    return attrs.evolve(workload, sums=tuple(s for s in workload.sums if s[0] in names))


def folded(columns, name, rule):
    """NaN is what is above infinity: DuckDB's own order of doubles."""
    double = named(columns.cell_of(name))
    return Number(chosen((double <= math.inf, double.tree.copy())))


def test_the_law_sees_a_server_that_does_not_look_for_nan(monkeypatch, hostile):
    # Right where DuckDB looks at every number.
    monkeypatch.setattr(Columns, "_number", folded)
    workload = only(hostile, "variance")
    with Sql() as engine:
        engine.accept(lambda: workload)
    # Wrong where it answers from a file's least and greatest values.
    monkeypatch.setitem(duckdb_module._SETTINGS, "disabled_optimizers", "")
    assert "sql.same-integer" in refused(workload)


@pytest.mark.parametrize(
    "planted",
    [
        (Number, "rounded", lambda self: Number(exp.Floor(this=self.tree))),
        (Number, "clip", lambda self, low, high: self),
        (Clipping, "_fits", lambda self, total: exp.true()),
        (columns_module, "_trimmed", lambda cell: cell),
        (columns_module, "_DAYS", ("0001-01-01", "9999-12-31", "1970-01-02")),
        (
            columns_module,
            "_decimal",
            lambda cell: Number(exp.cast(exp.cast(cell, "FLOAT"), "DOUBLE")),
        ),
    ],
    ids=lambda planted: planted[1],
)
def test_the_law_sees_a_wrong_expression(monkeypatch, hostile, planted):
    monkeypatch.setattr(*planted)
    names = "variance by", "group_by", "mean of dates", "total", "groups of dates"
    assert "sql.same-integer" in refused(only(hostile, *names))


def test_what_sql_cannot_say_is_refused_with_the_reason(tmp_path, hostile):
    one = only(hostile, "mean")
    assert "a hold-out" in refused(attrs.evolve(one, holdout=0.5))
    assert "no sums" in refused(attrs.evolve(one, others=True))
    assert "a sealed run" in refused(attrs.evolve(one, sealed=True))
    assert "local engine" in refused(attrs.evolve(one, source=TableSource({})))
    people = attrs.evolve(one.domain, people=People(column="who", records=2))
    assert "persons" in refused(attrs.evolve(one, domain=people))
    texts = attrs.evolve(one.domain, columns={"ward": Categories(("1", "2"))})
    part = part_of(Count(by=("ward",)), texts)
    numbers = attrs.evolve(one, domain=texts, sums=(("wards", part),))
    assert "many ways" in refused(numbers)
    moments = hostile_table(10).set_column(
        1, "visited", pyarrow.array(np.arange(10).astype("datetime64[s]"))
    )
    parquet.write_table(moments, tmp_path / "moments.parquet")
    timed = workload_of(tmp_path / "moments.parquet", one.domain, dict(one.sums))
    assert "'visited'" in refused(timed)


@pytest.mark.parametrize("declared", [{"zone": "Europe/Berlin"}, {"offsets": "required"}])
def test_a_column_with_a_zone_is_refused_by_name(hostile, declared):
    one = only(hostile, "mean of dates")
    visited = attrs.evolve(one.domain.columns["visited"], **declared)
    zoned = attrs.evolve(one.domain, columns={**one.domain.columns, "visited": visited})
    assert "'visited' declares a zone, or offsets" in refused(attrs.evolve(one, domain=zoned))


def test_categories_that_are_texts_have_the_counts_of_the_core(tmp_path):
    rng = np.random.default_rng(4)
    cells = np.array(["01234", "1234", " 1234\t", "1e3", "1000", "1234.0", "X", "true", "True", ""])
    drawn = pyarrow.array(cells[rng.integers(cells.size, size=5000)].tolist())
    parquet.write_table(pyarrow.table({"t": drawn}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("t\n" + "\n".join(c or "x" for c in drawn.to_pylist()) + "\n")
    rule = Categories(
        ("01234", "1234", "1e3", "1000", "true"), spellings={"X": "1e3"}, as_text=True
    )
    domain = Domain(columns={"t": rule})
    counted = {"count": Count(where={"t": ["1234", "1e3"]}), "groups": Count(by=("t",))}
    parts = {name: part_of(learner, domain) for name, learner in counted.items()}
    for file in ("t.parquet", "t.csv"):
        workload = workload_of(tmp_path / file, domain, parts)
        with Sql() as opened:
            opened.accept(lambda: workload)  # noqa: B023  # asked at once
            for part in parts.values():
                assert of_server(workload, opened, part) == of_core(workload, part)
    numbers = pyarrow.table({"t": pyarrow.array([1234, 1000])})
    parquet.write_table(numbers, tmp_path / "numbers.parquet")
    typed = workload_of(tmp_path / "numbers.parquet", domain, parts)
    assert "another type than texts" in refused(typed)


def test_a_sum_that_was_not_planned_is_not_asked(hostile):
    parts = dict(hostile.sums)
    with Sql() as engine:
        engine.accept(lambda: only(hostile, "count"))
        assert of_server(hostile, engine, parts["count"]) == of_core(hostile, parts["count"])
        with pytest.raises(EngineError, match="not in the plan"):
            of_server(hostile, engine, parts["mean"])


def test_a_file_that_changes_ends_the_run(tmp_path):
    path, domain = tmp_path / "rows.parquet", hostile_domain()
    parquet.write_table(hostile_table(1000), path)
    workload = workload_of(path, domain, {"count": part_of(Count(), domain)})
    with Sql() as engine:
        engine.accept(lambda: workload)
        parquet.write_table(hostile_table(999), path)
        with pytest.raises(SourceError, match="a file changed"):
            engine.load(workload.source.parts(), workload.encode)


SPEC = """
dpcore: 1
data:
  source: rows.parquet
  domain:
    records: private
    columns:
      age: [0, 110]
      sex: [F, M]
      systolic: {range: [60, 240], missing: true}
on_invalid: project
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - {name: number, learner: statistics.count, mechanism: discrete_gaussian}
  - name: pressure
    learner: {name: statistics.variance, column: systolic, by: [sex]}
    mechanism: gaussian
"""


def test_a_run_publishes_what_the_local_engine_does_and_the_laws_digest(tmp_path):
    parquet.write_table(hostile_table(3000), tmp_path / "rows.parquet")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    runs = {
        choice: run(spec, runs=tmp_path / "runs", rehearsal=7, engine=choice())
        for choice in (Local, SqlChoice)
    }
    ours, pushed = (runs[choice].answers for choice in (Local, SqlChoice))
    for name, values in ours.items():
        for one, other in zip(values, pushed[name], strict=True):
            np.testing.assert_array_equal(one, other)
    published = run(spec, runs=tmp_path / "runs", engine=SqlChoice())
    boundary_premises = published.guarantee.provenance.boundary_premises
    (premise,) = [p for p in boundary_premises if "sql.same-integer" in p]
    assert premise.startswith(f"the exact sums were added by DuckDB {duckdb.__version__}, which")
    assert len(premise.split("digest ")[1]) == len("f" * 64 + ")")
    assert replay(published.folder).guarantee.provenance.boundary_premises == boundary_premises
