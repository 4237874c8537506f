"""The hold-out: on disk where records are in blocks, and the same in any batches."""

import gc
import math

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.metrics.means import MeanSquaredError
from dpcore.metrics.paid import PaidEvaluation
from dpcore.models.features.identity import Identity
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.records import EngineRecords
from dpcore.private.evaluation import evaluate
from dpcore.private.hold_out import SpooledHoldOut
from dpcore.private.runtime import open_records
from dpcore.source import Part, Source
from dpcore_linear import SufficientStatistics

from builders import price_learner
from doubles import domain, table

MSE = {"mse": MeanSquaredError()}


@attrs.frozen(eq=False)
class Rows(Part):
    columns: dict

    def batches(self):
        yield self.columns


@attrs.frozen(eq=False)
class Cut(Source):
    columns: dict
    size: int

    def parts(self):
        count = len(self.columns["y"])
        return tuple(
            Rows({name: column[at : at + self.size] for name, column in self.columns.items()})
            for at in range(0, count, self.size)
        )


def test_a_spooled_hold_out_gives_its_batches_again_and_leaves_nothing(tmp_path):
    rows = {**table(30), "who": np.array([None, "x", 3.5] * 10, dtype=object)}
    covered = SpooledHoldOut(domain(30), tmp_path)
    covered.add({name: column[:20] for name, column in rows.items()}, 20)
    covered.add({name: column[:0] for name, column in rows.items()}, 0)
    covered.add({name: column[20:] for name, column in rows.items()}, 10)
    assert len(covered) == 30
    assert [len(truth) for _, truth in covered.batches()] == [20, 10]
    again = covered.table()
    assert all(again[name].tolist() == column.tolist() for name, column in rows.items())
    assert np.array_equal(covered.labels(), rows["y"])
    assert repr(covered) == "HoldOut(private)"
    spool = covered._spool
    del covered
    gc.collect()
    assert spool._file.closed
    assert not [*tmp_path.iterdir()]


class Stream(Rows):
    """Read once."""

    readable_again = False
    read = ()

    def batches(self):
        assert not self.read, "it is read once"
        object.__setattr__(self, "read", (True,))
        yield self.columns


@attrs.frozen(eq=False)
class Once(Cut):
    def parts(self):
        return tuple(Stream(part.columns) for part in super().parts())


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_the_hold_out_of_a_stream_is_that_of_the_table_and_nothing_is_a_table(adjacency):
    made = price_learner(
        SufficientStatistics(features=Identity()),
        domain=domain(400 if adjacency is REPLACE_ONE else None, limit=None),
        adjacency=adjacency,
        holdout=0.2,
        epsilon=2.0,
    )
    rows = table(400)
    with LocalEngine(threads=1) as engine:
        whole, once = (
            open_records(made.schedule, given, dpcore.SecretRandomness.rehearsal(5), engine)
            for given in (rows, Once(rows, 90))
        )
        assert isinstance(once.train, EngineRecords)
        assert len(once.train) == len(whole.train)
        for name in ("a", "y"):
            assert sorted(once.holdout[name]) == sorted(whole.holdout[name])
        assert sorted(once.holdout_labels) == sorted(whole.holdout_labels)


@pytest.mark.parametrize("size", [7, 400])
def test_what_is_paid_for_has_the_same_bits_from_a_source_as_from_a_table(size):
    made = price_learner(
        SufficientStatistics(features=Identity()),
        domain=domain(400),
        randomness=dpcore.PublicRandomness(7),
        holdout=0.2,
        evaluation=PaidEvaluation(metrics=MSE, epsilon=0.3),
        epsilon=2.0,
    )
    rows = table(400)
    whole = made.run(rows, secret=dpcore.SecretRandomness.rehearsal(5))
    with LocalEngine(threads=1) as engine:
        cut = made.run(Cut(rows, size), secret=dpcore.SecretRandomness.rehearsal(5), engine=engine)
        bits = [[a.value.tobytes() for a in o.answers["evaluation"]] for o in (whole, cut)]
        assert bits[0] == bits[1]
        report = [evaluate(made, outcome, MSE)["release"]["mse"] for outcome in (whole, cut)]
    for name in ("private", "constant", "without noise"):
        assert math.isclose(report[0][name], report[1][name], rel_tol=1e-6)
