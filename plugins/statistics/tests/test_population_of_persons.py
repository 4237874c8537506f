"""Means whose draws are persons with several records: what they cost, cover and assume."""

import itertools
import math

import attrs
import numpy as np
import pytest
from population_laws import MU, covered
from scipy import stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Distance,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Session,
    Sum,
    SumQuery,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.pricing.unit_claims import PERSON_WISE, of_clipped_persons
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.learners.by_person import clipped_sums
from dpcore.learners.sums import turn_persons
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.mean import Mean
from dpcore_statistics.population.moments import mean_interval
from dpcore_statistics.population.persons import (
    PersonMoments,
    free_in_groups,
    person_vectors,
)
from dpcore_statistics.population.sampling import Sampling
from dpcore_statistics.statistic import StatisticBound

from statistics_checks import plan

W = math.sqrt(0.5)
BOTH = Mean(column="x", interval="both")


def facts(records=3, sampled="independent"):
    columns = {"x": Range(0, 10), "g": Categories(("a", "b"))}
    people = People(column="id", records=records)
    return Domain(columns=columns, sampled=sampled, people=people)


def public(domain, mu=1.0):
    return Public(domain=domain, randomness=PublicRandomness(1), mu=mu)


def grid(records, steps=9):
    """All sums (w j, sum of t) of a person with up to k values at some places."""
    places = np.linspace(-1, 1, steps)
    totals = [
        (W * j, sum(values))
        for j in range(records + 1)
        for values in itertools.combinations_with_replacement(places, j)
    ]
    return np.column_stack([np.array(totals), np.zeros((len(totals), 3))])


# What a person adds.


class Inflated(Mean):
    """A learner that turns every person's sum into a vector of any length."""

    def of_persons(self, query, sums, public):
        return 1e6 * (1 + sums)


@pytest.mark.parametrize("person", [0.5, 2.0, 50.0])
def test_what_becomes_of_a_sum_never_outgrows_the_claim(person):
    """However far a learner's vectors reach, and however far above k C the clip is."""
    learner, domain = Inflated(column="x"), facts(2)
    query = SumQuery(
        name="mean", shape=(5,), distance=Distance.L2, sum=Sum(clip=1.0, person=person)
    )
    for relation, factor in ((ADD_REMOVE, 1), (REPLACE_ONE, 2)):
        unit = domain.relation(relation)
        claim = of_clipped_persons(
            query, learner, unit,
            lambda step: StatisticBound().sensitivity(query, learner, public(domain), step),
        )  # fmt: skip
        assert claim.value >= factor * person
        assert PERSON_WISE in claim.premises
    sums = np.array([[1 << 30, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    vectors = clipped_sums(sums, query, lambda rows: learner.of_persons(query, rows, None))
    lengths = np.linalg.norm(np.ldexp(vectors.astype(float), query.sum.unit), axis=1)
    assert (lengths <= person).all()
    assert (lengths > 0.99 * person).all()
    cut = attrs.evolve(query, sum=attrs.evolve(query.sum, each=1.0))
    refused = of_clipped_persons(cut, learner, domain.relation(ADD_REMOVE), lambda step: claim)
    assert "turned into others" in refused.reason


def test_a_person_who_fails_adds_nothing_and_nobody_else_notices():
    class Failing(Mean):
        def of_persons(self, query, sums, public):
            if (sums[:, 0] > 2).any():
                raise RuntimeError
            return sums

    query = Mean.query(BOTH, public(facts()))
    sums = np.arange(20.0).reshape(4, 5) / 6
    vectors = turn_persons(Failing(column="x"), query, public(facts()), sums)
    assert np.array_equal(np.isnan(vectors[:, 0]), sums[:, 0] > 2)
    assert np.array_equal(vectors[sums[:, 0] <= 2], sums[sums[:, 0] <= 2])


@pytest.mark.parametrize("records", [1, 2, 3, 5])
def test_second_moments_of_persons_lengthen_nothing(records):
    """By all persons of a grid: no vector is longer than k records, so that none is clipped."""
    for weight in (W, 1e-3, 1.7320508):
        sums = grid(records)
        sums[:, 0] *= weight / W
        lengths = np.linalg.norm(person_vectors(sums, records, weight), axis=1)
        assert lengths.max() <= records * math.sqrt(1 + weight * weight) * (1 + 1e-12)


def in_groups(records, groups, steps=5):
    """Every person with up to k values at some places, each in any group: its sums by group."""
    places = [*itertools.product(range(groups), np.linspace(-1, 1, steps))]
    persons = [
        values
        for j in range(records + 1)
        for values in itertools.combinations_with_replacement(places, j)
    ]
    sums = np.zeros((len(persons), groups, 5))
    for person, values in enumerate(persons):
        for group, t in values:
            sums[person, group, :2] += (W, t)
    return sums


@pytest.mark.parametrize(("records", "groups"), [(1, 3), (2, 2), (3, 3), (4, 2)])
def test_second_moments_lengthen_nothing_in_groups(records, groups):
    """By all persons of a grid, whose records lie in any groups."""
    sums = in_groups(records, groups, steps=5 if records < 4 else 3)
    limit = records * math.sqrt(1 + W * W)
    lengths = []
    for free in (free_in_groups(W), 2.35):
        vectors = person_vectors(sums.reshape(-1, 5), records, W, free)
        lengths.append(np.linalg.norm(vectors.reshape(len(sums), -1), axis=1).max())
    assert lengths[0] <= limit * (1 + 1e-12)
    assert lengths[0] == pytest.approx(limit)
    # What is free of all records is not free in groups: two halves are longer together.
    assert (lengths[1] > 1.1 * limit) == (records > 1)


@pytest.mark.parametrize("records", [1, 2, 3])
def test_no_person_moves_the_means_of_groups_farther_than_is_claimed(records):
    """By all persons with values at the ends and in the middle, in two groups."""
    domain, learner = facts(records), attrs.evolve(BOTH, by=("g",), distance="l2")
    places = [*itertools.product((0.0, 5.0, 10.0), "ab")]
    persons = [
        values
        for j in range(1, records + 1)
        for values in itertools.combinations_with_replacement(places, j)
    ]
    known = public(domain)
    (query,) = learner.queries(known)
    rows = [np.zeros(query.real_size)]
    for values in persons:
        made = project_table(domain, {"x": [x for x, _ in values], "g": [g for _, g in values]})
        made = attrs.evolve(made, persons=np.zeros(len(values), dtype=np.int32))
        rows.append(learner.total_of(query, made, known).floats().ravel())
    vectors = np.array(rows)
    for relation in (ADD_REMOVE, REPLACE_ONE):
        case = Case(
            learner=learner, bound=StatisticBound(), domain=domain,
            adjacency=domain.relation(relation),
        )  # fmt: skip
        claim = next(claim.value for _, claim in case.claims())
        others = vectors[:1] if relation is ADD_REMOVE else vectors
        tail = max(np.linalg.norm(vectors - row, axis=1).max() for row in others)
        # Replaced, what two persons add is taken for opposite, and their counts never are.
        assert (0.8 if relation is REPLACE_ONE else 1 - 1e-9) * claim <= tail <= claim


def test_a_session_tells_means_of_persons_by_group():
    rng = np.random.default_rng(1)
    table = people_table(4000, rng)
    session = Session(PrivacyBudget(epsilon=8.0, delta=1e-6), facts(), table)
    figures = session.mean("x", epsilon=2.0, by=("g",), interval="both")
    intervals = figures.population
    assert "persons that are independent draws" in intervals.covers
    assert "at most 3 records of each person" in intervals.covers
    assert (intervals.low <= figures.estimate).all()
    assert (figures.estimate <= intervals.high).all()
    in_a = np.array(table["g"]) == "a"
    assert figures.estimate[0] == pytest.approx(table["x"][in_a].mean(), abs=0.3)
    # Without it nothing is paid, and nothing stated: the noise, the numbers and the words stay.
    assert session.mean("x", epsilon=2.0, by=("g",)).population is None


def test_sums_give_back_what_they_were_made_of():
    """Without noise the sampling variance is that of the definition."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 4, 500)
    values = [rng.uniform(-1, 1, size) for size in sizes]
    sums = np.zeros((500, 5))
    sums[:, 0], sums[:, 1] = W * sizes, [value.sum() for value in values]
    moments = PersonMoments.of(person_vectors(sums, 3, W).sum(axis=0), 0.0, W, 3)
    x, y = sizes / 3, sums[:, 1] / 3
    r = y.sum() / x.sum()
    assert moments.n == pytest.approx(x.sum())
    assert moments.mean == pytest.approx(r)
    assert moments.sampled == pytest.approx(float(((y - r * x) ** 2).sum()))


# What it costs, and what it rests on.


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_the_price_is_that_of_the_mean_where_persons_come_and_go(relation):
    noise = []
    for interval in ("noise", "both"):
        priced = plan(
            Mean(column="x", interval=interval), Gaussian(), facts(), facts().relation(relation)
        )
        (scheduled,) = priced.schedule.releases
        (planned_query,) = scheduled.queries.values()
        noise.append(planned_query.sensitivity.value)
    # Replaced, two clipped vectors may be farther apart than their records.
    ratio = 1.0 if relation is ADD_REMOVE else math.sqrt(1.5)
    assert noise[1] / noise[0] == pytest.approx(ratio, rel=1e-6)
    assert Mean(column="x").samples(public(facts())) is False


def test_sums_of_persons_obey_the_laws_of_the_core():
    domain = facts(2)
    learner = attrs.evolve(BOTH, distance="l2")
    for relation in (ADD_REMOVE, REPLACE_ONE):
        case = Case(
            learner=learner, bound=StatisticBound(), domain=domain,
            adjacency=domain.relation(relation),
        )  # fmt: skip
        assert {str(v.outcome) for v in person_sum_verdicts(case)} == {"passed"}
        (finding,) = falsify(case, Effort(pairs=60), seed=1)
        assert not finding.broken
        assert finding.worst > 0.7


def people_table(persons, rng, most=3):
    """Persons whose records agree: a level of their own, and more records where it is high."""
    level = rng.beta(2, 3, persons)
    sizes = 1 + rng.binomial(most - 1, level)
    owner = np.repeat(np.arange(persons), sizes)
    x = 10 * np.clip(level[owner] + 0.1 * rng.standard_normal(owner.size), 0, 1)
    return {"x": x, "g": rng.choice(["a", "b"], owner.size), "id": owner}


def test_a_session_tells_means_of_persons():
    rng = np.random.default_rng(1)
    table = people_table(4000, rng)
    session = Session(PrivacyBudget(epsilon=8.0, delta=1e-6), facts(), table)
    figures = session.mean("x", epsilon=2.0, interval="both")
    intervals = figures.population
    assert "persons that are independent draws" in intervals.covers
    assert "at most 3 records of each person" in intervals.covers
    assert (intervals.low <= figures.estimate).all()
    assert (figures.estimate <= intervals.high).all()
    # Records taken for draws would give too narrow an interval.
    plain = 1.96 * 2.2 / math.sqrt(figures.estimate[1])
    assert intervals.high[0] - intervals.low[0] > 2 * plain


@pytest.mark.parametrize(
    ("learner", "domain", "words"),
    [
        (GroupBy(by=("g",), column="x", interval="both"), facts(), r"or statistics\.mean"),
        (Mean(column="x", clip="person", interval="both"), facts(), "clip: record"),
        (BOTH, facts(sampled="census"), "census"),
        (BOTH, facts(sampled=None), "sampled"),
    ],
)
def test_what_is_refused_of_persons(learner, domain, words):
    with pytest.raises(ParameterError, match=words):
        learner.queries(public(domain))


# How well it holds.


def agreeing(most):
    """A level of each person, with more records where it is high, about which their values lie."""
    level = np.linspace(0.02, 0.98, 49)
    chances = stats.beta.pdf(level, 2, 3) / 3
    return [
        (j, float(np.clip(2 * a - 1 + shift, -1, 1)), p * stats.binom.pmf(j - 1, most - 1, a))
        for a, p in zip(level, chances, strict=True)
        for j in range(1, most + 1)
        for shift in (-0.2, 0.0, 0.2)
    ]


# Types of persons: how many records, the place of all of them, and how many such persons are.
KINDS = {
    "agreeing": agreeing,
    "tied": lambda most: [(1, -1.0, 0.7), *((most, t, 0.03) for t in np.linspace(-1, 1, 10))],
    "rare": lambda most: [(1, -1.0, 0.99), (most, 1.0, 0.01)],
    "even": lambda most: [(most, -1.0, 0.5), (most, 1.0, 0.5)],
}


def released(kind, persons, epsilon, draws, rng, most=3):
    """Moments of so many draws of persons from a population of types, and the true ratio."""
    j, t, p = np.array(KINDS[kind](most)).T
    sums = np.zeros((j.size, 5))
    sums[:, 0], sums[:, 1] = W * j, j * t
    vectors = person_vectors(sums, most, W)
    width = most * math.sqrt(1 + W * W) / MU[epsilon]
    counts = rng.multinomial(persons, p / p.sum(), draws)
    value = counts @ vectors + width * rng.standard_normal((draws, 5))
    return PersonMoments.of(value, width, W, most), float((j * t) @ p / (j @ p))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("persons", [100, 1000, 20_000])
def test_coverage_of_means_of_persons(persons, epsilon):
    for kind, most in itertools.product(KINDS, (2, 5)):
        rng = np.random.default_rng([21, persons, int(10 * epsilon), most])
        moments, truth = released(kind, persons, epsilon, 4000, rng, most)
        low, high = mean_interval(moments, Sampling(width=moments.width, miss=0.05))
        proportion = covered((low, high), truth)
        assert proportion >= 0.9335
        if persons == 20_000 and epsilon >= 1:
            # Not vacuous: near what the same persons say without noise.
            j, t, p = np.array(KINDS[kind](most)).T
            variance = (p / p.sum()) @ np.square(j * (t - truth))
            plain = 2 * 1.96 * math.sqrt(variance / persons) / ((p / p.sum()) @ j)
            assert np.median(high - low) <= 1.06 * plain


def coverage_in_groups(persons, epsilon, draws, kind, most=3):
    """Of two groups: how often each holds, of records that are in the first with .3."""
    rng = np.random.default_rng([23, persons, int(10 * epsilon), most])
    j, t, p = np.array(KINDS[kind](most)).T
    # Every person's records are split between the groups by chance: as many types as splits.
    types = [
        (i, n - i, place, chance * stats.binom.pmf(i, n, 0.3))
        for n, place, chance in zip(j.astype(int), t, p, strict=True)
        for i in range(n + 1)
    ]
    first, second, place, chance = np.array(types).T
    width, free = most * math.sqrt(1 + W * W) / MU[epsilon], free_in_groups(W)
    counts, proportions = rng.multinomial(persons, chance / chance.sum(), draws), []
    for records in (first, second):
        sums = np.zeros((records.size, 5))
        sums[:, 0], sums[:, 1] = W * records, records * place
        value = counts @ person_vectors(sums, most, W, free)
        value = value + width * rng.standard_normal((draws, 5))
        moments = PersonMoments.of(value, width, W, most, free)
        ends = mean_interval(moments, Sampling(width=moments.width, miss=0.05))
        truth = float((records * place) @ chance / (records @ chance))
        proportions.append((covered(ends, truth), float(np.mean(np.isfinite(ends[0])))))
    return proportions


def test_coverage_of_means_of_persons_in_two_groups():
    for kind in ("agreeing", "tied"):
        for proportion, _ in coverage_in_groups(3000, 1.0, 500, kind):
            assert proportion >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 500)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("persons", [100, 1000, 20_000])
def test_coverage_of_means_of_persons_in_groups(persons, epsilon):
    for kind, most in itertools.product(KINDS, (2, 5)):
        for proportion, says in coverage_in_groups(persons, epsilon, 2000, kind, most):
            assert says < 0.5 or proportion >= 0.928, (kind, most)


@pytest.mark.slow
@pytest.mark.parametrize(("persons", "epsilon"), [(1000, 0.5), (1000, 4.0), (20_000, 1.0)])
def test_coverage_of_counts_of_records_of_persons(persons, epsilon):
    """A stream of persons: the expected number of records, each person's together."""
    for kind in KINDS:
        rng = np.random.default_rng([22, persons, int(10 * epsilon)])
        stream = rng.poisson(persons, 4000)
        moments, _ = released(kind, stream, epsilon, 4000, rng)
        j, _, p = np.array(KINDS[kind](3)).T
        sampling = Sampling(width=moments.width, miss=0.05)
        ends = moments.count_ends(facts(), sampling)
        assert 0.9335 <= covered(ends, persons * float(p @ j / p.sum())) <= 0.9665
