"""Asks with bands: who is seen when, what is released, and what stays behind the release
boundary.
"""

import itertools
import pickle

import attrs
import numpy as np
import pytest
from turns import Remembers, Spies, Steps

import dpcore
from dpcore import ADD_REMOVE, SecretRandomness
from dpcore.claims.mechanisms.noise.grid import Grid
from dpcore.domain.domain import People
from dpcore.errors import ContractError, ReleaseError
from dpcore.exact import Exact
from dpcore.private.engines.local import LocalEngine
from dpcore.private.opening import open_table
from dpcore.private.release_context import Conversation, PastSums, wide_open
from dpcore.private.runtime import collect_answers
from dpcore.private.sampling import draw, scheme_of_query, select
from dpcore.published.formats import FORMAT, format_of
from dpcore.published.lock import describe
from dpcore.query import Sum, SumQuery
from dpcore.sampling import Cyclic
from dpcore.transcript.rebuild import isolate
from dpcore.transcript.replay_process import HERE, CleanProcess
from dpcore_models.solvers.banded import solved, square_root_bands

from builders import price_learner
from doubles import domain, table

BANDS = (64, 32, 24)


def planned(*, query_count=7, people=None, probability=0.7, bands=BANDS, kind=Steps, **fields):
    """A plan of `Steps` over three groups."""
    persons = None if people is None else People(column="id", records=people)
    return price_learner(
        kind(
            query_count=query_count,
            bands=bands,
            sampling=Cyclic(groups=3, probability=probability),
            **fields,
        ),
        domain=attrs.evolve(domain(), exact=None, limit=2000, people=persons),
        adjacency=ADD_REMOVE if people is None else ADD_REMOVE.of_persons(people),
    )


def rows(count=300, persons=None):
    found = table(count)
    return found if persons is None else {**found, "id": np.arange(count) % persons}


def conversation(plan, records, **fields):
    secret = SecretRandomness.rehearsal(3)
    train = open_table(plan.request, records, secret).train
    randomness = plan.randomness or dpcore.PublicRandomness(1)
    return Conversation(number=0, records=train, randomness=randomness, secret=secret, **fields)


@pytest.mark.parametrize("persons", [None, 100])
def test_nobody_is_seen_twice_within_as_many_asks_as_there_are_groups(persons):
    plan = planned(people=None if persons is None else 3)
    (scheduled,) = plan.schedule.releases
    query = scheduled.queries["steps"].query
    covered = conversation(plan, rows(persons=persons))
    units = len(covered.records) if persons is None else persons
    key = (lambda seen: seen.features[:, 0]) if persons is None else (lambda seen: seen.persons)
    seen = [set(key(covered.select_records(query, number)).tolist()) for number in range(1, 8)]
    for first, second in itertools.combinations(range(7), 2):
        if (second - first) % 3:
            assert not seen[first] & seen[second]
    # Randomness of different turns are independent: .49 of a group is seen in two of its turns.
    for turn in range(3):
        group = set().union(*seen[turn::3])
        assert len(seen[turn] & seen[turn + 3]) / len(group) == pytest.approx(0.5, abs=0.2)
    assert len(set().union(*seen)) > 0.8 * units


def test_groups_are_of_about_equal_size_and_apart_from_every_asks_words():
    sampling, counts, overlaps = Cyclic(groups=2, probability=0.5), [], []
    for seed in range(30):
        randomness = SecretRandomness.rehearsal(seed)
        turns = [
            scheme_of_query(sampling, number, randomness.sampling(0, "q", 0))
            for number in (1, 2, 3)
        ]
        words = [randomness.sampling(0, "q", number).by_place for number in (1, 2, 3)]
        first, second, third = (
            select(turn, word, 1000, 1000, None).contains(0, 1000)
            for turn, word in zip(turns, words, strict=True)
        )
        assert not (first & second).any()
        counts.append(first.sum() + second.sum())
        overlaps.append((first & third).sum())
    # 1000 randomness of 1/2 in each run, and 1000 of 1/8: five standard errors of the mean.
    assert abs(np.mean(counts) - 500) < 5 * np.sqrt(250 / 30)
    assert abs(np.mean(overlaps) - 125) < 5 * np.sqrt(110 / 30)


def test_a_selection_in_blocks_is_that_in_one_piece_and_of_a_table():
    plan = planned()
    covered = conversation(plan, rows())
    randomness, sampling = SecretRandomness.rehearsal(3), Cyclic(groups=3, probability=0.7)
    for number in range(1, 5):
        turn = scheme_of_query(sampling, number, randomness.sampling(0, "steps", 0))
        words = randomness.sampling(0, "steps", number).by_place
        chosen = select(turn, words, 300, 300, None)
        in_blocks = np.concatenate([chosen.contains(start, 50) for start in range(0, 300, 50)])
        query = SumQuery(
            name="steps", shape=(1,), distance="l2", sampling=sampling, sum=Sum(clip=1.0)
        )
        seen = covered.select_records(query, number).features
        assert np.array_equal(seen, covered.records.features[in_blocks])


def test_a_scheme_without_its_turn_draws_nothing():
    covered = conversation(planned(), rows())
    with pytest.raises(ContractError, match="by turns"):
        draw(Cyclic(groups=2), covered.records, SecretRandomness.rehearsal(1).sampling(0, "q", 1))


def sums_of(covered, plan, query_count=7):
    """x_t by hand: signs of the records that each query sees."""
    (scheduled,) = plan.schedule.releases
    query = scheduled.queries["steps"].query
    return [
        np.sign(covered.select_records(query, number).features[:, 0]).sum()
        for number in range(1, query_count + 1)
    ]


def quiet_values(release, covered):
    """What every query releases, without its noise."""
    answers, _ = collect_answers(release, attrs.evolve(covered, release_through=wide_open))
    return [answer.value[0] for answer in answers]


def test_an_answer_is_the_weighted_sum_of_the_last_sums_plus_noise_on_the_grid():
    plan = planned()
    covered = conversation(plan, rows())
    (release,) = isolate(plan.schedule.releases)
    (planned_query,) = plan.schedule.queries
    sums = sums_of(covered, plan)
    weighted = [
        sum(k * sums[t - i] for i, k in enumerate(BANDS) if i <= t) for t in range(len(sums))
    ]
    quiet = quiet_values(release, covered)
    assert quiet == weighted
    assert np.allclose(solved(BANDS, quiet), sums, atol=1e-9)
    step = planned_query.mechanism.grid(planned_query.query, planned_query.taken).step
    for number, answer in enumerate(collect_answers(release, covered)[0]):
        noise = covered.noise(planned_query.query, number + 1)
        exact = Exact.of(np.array([weighted[number]], dtype=np.int64), 0)
        single = planned_query.release(exact, planned_query.query, noise)
        assert answer.value == single
        assert (answer.value / step) % 1 == 0
    # A second conversation of the same plan begins without past sums.
    again = quiet_values(release, covered)
    assert again == weighted


def test_a_run_publishes_answers_from_which_anyone_solves_and_rebuilds():
    plan = planned(adaptive=True)
    outcome = plan.run(rows(), secret=SecretRandomness.rehearsal(3))
    (model,) = outcome.models.values()
    assert np.allclose(model.estimates, solved(BANDS, model.answers))
    with LocalEngine(rows=32) as engine:
        other = plan.run(rows(), secret=SecretRandomness.rehearsal(3), engine=engine)
    (behind,) = other.models.values()
    assert behind.answers.shape == model.answers.shape


def test_past_sums_stay_in_their_process():
    query = SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0), bands=(2, 1))
    sums = PastSums()
    value = Exact.of(np.array([3], dtype=np.int64), query.sum.unit)
    assert sums.weighted(query, value).integers() == [6]
    assert sums.weighted(query, value.times(0)).integers() == [3]
    assert sums.weighted(query, value.times(0)).integers() == [0]
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(sums)
    with pytest.raises(ContractError, match="exact sums"):
        sums.weighted(query, np.zeros(1))


def test_sums_that_a_learner_keeps_by_itself_are_not_published():
    """They are in the memory of this process; the clean one, which rebuilds the model, has none."""
    Remembers.sums.clear()
    with pytest.raises(ReleaseError, match="nothing is released"):
        planned(kind=Remembers).run(rows(), replaying=CleanProcess())
    assert Remembers.sums


def test_past_sums_end_with_the_answers_whoever_looks_for_them():
    Spies.sums.clear()
    (model,) = planned(kind=Spies).run(rows(), replaying=HERE).models.values()
    # The spy finds them while answers are given; no one finds any when the model is rebuilt.
    assert Spies.sums
    assert model.answers.tolist() == [0]
    Spies.sums.clear()
    with pytest.raises(ReleaseError, match="nothing is released"):
        planned(kind=Spies, reports_misfits=True).run(rows(), replaying=HERE)


def test_weights_stand_in_the_lock_of_a_query_that_has_some_and_in_no_other():
    (entry,) = describe(planned(), format_of(FORMAT))["releases"]["release"]
    assert entry["bands"] == [*BANDS]
    assert entry["sampling"] == {"class": "Cyclic", "groups": 3, "probability": 0.7}
    (entry,) = describe(planned(bands=None), format_of(FORMAT))["releases"]["release"]
    assert "bands" not in entry


@pytest.mark.parametrize("factor", [0, 1, 7, -3, (1 << 20)])
def test_a_sum_times_an_integer_is_that_of_python(factor):
    numbers = [0, 1, -1, (1 << 62) + 12345, -(1 << 63), 987654321987654321]
    product = Exact.of(np.array(numbers, dtype=np.int64), -3).times(factor)
    assert product.integers() == [factor * number for number in numbers]
    assert ((product.low >= 0) & (product.low < 2**32)).all()
    huge = Exact.of(np.array([1], dtype=np.int64), 0)
    for _ in range(4):
        huge = huge.times(1 << 20)
    with pytest.raises(OverflowError):
        huge.times(1 << 20)


def test_a_grid_for_bands_wraps_around_what_is_released():
    grid = Grid(exponent=0, dimension=1, distance="l2", wraps=True)
    for number in (0, 5, -5, 1 << 61, (1 << 61) - 1, -(1 << 61), 3 << 61):
        value = Exact.of(np.array([number >> 3], dtype=np.int64), 3)
        (steps,) = grid.round(value)
        assert (int(steps) - (number >> 3 << 3)) % (1 << 62) == 0
        assert -(1 << 61) <= steps < 1 << 61


def test_the_square_root_is_that_of_running_totals():
    bands = square_root_bands(6, bits=20)
    root = np.array(bands) / 2**20
    assert np.allclose(np.convolve(root, root)[:6], 1.0, atol=1e-5)
    assert square_root_bands(4) == (64, 32, 24, 20)
