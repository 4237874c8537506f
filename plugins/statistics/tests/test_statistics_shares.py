"""Shares, quotients of sums and the most frequent cells: claims by brute force, intervals by
draws.
"""

import itertools
import math

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
)
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_statistics.count import Share
from dpcore_statistics.histogram import Histogram, Top
from dpcore_statistics.pairs.ratio import Ratio
from dpcore_statistics.statistic import StatisticBound

from statistics_checks import Lab, band, plan

X, Y, G = (-4.0, 0.0, 2.0, None), (1.0, 5.0), "ab"
ROWS = list(itertools.product(X, Y, G))
WHERE = {"g": ["a"]}
ROOT = math.sqrt(2)


def facts(records=None, people=None, missing=True):
    columns = {
        "x": Range(-4, 2, missing=missing),
        "y": Range(1, 5),
        "g": Categories(("a", "b")),
    }
    return Domain(columns=columns, exact=records, people=people)


def cells_of(is_met, counts=True):
    return [float(is_met and counts), float(not is_met and counts)]


LEARNERS = {  # and what a record adds, by the definition
    "share": (Share(meets={"x": {"from": 0}}), lambda x, y, g: cells_of(x is not None and x >= 0)),
    "share where": (
        Share(meets={"x": {"from": 0}}, where=WHERE),
        lambda x, y, g: cells_of(x is not None and x >= 0, g == "a"),
    ),
    "ratio": (
        Ratio(column="x", over="y"),
        lambda x, y, g: [0.0, 0.0] if x is None else [x / 4, y / 5],
    ),
    "ratio where": (
        Ratio(column="x", over="y", where=WHERE),
        lambda x, y, g: [0.0, 0.0] if x is None or g == "b" else [x / 4, y / 5],
    ),
}


def case(learner, domain, adjacency):
    return Case(learner=learner, bound=StatisticBound(), domain=domain, adjacency=adjacency)


def claim_of(learner, domain, adjacency, distance):
    claims = case(attrs.evolve(learner, distance=distance), domain, adjacency).claims()
    return next(claim for _, claim in claims if claim.distance == distance).value


def diameter(first, second, distance):
    order = {"l1": 1, "l2": 2}[distance]
    return max(np.linalg.norm(second - row, ord=order, axis=1).max() for row in first)


def persons(rows, records):
    """What every person with at most so many records adds."""
    sums = [np.zeros(rows.shape[1])]
    for size in range(1, records + 1):
        chosen = itertools.combinations_with_replacement(range(len(rows)), size)
        sums += [rows[[*indices]].sum(axis=0) for indices in chosen]
    return np.unique(np.round(np.array(sums), 12), axis=0)


@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_claim_is_the_farthest_of_all_records(name, relation, distance, by):
    learner, definition = LEARNERS[name]
    rows = np.array([definition(*row) for row in ROWS])
    is_replaced, shape = relation is REPLACE_ONE, (len(ROWS), 2, 2)
    if by:
        blocks = np.zeros(shape)
        for number, (_, _, g) in enumerate(ROWS):
            blocks[number, G.index(g)] = rows[number]
        rows, learner = blocks.reshape(len(ROWS), -1), attrs.evolve(learner, by=("g",))
    elif name == "share" and is_replaced:
        rows = rows[:, :1]  # the number of all records is public
    domain = facts(len(ROWS) if is_replaced else None)
    claim = claim_of(learner, domain, relation, distance)
    tail = diameter(rows, rows if is_replaced else np.zeros((1, rows.shape[1])), distance)
    assert tail <= claim * (1 + 1e-12)
    # By group and with a condition on the group, no record is ever in the second one.
    is_attained = not (by and "where" in name)
    assert not is_attained or tail == pytest.approx(claim, rel=1e-6)
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    table = dict(zip("xyg", map(list, zip(*ROWS, strict=True)), strict=True))
    records = project_table(domain, table)
    sums = learner.total_of(query, records, public).floats()
    assert np.ravel(sums) == pytest.approx(rows.sum(axis=0), abs=1e-8)


@pytest.mark.parametrize("records", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_person_moves_it_by_what_is_claimed(name, relation, distance, records):
    learner, definition = LEARNERS[name]
    rows = np.unique(np.array([definition(*row) for row in ROWS]), axis=0)
    several, people = persons(rows, records), People(column="id", records=records)
    claim = claim_of(learner, facts(people=people), people.relation(relation), distance)
    others = several if relation is REPLACE_ONE else np.zeros((1, 2))
    tail = diameter(several, others, distance)
    assert tail <= claim * (1 + 1e-12)
    assert tail >= claim / 2.01


def test_a_ratio_without_absent_records_moves_by_the_diagonal_of_its_box():
    spans = (6 / 4, 4 / 5)
    learner, domain = Ratio(column="x", over="y"), facts(9, missing=False)
    assert claim_of(learner, domain, REPLACE_ONE, "l2") == pytest.approx(math.hypot(*spans), 1e-6)
    assert claim_of(learner, domain, REPLACE_ONE, "l1") == pytest.approx(sum(spans), 1e-6)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Ratio(column="y", over="x"), "not below 0"),
        (Ratio(column="y", over="y"), "another column"),
        (Ratio(column="x", over="g"), "range"),
        (Share(meets={}), "a condition"),
        (Share(meets={"q": [1]}), "declared"),
        (Top(column="x", edges=(-4, 0, 2), by=("x",)), "statistics.table"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(learner, message):
    with pytest.raises(ParameterError, match=message):
        plan(learner, Gaussian(), facts())


def test_what_cannot_be_is_refused_at_once():
    with pytest.raises(ParameterError):
        Top(column="x", k=0)
    with pytest.raises(ParameterError, match="clip: record"):
        Share(meets={"x": {"from": 0}}, clip="person")


MECHANISMS = [Gaussian(), Laplace(), DiscreteLaplace()]
SIZE = 400
RNG = np.random.default_rng(5)
TABLE = {
    "x": RNG.uniform(-4, 2, SIZE),
    "y": RNG.uniform(1, 5, SIZE),
    "g": RNG.choice(["a", "b"], SIZE, p=[0.1, 0.9]),
}


@pytest.mark.parametrize("by", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["share", "share where", "ratio"])
def test_bars_hold(name, mechanism, known, by):
    learner, _ = LEARNERS[name]
    if name == "ratio" and isinstance(mechanism, DiscreteLaplace):
        return  # sums of reals are no integers
    is_counted = TABLE["g"] == "a" if "where" in name else np.full(SIZE, True)
    if by and "where" in name:
        return
    groups = [TABLE["g"] == "a", TABLE["g"] == "b"] if by else [is_counted]
    truth = [
        TABLE["x"][rows].sum() / TABLE["y"][rows].sum()
        if name == "ratio"
        else (TABLE["x"][rows] >= 0).mean()
        for rows in groups
    ]
    domain = facts(SIZE if known else None, missing=False)
    relation = REPLACE_ONE if known else ADD_REMOVE
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    learner = attrs.evolve(learner, by=("g",) if by else ())
    lab = Lab.of(plan(learner, mechanism, domain, relation, 1.0, delta), TABLE)
    draws, count = 60, 0
    for seed in range(draws):
        (figures,) = lab.published(seed).tables.values()
        assert (figures.low <= figures.estimate).all()
        assert (figures.estimate <= figures.high).all()
        count += ((figures.low <= truth) & (truth <= figures.high)).all()
    assert count >= band(draws)[0]


NAMES = tuple("abcdefgh")


def lab_of_top(counts, k, known=False, epsilon=1.0, **fields):
    """The k largest of cells with these counts; all of them, as they stand, if k is None."""
    domain = Domain(
        columns={"c": Categories(NAMES), "g": Categories(("u", "v"))},
        exact=sum(counts) if known else None,
    )
    relation = REPLACE_ONE if known else ADD_REMOVE
    table = {"c": np.repeat(NAMES, counts), "g": np.resize(["u", "v"], sum(counts))}
    learner = Histogram(column="c", **fields) if k is None else Top(column="c", k=k, **fields)
    return Lab.of(plan(learner, Gaussian(), domain, relation, epsilon), table)


@pytest.mark.parametrize("proportions", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_the_largest_counts_are_published_with_bars_that_allow_for_the_choice(known, proportions):
    """All cells are alike: whichever is picked was lucky, and its interval must hold all the
    same.
    """
    counts, draws, k = [60] * len(NAMES), 100, 2
    lab = lab_of_top(counts, k, known, shares=proportions)
    truth, hits = (1 / len(NAMES) if proportions else 60.0), 0
    for seed in range(draws):
        (figures,) = lab.published(seed).tables.values()
        assert len(figures.estimate) == k
        assert figures.estimate[0] >= figures.estimate[1]
        assert (figures.low <= figures.estimate).all()
        hits += bool(((figures.low <= truth) & (truth <= figures.high)).all())
    assert hits >= band(draws)[0]


@pytest.mark.parametrize("counts", [(500, 400, 90, 80, 70, 60, 50, 40), (60,) * 8, (9,) * 7 + (0,)])
def test_what_is_certain_is_so(counts):
    """Of many draws fewer than the level allows say so of a cell that k others have more than."""
    draws, wrong, certain = 100, 0, 0
    ranked = sorted(counts, reverse=True)
    lab = lab_of_top(counts, 2, epsilon=0.5)
    for seed in range(draws):
        (figures,) = lab.published(seed).tables.values()
        marked = [c for c, sure in zip(figures["c"], figures["certain"], strict=True) if sure]
        certain += len(marked)
        wrong += any(counts[NAMES.index(c)] < ranked[1] for c in marked)
    assert draws - wrong >= band(draws)[0]
    assert (certain > draws) == (counts[0] == 500)


def test_a_top_is_rows_of_the_histogram_in_every_group():
    counts = (80, 5, 70, 3, 2, 1, 0, 60)
    lab = lab_of_top(counts, 3, by=("g",))
    (figures,) = lab.published(1).tables.values()
    assert figures["g"] == ("u",) * 3 + ("v",) * 3
    assert {*figures["c"]} == {"a", "c", "h"}
    (figures,) = lab_of_top(counts, 8).published(1).tables.values()
    (whole,) = lab_of_top(counts, None).published(1).tables.values()
    order = [NAMES.index(c) for c in figures["c"]]
    np.testing.assert_array_equal(figures.unbiased, whole.unbiased[order])
    np.testing.assert_array_equal(figures.high, whole.high[order])
    assert [*figures.unbiased] == sorted(whole.unbiased, reverse=True)


def test_a_session_asks_them_by_name():
    domain, budget = facts(SIZE, missing=False), PrivacyBudget(epsilon=9, delta=1e-6)
    with dpcore.Session(budget, domain, TABLE, replaying=HERE) as session:
        proportion = session.share({"x": {"from": 0}}, by="g", epsilon=1.0)
        ratio = session.ratio("x", "y", epsilon=1.0)
        (cell,) = session.top("g", 1, epsilon=1.0)["g"]
        assert proportion["g"] == ("a", "b")
        assert ratio["statistic"] == ("x per y",)
        assert cell == "b"
        assert len(session.releases) == 3


@pytest.mark.parametrize("known", [False, True])
def test_shares_of_a_sample_have_an_interval_about_the_population(known):
    domain = attrs.evolve(facts(SIZE if known else None, missing=False), sampled="independent")
    relation = REPLACE_ONE if known else ADD_REMOVE
    priced = plan(Share(meets={"x": {"from": 0}}), Gaussian(), domain, relation, 2.0)
    draws, hits, rng = 60, 0, np.random.default_rng(1)
    for seed in range(draws):
        table = {**TABLE, "x": rng.uniform(-4, 2, SIZE)}
        (figures,) = Lab.of(priced, table).published(seed).tables.values()
        intervals = figures.population
        hits += bool(intervals.low[0] <= 1 / 3 <= intervals.high[0])
    assert hits >= band(draws)[0]
