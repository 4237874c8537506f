"""Statistics by group: every relation by brute force, and what a group's own records would say."""

import itertools
import math

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_attacks.attacks.setting import Case
from dpcore_models.solvers.banded import square_root_bands
from dpcore_statistics.by_group import inside
from dpcore_statistics.count import Count, Share
from dpcore_statistics.distinct import Distinct, DistinctBound
from dpcore_statistics.histogram import Histogram, Top
from dpcore_statistics.mean import Mean
from dpcore_statistics.running import Running
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance
from dpcore_statistics.workload import Workload

from builders import price_learner
from statistics_checks import Lab, band, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)

X = (0.0, 5.0, 10.0, None)
ROWS = list(itertools.product(X, "abc"))
ROOT = math.sqrt(0.5)


def facts(records=None, people=None, groups="abc"):
    """x in [0, 10] or missing, groups a to c, and a label that cuts a range in two."""
    columns = {"x": Range(0, 10, missing=True), "g": Categories(tuple(groups)), "z": Range(0, 2)}
    return Domain(columns=columns, exact=records, people=people)


def count_of(x, w):
    return [1.0]


def counted_of(x, w):
    return [0.0 if x is None or x < 5 else 1.0]


def sum_of(x, w):
    return [0.0 if x is None else x / 10]


def mean_of(x, w):
    return [0.0, 0.0] if x is None else [w, (x - 5) / 5]


def moments_of(x, w):
    t = None if x is None else (x - 5) / 5
    return [0.0] * 3 if t is None else [w, t, 1 - t * t]


def cells_of(x, w):
    return [float(x == 0), float(x is not None and x >= 5)]


def fraction_of(x, w):
    return [float(x is not None and x >= 5), float(x is None or x < 5)]


def weight(relation, distance):
    """Of a count within a group, whose number of records is private whatever the relation."""
    return 1.0 if relation is REPLACE_ONE and distance == "l2" else ROOT


BY = {"by": ("g",)}
LEARNERS = {
    "count": (Count(**BY), count_of),
    "count where": (Count(where={"x": {"from": 5}}, **BY), counted_of),
    "sum": (Total(column="x", **BY), sum_of),
    "mean": (Mean(column="x", **BY), mean_of),
    "variance": (Variance(column="x", **BY), moments_of),
    "histogram": (Histogram(column="x", edges=(0, 5, 10), **BY), cells_of),
    "share": (Share(meets={"x": {"from": 5}}, **BY), fraction_of),
    "top": (Top(column="x", edges=(0, 5, 10), k=1, **BY), cells_of),
}


def placed(definition, groups, w):
    """What each record of the universe adds by the definition: in its own group's block only."""
    rows = []
    for x, g in ROWS:
        block = np.zeros((groups, len(definition(0.0, w))))
        if "abc".index(g) < groups:
            block["abc".index(g)] = definition(x, w)
        rows.append(block.ravel())
    return np.array(rows)


def persons(rows, records):
    """What every person with at most so many records adds."""
    sums = [np.zeros(rows.shape[1])]
    for size in range(1, records + 1):
        chosen = itertools.combinations_with_replacement(range(len(rows)), size)
        sums += [rows[[*indices]].sum(axis=0) for indices in chosen]
    return np.unique(np.round(np.array(sums), 12), axis=0)


def diameter(first, second, norm):
    order = {"l1": 1, "l2": 2}[norm]
    return max(np.linalg.norm(second - row, ord=order, axis=1).max() for row in first)


def claim_of(learner, domain, adjacency, distance):
    case = Case(
        learner=attrs.evolve(learner, distance=distance),
        bound=StatisticBound(),
        domain=domain,
        adjacency=adjacency,
    )
    # A histogram has a claim in each norm.
    return next((query, claim) for query, claim in case.claims() if claim.distance == distance)


@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_record_moves_all_groups_by_what_is_claimed_and_no_more(name, relation, distance):
    learner, definition = LEARNERS[name]
    records = 2 if relation is REPLACE_ONE else None
    query, claim = claim_of(learner, facts(records), relation, distance)
    if name == "variance" and distance == "l1":
        definition = lambda x, w: [*moments_of(x, w)[:2], moments_of(x, w)[2] / 2]  # noqa: E731
    rows = placed(definition, 3, weight(relation, distance))
    nothing = np.zeros((1, rows.shape[1]))
    tail = diameter(rows, rows if relation is REPLACE_ONE else nothing, distance)
    assert str(query.distance) == distance
    assert tail <= claim.value
    assert tail == pytest.approx(claim.value, rel=1e-6)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", ["count", "count where", "sum", "mean", "histogram", "share"])
def test_a_persons_records_move_them_by_what_is_claimed(name, relation, distance, records):
    learner, definition = LEARNERS[name]
    people = People(column="id", records=records)
    domain = facts(people=people)
    _, claim = claim_of(learner, domain, people.relation(relation), distance)
    w = ROOT  # n is private where persons are the unit
    rows = placed(definition, 3, w)
    several = persons(rows, records)
    nothing = np.zeros((1, rows.shape[1]))
    tail = diameter(several, several if relation is REPLACE_ONE else nothing, distance)
    assert tail <= claim.value * (1 + 1e-12)
    assert tail == pytest.approx(claim.value, rel=1e-6)


def test_one_group_alone_is_left_or_entered():
    """With a single group a replaced record can go nowhere else, and may cease to count."""
    for relation, expected in ((ADD_REMOVE, 1.0), (REPLACE_ONE, 1.0)):
        records = 2 if relation is REPLACE_ONE else None
        learner = Count(by=("z",), edges={"z": (0, 1)})
        assert claim_of(learner, facts(records), relation, "l2")[1].value == expected


def sums(learner, domain, table):
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    records = project_table(domain, table)
    return query, learner.total_of(query, records, public).floats(), records, public


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_computed_is_what_is_defined(name, relation):
    learner, definition = LEARNERS[name]
    domain = facts(len(ROWS) if relation is REPLACE_ONE else None)
    columns = dict(zip("xg", map(list, zip(*ROWS, strict=True)), strict=True))
    asked, found, records, public = sums(learner, domain, {**columns, "z": [1.0] * len(ROWS)})
    rows = placed(definition, 3, weight(relation, "l2"))
    assert found.ravel() == pytest.approx(rows.sum(axis=0), abs=1e-9)
    by_row = np.asarray(learner.contributions(asked, records, public)).reshape(len(ROWS), -1)
    assert by_row == pytest.approx(rows, abs=1e-12)


def test_groups_of_several_columns_and_of_ranges():
    learner = Mean(column="x", by=("g", "z"), edges={"z": (0, 1, 2)})
    table = {"x": [0.0, 10.0, 10.0], "g": ["a", "a", "c"], "z": [0.5, 0.5, 1.0]}
    asked, found, _, _ = sums(learner, facts(), table)
    assert asked.shape == (6, 2)
    expected = np.zeros((6, 2))
    expected[0], expected[5] = (2 * ROOT, 0), (ROOT, 1)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Count(by=("g", "g")), "different columns"),
        (Count(by=("g",), edges={"z": (0, 1)}), "the columns under by"),
        (Count(bins={"z": 2}), "the columns under by"),
        (Mean(column="x", by=("z",)), "holds numbers: group it"),
        (Histogram(column="x", bins=4, by=("x",)), "statistics.table"),
        (Histogram(column="x", bins=4, by=("z",)), "statistics.table"),
        (Count(by=("q",)), "a declared column"),
        (Histogram(column="x", bins=1 << 15, by=("g",)), "groups"),
    ],
)
def test_groups_that_cannot_be_are_refused(learner, message):
    with pytest.raises(ParameterError, match=message):
        sums(learner, facts(), {"x": [], "g": [], "z": []})


GROUPED = {"of": ("x",), "edges": {"x": (0, 5, 10)}}
VALUES = [(x, g) for x in (0.0, 7.0) for g in "ab"]


def numbers(rows):
    """How many of the two cells occur in each group, by the definition."""
    return [len({x >= 5 for x, group in rows if group == g}) for g in "abc"]


@pytest.mark.parametrize("records", [0, 1, 2, 3])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_distinct_values_of_groups_move_by_what_is_claimed(relation, distance, records):
    """All tables of up to three records, and one record or person next to them."""
    people = People(column="id", records=records) if records else None
    domain = facts(4 if relation is REPLACE_ONE and not records else None, people)
    learner = Distinct(by=("g",), distance=distance, **GROUPED)
    adjacency = people.relation(relation) if people else relation
    case = Case(learner=learner, bound=DistinctBound(), domain=domain, adjacency=adjacency)
    ((_, claim),) = case.claims()
    multisets = itertools.combinations_with_replacement
    least, most = (0 if records else 1), max(1, records)
    several = [rows for size in range(least, most + 1) for rows in multisets(VALUES, size)]
    order, tail = {"l1": 1, "l2": 2}[distance], 0.0
    for base in (rows for size in range(3) for rows in multisets(VALUES, size)):
        found = np.array([numbers([*base, *rows]) for rows in several], dtype=float)
        others = found if relation is REPLACE_ONE else np.array([numbers(base)], dtype=float)
        tail = max(
            tail, max(np.linalg.norm(found - row, ord=order, axis=1).max() for row in others)
        )
    assert tail <= claim.value
    if records < 2:  # k records of a person may not all bring a value: two cells a group
        assert tail == pytest.approx(claim.value, rel=1e-9)


def test_distinct_values_are_those_of_the_definition():
    learner, domain = Distinct(by=("g",), **GROUPED), facts()
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    for rows in ([], [(0.0, "a")], [(0.0, "a"), (7.0, "a"), (7.0, "c"), (8.0, "c")]):
        columns = {"x": [x for x, _ in rows], "g": [g for _, g in rows], "z": [1.0] * len(rows)}
        found = learner.statistic(query, project_table(domain, columns), public, SECRET)
        assert found.tolist() == numbers(rows)


@pytest.mark.parametrize("exact", [None, 900])
def test_all_groups_are_covered_together_empty_ones_too(exact):
    rng = np.random.default_rng(3)
    x, g = 10 * rng.beta(1, 3, 900), rng.choice(["a", "b"], 900, p=[0.05, 0.95])
    domain = Domain(columns={"x": Range(0, 10), "g": Categories(("a", "b", "c"))}, exact=exact)
    relation = ADD_REMOVE if exact is None else REPLACE_ONE
    means = [x[g == group].mean() if group != "c" else 5.0 for group in "abc"]
    counts = [float((g == group).sum()) for group in "abc"]
    draws, hits = 100, np.zeros(2)
    priced = price_learner(
        Mean(column="x", by=("g",)),
        domain=domain,
        adjacency=relation,
        randomness=PublicRandomness(1),
        delta=1e-6,
    )
    for seed in range(draws):
        outcome = priced.run({"x": x, "g": g}, secret=SecretRandomness.rehearsal(seed))
        table = outcome.models["release"].tables[""]
        assert [*table][:2] == ["g", "statistic"]
        truth = np.ravel(list(zip(means, counts, strict=True)))
        inside = (table.low <= truth) & (truth <= table.high)
        hits += inside.reshape(3, 2).all(axis=0)
    assert hits.min() >= band(draws)[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 500, 20_000])
def test_bars_by_group_hold_together_on_skewed_data_with_ties(size):
    rng = np.random.default_rng(size)
    x = np.round(10 * rng.beta(0.5, 4, size), 1)
    g = rng.choice(["a", "b", "c"], size, p=[0.02, 0.28, 0.7])
    domain = Domain(columns={"x": Range(0, 10), "g": Categories(("a", "b", "c"))})
    groups = [x[g == group] for group in "abc"]
    truth = {
        "mean": [values.mean() if values.size else 5.0 for values in groups],
        "sum": [values.sum() for values in groups],
    }
    learners = {"mean": Mean(column="x", by=("g",)), "sum": Total(column="x", by=("g",))}
    draws = 400
    for name, learner in learners.items():
        priced = price_learner(
            learner, domain=domain, adjacency=ADD_REMOVE, randomness=PublicRandomness(1), delta=1e-6
        )
        hits = 0
        for seed in range(draws):
            outcome = priced.run({"x": x, "g": g}, secret=SecretRandomness.rehearsal(seed))
            table = outcome.models["release"].tables[""]
            step = len(table.estimate) // 3
            low, high = table.low[::step], table.high[::step]
            hits += bool(((low - 1e-9 <= truth[name]) & (truth[name] <= high + 1e-9)).all())
        assert hits >= band(draws)[0]


STRATEGIES = {
    "prefixes": Workload(column="x", edges=(0, 5, 10)),
    "ranges": Workload(column="x", edges=(0, 5, 10), ask_for="ranges"),
    "sums": Workload(column="x", edges=(0, 5, 10), matrix=((1.0, -0.5),)),
    "running": Running(column="x", edges=(0, 5, 10)),
    "running sums": Running(column="x", edges=(0, 5, 10), amount="x"),
}


def column_of(name, learner, domain, x):
    """What a record at x adds to the measured sums: a column of the public strategy, or of K."""
    if x is None:
        return np.zeros(2)
    cell = int(x >= 5)
    if not name.startswith("running"):
        public = inside(Public(domain=domain, randomness=PublicRandomness(1), mu=1.0))
        return learner.strategy(public).measured[:, cell]
    weights = [*square_root_bands(1 if learner.distance == "l1" else 2), 0]
    column = [weights[0], weights[1]] if cell == 0 else [0, weights[0]]
    return np.array(column, dtype=float) * (x / 10 if name.endswith("sums") else 1)


@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_moves_in_the_group_of_the_record_alone(name, relation, distance):
    learner = attrs.evolve(STRATEGIES[name], by=("g",), distance=distance)
    domain = facts(len(ROWS) if relation is REPLACE_ONE else None)
    _, claim = claim_of(learner, domain, relation, distance)
    columns = {x: column_of(name, learner, domain, x) for x in X}
    rows = np.zeros((len(ROWS), 3, len(columns[0.0])))
    for number, (x, g) in enumerate(ROWS):
        rows[number, "abc".index(g)] = columns[x]
    flat = rows.reshape(len(ROWS), -1)
    nothing = np.zeros((1, flat.shape[1]))
    tail = diameter(flat, flat if relation is REPLACE_ONE else nothing, distance)
    assert tail <= claim.value * (1 + 1e-12)
    # Sums are largest in the last cell, whose column of K is the shorter one.
    assert name == "running sums" or tail == pytest.approx(claim.value, rel=1e-6)
    table = {**dict(zip("xg", map(list, zip(*ROWS, strict=True)), strict=True)), "z": [1.0] * 12}
    asked, found, records, public = sums(learner, domain, table)
    assert asked.shape == rows.shape[1:]
    assert found == pytest.approx(rows.sum(axis=0), abs=1e-9)
    assert learner.contributions(asked, records, public) == pytest.approx(rows, abs=1e-12)


@pytest.mark.parametrize("exact", [None, 300])
@pytest.mark.parametrize("name", ["prefixes", "running"])
def test_bars_of_strategies_hold_together_over_all_groups(name, exact):
    rng = np.random.default_rng(3)
    x, g = 10 * rng.beta(1, 3, 300), rng.choice(["a", "b"], 300, p=[0.05, 0.95])
    domain = Domain(columns={"x": Range(0, 10), "g": Categories(("a", "b", "c"))}, exact=exact)
    relation = ADD_REMOVE if exact is None else REPLACE_ONE
    learner = attrs.evolve(STRATEGIES[name], by=("g",))
    lab = Lab.of(plan(learner, Gaussian(), domain, relation), {"x": x, "g": g})
    cells = [np.histogram(x[g == group], (0, 5, 10))[0] for group in "abc"]
    truths = {"": np.cumsum(cells, axis=1), "periods": cells, "totals": np.cumsum(cells, axis=1)}
    draws, count = 60, 0
    for seed in range(draws):
        tables = lab.published(seed).tables
        assert {*tables} == ({""} if name == "prefixes" else {"periods", "totals"})
        assert all([*table][:2] == ["g", "x"] for table in tables.values())
        count += all(
            ((table.low <= np.ravel(truths[key])) & (np.ravel(truths[key]) <= table.high)).all()
            for key, table in tables.items()
        )
    assert count >= band(draws)[0]
