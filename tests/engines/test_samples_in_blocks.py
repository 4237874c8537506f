"""Samples of a query behind an engine: their sizes, their law, and records of the split only."""

import math
import threading
from typing import Any

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, OneShot, SecretRandomness, Sum, SummingLearner, SumQuery
from dpcore.private.engines.local import LocalEngine
from dpcore.private.release_context import wide_open
from dpcore.sampling import Poisson, WithoutReplacement
from dpcore.source import TableSource

from builders import price_learner
from doubles import Numbers, domain, table

COUNT = 2000


@attrs.frozen(kw_only=True)
class Twice(SummingLearner, OneShot):
    """Publishes, of two samples, how many records are in the lower and the upper half."""

    sampling: Any

    def queries(self, public):
        fields = {"shape": (2,), "distance": "l2", "sampling": self.sampling}
        return tuple(
            SumQuery(name=name, sum=Sum(clip=1.0, exponent=0), **fields) for name in ("one", "two")
        )

    def contributions(self, query, block, public):
        low = block.features[:, 0] < 0
        return np.column_stack([low, ~low])

    def assemble(self, answers, public):
        return Numbers(values=np.concatenate([answers["one"], answers["two"]]))


def counted(learner, adjacency, seed, engine=None, **fields):
    exact = COUNT if adjacency.replaces else None
    plan = price_learner(
        learner,
        domain=attrs.evolve(domain(), exact=exact, limit=None if exact else COUNT),
        adjacency=adjacency,
        **fields,
    )
    rows = table(COUNT)
    rows["a"] = np.linspace(-1, 1, COUNT)  # the order of the source says the half
    secret = SecretRandomness.rehearsal(seed)
    outcome = plan.run(TableSource(rows), secret=secret, release_through=wide_open, engine=engine)
    return outcome.model.values


@pytest.mark.parametrize("holdout", [0.0, 0.25])
def test_a_subset_has_its_size_in_any_blocks_and_every_ask_its_own(holdout):
    learner = Twice(sampling=WithoutReplacement(size=300, records=round(COUNT * (1 - holdout))))
    found = []
    for threads, rows in [(1, 4096), (3, 71)]:
        with LocalEngine(threads=threads, rows=rows) as engine:
            found.append(counted(learner, REPLACE_ONE, 1, engine, holdout=holdout))
    assert found[0].sum() == 600
    assert found[0][:2].sum() == 300
    assert np.array_equal(*found)
    assert not np.array_equal(found[0][:2], found[0][2:])
    # hypergeometric halves: 150 +- 8.3, at six standard deviations (fails once in 5e8)
    assert all(abs(value - 150) < 50 for value in found[0])


@pytest.mark.parametrize(("rows", "most"), [(4096, 0), (700, 3)])
def test_no_more_threads_start_than_there_are_blocks(monkeypatch, rows, most):
    started, real = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: started.append(self) or real(self))
    with LocalEngine(threads=8, rows=rows) as engine:
        counted(Twice(sampling=Poisson(probability=0.2)), ADD_REMOVE, 1, engine)
    workers = [thread for thread in started if "ThreadPool" in thread.name]
    assert len(workers) <= 2 * most  # of two queries, each over 2,000 records


def test_a_poisson_sample_takes_each_record_by_a_coin_of_its_own():
    learner = Twice(sampling=Poisson(probability=0.2))
    values = np.array([counted(learner, ADD_REMOVE, seed) for seed in range(8)])
    # 8 runs of two queries of 2000 trials: six standard errors of the mean
    assert abs(values.mean() - 200) < 6 * math.sqrt(1000 * 0.2 * 0.8 / values.size)
    assert values.std() > 6


def test_no_sample_takes_a_record_that_is_held_out():
    learner = Twice(sampling=WithoutReplacement(size=1500, records=1500))
    values = counted(learner, REPLACE_ONE, 1, holdout=0.25)
    assert values.sum() == 3000  # all of the learners' share, and nothing else
    assert np.array_equal(values[:2], values[2:])
