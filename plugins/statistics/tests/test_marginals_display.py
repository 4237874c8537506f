"""The objective `display`: bounds over all weights by brute force, hostile counts, and what asks
depend on."""

import itertools
import math

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
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
from dpcore.errors import ContractError, ParameterError
from dpcore.interval import NormalDistribution
from dpcore_statistics.marginals.learner import CHOICE, COUNT, Marginals
from dpcore_statistics.marginals.one_way_weight import CHOICES
from dpcore_statistics.statistic import StatisticBound

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
RECORDS = [*itertools.product((1.0, 6.0, None), "abz", "uv")]  # z: no declared category


def public_of(mu=1.0, **names):
    columns = {
        "x": Range(0, 10, missing=True),
        "g": Categories(("a", "b")),
        "h": Categories(("u", "v"), default="u"),
    }
    return Public(domain=Domain(columns=columns, **names), randomness=PublicRandomness(1), mu=mu)


def learner_of(**fields):
    return Marginals(
        columns=("x", "g", "h"), bins={"x": 2}, objective="display", display=True, **fields
    )


def project(public, rows):
    columns = zip("xgh", zip(*rows, strict=True), strict=True)
    return project_table(public.domain, {name: [*values] for name, values in columns})


def contributions(learner, public, choice):
    """What each of `RECORDS` adds, with the weights of a choice."""
    *_, query = learner.queries(public)
    query = attrs.evolve(query, args={CHOICE: choice})
    return learner.contributions(query, project(public, RECORDS), public)


def answer_of(query, value, width):
    return Answer(
        query=query,
        number=1,
        value=np.asarray(value, dtype=np.float64),
        mechanism=Gaussian(),
        noise_distribution=NormalDistribution(width=width),
    )


@pytest.mark.parametrize("people", [None, People(column="p", records=2)])
def test_no_choice_of_weights_moves_the_sums_by_more_than_is_claimed(people):
    learner, public = learner_of(), public_of(people=people)
    *_, query = learner.queries(public)
    claims = [
        StatisticBound().sensitivity(query, learner, public, relation).value
        for relation in (ADD_REMOVE, REPLACE_ONE)
    ]
    lengths, distances = [], []
    for choice in range(len(CHOICES)):
        rows = contributions(learner, public, choice)
        lengths.append(np.linalg.norm(rows, axis=1).max())
        distances.append(np.linalg.norm(rows[:, None] - rows[None], axis=2).max())
    assert max(lengths) <= 1 <= claims[0] <= 1 + 1e-6
    assert min(lengths) > 1 - 1e-5
    # The longest distance is attained by one of the choices, where it is computed at all.
    slack = 2 - max(distances) if people is None else 1e-5
    assert max(distances) <= claims[1] <= max(distances) + slack + 1e-6
    # The trap: one choice's distance is none of another's.
    assert max(distances) > min(distances) + 0.01


def test_a_public_number_of_records_has_one_bound_for_every_budget():
    learner = learner_of()
    claims, longest = set(), []
    for mu in (0.01, 0.1, 1.0, 10.0):
        public = public_of(mu, exact=50)
        (query,) = learner.queries(public)
        claims.add(StatisticBound().sensitivity(query, learner, public, REPLACE_ONE).value)
        rows = learner.contributions(query, project(public, RECORDS), public)
        longest.append(np.linalg.norm(rows[:, None] - rows[None], axis=2).max())
    assert len(claims) == 1
    assert max(longest) <= max(claims)
    assert len({*longest}) > 1


def test_a_private_number_is_asked_for_first_unless_there_is_a_guess():
    def names(public, **fields):
        return [query.name for query in learner_of(**fields).queries(public)]

    assert names(public_of()) == [COUNT, "residuals"]
    assert names(public_of(), rows_about=100) == ["residuals"]
    assert names(public_of(exact=9)) == ["residuals"]
    assert names(public_of(exact=9), where={"h": ["u"]}) == [COUNT, "residuals"]
    counted, residuals = learner_of().queries(public_of())
    assert counted.share == pytest.approx(0.02)
    assert residuals.share == pytest.approx(0.98)


def test_the_count_is_of_the_records_that_meet_the_condition():
    learner, public = learner_of(where={"h": ["u"]}), public_of()
    query, _ = learner.queries(public)
    records = project(public, RECORDS)
    expected = sum(row[2] == "u" for row in RECORDS)
    assert learner.statistic(query, records, public, SECRET).floats().tolist() == [expected]
    assert learner.contributions(query, records, public).sum() == expected
    for relation in (ADD_REMOVE, REPLACE_ONE):
        assert StatisticBound().sensitivity(query, learner, public, relation).value == 1


@pytest.mark.parametrize("n", [0.0, -7.0, 1e300, -1e300, math.nan, math.inf, 100.0])
def test_a_hostile_count_leads_to_a_choice_of_the_list_and_to_a_display_without_negatives(n):
    learner, public = learner_of(), public_of()
    state = learner.start(public)
    state = learner.update(state, answer_of(learner.ask(state), [n], 10.0))
    query = learner.ask(state)
    assert 0 <= query.args[CHOICE] < len(CHOICES)
    released = np.random.default_rng(1).normal(0, 0.1, query.shape)
    answer = answer_of(query, released, 0.1)
    display = learner.shown(answer, public)
    tables = [*display.one_way.values(), *display.pairs.values()]
    assert display.n >= 1
    for table in tables:
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(display.n, rel=1e-6)
    assert learner.ask(learner.update(state, answer)) is None


@pytest.mark.parametrize("choice", [-1, len(CHOICES), 1.5, "0", True])
def test_the_private_function_takes_no_choice_from_outside_the_list(choice):
    with pytest.raises(ContractError, match="a place in the list of weights"):
        contributions(learner_of(), public_of(), choice)


def test_two_counts_are_averaged_by_their_inverse_variances():
    learner, public = learner_of(), public_of()
    state = learner.start(public)
    state = learner.update(state, answer_of(learner.ask(state), [400.0], 3.0))
    query = learner.ask(state)
    measured = learner.measured(public, query.args[CHOICE])
    records = project(public, RECORDS)
    exact = learner.statistic(query, records, public, SECRET).floats()
    display = learner.shown(answer_of(query, exact, 0.5), public)
    deviation = math.sqrt(measured.plan.residuals.noise(0.5 * 2.0**41)[0])
    weights = np.array([1 / deviation**2, 1 / 9])
    expected = (weights * [len(RECORDS), 400.0]).sum() / weights.sum()
    assert display.n == pytest.approx(expected)


def test_more_records_ask_for_less_of_one_way_tables():
    def weight(n):
        learner = learner_of(rows_about=n)
        public = public_of(0.3)
        measured = learner.measured(public)
        noise = measured.plan.residuals.noise(1.0)
        subsets = measured.workload.subsets
        return noise[subsets.index((0, 1))] / noise[subsets.index((0,))]

    assert weight(20) > weight(2_000) >= weight(2_000_000)


@pytest.mark.parametrize(
    ("fields", "caught"),
    [
        ({"rows_about": 10, "objective": "total"}, "objective: display"),
        ({"rows_about": 0, "objective": "display"}, "rows_about"),
        ({"clip": "person", "states_unit": False, "objective": "display"}, "clip: record"),
    ],
)
def test_what_cannot_be_is_refused(fields, caught):
    with pytest.raises(ParameterError, match=caught):
        Marginals(columns=("x", "g"), bins={"x": 2}, **fields)
