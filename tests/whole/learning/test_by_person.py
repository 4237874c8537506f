"""Sums that clip persons: against brute force, the laws, wrong variants and the attack."""

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
    PublicRandomness,
    Range,
    Records,
    Sum,
    SumQuery,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, ParameterError
from dpcore.learner import Public
from dpcore.learners.by_person import total_of_persons
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.person_sums import by_core, person_sum_verdicts
from dpcore_statistics.count import Count
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance

from builders import price_learner
from doubles import domain, table

FACTS = attrs.evolve(domain(), exact=None, limit=500, people=People(column="id", records=5))
PUBLIC = Public(domain=FACTS, randomness=PublicRandomness(1), mu=1.0)
LEARNERS = [
    Count(clip="person", states_unit=False),
    Count(clip="person", states_unit=False, counts_for=3),
    Total(column="a", clip="person"),
    Total(column="a", clip="person", counts_for=1.5),
    Mean(column="a", clip="person"),
    Mean(column="a", clip="person", distance="l1"),
    Variance(column="a", clip="person", counts_for=2.0),
    Histogram(column="a", bins=4, clip="person", states_unit=False),
    Mean(column="a", by=("b",), bins={"b": 3}, clip="person"),
    GroupBy(by=("b",), bins={"b": 3}, column="a", clip="person", counts_for=2.0),
]


def case(learner, relation=ADD_REMOVE, records=5):
    facts = attrs.evolve(FACTS, people=People(column="id", records=records))
    return Case(
        learner=learner,
        bound=StatisticBound(),
        domain=facts,
        adjacency=relation.of_persons(records),
    )


def records(sizes=(1, 5, 3, 5, 2, 40), seed=1):
    rng = np.random.default_rng(seed)
    persons = rng.permutation(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
    return Records(
        features=rng.uniform(-1, 1, (persons.size, FACTS.width)),
        labels=np.zeros(persons.size),
        persons=persons,
    )


def clipped(vector, limit, distance):
    length = np.linalg.norm(vector, ord={"l1": 1, "l2": 2}[str(distance)])
    return vector * min(1.0, limit / length) if length else vector


def report(learner):
    return f"{type(learner).__name__}-{learner.counts_for:g}-{learner.distance or ''}"


@pytest.mark.parametrize("learner", LEARNERS, ids=report)
def test_a_sum_is_that_of_clipped_persons(learner):
    made, (query,) = records(), learner.queries(PUBLIC)
    rows = np.asarray(learner.contributions(query, made, PUBLIC)).reshape(len(made), -1)
    limit = learner.counts_for * query.sum.clip
    expected = sum(
        clipped(rows[made.persons == one].sum(axis=0), limit, query.distance) for one in range(6)
    )
    found = learner.total_of(query, made, PUBLIC).floats().reshape(-1)
    assert found == pytest.approx(expected, abs=1e-9)
    assert found != pytest.approx(rows.sum(axis=0), abs=0.001)


@pytest.mark.parametrize("learner", LEARNERS, ids=report)
def test_the_core_keeps_the_laws_of_persons(learner):
    assert [str(v.outcome) for v in person_sum_verdicts(case(learner))] == ["passed"] * 3


def of_blocks(learner, query, made, public):
    """Clipped within blocks: a person in two of them adds twice as much."""
    blocks = np.array_split(np.arange(len(made)), 3) if len(made) > 2 else [np.arange(len(made))]
    totals = [by_core(learner, query, made.take(rows), public) for rows in blocks]
    return sum(totals[1:], totals[0])


def of_records(learner, query, made, public):
    """Every record is clipped, and no person."""
    single = attrs.evolve(made, persons=np.arange(len(made), dtype=np.int32))
    return by_core(learner, query, single, public)


def of_neighbours(learner, query, made, public):
    """A person ends where the next record is another's, as if records came sorted."""
    runs = np.cumsum(np.append([0], made.persons[1:] != made.persons[:-1])).astype(np.int32)
    return by_core(learner, query, attrs.evolve(made, persons=runs), public)


@pytest.mark.parametrize("total", [of_blocks, of_records, of_neighbours])
@pytest.mark.parametrize(
    "learner", [Count(clip="person", states_unit=False), Mean(column="a", clip="person")]
)
def test_wrong_clippings_are_caught(total, learner):
    failed = {v.law.id for v in person_sum_verdicts(case(learner), total) if v.failed}
    if total is not of_neighbours:  # one person by itself is a run of their own
        assert "sum.person-clipped" in failed
    if total is of_neighbours or (total is of_blocks and type(learner) is Mean):
        assert "sum.person-whole" in failed


def claim(learner, relation, records):
    ((_, found),) = case(learner, relation, records).claims()
    return found


@pytest.mark.parametrize("records", [2, 3, 5])
@pytest.mark.parametrize(
    ("learner", "clip", "replaced"),
    [
        (Count(clip="person", states_unit=False), 1.0, 1.0),
        (Total(column="a", clip="person"), 1.0, 2.0),
        (Mean(column="a", clip="person"), math.sqrt(1.5), 2.0),
        (Histogram(column="a", bins=4, clip="person", states_unit=False), 1.0, math.sqrt(2)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_person_moves_a_sum_by_the_clip_whatever_k(learner, clip, replaced, records):
    came, other = (claim(learner, one, records) for one in (ADD_REMOVE, REPLACE_ONE))
    assert came.value == pytest.approx(clip, rel=1e-12)
    assert other.value == pytest.approx(replaced * clip, rel=1e-12)
    assert came.value >= clip
    assert came.adjacency == ADD_REMOVE.of_persons(records)


def test_a_clip_that_k_records_do_not_reach_costs_what_they_do():
    assert claim(Count(clip="person", states_unit=False, counts_for=4), ADD_REMOVE, 3).value == 3.0
    assert claim(Count(clip="person", states_unit=False, counts_for=4), ADD_REMOVE, 5).value == 4.0


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize(
    "learner",
    [LEARNERS[0], LEARNERS[4], *(pytest.param(one, marks=pytest.mark.slow) for one in LEARNERS)],
    ids=report,
)
def test_the_attack_reaches_the_bound_and_never_passes_it(learner, relation):
    (finding,) = falsify(case(learner, relation), Effort(pairs=60), seed=1)
    assert not finding.broken
    loose = relation is REPLACE_ONE and isinstance(learner, Mean | Variance | GroupBy)
    # A sum of t is at most as long as its count n, and w n is never negative: (w, 1) and (w, -1)
    # are the most distant directions, w = sqrt(1/2).
    apart = {"l1": 1 / (1 + math.sqrt(0.5)), None: 1 / math.sqrt(1.5)}[learner.distance]
    diameter = apart if loose else 1.0
    assert 0.98 * diameter < finding.worst <= diameter + 1e-6


def test_two_persons_of_a_small_universe_are_as_far_apart_as_claimed():
    """All persons with at most two records out of five values."""
    few = np.linspace(-1, 1, 5)
    for learner in (Total(column="a", clip="person"), Mean(column="a", clip="person")):
        (query,) = learner.queries(PUBLIC)
        rows = []
        for count in (0, 1, 2):
            for values in itertools.combinations_with_replacement(few, count):
                features = np.zeros((count, FACTS.width))
                features[:, 0] = values
                made = Records(
                    features=features,
                    labels=np.zeros(count),
                    persons=np.zeros(count, dtype=np.int32),
                )
                rows.append(learner.total_of(query, made, PUBLIC).floats())
        rows = np.array(rows)
        lengths = np.linalg.norm(rows, axis=1)
        apart = max(np.linalg.norm(rows - row, axis=1).max() for row in rows)
        assert 0.999 < lengths.max() / claim(learner, ADD_REMOVE, 2).value <= 1
        assert apart <= claim(learner, REPLACE_ONE, 2).value


def all_persons(most, values, wards="x"):
    """The records of every person with at most so many, of a few values in a few wards."""
    records = list(itertools.product(values, wards))
    for count in range(most + 1):
        yield from itertools.combinations_with_replacement(records, count)


def distance_and_claim(most, low, wards, **fields):
    """How far any two persons' sums of values in [low, 1] lie apart, and what is claimed."""
    facts = Domain(
        columns={"a": Range(low, 1), "ward": Categories(("x", "y"))},
        people=attrs.evolve(FACTS.people, records=most),
    )
    public = Public(domain=facts, randomness=PublicRandomness(1), mu=1.0)
    learner = Total(column="a", clip="person", **fields)
    relation = facts.people.relation(REPLACE_ONE)
    stated = Case(learner=learner, bound=StatisticBound(), domain=facts, adjacency=relation)
    ((query, found),) = stated.claims()
    sums = []
    for person in all_persons(most, (low, 0.3, 1.0), wards):
        columns = {"a": [a for a, _ in person], "ward": [ward for _, ward in person]}
        made = attrs.evolve(
            project_table(facts, columns), persons=np.zeros(len(person), dtype=np.int32)
        )
        sums.append(learner.total_of(query, made, public).floats().ravel())
    order = {"l1": 1, "l2": 2}[str(query.distance)]
    distances = [np.linalg.norm(np.array(sums) - row, ord=order, axis=1).max() for row in sums]
    return max(distances), found.value


@pytest.mark.parametrize("low", [0.0, 0.2, -0.1, -0.5, -1.0])
@pytest.mark.parametrize("counts_for", [1, 2])
@pytest.mark.parametrize("records", [1, 2, 3])
def test_two_clipped_persons_are_as_far_apart_as_values_of_one_sign_allow(records, counts_for, low):
    apart, claimed = distance_and_claim(records, low, "x", counts_for=counts_for)
    limit, below = min(counts_for, records), max(0.0, -low)
    assert apart == pytest.approx(limit + min(limit, records * below), rel=1e-9)
    assert apart <= claimed
    # With values below 0 the claim is that of whole records, or twice the clip: less than twice.
    loose = min(2 * limit, records * (1 + below))
    assert claimed == pytest.approx(loose if low < 0 else apart, rel=1e-9)
    assert claimed < 2 * apart
    # A clip never costs more than none.
    assert claimed <= records * (1 + below) * (1 + 1e-9)


@pytest.mark.parametrize(("distance", "factor"), [("l2", math.sqrt(2)), ("l1", 2.0)])
@pytest.mark.parametrize("records", [2, 3])
def test_two_clipped_persons_in_two_groups_attain_the_claim(records, distance, factor):
    apart, claimed = distance_and_claim(records, 0.0, "xy", by=("ward",), distance=distance)
    assert apart <= claimed
    assert claimed == pytest.approx(factor, rel=1e-9)
    assert apart == pytest.approx(claimed, rel=1e-9)


def priced(learner, mechanism=None, people=FACTS.people):
    facts = attrs.evolve(FACTS, people=people)
    return price_learner(
        learner,
        domain=facts,
        adjacency=ADD_REMOVE if people is None else people.relation(ADD_REMOVE),
        mechanism=mechanism or Gaussian(),
        randomness=PublicRandomness(7),
    )


def test_a_run_clips_persons_in_memory_and_says_so():
    rows = {**table(300), "id": [f"p{n % 90}" for n in range(300)]}
    made = priced(Total(column="a", clip="person"))
    outcome = made.run(rows, secret=dpcore.SecretRandomness.rehearsal(5))
    assert "over persons, of whom each adds at most 1.0" in str(outcome.guarantee)
    (published,) = outcome.models.values()
    assert "records of one person are clipped together" in published.tables[""].covers
    five = priced(Total(column="a"))
    (other,) = five.run(rows, secret=dpcore.SecretRandomness.rehearsal(5)).models.values()
    assert width(other) == pytest.approx(5 * width(published), rel=1e-3)  # noise lies on a grid


def width(published):
    return published.tables[""]["high"][0] - published.tables[""]["low"][0]


def test_what_no_person_is_known_of_is_refused():
    with pytest.raises(ParameterError, match="domain with people"):
        priced(Count(clip="person", states_unit=False), people=None)
    with pytest.raises(ParameterError, match="whole number"):
        priced(Count(clip="person", states_unit=False, counts_for=1.5))
    with pytest.raises(ParameterError, match="clip: person"):
        Count(counts_for=2)
    query = SumQuery(name="q", shape=(2,), distance="l2", sum=Sum(clip=1.0, person=1.0))
    with pytest.raises(ContractError, match="whose the records are"):
        total_of_persons(None, query, attrs.evolve(records(), persons=None), 10)


@attrs.frozen(kw_only=True)
class OwnTotal(Total):
    """Adds its records by itself, so that no one clips a person."""

    def statistic(self, query, records, public, secret):
        return np.zeros(1)


def test_only_the_cores_sums_clip_persons():
    facts = case(OwnTotal(column="a", clip="person"))
    assert "only the core" in facts.claims().reason
