"""The local engine: the same bits however records are cut, and nothing left behind."""

import threading
import time
from functools import partial

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.encoding.blocks import in_memory
from dpcore.encoding.cells import cells
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, ReleaseError, SourceError, SpoolError
from dpcore.exact import Exact
from dpcore.metrics.means import MeanAbsoluteError
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import Task
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.selection import BernoulliSelection, Complement
from dpcore.private.engines.spool import Spool
from dpcore.private.evaluation import evaluate
from dpcore.source import Part, Source, TablePart
from dpcore_linear import ChosenRidge, ClippedGradient, StagedGradient, SufficientStatistics
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.learners.best_of import BestOf
from dpcore_random_features.ball_ridge import BallRidgeLearner
from dpcore_random_features.huber_ridge import HuberRidgeLearner
from dpcore_random_features.ridge import Ridge

from builders import answer_bytes, price_on_table
from doubles import domain, table


@attrs.frozen(eq=False)
class Batches(Part):
    """A table in batches of given lengths."""

    table: dict
    lengths: tuple

    def batches(self):
        at = 0
        for length in self.lengths:
            yield {name: column[at : at + length] for name, column in self.table.items()}
            at += length


@attrs.frozen(eq=False)
class Cut(Source):
    """A table in parts of batches."""

    table: dict
    parted: tuple

    def parts(self):
        found, at = [], 0
        for lengths in self.parted:
            rows = sum(lengths)
            own = {name: column[at : at + rows] for name, column in self.table.items()}
            found.append(Batches(own, tuple(lengths)))
            at += rows
        return tuple(found)


CUTS = [
    ((400,),),
    ((1,) * 10, (390,)),
    ((100, 7, 0, 193), (50,), (), (50,)),
    tuple((1,) for _ in range(400)),
]


@pytest.mark.parametrize("cut", CUTS)
def test_however_a_source_is_cut_a_run_releases_the_same_bits(cut):
    made, rows = price_on_table(clipped()), table(400)
    expected = answer_bytes(made, rows)
    for threads, block in [(1, 4096), (2, 64), (7, 33)]:
        with LocalEngine(threads=threads, rows=block) as engine:
            assert answer_bytes(made, Cut(rows, cut), engine) == expected


def test_stages_that_follow_one_another_release_the_same_bits():
    made, rows = price_on_table(StagedGradient(), records=60, epsilon=0.3), table(60)
    with LocalEngine(threads=2, rows=40) as engine:
        assert answer_bytes(made, Cut(rows, ((13, 47),)), engine) == answer_bytes(made, rows)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_same_records_are_held_out_of_a_table_and_of_a_source(adjacency):
    learner = clipped()
    made = price_on_table(learner, adjacency=adjacency, holdout=0.3)
    rows, secret = table(400), dpcore.SecretRandomness.rehearsal(5)
    assert answer_bytes(made, Cut(rows, CUTS[2])) == answer_bytes(made, rows)
    with LocalEngine() as engine:
        whole = made.run(rows, secret=secret)
        parted = made.run(
            Cut(rows, CUTS[2]), secret=dpcore.SecretRandomness.rehearsal(5), engine=engine
        )
        hold_out = [sorted(outcome.opened.holdout_labels) for outcome in (whole, parted)]
        assert hold_out[0] == hold_out[1]
        assert len(whole.opened.train) == len(parted.opened.train)
        errors = [
            evaluate(made, o, {"mae": MeanAbsoluteError()})["release"]["mae"]
            for o in (whole, parted)
        ]
        assert errors[1] == pytest.approx(errors[0], abs=1e-6)


@pytest.mark.parametrize(
    ("learner", "mechanism"),
    [
        (SufficientStatistics(features=Identity()), Gaussian()),
        (ChosenRidge(features=Identity()), {"statistics": Gaussian(), "choice": PermuteAndFlip()}),
        (
            BestOf(candidates=(ClippedGradient(features=Identity(), clip=0.3, steps=2),
                               SufficientStatistics(features=Identity()))),
            {"fits": Gaussian(), "choice": PermuteAndFlip()},
        ),
        (BallRidgeLearner(features=CosSin(count=3), total_regularization=9.0, radius=0.2),
         Gaussian()),
        (HuberRidgeLearner(features=CosSin(count=3), total_regularization=9.0, clip=0.2),
         Gaussian()),
        (OutputPerturbation(features=Identity(), total_regularization=50.0, clip=0.5), Gaussian()),
    ],
    ids=["sufficient_statistics", "chosen_ridge", "best_of", "ball", "huber", "output"],
)  # fmt: skip
def test_products_losses_and_choices_are_the_same_bits_in_blocks(learner, mechanism):
    made, rows = price_on_table(learner, mechanism=mechanism, adjacency=ADD_REMOVE), table(400)
    expected = answer_bytes(made, rows)
    for threads, block in [(1, 4096), (3, 51)]:
        with LocalEngine(threads=threads, rows=block) as engine:
            assert answer_bytes(made, Cut(rows, CUTS[2]), engine) == expected


def test_ridge_is_the_same_bits_in_blocks():
    made, rows = price_on_table(Ridge(features=CosSin(count=3), regularization=0.3)), table(400)
    expected = answer_bytes(made, rows)
    for threads, block in [(1, 4096), (2, 64), (7, 33)]:
        with LocalEngine(threads=threads, rows=block) as engine:
            assert answer_bytes(made, Cut(rows, CUTS[2]), engine) == expected
            assert repr(engine._by_split).count("_Blocks") == 1  # the source never became a table


def clipped():
    return ClippedGradient(features=Identity(), clip=0.3, steps=4)


def test_what_reads_rows_gets_the_whole_source_as_a_table():
    rows = table(400)
    again = in_memory(Cut(rows, CUTS[2]), domain(400))
    assert all(np.array_equal(cells(again[name]), rows[name]) for name in rows)
    assert all(cells(again[name]).dtype == rows[name].dtype for name in rows)
    mixed = Cut({"a": [1, "x", True], "b": [None, 2.5, "3"], "y": [0, 1, 2]}, ((1, 1), (1,)))
    assert cells(in_memory(mixed, domain(3))["a"]).tolist() == [1, "x", True]


def test_a_record_that_does_not_fit_is_named_by_its_place_in_its_part():
    rows = table(400)
    rows["a"][205] = 7.0
    for cut, where in [(CUTS[0], "record 206: needs"), (CUTS[1], "record 196 of part 2: needs")]:
        with pytest.raises(SourceError, match=f"column 'a', {where}"), LocalEngine() as engine:
            answer_bytes(price_on_table(clipped()), Cut(rows, cut), engine)


def test_another_number_of_records_is_refused():
    for count, cut in [(399, ((399,),)), (401, ((100,), (301,)))]:
        with pytest.raises(SourceError, match=f"400 records are declared, the source has {count}"):
            answer_bytes(price_on_table(clipped()), Cut(table(count), cut))
    with pytest.raises(SourceError, match="more than the 400 records that are declared"):
        answer_bytes(price_on_table(clipped()), Cut(table(500), ((300, 101, 99),)))


def ones(block):
    return (Exact.of([len(block)], 0),)


def test_an_engine_counts_what_is_selected_and_keeps_no_more():
    words = dpcore.SecretRandomness.rehearsal(1).runtime("x").by_place
    half = BernoulliSelection(words, 1 << 62)
    kept = half.contains(0, 400)
    other = BernoulliSelection(dpcore.SecretRandomness.rehearsal(2).runtime("x").by_place, 1 << 62)
    both = int((~kept & other.contains(0, 400)).sum())
    zero = (Exact.zeros((1,), 0),)
    with LocalEngine(rows=64, threads=2) as engine:
        counts = engine.load(Cut(table(400), CUTS[2]).parts(), partial(project_table, domain()))
        assert counts == (300, 50, 0, 50)
        for fields, count in [
            ({}, 400),
            ({"split": half}, kept.sum()),
            ({"sample": half}, kept.sum()),
            ({"split": Complement(half), "sample": other}, both),
        ]:
            (total,) = engine.total(Task(part=ones, zero=zero, **fields))
            assert total.integers() == [count]
        with pytest.raises(ContractError, match="one run"):
            engine.load((), partial(project_table, domain()))
    with pytest.raises(ContractError, match="no records"):
        engine.total(Task(part=ones, zero=zero))


def test_a_spool_has_no_name_while_it_lasts_and_leaves_nothing(tmp_path):
    folder = tmp_path / "spool"
    seen = []

    @attrs.frozen(eq=False)
    class Looking(Part):
        def batches(self):
            yield table(400)
            seen.append(sorted(folder.iterdir()))

    @attrs.frozen(eq=False)
    class Failing(Looking):
        def batches(self):
            yield from super().batches()
            raise SourceError("the disk was pulled")

    @attrs.frozen(eq=False)
    class Of(Source):
        part: Part

        def parts(self):
            return (self.part,)

    with LocalEngine(spool=folder) as engine:
        answer_bytes(price_on_table(clipped()), Of(Looking()), engine)
    with pytest.raises(SourceError, match="pulled"), LocalEngine(spool=folder) as engine:
        answer_bytes(price_on_table(clipped()), Of(Failing()), engine)
    assert seen == [[], []]
    assert not sorted(folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_takes_no_files_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be spooled"):
        Spool(tmp_path / "file" / "folder")


def test_what_is_derived_comes_back_with_the_same_bits():
    made = []

    def part(block):
        def rows():
            made.append(threading.get_ident())
            return (np.rint(block.features * 2**20), block.features, 7, -0.0 * block.labels)

        integers, floats, seven, zeros = block.derived(("key",), rows)
        assert seven == 7
        assert floats.tobytes() == block.features.tobytes()
        assert integers.dtype == np.float64
        assert integers.tobytes() == np.rint(block.features * 2**20).tobytes()
        assert np.signbit(zeros).all() == np.signbit(-0.0 * block.labels).all()
        return ones(block)

    with LocalEngine(rows=50, threads=1) as engine:
        engine.load([TablePart(table(400))], partial(project_table, domain()))
        for _ in range(3):
            engine.total(Task(part=part, zero=(Exact.zeros((1,), 0),)))
    assert len(made) == 8


def test_a_failure_on_a_thread_ends_the_total():
    calls = []

    def part(block):
        calls.append(len(block))
        if len(calls) == 2:
            raise KeyError("broken")
        time.sleep(0.01)
        return ones(block)

    with LocalEngine(rows=1, threads=2) as engine:
        engine.load([TablePart(table(400))], partial(project_table, domain()))
        with pytest.raises(ReleaseError, match=r"failed \(KeyError\)"):
            engine.total(Task(part=part, zero=(Exact.zeros((1,), 0),)))
    assert len(calls) < 400


def test_records_behind_an_engine_are_not_seen_at_once():
    with LocalEngine() as engine:
        outcome = price_on_table(clipped()).run(Cut(table(400), CUTS[0]), engine=engine)
        assert repr(outcome.opened.train) == "EngineRecords(private)"
        with pytest.raises(ContractError, match=r"Reads\.ROWS"):
            _ = outcome.opened.train.features
