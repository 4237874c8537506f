"""Marginals and workloads: weights, strategies with their certificates, and joint intervals."""

import itertools
import math

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.strategies import optimum, prefixes, ranges, strategy
from dpcore_statistics.tables import Table
from dpcore_statistics.workload import Workload

from statistics_checks import Lab, band, domain, hits, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
GROUPS = Categories(("a", "b", "c"))
MARGINS = {"g": ("g",), "x": ("x",), "both": ("x", "g")}


def facts(records=None):
    return domain(records, g=GROUPS)


def data(size, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(0, 10, size), "g": rng.choice(["a", "b", "c"], size)}


def claim_of(learner, adjacency, mu=1.0):
    public = Public(
        domain=facts(2 if adjacency is REPLACE_ONE else None), randomness=PublicRandomness(1), mu=mu
    )
    (query,) = learner.queries(public)
    return StatisticBound().sensitivity(query, learner, public, adjacency), query, public


def single(learner, query, public, x, g):
    records = project_table(public.domain, {"x": [x], "g": [g]})
    return np.asarray(learner.statistic(query, records, public, SECRET))


CASES = [
    Table(marginals=MARGINS, bins={"x": 4}),
    Table(marginals=MARGINS, bins={"x": 4}, weights={"g": 1.0, "x": 2.0, "both": 0.5}),
    Table(marginals={"g": ("g",)}),
    Workload(column="x", bins=5, ask_for="prefixes"),
    Workload(column="x", bins=5, ask_for="ranges"),
    Workload(column="x", bins=40, ask_for="prefixes"),  # in l1 a tree
    Workload(column="x", bins=20, ask_for="ranges"),
    Workload(column="x", bins=5, ask_for="prefixes", bars="single"),
    Workload(column="g", ask_for="cells"),
    Workload(column="g", matrix=((1.0, -1.0, 0.0), (0.5, 0.5, 1.0))),
]


@pytest.mark.parametrize("learner", CASES)
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_a_claim_is_the_largest_movement_of_all_records(learner, norm, adjacency):
    claim, query, public = claim_of(learner, adjacency, 1.0 if norm == "l2" else None)
    universe = [(x, g) for x in (0.0, 1.0, 3.3, 5.0, 7.0, 10.0) for g in "abc"]
    rows = [single(learner, query, public, *one) for one in universe]
    order = {"l1": 1, "l2": 2}[norm]
    if adjacency is ADD_REMOVE:
        found = max(np.linalg.norm(row, ord=order) for row in rows)
    else:
        found = max(np.linalg.norm(a - b, ord=order) for a, b in itertools.product(rows, rows))
    assert found <= claim.value
    assert found == pytest.approx(claim.value, rel=3e-6)  # attained


def test_tables_are_counts_of_their_cells():
    learner = Table(marginals=MARGINS, bins={"x": 4})
    table = data(300)
    priced = plan(learner, Gaussian(noise_multiplier=1e-3), facts(), epsilon=1e9)
    published = Lab.of(priced, table).published(1)
    both = published.tables["both"]
    joint = np.histogram2d(
        table["x"], np.searchsorted(["a", "b", "c"], table["g"]), bins=[np.arange(0, 11, 2.5), 3]
    )[0]
    assert both.estimate == pytest.approx(joint.ravel(), abs=0.05)
    assert list(both)[:2] == ["x", "g"]
    assert both["g"][:3] == ("a", "b", "c")
    assert published.tables["x"].estimate == pytest.approx(joint.sum(axis=1), abs=0.05)


def test_default_weights_have_the_least_total_squared_error():
    learner = Table(marginals={"g": ("g",), "both": ("x", "g")}, bins={"x": 27})
    _, _, public = claim_of(learner, ADD_REMOVE)
    first, second = learner.tables_of(public)
    assert second.weight / first.weight == pytest.approx((81 / 3) ** 0.25, rel=1e-6)

    def error(ratio):
        return (1 + ratio**2) * (3 + 81 / ratio**2)

    best = error(second.weight / first.weight)
    assert all(best <= error(r) + 1e-4 for r in np.linspace(0.5, 5, 200))


@pytest.mark.parametrize(("cells", "least"), [(4, 1.72), (16, 2.85), (64, 4.41)])
def test_prefix_strategies_are_as_good_as_the_published_optimum_and_certified(cells, least):
    found = strategy(tuple(map(tuple, prefixes(cells).tolist())))
    assert found.total / cells == pytest.approx(least, rel=4e-3)
    assert found.least <= found.total <= found.least * 1.0011
    assert found.longest_column <= 1
    assert np.allclose(found.answers @ found.measured, prefixes(cells))


@pytest.mark.parametrize(("cells", "least"), [(4, 1.64), (16, 3.04)])
def test_range_strategies_are_as_good_as_the_published_optimum(cells, least):
    found = strategy(tuple(map(tuple, ranges(cells).tolist())))
    assert found.total / len(ranges(cells)) == pytest.approx(least, rel=4e-3)


def test_a_constant_root_is_optimal_in_closed_form():
    """Identity and total: (tr M^(1/2))^2 / B."""
    cells = 16
    gram = np.eye(cells) + np.ones((cells, cells))
    _, dual = optimum(gram)
    closed = (math.sqrt(cells + 1) + cells - 1) ** 2 / cells
    assert dual == pytest.approx(closed, rel=1e-9)
    assert closed / (cells + 1) == pytest.approx(1.34, abs=0.005)


def test_many_prefixes_take_the_root_of_the_triangle():
    cells = 300
    found = strategy(tuple(map(tuple, prefixes(cells).tolist())))
    root = found.measured / found.measured[0, 0]
    assert np.allclose(root @ root, prefixes(cells), atol=1e-5)
    assert found.longest_column <= 1


@pytest.mark.parametrize("size", [10, 100, 1000])
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
@pytest.mark.parametrize("kind", ["prefixes", "cells"])
def test_answers_are_covered_together(size, mechanism, kind):
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    learner = Workload(column="x", bins=6, ask_for=kind)
    priced = plan(learner, mechanism, facts(), delta=delta)
    counts = np.histogram(data(size)["x"], bins=6, range=(0, 10))[0]
    truth = np.cumsum(counts) if kind == "prefixes" else [*counts, counts.sum()]
    (found,) = hits(Lab.of(priced, data(size)), truth, 150, joint=True)
    assert found >= band(150)[0]


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_all_tables_are_covered_together(size):
    learner, table, draws = Table(marginals=MARGINS, bins={"x": 4}), data(size), 150
    lab = Lab.of(plan(learner, Gaussian(), facts()), table)
    codes = np.searchsorted(["a", "b", "c"], table["g"])
    truth = np.histogram2d(table["x"], codes, bins=[np.arange(0, 11, 2.5), np.arange(4) - 0.5])[0]
    sums = {"both": truth.ravel(), "x": truth.sum(axis=1), "g": truth.sum(axis=0)}
    found = 0
    for seed in range(draws):
        tables = lab.published(seed).tables
        found += all(((tables[n].low <= sums[n]) & (sums[n] <= tables[n].high)).all() for n in sums)
    assert found >= band(draws)[0]


@pytest.mark.parametrize(
    ("learner", "caught"),
    [
        (Table(marginals={}), "1 to"),
        (Table(marginals={"t": ()}), "different columns"),
        (Table(marginals={"t": ("g", "g")}), "different columns"),
        (Table(marginals={"t": ("g",), "u": ("g",)}), "each table once"),
        (Table(marginals={"t": ("x",)}), "edges"),
        (Table(marginals={"t": ("g",)}, bins={"x": 3}), "what its tables use"),
        (Table(marginals={"t": ("x", "g")}, bins={"x": 1 << 20}), "1 to"),
        (Table(marginals={"t": ("g",)}, weights={"t": 0.0}), "finite weights"),
        (Table(marginals={"t": ("g",)}, weights={"t": math.nan}), "finite weights"),
        (Table(marginals={"t": ("g",)}, weights={"u": 1.0}), "what its tables use"),
        (Workload(column="g", matrix=((1.0, 2.0),)), "rows of 3 finite weights"),
        (Workload(column="g", matrix=((0.0, 0.0, 0.0),)), "not all 0"),
        (Workload(column="g", matrix=((math.inf, 0.0, 0.0),)), "finite weights"),
        (Workload(column="x", bins=200, ask_for="ranges"), "at most"),
        (Workload(column="g", ask_for="sums"), "prefixes, ranges or cells"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(learner, caught):
    with pytest.raises(ParameterError, match=caught):
        claim_of(learner, ADD_REMOVE)
