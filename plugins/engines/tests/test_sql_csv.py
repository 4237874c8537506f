"""Sql over CSV files: DuckDB cuts lines and reads cells as dpcore does, or the run is refused."""

import attrs
import numpy as np
import pytest
from hostile_rows import WARDS, hostile_domain, learners, part_of

from dpcore import Categories, Domain, Range
from dpcore.encoding.blocks import Encoding
from dpcore.errors import RequestError, SourceError
from dpcore.exact import Exact
from dpcore.private.engines.base import Workload
from dpcore.private.engines.records import EngineRecords
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_statistics.count import Count
from dpcore_statistics.mean import Mean

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

from dpcore_engines.sql import columns as columns_module
from dpcore_engines.sql.engine import Sql

RECORDS = 20_000
ODD = (
    "", " ", "nan", "inf", "-Infinity", "1e400", "-1e400", "1e-400", "1_000", "1.", ".5", "+1",
    "01", "0x10", "\uff11", "-0", "-0.0", "5e-324", "true", "2024-02-29", "1 2", "1,5", "e5",
    "\u00a01",
)  # fmt: skip


def csv_domain():
    domain = hostile_domain()
    rules = {name: rule for name, rule in domain.columns.items() if name != "visited"}
    return attrs.evolve(domain, columns=rules)


def lines(count, seed=3):
    """Texts of every sort, next to a column that no one declared."""
    rng = np.random.default_rng(seed)
    pools = {
        "note": ("", "'", "#", "NULL", "\\n", "\\", "na\u00efve"),
        "age": [*map(str, range(-5, 120))],
        "sex": ("F", "M", " F", "M\t", "f", "FM", "\u00a0F"),
        "ward": (*WARDS, "er", "ER", " er ", "gene\u0301ral", "1", "x"),
        "systolic": [repr(x) for x in rng.normal(130, 30, 500).tolist()],
        "cost": [f"{x:.2f}" for x in rng.gamma(2, 800, 500)],
        "paid": [f" {k / 1000:.3f}\t" for k in range(-1600, 12300, 7)],
        "smoker": ("0", "1", "1.0", "1e0", "+1", "True", "false", "tRUE", "2"),
        "score": [repr(x) for x in (*rng.normal(1, 1, 500).tolist(), 1.0, 3.0, 5e-324)],
    }
    cells = [
        np.array(pool, dtype=object)[rng.integers(len(pool), size=count)] for pool in pools.values()
    ]
    for column in cells:
        places = rng.random(count) < 0.1
        column[places] = rng.choice(np.array(ODD, dtype=object), places.sum())
    return ["|".join(pools), *map("|".join, zip(*cells, strict=True))]


def workload_of(path, domain, parts, layout=None):
    source = open_source(str(path), None, layout or Csv(), domain)
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


def of_server(workload, engine, part):
    (count,) = engine.load(workload.source.parts(), workload.encode)
    records = EngineRecords(engine=engine, places=count, count=count)
    return part.learner.total_of(part.query, records, part.public)


NAMES = [name for name in learners() if "dates" not in name]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "rows.csv"
    path.write_text("\n".join(lines(RECORDS)) + "\n", encoding="utf-8", newline="")
    domain = csv_domain()
    parts = {name: part_of(learners()[name], domain) for name in NAMES}
    return workload_of(path, domain, parts, Csv(delimiter="|"))


@pytest.fixture(scope="module")
def engine(hostile):
    with Sql() as opened:
        opened.accept(lambda: hostile)
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_adds_the_integers_of_the_core_over_csv(hostile, engine, name):
    part = dict(hostile.sums)[name]
    ours = of_core(hostile, part)
    assert of_server(hostile, engine, part) == ours
    assert any(ours.integers())


def small():
    return Domain(columns={"a": Range(0, 10), "b": Categories(("x", "y"))}, limit=100)


def small_workload(path, learner=None, **layout):
    domain = small()
    return workload_of(path, domain, {"one": part_of(learner or Count(), domain)}, Csv(**layout))


FAULTY = {
    "quote": b'1,"x"\n2,y\n',
    "crlf": b"1,x\r\n2,y\r\n",
    "empty line": b"1,x\n\n2,y\n",
    "empty first line": b"\n1,x\n",
    "delimiter at the end": b"1,x,\n2,y\n",
    "one more, one less": b"1,x,\n2\n",
    "short": b"1\n2,y\n",
    "long": b"1,x,3\n2,y\n",
    "carriage return": b"1,x\r2,y\n",
    "nul": b"1,x\0\n2,y\n",
    "no utf-8": b"1,\xff\n2,y\n",
    "carriage return at the end": b"1,x\n2,y\r",
    "long line": b"1,x\n" + b"9" * (1 << 20) + b",y\n",
}


@pytest.mark.parametrize("body", FAULTY.values(), ids=FAULTY)
def test_lines_that_duckdb_may_cut_otherwise_end_the_run(tmp_path, body):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + body)
    workload = small_workload(path)
    with Sql() as engine:
        engine.accept(lambda: workload)
        with pytest.raises(SourceError, match=r"every line is a record|cannot read") as caught:
            engine.load((), workload.encode)
    assert "9" not in str(caught.value)


@pytest.mark.parametrize("body", [b"1,x\n2,y\n", b"1,x\n2,y", b"", b" 1\t,\n,x\n"])
def test_plain_lines_are_counted_as_the_core_counts_them(tmp_path, body):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n" + body)
    workload = small_workload(path)
    with Sql() as engine:
        engine.accept(lambda: workload)
        part = workload.sums[0][1]
        assert of_server(workload, engine, part) == of_core(workload, part)


def refused(workload):
    with Sql() as engine, pytest.raises(RequestError) as caught:
        engine.accept(lambda: workload)
    return str(caught.value)


def test_what_duckdb_reads_otherwise_is_refused_before_records_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\r\n1,x\r\n")
    assert "carriage returns" in refused(small_workload(path))
    path.write_bytes(b"a;b\n1,x\n")
    assert "decimal" in refused(small_workload(path, delimiter=";", decimal=","))
    path.write_bytes(b"visited,a\n2024-01-01,1\n")
    dated = attrs.evolve(small(), columns={"visited": hostile_domain().columns["visited"]})
    assert "'visited'" in refused(workload_of(path, dated, {"one": part_of(Count(), dated)}))
    mixed = attrs.evolve(small(), columns={"a": Categories(("x", "1"))})
    part = part_of(Count(by=("a",)), mixed)
    assert "many ways" in refused(workload_of(path, mixed, {"one": part}))


def test_the_law_sees_numbers_that_duckdb_reads_and_dpcore_does_not(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,x\n")
    monkeypatch.setattr(columns_module, "_NUMBER", ".*")
    assert "sql.same-integer" in refused(small_workload(path, Mean(column="a")))


def test_a_file_that_grows_ends_the_run(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,x\n")
    workload = small_workload(path)
    with Sql() as engine:
        engine.accept(lambda: workload)
        path.write_bytes(b"a,b\n1,x\n2,y\n")
        with pytest.raises(SourceError, match="a file changed"):
            engine.load((), workload.encode)
