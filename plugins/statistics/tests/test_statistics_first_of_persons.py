"""Tables, prefixes and running totals of persons: by definition, and over all persons."""

import itertools
import math
from functools import cache, partial

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Session,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.pricing.unit_claims import PERSON_WISE, of_clipped_persons
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore.learners.by_person import clipped_sums
from dpcore.learners.sums import round_records, turn_persons
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_statistics.running import Running
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.workload import Workload

OF = {"of": "persons"}
EDGES = {"column": "x", "edges": (0, 1, 2, 3, 4)}
PLACES = [*itertools.product("ab", range(4))]
"""Every record that there can be: a ward, and one of four cells of x."""

LEARNERS = {
    "table": Table(marginals={"g": ("g",), "both": ("g", "x")}, bins={"x": 4}, **OF),
    "one table": Table(marginals={"x": ("x",)}, bins={"x": 4}, **OF),
    "prefixes": Workload(column="x", bins=4, **OF),
    "prefixes, single intervals": Workload(column="x", bins=4, bars="single", **OF),
    "prefixes by": Workload(column="x", bins=4, by=("g",), **OF),
    "prefixes, some": Workload(column="x", bins=4, where={"g": ["a"]}, **OF),
    "running": Running(**EDGES, **OF),
    "running, bands": Running(bands=2, **EDGES, **OF),
    "running by": Running(by=("g",), **EDGES, **OF),
}


def domain(records):
    columns = {"g": Categories(("a", "b")), "x": Range(0, 4)}
    return Domain(columns=columns, people=People(column="id", records=records))


def project(facts, persons):
    """The records of some persons, of whom each is a tuple of places."""
    pairs = [(place, owner) for owner, places in enumerate(persons) for place in places]
    np.random.default_rng(1).shuffle(pairs := np.array(pairs, dtype=object))
    records = project_table(
        facts, {"g": [g for (g, _), _ in pairs], "x": [x + 0.5 for (_, x), _ in pairs]}
    )
    return attrs.evolve(records, persons=np.array([owner for _, owner in pairs], dtype=np.int32))


def all_persons(most):
    return [
        places
        for size in range(1, most + 1)
        for places in itertools.combinations_with_replacement(PLACES, size)
    ]


def facts_of(records, mu=1.0):
    return Public(domain=domain(records), randomness=PublicRandomness(1), mu=mu)


def case_of(name, relation, distance, records):
    facts = domain(records)
    return Case(
        learner=attrs.evolve(LEARNERS[name], distance=distance), bound=StatisticBound(),
        domain=facts, adjacency=facts.people.relation(relation),
    )  # fmt: skip


@cache
def vectors_of(name, distance, records):
    """What each person adds, as the core adds it; and nothing, which may be in their place."""
    learner, facts = attrs.evolve(LEARNERS[name], distance=distance), facts_of(records)
    (query,) = learner.queries(facts)
    made = project(facts.domain, all_persons(records))
    order = np.argsort(made.persons, kind="stable")
    begins = np.flatnonzero(np.diff(made.persons[order], prepend=-1))
    sums = np.add.reduceat(round_records(learner, query, facts, made.take(order)), begins, axis=0)
    if query.sum.person is not None:
        sums = clipped_sums(sums, query, partial(turn_persons, learner, query, facts))
    assert [*learner.total_of(query, made, facts).integers()] == sums.sum(axis=0).tolist()
    vectors = np.ldexp(sums.astype(float), query.sum.unit)
    return np.vstack([vectors, np.zeros(query.real_size)])


def published(learner, facts, persons):
    """The tables of these persons, without noise."""
    (query,) = learner.queries(facts)
    value = learner.total_of(query, project(facts.domain, persons), facts).floats()
    answer = Answer(
        query=query,
        number=1,
        value=value,
        mechanism=Gaussian(),
        noise_distribution=NormalDistribution(width=1e-9),
    )
    return learner.published(answer, facts).tables


def somewhere(persons, meets):
    """How many persons have a record that meets a condition: the definition."""
    return sum(any(meets(*place) for place in places) for places in persons)


@pytest.mark.parametrize("records", [1, 2, 3])
def test_a_person_counts_once_wherever_any_of_their_records_is(records):
    persons = all_persons(records)
    tables = {name: published(own, facts_of(records), persons) for name, own in LEARNERS.items()}
    of_ward = [somewhere(persons, lambda g, x, w=w: g == w) for w in "ab"]
    assert tables["table"]["g"].estimate == pytest.approx(of_ward, abs=1e-6)
    cells = [somewhere(persons, lambda g, x, place=place: (g, x) == place) for place in PLACES]
    assert tables["table"]["both"].estimate == pytest.approx(cells, abs=1e-6)
    up_to = [somewhere(persons, lambda g, x, t=t: x <= t) for t in range(4)]
    for name in ("prefixes", "prefixes, single intervals"):
        assert tables[name][""].estimate == pytest.approx(up_to, abs=1e-6)
    within = [
        somewhere(persons, lambda g, x, w=w, t=t: g == w and x <= t) for w in "ab" for t in range(4)
    ]
    assert tables["prefixes by"][""].estimate == pytest.approx(within, abs=1e-6)
    assert tables["prefixes, some"][""].estimate == pytest.approx(within[:4], abs=1e-6)
    for name in ("running", "running, bands"):
        assert tables[name]["totals"].estimate == pytest.approx(up_to, abs=1e-6)
        assert tables[name]["periods"].estimate == pytest.approx(np.diff([0, *up_to]), abs=1e-6)
    assert tables["running by"]["totals"].estimate == pytest.approx(within, abs=1e-6)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_no_two_persons_move_the_sum_farther_than_is_claimed(name, relation, distance, records):
    case = case_of(name, relation, distance, records)
    claim = next(claim for _, claim in case.claims() if claim.distance == distance)
    vectors = vectors_of(name, distance, records)
    others = vectors if relation is REPLACE_ONE else vectors[-1:]
    order = {"l1": 1, "l2": 2}[distance]
    tail = max(np.linalg.norm(vectors - row, ord=order, axis=1).max() for row in others)
    assert tail <= claim.value
    assert tail == pytest.approx(claim.value, rel=1e-6)


@pytest.mark.parametrize("name", ["table", "prefixes by", "running"])
def test_attacks_break_nothing_and_the_laws_of_persons_hold(name):
    for relation in (ADD_REMOVE, REPLACE_ONE):
        case = case_of(name, relation, "l2", 3)
        (finding,) = falsify(case, Effort(pairs=40), seed=1)
        assert not finding.broken
        assert finding.worst > 0.6
        assert {str(v.outcome) for v in person_sum_verdicts(case)} == {"passed"}
        assert all(PERSON_WISE in claim.premises for _, claim in case.claims())


class Narrow(Table):
    """A replaced person moves a little more than it says."""

    def moved_by_person(self, query, records, public):
        moved = super().moved_by_person(query, records, public)
        return attrs.evolve(moved, replace_one=0.98 * moved.replace_one)


@pytest.mark.parametrize("distance", ["l1", "l2"])
def test_the_law_of_two_persons_reaches_the_claim_and_sees_a_smaller_one(distance):
    case = case_of("table", REPLACE_ONE, distance, 3)
    *_, apart = person_sum_verdicts(case)
    assert apart.detail == "up to 1 of what is claimed (squared in l2)"
    learner = Narrow(marginals=case.learner.marginals, bins={"x": 4}, distance=distance, **OF)
    *passed, apart = person_sum_verdicts(attrs.evolve(case, learner=learner))
    assert apart.failed
    assert apart.law.id == "sum.person-apart"
    assert not any(verdict.failed for verdict in passed)


def test_persons_cost_what_one_record_costs_whatever_they_have():
    def price(learner, records, relation):
        facts = domain(records)
        case = Case(
            learner=learner, bound=StatisticBound(), domain=facts,
            adjacency=facts.people.relation(relation),
        )  # fmt: skip
        return next(claim.value for _, claim in case.claims() if claim.distance == "l2")

    for name in ("prefixes", "running", "running, bands"):
        of_records = attrs.evolve(LEARNERS[name], of="records")
        for relation in (ADD_REMOVE, REPLACE_ONE):
            single = price(of_records, 1, relation)
            assert price(LEARNERS[name], 5, relation) == pytest.approx(single, rel=1e-9)
        assert price(of_records, 5, ADD_REMOVE) == pytest.approx(
            5 * price(of_records, 1, ADD_REMOVE)
        )
    assert price(LEARNERS["one table"], 3, ADD_REMOVE) == pytest.approx(math.sqrt(3))
    assert price(LEARNERS["one table"], 3, REPLACE_ONE) == pytest.approx(2.0)


def test_the_tables_say_what_they_count_and_what_is_refused_says_the_way_out():
    table = {
        "id": [f"p{n // 3}" for n in range(600)], "g": ["a", "b"] * 300,
        "x": [n % 4 + 0.5 for n in range(600)],
    }  # fmt: skip
    session = Session(PrivacyBudget(epsilon=30.0, delta=1e-6), domain(3), table)
    for name, words in (
        ("table", "each counts once in every number that any of their records is in"),
        ("prefixes", "each counts once from the first cell on that any of their records is in"),
        ("running", "each counts once from the first cell on that any of their records is in"),
    ):
        for figures in session.release(LEARNERS[name], epsilon=5.0).tables.values():
            assert f"counts are of persons: {words} (at most 3 of each person" in figures.covers
            assert figures.high[-1] < 230
    plain = Public(
        domain=attrs.evolve(domain(2), people=None), randomness=PublicRandomness(1), mu=1.0
    )
    for learner in LEARNERS.values():
        with pytest.raises(ParameterError, match="a domain with people"):
            learner.queries(plain)
    for more in ({"ask_for": "ranges"}, {"ask_for": "cells"}, {"matrix": ((1.0, 1.0, 1.0, 1.0),)}):
        with pytest.raises(ParameterError, match=r"statistics\.histogram counts persons in cells"):
            Workload(column="x", bins=4, **more, **OF)
    with pytest.raises(ParameterError, match="clip: person adds up persons"):
        Running(amount="x", **EDGES, **OF)
    figures = session.running("x", epsilon=5.0, edges=(0, 1, 2, 3, 4), of="persons")
    assert figures.tables["totals"].estimate[-1] == pytest.approx(200, abs=20)


def test_a_learner_that_says_it_turns_nothing_turns_nothing():
    """The claim and the sum ask the same question, so that no claim is about another vector."""

    class Silent(Table):
        turns_persons = False

        def of_persons(self, query, sums, public):
            return 1e6 * (1 + sums)

    facts, learner = facts_of(2), Silent(marginals={"g": ("g",)})
    query = learner.query(facts)
    query = attrs.evolve(query, sum=attrs.evolve(query.sum, person=1.5))
    made = project(facts.domain, all_persons(2))
    assert learner.total_of(query, made, facts) == Table(marginals={"g": ("g",)}).total_of(
        query, made, facts
    )


def test_a_distance_of_persons_bounds_replacements_alone():
    """The longest vector bounds it from both sides; and who comes or goes."""
    learner, facts = LEARNERS["one table"], facts_of(2)
    (query,) = learner.queries(facts)
    longest = query.sum.person
    for diameter, of_replaced in ((1e-3, longest), (50.0, math.sqrt(2) * longest)):
        moved = attrs.evolve(query, sum=attrs.evolve(query.sum, diameter=diameter))
        for relation, expected in ((ADD_REMOVE, longest), (REPLACE_ONE, of_replaced)):
            unit = facts.domain.people.relation(relation)
            claim = of_clipped_persons(
                moved, learner, unit,
                lambda step: StatisticBound().sensitivity(query, learner, facts, step),
            )  # fmt: skip
            assert claim.value == pytest.approx(expected)
