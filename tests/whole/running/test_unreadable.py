"""Records that cannot be read: an error, never a zero, and what was reserved stays spent."""

import sqlite3
import traceback
from collections.abc import Iterator

import numpy as np
import pytest
import yaml

from dpcore import (
    ADD_REMOVE,
    Categories,
    Domain,
    Ledger,
    Range,
    Session,
)
from dpcore.encoding.pieces import KeptColumn, read_once
from dpcore.errors import EngineError, NotPublishedError, ReleaseError, SourceError, SpoolError
from dpcore.models.features.identity import Identity
from dpcore.private.engines.local import LocalEngine
from dpcore.runs import run_spec
from dpcore.source import Part, Source, TableSource
from dpcore.transcript.replay_process import HERE
from dpcore_random_features.ball_ridge import BallRidgeLearner
from dpcore_statistics.mean import Mean

from builders import price_learner

SECRET = "4711.25"
COLUMNS = {"a": Range(0, 1), "b": Range(0, 1), "c": Categories(("x", "y"))}
TABLE = {"a": np.full(40, 0.5), "b": np.full(40, 0.5), "c": np.array(["x", "y"] * 20)}
FAILURES = [ValueError, NotImplementedError, OSError, RuntimeError, MemoryError, KeyError]


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Ledger.create("people", epsilon=100, delta=1e-5, adjacency=ADD_REMOVE)


class Torn(Part):
    """Batches of ten, of which one raises what quotes a cell."""

    def __init__(self, failure, block):
        self.failure, self.block = failure, block

    def batches(self) -> Iterator[dict]:
        for number in range(4):
            if number == self.block:
                raise self.failure(f"cell {SECRET}")
            yield {name: cells[10 * number : 10 * number + 10] for name, cells in TABLE.items()}


class TornSource(Source):
    def __init__(self, failure, block):
        self.part = Torn(failure, block)

    def parts(self):
        return [self.part]


def report(error):
    return "".join(traceback.format_exception(error.value))


def mean_plan(learner=Mean(column="a")):  # noqa: B008
    return price_learner(
        learner, domain=Domain(columns=COLUMNS), adjacency=ADD_REMOVE, mechanism=None, delta=1e-6
    )


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("block", [0, 2, 3])
def test_a_source_that_fails_in_a_block_is_an_error_without_its_cell(ledger, failure, block):
    plan, before = mean_plan(), ledger.left()
    with pytest.raises((SourceError, MemoryError)) as error:
        plan.run(TornSource(failure, block), reservation=plan.reserve(ledger), replaying=HERE)
    assert failure is MemoryError or SECRET not in report(error)
    assert ledger.left() != before


QUESTIONS = {
    "bounded_mean": ("a",), "covariance": ("a", "b"), "count": (), "distinct": ("c",),
    "group_by": ("c",), "histogram": ("a",), "marginals": (["a", "c"],), "mean": ("a",),
    "quantiles": ("a", 0.5), "ratio": ("a", "b"), "running": ("a",),
    "share": ({"a": {"below": 0.5}},), "sum": ("a",), "top": ("c",),
    "variance": ("a",), "workload": ("a",),
}  # fmt: skip
FIELDS = {
    "count": {"where": {"a": {"below": 0.5}}}, "group_by": {"column": "a"},
    "histogram": {"bins": 4}, "marginals": {"bins": {"a": 4}}, "running": {"edges": [0.25, 0.5]},
    "top": {"k": 1},
    "workload": {"bins": 4},
}  # fmt: skip


def read_or_fail(rule, values, read):
    """A reader that fails for the session's own columns, and serves for public edges."""
    if isinstance(values, KeptColumn):
        raise NotImplementedError(f"cell {SECRET}")
    return read_once(rule, values, read)


@pytest.mark.parametrize("method", QUESTIONS)
def test_a_column_that_cannot_be_encoded_is_no_answer_of_a_session(ledger, monkeypatch, method):
    """It fails when it is first used, inside the private function, whose failures may be zeros."""
    session = Session(ledger, Domain(columns=COLUMNS), TABLE, on_invalid="project", replaying=HERE)

    monkeypatch.setattr("dpcore.encoding.columns.read_once", read_or_fail)
    before = ledger.left()
    with pytest.raises(SourceError, match="cannot be read") as error:
        getattr(session, method)(*QUESTIONS[method], **FIELDS.get(method, {}), epsilon=1)
    assert SECRET not in report(error)
    assert ledger.left() != before
    assert session.releases == ()


LABELLED = Domain(columns={"a": Range(0, 1)}, target="b", labels=Range(0, 1), limit=100)
RIDGE = BallRidgeLearner(features=Identity(), total_regularization=0.01, radius=0.1)


def ridge_plan():
    """A learner whose bound lets zeros represent a failure of its own."""
    plan = price_learner(RIDGE, domain=LABELLED, adjacency=ADD_REMOVE, mechanism=None, delta=1e-6)
    assert all(planned_query.sensitivity.covers_fallback for planned_query in plan.schedule.queries)
    return plan


@pytest.mark.parametrize("failure", FAILURES)
def test_an_engine_that_fails_is_no_answer(ledger, monkeypatch, failure):
    def fails(self, task):
        raise failure(f"cell {SECRET}")

    monkeypatch.setattr(LocalEngine, "total", fails)
    plan, before = ridge_plan(), ledger.left()
    with pytest.raises((EngineError, SourceError, MemoryError)) as error:
        plan.run(TableSource(TABLE), reservation=plan.reserve(ledger), replaying=HERE)
    assert failure is MemoryError or SECRET not in report(error)
    assert ledger.left() != before


@pytest.mark.parametrize("failure", [SpoolError, MemoryError])
@pytest.mark.parametrize("isolate", [False, True])
def test_what_fails_below_a_learners_rows_is_no_zero_of_a_record(monkeypatch, failure, isolate):
    def fails(*given):
        raise failure("records cannot be spooled")

    monkeypatch.setattr(Mean, "contributions", fails)
    monkeypatch.setattr(Mean, "partial", fails)
    with pytest.raises(failure):
        mean_plan(Mean(column="a", isolate=isolate)).run(TABLE, replaying=HERE)


def test_a_learners_own_failure_is_still_what_its_bound_covers(monkeypatch):
    monkeypatch.setattr(BallRidgeLearner, "statistic", lambda *given: 1 / 0)
    assert ridge_plan().run(TABLE, replaying=HERE).model is not None


SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.parquet",
        "domain": {"records": "private", "columns": {"a": [0, 1], "c": ["x", "y"]}},
    },
    "adjacency": "add_remove",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "ledger": "people",
    "on_invalid": "project",
    "releases": [
        {"name": "mean", "learner": {"name": "statistics.mean", "column": "a"},
         "mechanism": "gaussian"},
    ],
}  # fmt: skip


def write(folder, columns, **more):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), folder / "people.parquet", row_group_size=1000)
    (folder / "s.yaml").write_text(yaml.safe_dump({**SPEC, **more}))
    return folder / "people.parquet"


def run(folder):
    try:
        run_spec.run(folder / "s.yaml", runs=folder / "runs")
    finally:
        assert not [*folder.glob("runs/*/*")]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_type_that_is_not_read_is_refused_before_the_ledger_is_charged(ledger, tmp_path, sealed):
    write(tmp_path, {"a": [b"1", b"0"], "c": ["x", "y"]}, sealed=sealed)
    before = ledger.left()
    with pytest.raises(ReleaseError if sealed else SourceError) as error:
        run(tmp_path)
    assert ledger.left() == before
    assert sealed or "the type binary" in str(error.value)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_damaged_row_group_is_spent_and_not_published(ledger, tmp_path, sealed):
    path = write(tmp_path, {"a": np.arange(5000) / 5000, "c": ["x", "y"] * 2500}, sealed=sealed)
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half : half + 3000] = bytes(3000)
    path.write_bytes(content)
    before = ledger.left()
    kind, match = NotPublishedError, "^spent, not published: people.parquet: row group"
    if sealed:
        kind, match = ReleaseError, "^The sealed run failed; nothing was released.$"
    with pytest.raises(kind, match=match):
        run(tmp_path)
    assert ledger.left() != before


def test_a_query_that_fails_at_a_row_is_spent_and_not_published(ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with sqlite3.connect(tmp_path / "people.db") as database:
        database.execute("CREATE TABLE people (a REAL)")
        database.executemany("INSERT INTO people VALUES (?)", [(0.5,)] * 30_000)
    database.close()
    places = tmp_path / "dpcore" / "connections.yaml"
    places.parent.mkdir(exist_ok=True)
    places.write_text(f"people: {{sqlite: {tmp_path / 'people.db'}}}")
    places.chmod(0o600)
    # An integer without a positive counterpart: the function fails at that row only.
    late = (
        f"SELECT CASE rowid WHEN 25000 THEN abs({-(2**63)}) ELSE a END AS a, 'x' AS c FROM people"
    )
    source = {"sql": late, "connection": "people"}
    (tmp_path / "s.yaml").write_text(
        yaml.safe_dump({**SPEC, "data": {**SPEC["data"], "source": source}})
    )
    before = ledger.left()
    with pytest.raises(NotPublishedError, match=r"^spent, not published: connection people"):
        run(tmp_path)
    assert ledger.left() != before


def test_a_foreign_error_after_the_charge_is_told_by_its_type_alone(ledger, tmp_path, monkeypatch):
    write(tmp_path, {"a": [0.5] * 10, "c": ["x"] * 10})

    def fails(*given):
        raise RuntimeError(f"cell {SECRET}")

    monkeypatch.setattr(run_spec, "public_files", fails)
    with pytest.raises(NotPublishedError, match=r"^spent, not published: .*RuntimeError") as error:
        run(tmp_path)
    assert SECRET not in str(error.value)
