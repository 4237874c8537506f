"""Dask: the bits of the local engine, whatever the cluster does, and nothing reported by
accident.
"""

import csv
import logging
import threading
import time
from functools import partial
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.source
from dpcore import ADD_REMOVE, Domain
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.domain.bins import Binned
from dpcore.domain.columns import Dates
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, RequestError, SourceError
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import BlockError, Task
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.selection import BernoulliSelection, Complement, counted_from
from dpcore.private.engines.spool import Spool
from dpcore.source import Part, TablePart
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_attacks.laws.engines.engines import LAWS, engine_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_engines import dask as module, dask_workers
from dpcore_engines.bundle import Bundle, Room, contents_of
from dpcore_engines.dask import Dask
from dpcore_linear import ChosenRidge, ClippedGradient, StagedGradient, SufficientStatistics
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.learners.best_of import BestOf
from dpcore_random_features.huber_ridge import HuberRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm
from dpcore_random_features.ridge import Ridge
from dpcore_statistics.marginals.learner import Marginals

from builders import answer_bytes, price_learner, price_on_table
from doubles import domain, table

distributed = pytest.importorskip("distributed")
RECORDS = 400


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


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


def huber():
    features = CosSin(count=2)
    return HuberRidgeLearner(features=features, total_regularization=30.0, clip=0.2)


CHOSEN = PermuteAndFlip()
MARGINALS = Marginals(columns=("a", "b"), bins={"a": 16, "b": 5})
BEST = BestOf(candidates=(clipped(), SufficientStatistics(features=Identity())))


@pytest.mark.parametrize(
    ("learner", "fields"),
    [
        (clipped(), {"holdout": 0.3}),
        (clipped(), {"adjacency": ADD_REMOVE, "holdout": 0.3}),
        pytest.param(StagedGradient(), {}, marks=pytest.mark.slow),
        (SufficientStatistics(features=Identity()), {}),
        (
            ChosenRidge(features=Identity()),
            {"mechanism": {"statistics": Gaussian(), "choice": CHOSEN}},
        ),
        (BEST, {"mechanism": {"fits": Gaussian(), "choice": CHOSEN}, "adjacency": ADD_REMOVE}),
        (Ridge(features=Identity(), regularization=0.5), {}),
        (huber(), {"adjacency": ADD_REMOVE, "holdout": 0.3}),
        (MARGINALS, {"adjacency": ADD_REMOVE}),
    ],
    ids=["split", "coins", "staged", "products", "ridge", "best_of", "folds", "loops", "tables"],
)
def test_learners_that_read_sums_folds_and_loops_release_the_bits_of_the_local_engine(
    client, learner, fields
):
    made, source = price_on_table(learner, **fields), Cut(table(400), (130, 0, 70, 200))
    with LocalEngine(threads=1) as engine:
        expected = answer_bytes(made, source, engine)
    with Dask(client) as engine:
        assert answer_bytes(made, source, engine) == expected
        assert engine.note == ""


@pytest.mark.parametrize("lengths", [(400,), (200, 200), (1, 7, 192, 100, 100)])
def test_parts_on_any_worker_give_the_same_bits(client, lengths):
    made, rows = price_on_table(clipped()), table(400)
    with Dask(client) as engine:
        assert answer_bytes(made, Cut(rows, lengths), engine) == answer_bytes(made, rows)


def summed(block):
    return (Exact.of([len(block), int(np.rint(block.labels * 2**20).sum())], 0),)


ZERO = (Exact.zeros((2,), 0),)


def loaded(engine, lengths=(100, 300)):
    counts = engine.load(Cut(table(400), lengths).parts(), partial(project_table, domain()))
    assert counts == lengths
    return engine


def kept_by(client):
    """Keys in the memory of all workers."""
    return [*client.run(lambda dask_worker: [*dask_worker.data]).values()]


def waited(client):
    for _ in range(200):
        if not any(kept_by(client)):
            return
        time.sleep(0.05)
    raise AssertionError(kept_by(client))


def test_nothing_stays_on_the_workers(client):
    with Dask(client) as engine:
        loaded(engine).total(Task(part=summed, zero=ZERO))
        assert any(kept_by(client))
        with pytest.raises(ContractError, match="one run"):
            engine.load((), partial(project_table, domain()))
    waited(client)
    with pytest.raises(ContractError, match="no records"):
        engine.total(Task(part=summed, zero=ZERO))


def test_cancellation_leaves_nothing_on_the_workers(client, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    with Dask(client) as engine:
        loaded(engine)
        monkeypatch.setattr(distributed, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.total(Task(part=summed, zero=ZERO))
    waited(client)


def test_a_failing_part_tells_its_type_alone(client, caplog):
    def fails(block):
        raise KeyError(f"label {block.labels[0]!r}")

    with caplog.at_level(logging.DEBUG, "distributed"), Dask(client) as engine:
        loaded(engine)
        with pytest.raises(BlockError, match=r"part of a total failed \(KeyError\)$") as caught:
            engine.total(Task(part=fails, zero=ZERO))
    assert caught.value.__cause__ is None
    assert "KeyError" not in caplog.text


def test_a_record_that_does_not_fit_is_named_by_its_place(client):
    rows = table(400)
    rows["a"][205] = 7.0
    for lengths, where in [((400,), "record 206: needs"), ((10, 390), "record 196 of part 2: ")]:
        with (
            pytest.raises(SourceError, match=f"column 'a', {where}"),
            Dask(client) as engine,
        ):
            answer_bytes(price_on_table(clipped()), Cut(rows, lengths), engine)


def test_a_part_that_cannot_be_read_tells_the_type_alone(client):
    @attrs.frozen
    class Broken(Part):
        def batches(self):
            raise OSError("cell 4815")
            yield {}

    with pytest.raises(SourceError, match=r"cannot read its parts \(OSError\)"), Dask(client) as e:
        e.load([Broken()], partial(project_table, domain()))


def test_what_is_read_once_or_lies_here_stays_here(client):
    made, rows = price_on_table(clipped()), table(400)

    class Stream(Rows):
        readable_again = False

    @attrs.frozen(eq=False)
    class Of(dpcore.source.Source):
        part: Part

        def parts(self):
            return (self.part,)

    for part in (Stream(rows), TablePart(rows)):
        with Dask(client) as engine:
            assert answer_bytes(made, Of(part), engine) == answer_bytes(made, rows)
            assert "stayed in this process" in engine.note
            waited(client)  # of other tests: what they let go


def test_records_grouped_by_persons_stay_here(client):
    rows = {**table(400), "who": np.arange(400) % 150}
    people = People(column="who", records=2)
    made = price_learner(
        SufficientStatistics(features=Identity()),
        domain=attrs.evolve(domain(), exact=None, limit=400, people=people),
        adjacency=people.relation(ADD_REMOVE),
        randomness=dpcore.PublicRandomness(7),
        epsilon=2.0,
    )
    source = Cut(rows, (130, 270))
    with LocalEngine(threads=1) as engine:
        expected = answer_bytes(made, source, engine)
    with Dask(client) as engine:
        assert answer_bytes(made, source, engine) == expected
        assert "grouped by persons" in engine.note


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"numpy": "0.1"}, "numpy is 0.1 here and .* on a worker: install the same there"),
        ({"dpcore-more": "2"}, "dpcore-more is 2 here and missing on a worker"),
        ({"cryptography": ""}, "pip install cryptography"),
    ],
)
def test_other_versions_are_refused_before_anything_is_opened(client, monkeypatch, own, message):
    monkeypatch.setattr(Dask, "load", lambda *args: pytest.fail("opened"))
    found = module.versions(("dpcore", "numpy"))
    monkeypatch.setattr(module, "versions", lambda names: {**found, **own})
    real = type(client).run

    def run(self, function, *args, **kwargs):
        return {"tcp://one": found}

    monkeypatch.setattr(type(client), "run", run)
    with pytest.raises(RequestError, match=message):
        Dask(client).ready()
    monkeypatch.setattr(type(client), "run", real)


def test_a_worker_without_dpcore_and_a_cluster_without_workers_are_refused(client, monkeypatch):
    for found, message in [({}, "no workers"), ({"tcp://one": ImportError("x")}, "cannot import")]:
        monkeypatch.setattr(type(client), "run", lambda *args, report=found, **kwargs: report)
        with pytest.raises(RequestError, match=message):
            Dask(client).ready()


def test_workers_that_are_silent_are_asked_again_a_few_times(client, monkeypatch):
    real, asked = type(client).run, []

    def run(self, *args, **kwargs):
        asked.append(args)
        if len(asked) < 3:
            threading.Event().wait()  # as after a worker that died meanwhile
        return real(self, *args, **kwargs)

    monkeypatch.setattr(dask_workers, "WAIT", 0.01)
    monkeypatch.setattr(dask_workers, "ATTEMPTS", 2)
    monkeypatch.setattr(type(client), "run", lambda *_, **__: threading.Event().wait())
    with pytest.raises(RequestError, match=r"no record was opened \(a worker does not answer"):
        Dask(client).ready()
    monkeypatch.setattr(dask_workers, "ATTEMPTS", 2000)
    monkeypatch.setattr(dask_workers, "TRIES", 1)
    monkeypatch.setattr(type(client), "run", run)
    asked += [(), ()]
    Dask(client).ready()
    assert len(asked) == 3


def test_what_is_derived_on_a_worker_serves_the_next_asks(client, monkeypatch):
    made, spools = price_on_table(clipped()), []

    def counted(folder):
        spools.append(folder)
        return Spool(folder)

    # The workers are threads here.
    monkeypatch.setattr("dpcore.private.engines.local.Spool", counted)
    with Dask(client) as engine:
        answer_bytes(made, Cut(table(400), (200, 200)), engine)
    # On each of two workers one of records, and one that both queries share.
    assert len(spools) == 4


def test_a_bundle_travels_without_records_and_is_read_again(tmp_path):
    import cloudpickle

    from dpcore_engines.bundle import Recipe, read

    path = tmp_path / "data.csv"
    written(path, table(50))
    parts = open_source(str(path), None, Csv(), domain(50)).parts()
    bundle = read(
        cloudpickle.dumps(Recipe(parts, partial(project_table, domain(50)), b"k" * 32)), one_thread
    )
    contents = contents_of(bundle)
    sent = cloudpickle.dumps(bundle)
    records = project_table(domain(50), table(50))
    assert not any(row.tobytes() in sent for row in records.features)
    again = cloudpickle.loads(sent)
    assert type(again) is Bundle
    total = again.total(Task(part=summed, zero=ZERO), 0, contents)
    assert total == summed(records)
    other = table(50)
    other["y"] = other["y"][::-1]
    written(path, other)
    with pytest.raises(SourceError, match="has changed"):
        cloudpickle.loads(sent).total(Task(part=summed, zero=ZERO), 0, contents)


@pytest.mark.parametrize("chunk", [1, 700, 3001])
def test_workers_find_the_records_of_cells_of_several_lines(client, tmp_path, monkeypatch, chunk):
    """Notes hold lines that look like records, and a cut may fall anywhere."""
    monkeypatch.setattr("dpcore.sources.csv_file.CHUNK", chunk)
    columns = table(60)
    rows = zip(*columns.values(), strict=True)
    path = tmp_path / "data.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "note"])
        for number, row in enumerate(rows):
            note = '"' + ",".join("9" * len(row)) + '\n",1\n' * (number % 7)
            writer.writerow([*(repr(float(cell)) for cell in row), note])
    facts = attrs.evolve(domain(), exact=60, limit=None)
    source = open_source(str(path), None, Csv(), facts)
    assert len(source.parts()) > 1
    made = price_on_table(clipped(), domain=facts)
    with Dask(client) as engine:
        assert answer_bytes(made, source, engine) == answer_bytes(made, Cut(columns, (60,)))


def one_thread():
    return Room(None, 1)


def written(path, rows):
    names = list(rows)
    lines = [",".join(names)]
    lines += [
        ",".join(repr(float(v)) for v in row) for row in zip(*(rows[n] for n in names), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_selections_go_by_the_place_in_the_source():
    randomness = BernoulliSelection(
        dpcore.SecretRandomness.rehearsal(1).runtime("x").by_place, 1 << 62
    )
    for chosen in (randomness, Complement(randomness)):
        assert np.array_equal(counted_from(70, chosen).contains(5, 90), chosen.contains(75, 90))


def test_progress_is_told_of_bundles_and_never_in_a_sealed_run(client):
    report = []
    with Dask(client, progress=lambda *done: report.append(done)) as engine:
        made, rows = price_on_table(clipped()), table(400)
        answer_bytes(made, Cut(rows, (200, 200)), engine)
        assert {most for _, most in report} == {2}
        assert (2, 2) in report
    with (
        Dask(client, progress=lambda *done: report.append(done)) as engine,
        pytest.raises(RequestError, match="sealed run shows no progress"),
    ):
        price_on_table(clipped(), sealed=True).run(Cut(rows, (200, 200)), engine=engine)


def test_a_learner_that_reads_rows_is_refused_before_anything_is_opened(client, monkeypatch):
    monkeypatch.setattr(Dask, "load", lambda *args: pytest.fail("opened"))
    made = price_on_table(ProjectedMinNorm(features=Identity(), radius=0.5))
    with pytest.raises(RequestError, match=r"reads rows.*needs all records in one memory"):
        made.run(Cut(table(400), (400,)), engine=Dask(client))


@pytest.mark.slow
def test_dask_keeps_every_law_of_engines(client):
    found = engine_verdicts(lambda: Dask(client), disturb=lambda engine: None)
    assert {verdict.law for verdict in found} == {*LAWS}
    assert all(verdict.outcome is Outcome.PASSED for verdict in found), found


def test_a_column_with_a_zone_is_refused_by_name_before_anything_is_asked():
    came = Dates(0, 100, zone="Europe/Berlin")
    for columns in ({"came": came}, {"came": Binned.by_month(came)}):
        asked = SimpleNamespace(domain=Domain(columns=columns))
        with pytest.raises(RequestError, match="column 'came' is read in Europe/Berlin"):
            Dask(client=None).accept(lambda: asked)  # noqa: B023  # asked at once
    Dask(client=None).accept(lambda: SimpleNamespace(domain=Domain(columns={"x": Dates(0, 9)})))
