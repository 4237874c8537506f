"""Spark's engine on a double of a session, which runs every function on Arrow batches at once."""

import itertools
from functools import partial

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.source
from dpcore import ADD_REMOVE
from dpcore.encoding.tables import project_table
from dpcore.errors import EngineError, ReleaseError, RequestError, SourceError
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import BlockError, Task
from dpcore.private.engines.local import LocalEngine
from dpcore.source import Part
from dpcore_attacks.laws.engines.engines import LAWS, engine_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_engines import spark as module
from dpcore_engines.spark import ENCRYPTION, Spark
from dpcore_linear import ClippedGradient, SufficientStatistics
from dpcore_statistics.marginals.learner import Marginals

from builders import answer_bytes, price_on_table
from doubles import domain, table

pyarrow = pytest.importorskip("pyarrow")
cloudpickle = pytest.importorskip("cloudpickle")
RECORDS = 400


class Frame:
    """Partitions of record batches, mapped whenever they are looked at, or once where kept."""

    def __init__(self, make):
        self.make, self.kept = make, None

    def partitions(self):
        return self.make() if self.kept is None else self.kept

    def mapInArrow(self, work, columns):  # noqa: N802  # Spark's name
        def make():
            mapped = [[*work(iter(batches))] for batches in self.partitions()]
            names = [column.split()[0] for column in columns.split(", ")]
            assert all(b.schema.names == names for b in itertools.chain.from_iterable(mapped))
            return mapped

        return Frame(make)

    def persist(self):
        self.kept = self.make()
        return self

    def unpersist(self, *, blocking):
        self.kept = None

    def repartition(self, count, name):
        def make():
            groups = [[] for _ in range(count)]
            for batch in itertools.chain.from_iterable(self.partitions()):
                groups[hash(batch.column(name)[0].as_py()) % count].append(batch)
            return groups

        return Frame(make)

    def filter(self, condition):
        assert condition == "answer is not null"
        return self

    def select(self, *names):
        return self

    def collect(self):
        batches = itertools.chain.from_iterable(self.partitions())
        rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
        return [row for row in rows if row["answer"] is not None]


class Session:
    """What the engine asks of a `SparkSession`."""

    def __init__(self):
        self.conf, self.tags = {ENCRYPTION: "true"}, set()
        self.addTag, self.removeTag = self.tags.add, self.tags.remove

    def range(self, start, end, step, count):
        assert (start, end, step) == (0, count, 1)
        ids = [[pyarrow.RecordBatch.from_pydict({"id": [number]})] for number in range(count)]
        return Frame(lambda: ids)


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(module, "_pickle", cloudpickle.dumps)
    return Session()


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


TASK = Task(part=summed, zero=(Exact.zeros((2,), 0),))


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
@pytest.mark.parametrize("block", [1 << 18, 200], ids=["blocks", "small blocks"])
def test_learners_release_the_bits_of_the_local_engine(
    session, monkeypatch, learner, fields, block
):
    monkeypatch.setattr("dpcore_engines.spark_tasks._BLOCK", block)
    made, source = price_on_table(learner, **fields), Cut(table(400), (130, 0, 70, 200))
    with LocalEngine(threads=1) as engine:
        expected = answer_bytes(made, source, engine)
    with Spark(session) as engine:
        assert answer_bytes(made, source, engine) == expected
    assert not session.tags


@pytest.mark.parametrize(
    ("lengths", "stage"),
    [
        ((40,) * 10, 3),
        pytest.param(
            (0,) * 1500 + (1,) * 300 + (0, 1) * 100, 44, marks=pytest.mark.slow, id="thousands"
        ),
    ],
)
def test_totals_of_many_partitions_are_added_by_workers(session, monkeypatch, lengths, stage):
    collected = []
    with Spark(session) as engine, LocalEngine(threads=1) as local:
        expected = loaded(local, lengths).total(TASK)
        loaded(engine, lengths)
        collect = Spark._collect

        def noted(self, frame):
            collected.append(collect(self, frame))
            return collected[-1]

        monkeypatch.setattr(Spark, "_collect", noted)
        assert engine.total(TASK) == expected
    assert len(collected[0]) == stage


def test_more_than_two_thousand_parts_share_partitions(session, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 3)
    with Spark(session) as engine, LocalEngine(threads=1) as local:
        assert loaded(engine, (40,) * 10).total(TASK) == loaded(local, (40,) * 10).total(TASK)


@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_a_total_that_is_missing_or_comes_twice_ends_the_run(session, monkeypatch, fault):
    with Spark(session) as engine:
        loaded(engine, (100, 100, 200))
        collect = Spark._collect

        def faulty(self, frame):
            rows = collect(self, frame)
            return rows[1:] if fault == "lost" else [*rows, rows[0]]

        monkeypatch.setattr(Spark, "_collect", faulty)
        with pytest.raises(ReleaseError, match="did not add every partition once"):
            engine.total(TASK)


def test_a_block_that_is_missing_or_comes_twice_ends_the_run(session):
    for change in (lambda batches: batches[1:], lambda batches: [batches[0], *batches]):
        with Spark(session) as engine:
            loaded(engine, (100, 300))
            frame = engine._frames[0]
            frame.kept = [change(frame.kept[0]), frame.kept[1]]
            with pytest.raises(EngineError, match="SourceError"):
                engine.total(TASK)


def test_blocks_that_are_lost_are_read_again_and_must_be_the_same(session):
    columns = table(400)
    with Spark(session) as engine:
        engine.load([Rows(columns)], partial(project_table, domain()))
        expected = engine.total(TASK)
        engine._frames[0].unpersist(blocking=True)
        assert engine.total(TASK) == expected
        # What a worker would find when the file has changed.
        make = engine._frames[0].make
        engine._frames[0].make = lambda: [[*make()[0][:-1], *changed()]]

        def changed():
            with Spark(Session()) as again:
                again.load(
                    [Rows({**columns, "y": columns["y"][::-1]})], partial(project_table, domain())
                )
                return again._frames[0].kept[0][-1:]

        with pytest.raises(EngineError, match="SourceError"):
            engine.total(TASK)


def test_errors_tell_their_type_and_the_place_of_a_misfit_alone(session):
    def fails(block):
        raise KeyError(f"label {block.labels[0]!r}")

    with Spark(session) as engine:
        loaded(engine)
        with pytest.raises(BlockError, match=r"part of a total failed \(KeyError\)$") as caught:
            engine.total(attrs.evolve(TASK, part=fails))
    assert caught.value.__cause__ is caught.value.__context__ is None
    rows = table(400)
    rows["a"][205] = 7.0
    for lengths, place in [((400,), "record 206: needs"), ((10, 390), "record 196 of part 2: ")]:
        refused = pytest.raises(SourceError, match=f"column 'a', {place}")
        with refused, Spark(session) as engine:
            answer_bytes(price_on_table(clipped()), Cut(rows, lengths), engine)


def test_errors_of_spark_tell_their_type_alone(session):
    class SparkError(Exception):
        pass

    def fails(*args):
        raise SparkError("cell 4815")

    with Spark(session) as engine:
        loaded(engine)
        engine._frames[0].mapInArrow = fails
        with pytest.raises(ReleaseError, match=r"records were opened \(SparkError\)$") as caught:
            engine.total(TASK)
    assert caught.value.__suppress_context__


def test_a_session_is_compared_before_anything_is_opened(session, monkeypatch):
    Spark(session).ready()
    session.conf.clear()
    with pytest.raises(RequestError, match=ENCRYPTION):
        Spark(session).ready()
    session.conf[ENCRYPTION] = "true"
    real = module.versions(("dpcore", "numpy"))
    for changes, message in [
        ({"numpy": "0.1"}, "numpy is 0.1 here and .* on a worker: install the same there"),
        ({"cryptography": ""}, "pip install cryptography"),
    ]:
        monkeypatch.setattr(module, "versions", lambda names, changes=changes: real | changes)
        with pytest.raises(RequestError, match=message):
            Spark(session).ready()
    monkeypatch.setattr(module, "versions", lambda names: {**real, "numpy": "0.1"})
    with pytest.raises(SourceError, match="OtherVersionsError"), Spark(session) as engine:
        engine.load(Cut(table(400), (400,)).parts(), partial(project_table, domain()))


def test_a_sealed_run_is_refused(session, monkeypatch):
    monkeypatch.setattr(Spark, "load", lambda *args: pytest.fail("opened"))
    with pytest.raises(RequestError, match="sealed run is silent"):
        price_on_table(clipped(), sealed=True).run(Cut(table(400), (400,)), engine=Spark(session))


@pytest.mark.slow
def test_spark_keeps_every_law_of_engines(session):
    verdicts = engine_verdicts(
        lambda: Spark(session), disturb=lambda engine: engine._frames[0].unpersist(blocking=True)
    )
    assert {verdict.law for verdict in verdicts} == {*LAWS}
    assert all(verdict.outcome is Outcome.PASSED for verdict in verdicts), verdicts
