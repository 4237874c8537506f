"""Covariance and correlation: brute force over small universes, and intervals that hold."""

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
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
    Session,
)
from dpcore.domain.domain import People
from dpcore.encoding.tables import parse_table, project_table
from dpcore.errors import ParameterError
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_statistics.pairs.covariance import Covariance
from dpcore_statistics.statistic import StatisticBound

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
PLACES = (-1.0, -0.5, 0.0, 0.2, 0.7, 1.0)
ROOT = math.sqrt(0.5)


def facts(records=None, missing=False, people=None):
    return Domain(
        columns={
            "x": Range(0, 10, missing=missing),
            "y": Range(-3, 1),
            "g": Categories(("a", "b")),
        },
        exact=records,
        people=people,
    )


def contribution(x, y, w, b):
    """By the definition: w, x, b (1 - x^2), y, b (1 - y^2), xy, of positions."""
    return [*([w] if w else []), x, b * (1 - x * x), y, b * (1 - y * y), x * y]


def universe(w, b, missing):
    rows = [contribution(x, y, w, b) for x in PLACES for y in PLACES]
    return np.array([*rows, *([[0.0] * 6] if missing else [])])


def claim_of(learner, domain, adjacency):
    case = Case(learner=learner, bound=StatisticBound(), domain=domain, adjacency=adjacency)
    return next(claim.value for _, claim in case.claims())


def diameter(rows, norm):
    order = {"l1": 1, "l2": 2}[norm]
    return max(np.linalg.norm(rows - row, ord=order, axis=1).max() for row in rows)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_one_record_moves_the_sums_by_what_is_claimed(relation, distance, missing):
    records = 2 if relation is REPLACE_ONE else None
    learner = Covariance(column="x", other="y", distance=distance)
    free = {"l1": 1.5, "l2": 2.2360679}[distance]
    w = ROOT if records is None else free if missing else 0.0
    rows = universe(w, {"l1": 0.5, "l2": 1.0}[distance], missing)
    tail = np.linalg.norm(rows, ord={"l1": 1, "l2": 2}[distance], axis=1).max()
    if records:
        tail = diameter(rows, distance)
    claim = claim_of(learner, facts(records, missing), relation)
    assert tail <= claim
    assert claim == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_a_persons_records_move_them_by_what_is_claimed(relation, distance, records):
    people = People(column="id", records=records)
    learner = Covariance(column="x", other="y", distance=distance)
    corners = (-1.0, 0.0, 1.0)
    b = {"l1": 0.5, "l2": 1.0}[distance]
    rows = [contribution(x, y, ROOT, b) for x, y in itertools.product(corners, corners)]
    sums = [np.zeros(6)]
    for size in range(1, records + 1):
        chosen = itertools.combinations_with_replacement(rows, size)
        sums += [np.sum(several, axis=0) for several in chosen]
    several = np.unique(np.array(sums), axis=0)
    tail = np.linalg.norm(several, ord={"l1": 1, "l2": 2}[distance], axis=1).max()
    if relation is REPLACE_ONE:
        tail = diameter(several, distance)
    claim = claim_of(learner, facts(people=people), people.relation(relation))
    assert tail <= claim
    assert claim == pytest.approx(tail, rel=1e-6)


def test_in_l1_the_farthest_two_are_where_the_theorem_says():
    # d + e = 3: x from 1 to -1 and y from 1 to 0, say.
    first, second = (np.array(contribution(x, y, 0, 0.5)) for x, y in ((-1, 0.0), (1, 1)))
    assert np.abs(first - second).sum() == 4.5


def test_the_sums_are_those_of_the_definition_in_every_group():
    rng = np.random.default_rng(3)
    x, y, g = rng.uniform(0, 10, 60), rng.uniform(-3, 1, 60), rng.choice(["a", "b"], 60)
    for by in ((), ("g",)):
        learner = Covariance(column="x", other="y", by=by)
        public = Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0)
        (query,) = learner.queries(public)
        records = project_table(public.domain, parse_table(public.domain, {"x": x, "y": y, "g": g}))
        total = np.asarray(learner.statistic(query, records, public, SECRET))
        rows = np.array(
            [contribution((a - 5) / 5, (b + 1) / 2, ROOT, 1) for a, b in zip(x, y, strict=True)]
        )
        groups = [g == "a", g == "b"] if by else [np.full(60, True)]
        expected = np.array([rows[mask].sum(axis=0) for mask in groups])
        assert total.reshape(expected.shape) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("records", [None, 4000])
def test_covariance_and_correlation_come_near_and_lie_in_their_intervals(records, delta):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, 4000)
    y = np.clip(x / 4 - 2.5 + rng.normal(0, 0.3, 4000), -3, 1)
    table = {"x": x, "y": y, "g": ["a"] * 4000}
    with Session(
        PrivacyBudget(epsilon=2.0, delta=delta), facts(records), table, replaying=HERE
    ) as session:
        figures = session.covariance("x", "y", epsilon=2.0, level=0.999999)
    truths = [np.cov(x, y, bias=True)[0, 1], np.corrcoef(x, y)[0, 1]]
    for row, truth in enumerate(truths):
        assert figures.low[row] <= truth <= figures.high[row]
        assert figures.estimate[row] == pytest.approx(truth, rel=0.2)
    assert figures.high[0] - figures.low[0] < abs(truths[0])
    assert len(figures.estimate) == (3 if records is None else 2)


def test_of_few_records_the_intervals_say_nothing_and_are_no_error():
    table = {"x": [1.0, 2.0], "y": [0.0, 0.5], "g": ["a", "b"]}
    with Session(PrivacyBudget(epsilon=0.1), facts(), table, replaying=HERE) as session:
        figures = session.covariance("x", "y", epsilon=0.1)
    assert figures.low[1] <= figures.estimate[1] <= figures.high[1]
    assert (figures.low[1], figures.high[1]) == (-1, 1)


def test_one_column_twice_is_refused():
    learner = Covariance(column="x", other="x")
    with pytest.raises(ParameterError, match="two columns"):
        learner.queries(Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("distribution", ["normal", "laplace"])
@pytest.mark.parametrize("n", [50, 500, 20_000])
def test_intervals_hold_their_level_on_tied_and_skewed_data(n, distribution):
    """2,000 draws of the released sums; the truth is a function of the records."""
    rng = np.random.default_rng(n)
    x = np.where(rng.random(n) < 0.5, 0.0, np.minimum(rng.lognormal(0, 1, n), 10))
    y = np.clip(-2 + 0.1 * x + rng.choice([0, 0.5], n), -3, 1)
    public = Public(
        domain=facts(),
        randomness=PublicRandomness(1),
        mu=0.24 if distribution == "normal" else None,
    )
    learner = Covariance(column="x", other="y")
    (query,) = learner.queries(public)
    records = project_table(
        public.domain, parse_table(public.domain, {"x": x, "y": y, "g": np.array(["a"] * n)})
    )
    exact = np.asarray(learner.statistic(query, records, public, SECRET))
    truths = [np.cov(x, y, bias=True)[0, 1], np.corrcoef(x, y)[0, 1]]
    noise_distribution, draw = noise_of(distribution, query.sum.clip, rng)
    hits, draws = np.zeros(2), 2000
    for _ in range(draws):
        answer = attrs.evolve(
            example(query), value=exact + draw(6), noise_distribution=noise_distribution
        )
        (figures,) = learner.tables(answer, public).tables.values()
        hits += [figures.low[k] - 1e-9 <= truths[k] <= figures.high[k] + 1e-9 for k in (0, 1)]
    assert (hits / draws >= 0.9335).all(), hits / draws


def example(query):
    from dpcore import Answer
    from dpcore.claims.mechanisms.gaussian import Gaussian

    return Answer(
        query=query, number=1, value=np.zeros(6), mechanism=Gaussian(), noise_distribution=None
    )


def noise_of(distribution, clip, rng):
    from dpcore.interval import LaplaceDistribution, NormalDistribution

    if distribution == "normal":
        width = clip / 0.24
        return NormalDistribution(width=width), lambda size: rng.normal(0, width, size)
    scale = clip / 1.0
    return LaplaceDistribution(scale=scale), lambda size: rng.laplace(0, scale, size)
