"""Statistics of records that stand behind an engine: the same bits as of a table in memory."""

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, Categories, Domain, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.private.engines.local import LocalEngine
from dpcore.query import Reads
from dpcore.source import Part, Source
from dpcore_statistics.bounds import BoundedMean
from dpcore_statistics.count import Count
from dpcore_statistics.distinct import Distinct
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.mechanisms.sparse_vector import SparseVector
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.tables import Table
from dpcore_statistics.variance import Variance
from dpcore_statistics.workload import Workload

from builders import price_learner

FACTS = Domain(columns={"x": Range(0, 10, missing=True), "g": Categories(("a", "b", "c"))})
LEARNERS = [
    (Count(where={"g": ["a"]}), Gaussian()),
    (Mean(column="x"), Gaussian()),
    (Variance(column="x"), Gaussian()),
    (Histogram(column="x", bins=5), Gaussian()),
    (Table(marginals={"t": ("g", "x")}, bins={"x": 3}), Gaussian()),
    (Workload(column="x", bins=4), Gaussian()),
    (GroupBy(by=("g",), column="x"), Gaussian()),
    (Distinct(of=("g",)), Gaussian()),
    (Quantiles(column="x", points=21), Exponential()),
    (BoundedMean(column="x"), {"bound": SparseVector(), "mean": Gaussian()}),
]


@attrs.frozen(eq=False)
class Cut(Source, Part):
    """A table in pieces: a source of one part, of batches."""

    table: dict
    size: int

    def parts(self):
        return (self,)

    def batches(self):
        for at in range(0, len(self.table["x"]), self.size):
            yield {name: column[at : at + self.size] for name, column in self.table.items()}


def table(size=300):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, size)
    x[::9] = np.nan
    return {"x": x, "g": rng.choice(["a", "b"], size)}


@pytest.mark.parametrize(("learner", "mechanism"), LEARNERS)
def test_a_source_in_blocks_releases_the_same_bits_as_a_table(learner, mechanism):
    plan = price_learner(
        learner,
        domain=FACTS,
        adjacency=ADD_REMOVE,
        mechanism=mechanism,
        randomness=PublicRandomness(1),
        delta=1e-6,
    )
    assert plan.schedule.reads in (Reads.SUMS, Reads.FOLDS)
    first = plan.run(table(), secret=SecretRandomness.rehearsal(3))
    with LocalEngine() as engine:
        again = plan.run(Cut(table(), 37), secret=SecretRandomness.rehearsal(3), engine=engine)
    pairs = zip(first.answers["release"], again.answers["release"], strict=True)
    assert all(np.array_equal(a.value, b.value) for a, b in pairs)
