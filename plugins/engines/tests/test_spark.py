"""Spark: the bits of the local engine, whatever the cluster does, and nothing reported by
accident.
"""

import os
import shutil
import signal
import sys
from functools import partial

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.source
from dpcore import ADD_REMOVE
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, EngineError, ReleaseError, RequestError, SourceError
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import BlockError, Task
from dpcore.private.engines.local import LocalEngine
from dpcore.source import Part, TablePart
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_attacks.laws.engines.engines import LAWS, engine_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_engines import cluster
from dpcore_engines.spark import ENCRYPTION, Spark
from dpcore_engines.spark_choice import SparkChoice
from dpcore_linear import ClippedGradient, SufficientStatistics
from dpcore_statistics.marginals.learner import Marginals

from builders import answer_bytes, price_on_table
from doubles import domain, table

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="no Java"),
    # Spark 4.3 warns of any pandas from 3 on that lies next to it, which this engine never asks.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves it to the collector to close a socket, and Python then warns of it.
    pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
RECORDS = 400


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Two workers of this machine, as the command line starts them."""
    from pyspark import cloudpickle

    # Workers cannot import this module: what it defines travels by value.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    choice = SparkChoice(workers=2)
    with choice.opened(tmp_path_factory.mktemp("spool")) as engine:
        yield engine.session


@attrs.frozen(eq=False)
class Rows(Part):
    """Some rows of a table."""

    columns: dict

    def batches(self):
        yield self.columns


@attrs.frozen(eq=False)
class Cut(dpcore.source.Source):
    """A table in parts of so many records."""

    columns: dict
    lengths: tuple

    def parts(self):
        ends = np.cumsum(self.lengths)
        return tuple(
            Rows({name: column[end - rows : end] for name, column in self.columns.items()})
            for end, rows in zip(ends, self.lengths, strict=True)
        )


def clipped():
    return ClippedGradient(features=Identity(), clip=0.3, steps=2)


def summed(block):
    return (Exact.of([len(block), int(np.rint(block.labels * 2**20).sum())], 0),)


ZERO = (Exact.zeros((2,), 0),)


def loaded(engine, lengths=(100, 300)):
    counts = engine.load(Cut(table(400), lengths).parts(), partial(project_table, domain()))
    assert counts == lengths
    return engine


@pytest.mark.parametrize(
    ("learner", "fields"),
    [
        (clipped(), {"holdout": 0.3}),
        (clipped(), {"adjacency": ADD_REMOVE, "holdout": 0.3}),
        (SufficientStatistics(features=Identity()), {}),
        (Marginals(columns=("a", "b"), bins={"a": 16, "b": 5}), {"adjacency": ADD_REMOVE}),
    ],
    ids=["split", "coins", "products", "tables"],
)
def test_learners_release_the_bits_of_the_local_engine(session, learner, fields):
    made, source = price_on_table(learner, **fields), Cut(table(400), (130, 0, 70, 200))
    with LocalEngine(threads=1) as engine:
        expected = answer_bytes(made, source, engine)
    with Spark(session) as engine:
        assert answer_bytes(made, source, engine) == expected
        assert engine.note == ""


def test_totals_of_many_partitions_are_added_by_workers(session, monkeypatch):
    lengths = (40,) * 10
    with Spark(session) as engine, LocalEngine(threads=1) as local:
        task = Task(part=summed, zero=ZERO)
        assert loaded(engine, lengths).total(task) == loaded(local, lengths).total(task)
        frames, collect = [], Spark._collect
        monkeypatch.setattr(
            Spark, "_collect", lambda *args: frames.append(args[1]) or collect(*args)
        )
        engine.total(task)
        assert frames[0].rdd.getNumPartitions() == 3


def test_parts_are_read_once_and_blocks_serve_every_ask(session, tmp_path):
    @attrs.frozen(eq=False)
    class Noted(Rows):
        def batches(self):
            with (tmp_path / "reads").open("a") as file:
                file.write("x")
            yield self.columns

    with Spark(session) as engine:
        engine.load([Noted(table(400))] * 3, partial(project_table, domain()))
        for _ in range(3):
            engine.total(Task(part=summed, zero=ZERO))
    assert (tmp_path / "reads").read_text() == "xxx"


def test_nothing_is_left_when_it_is_closed(session):
    stored = session.sparkContext._jsc.getPersistentRDDs
    before = len(stored())
    with Spark(session) as engine:
        loaded(engine).total(Task(part=summed, zero=ZERO))
        assert len(stored()) == before + 1
        with pytest.raises(ContractError, match="one run"):
            engine.load((), partial(project_table, domain()))
    assert len(stored()) == before
    with pytest.raises(ContractError, match="no records"):
        engine.total(Task(part=summed, zero=ZERO))


def test_a_failing_part_tells_its_type_alone(session, capfd):
    def fails(block):
        raise KeyError(f"label {block.labels[0]!r}")

    with Spark(session) as engine:
        loaded(engine)
        with pytest.raises(BlockError, match=r"part of a total failed \(KeyError\)$") as caught:
            engine.total(Task(part=fails, zero=ZERO))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert capfd.readouterr().err == ""


def test_what_cannot_be_pickled_back_tells_its_type_alone(session):
    class Bomb:
        def __reduce__(self):
            return eval, ("1 / 0",)

    with Spark(session) as engine:
        loaded(engine)
        with pytest.raises(EngineError, match=r"opened \(ZeroDivisionError\)$"):
            engine.total(Task(part=Bomb(), zero=ZERO))


def test_a_record_that_does_not_fit_is_named_by_its_place(session):
    rows = table(400)
    rows["a"][205] = 7.0
    for lengths, place in [((400,), "record 206: needs"), ((10, 390), "record 196 of part 2: ")]:
        with (
            pytest.raises(SourceError, match=f"column 'a', {place}"),
            Spark(session) as engine,
        ):
            answer_bytes(price_on_table(clipped()), Cut(rows, lengths), engine)


def test_a_part_that_cannot_be_read_tells_the_type_alone(session):
    @attrs.frozen
    class Broken(Part):
        def batches(self):
            raise OSError("cell 4815")
            yield {}

    refusal = r"cannot read its parts \(OSError\)"
    with pytest.raises(SourceError, match=refusal), Spark(session) as engine:
        engine.load([Broken()], partial(project_table, domain()))


def test_what_is_read_once_or_lies_here_stays_here(session):
    made, rows = price_on_table(clipped()), table(400)

    class Stream(Rows):
        readable_again = False

    @attrs.frozen(eq=False)
    class Of(dpcore.source.Source):
        part: Part

        def parts(self):
            return (self.part,)

    for part in (Stream(rows), TablePart(rows)):
        with Spark(session) as engine:
            assert answer_bytes(made, Of(part), engine) == answer_bytes(made, rows)
            assert "stayed in this process" in engine.note


def test_blocks_that_are_lost_are_read_again_and_must_be_the_same(session, tmp_path):
    """Losing the storage is what a lost executor does to a partition."""
    path = tmp_path / "data.csv"
    written(path, table(50))
    parts = open_source(str(path), None, Csv(), domain(50)).parts()
    task = Task(part=summed, zero=ZERO)
    with Spark(session) as engine:
        engine.load(parts, partial(project_table, domain(50)))
        expected = engine.total(task)
        engine._frames[0].unpersist(blocking=True)
        assert engine.total(task) == expected
        other = table(50)
        other["y"] = other["y"][::-1]
        written(path, other)
        with pytest.raises(EngineError, match="SourceError"):
            engine.total(task)


def test_a_worker_killed_in_the_middle_of_an_ask_changes_no_bit(session, tmp_path):
    def part(block):
        # The first try of each partition kills its process.
        mark = tmp_path / f"killed-{len(block)}"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return summed(block)

    with Spark(session) as engine, LocalEngine(threads=1) as local:
        expected = loaded(local).total(Task(part=summed, zero=ZERO))
        assert loaded(engine).total(Task(part=part, zero=ZERO)) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"killed-100", "killed-300"}


def test_a_worker_that_always_dies_ends_the_run(session):
    def part(block):
        os.kill(os.getpid(), signal.SIGKILL)

    with Spark(session) as engine:
        loaded(engine)
        with pytest.raises(ReleaseError, match="after records were opened") as caught:
            engine.total(Task(part=part, zero=ZERO))
    assert caught.value.__suppress_context__


def test_other_versions_are_refused_before_anything_is_opened(session, monkeypatch):
    real = cluster.versions(("dpcore", "numpy"))
    for own, message in [
        ({"numpy": "0.1"}, "numpy is 0.1 here and .* on a worker: install the same there"),
        ({"dpcore-more": "2"}, "dpcore-more is 2 here and missing on a worker"),
        ({"cryptography": ""}, "pip install cryptography"),
    ]:
        changed = {**real, **own}
        monkeypatch.setattr("dpcore_engines.spark.versions", lambda names, own=changed: own)
        with pytest.raises(RequestError, match=message):
            Spark(session).ready()
        monkeypatch.undo()


def test_a_worker_with_other_versions_reads_nothing(session, monkeypatch):
    real = cluster.versions(("dpcore", "numpy"))
    changed = {**real, "numpy": "0.1"}
    monkeypatch.setattr("dpcore_engines.spark.versions", lambda names: changed)
    with pytest.raises(SourceError, match="OtherVersionsError"), Spark(session) as engine:
        engine.load(Cut(table(400), (400,)).parts(), partial(project_table, domain()))


def test_a_session_that_would_write_records_in_the_clear_is_refused(session):
    @attrs.frozen
    class Plain:
        session: object

        @property
        def conf(self):
            return {}

        def __getattr__(self, name):
            return getattr(self.session, name)

    with pytest.raises(RequestError, match=ENCRYPTION):
        Spark(Plain(session)).ready()


def test_a_sealed_run_is_refused(session, monkeypatch):
    monkeypatch.setattr(Spark, "load", lambda *args: pytest.fail("opened"))
    with pytest.raises(RequestError, match="sealed run is silent"):
        price_on_table(clipped(), sealed=True).run(Cut(table(400), (400,)), engine=Spark(session))


def test_a_choice_needs_one_place_and_enough_memory(tmp_path):
    for fields, message in [
        ({}, "needs the address"),
        ({"scheduler": "sc://x", "workers": 2}, "needs the address"),
        ({"workers": 2, "memory": 10**9}, "--memory of at least 1500 MB"),
    ]:
        choice = SparkChoice(**fields).opened(tmp_path)
        with pytest.raises(RequestError, match=message), choice:
            pytest.fail("opened")


def written(path, rows):
    names = list(rows)
    lines = [",".join(names)]
    lines += [
        ",".join(repr(float(v)) for v in row) for row in zip(*(rows[n] for n in names), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_spark_keeps_every_law_of_engines(session):
    verdicts = engine_verdicts(
        lambda: Spark(session), disturb=lambda engine: engine._frames[0].unpersist(blocking=True)
    )
    assert {verdict.law for verdict in verdicts} == {*LAWS}
    assert all(verdict.outcome is Outcome.PASSED for verdict in verdicts), verdicts


@pytest.mark.slow
def test_two_thousand_partitions_give_the_same_bits(session):
    lengths = (0,) * 1500 + (1,) * 300 + (0, 1) * 100
    with Spark(session) as engine, LocalEngine(threads=1) as local:
        task = Task(part=summed, zero=ZERO)
        assert loaded(engine, lengths).total(task) == loaded(local, lengths).total(task)
