"""A clip that follows a quantile: what a row may be, by brute force, and where the clip ends."""

import itertools
import math

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    Answer,
    Domain,
    Public,
    PublicRandomness,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Range
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.learners.bounds.sum import SumBound
from dpcore.learners.clipping import IntegerRows
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_training.dense import DenseNetwork
from dpcore_training.descent import MOST_STRETCHES, State, power_of_two
from dpcore_training.proposal import COUNT_WEIGHT, Proposer, declared, gradient_weight

from builders import price_learner

RECORDS = 90
QUANTILES = (0.05, 0.5, 0.8)


def facts(**options):
    fields = {"exact": None, "limit": RECORDS} | options
    return Domain(columns={"a": Range(-1, 1)}, target="y", labels=Range(-1, 1), **fields)


def table(count=RECORDS):
    places = np.linspace(-1, 1, count)
    return {"a": places, "y": -places}


def planned(learner, domain=None, epsilon=5.0):
    return price_learner(
        learner, domain=domain or facts(), adjacency=ADD_REMOVE, mechanism=None, epsilon=epsilon
    )


# --- what one record adds


class CountWith(Proposer):
    """Adds the count to a gradient as long as the clip, as if it cost nothing."""

    def rows(self, gradients, count):
        rows = super().rows(gradients, count).integers
        rows[:, :-1] = rows[:, :-1] / gradient_weight(self.quantile)
        return IntegerRows(rows)


def longest(kind, quantile, stretch):
    """The largest square of a row's length in units of the clip, over a grid of gradients."""
    query, axis = declared(1.0), np.array([-1.2, -0.6, 0.0, 0.59999, 0.8, 0.99999, 1e200]) * stretch
    proposer = kind(sum=query, size=3, quantile=quantile, stretch=stretch)
    gradients = [np.array(pair) for pair in itertools.product(axis, axis)]
    rows = proposer.rows(gradients, len(gradients)).integers
    limit = math.floor(math.ldexp(1.0, -query.unit))
    return max(sum(int(n) ** 2 for n in row) for row in rows) / limit**2


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("stretch", [1.0, 2.0**-60, 2.0**40])
def test_no_row_is_longer_than_the_clip_and_some_nearly_are(quantile, stretch):
    assert 1 - 1e-4 < longest(Proposer, quantile, stretch) <= 1
    assert longest(CountWith, quantile, stretch) > 1


@pytest.mark.parametrize("quantile", QUANTILES)
def test_a_row_is_the_weighted_clipped_gradient_and_whether_it_was_short(quantile):
    query, stretch = declared(0.5), 2.0
    proposer = Proposer(sum=query, size=3, quantile=quantile, stretch=stretch)
    gradients = [np.array(pair) for pair in ((0.6, 0.3), (3.0, -4.0), (1e300, 1e300))]
    rows = proposer.rows(gradients, 3)
    weight = math.sqrt(1 - (COUNT_WEIGHT * max(quantile, 1 - quantile)) ** 2)
    for gradient, row in zip(gradients, rows.integers * 2.0**query.unit, strict=True):
        length = math.hypot(*gradient)
        clipped = gradient * min(1 / stretch, 0.5 / length)
        assert row[:2] == pytest.approx(weight * clipped, abs=3e-6)
        count = COUNT_WEIGHT * 0.5 * ((length <= 0.5 * stretch) - quantile)
        assert row[2] == pytest.approx(count, abs=3e-6)
    assert rows.accepted(query.clip, query.unit).tolist() == rows.integers.tolist()


def test_a_gradient_that_is_no_number_adds_no_count():
    proposer = Proposer(sum=declared(1.0), size=3, quantile=0.5)
    bad = [np.array([value, 1.0]) for value in (math.nan, math.inf)]
    assert not proposer.rows(bad, 2).integers.any()


def test_every_pair_of_small_tables_is_within_what_one_record_may_move():
    """All neighbours of up to three of five records: no sum of rows moves by more than C."""
    domain, learner = facts(), DenseNetwork(steps=1, quantile=0.5, clip=0.7)
    public = Public(domain=domain, randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    planned_query = query.with_args(
        {"weights": np.array([0.4, -0.1]), "stretch": power_of_two(-0.5)}
    )
    records = project_table(
        domain, {"a": np.linspace(-1, 1, 5), "y": np.array([1, -1, 0, 0.3, -0.7])}
    )
    limit = math.floor(math.ldexp(0.7, -query.sum.unit))

    def total(places):
        return [
            *learner.total_of(
                planned_query, records.take(np.array(places, dtype=int)), public
            ).integers()
        ]

    moves = [
        sum((a - b) ** 2 for a, b in zip(total((*places, more)), total(places), strict=True))
        for size in range(3)
        for places in itertools.combinations_with_replacement(range(5), size)
        for more in range(5)
    ]
    assert 0.99 * limit**2 < max(moves) <= limit**2


@attrs.frozen(kw_only=True)
class QuantileOfTheBlock(DenseNetwork):
    """Clips to the median of the records that are there."""

    def gradients(self, weights, block, targets, public):
        rows = np.array([row.copy() for row in super().gradients(weights, block, targets, public)])
        return iter(rows / max(1e-9, np.median(np.linalg.norm(rows, axis=1))))


@pytest.mark.parametrize(
    ("learner", "is_lawful"),
    [
        (DenseNetwork(steps=1, quantile=0.4), True),
        pytest.param(QuantileOfTheBlock(steps=1), False, marks=pytest.mark.slow),
    ],
)
def test_a_quantile_of_answers_breaks_no_law_and_one_of_the_records_does(learner, is_lawful):
    case = Case(learner=learner, bound=SumBound(), domain=facts(limit=40), adjacency=ADD_REMOVE)
    assert (not [verdict for verdict in sum_verdicts(case) if verdict.failed]) is is_lawful


# --- what everyone may compute


def test_powers_of_two_are_rounded_to_eighths():
    for exponent in (-64.0, -3.31, -0.06, 0.0, 0.5, 1.99, 64.0):
        exact = 2.0 ** (round(8 * exponent) / 8)
        assert power_of_two(exponent) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("count", [RECORDS, RECORDS // 3])
def test_without_noise_the_clip_ends_at_the_quantile_however_many_records(quantile, count):
    # Weights hardly move, so that the lengths of gradients stay what they are.
    learner = DenseNetwork(steps=120, quantile=quantile, rate=1e-9, clip=2.0)
    public, records = (
        Public(domain=facts(), randomness=PublicRandomness(1)),
        project_table(facts(), table(count)),
    )
    state = learner.start(public)
    while (query := learner.ask(state)) is not None:
        value = learner.total_of(query, records, public).floats()
        answer = Answer(query=query, number=1, value=value, mechanism=Gaussian())
        state = learner.update(state, answer)
    places = np.linspace(-1, 1, count)
    lengths = np.abs(places) * np.hypot(places, 1)
    is_short = lengths <= 2.0 * power_of_two(state.stretches)
    assert is_short.mean() == pytest.approx(quantile, abs=0.08)


@pytest.mark.parametrize("bands", [1, 3])
def test_weights_follow_from_the_answers_alone(bands):
    learner = DenseNetwork(steps=5, quantile=0.5, rate=2.0, bands=bands, average=0.0, clip=0.5)
    outcome = planned(learner).run(table(), replaying=HERE, secret=SecretRandomness.rehearsal(3))
    weights, exponent, estimates = np.zeros(2), 0.0, []
    answers = outcome.answers["release"]
    strategy = answers[0].query.bands or (1,)
    for answer in answers:
        stretch = 2 ** (round(8 * exponent) / 8)
        assert answer.query.args["stretch"] == pytest.approx(stretch)
        assert answer.query.args["weights"] == pytest.approx(weights)
        past = sum(k * x for k, x in zip(strategy[1:], reversed(estimates), strict=False))
        estimates.append((answer.value - past) / strategy[0])
        mean = estimates[-1] * bands / RECORDS
        weights = weights - 2.0 * mean[:-1] * stretch / gradient_weight(0.5)
        exponent -= 0.3 * np.clip(mean[-1] / (COUNT_WEIGHT * 0.5), -1, 1)
    assert outcome.models["release"].weights == pytest.approx(weights)


def test_the_count_adds_one_number_to_each_answer_and_nothing_to_the_price():
    fixed, adaptive = (planned(DenseNetwork(quantile=q)) for q in (None, 0.5))
    (planned_query,), (fixed_query,) = adaptive.schedule.queries, fixed.schedule.queries
    assert (planned_query.query.shape, fixed_query.query.shape) == ((3,), (2,))
    assert adaptive.guarantee.epsilon == fixed.guarantee.epsilon
    assert planned_query.sensitivity.largest == fixed_query.sensitivity.largest
    assert planned_query.noise_distribution.std == pytest.approx(
        fixed_query.noise_distribution.std, rel=1e-3
    )


def test_noise_cannot_drive_the_clip_out_of_its_range():
    learner, domain = DenseNetwork(steps=10**4, quantile=0.5), facts()
    state = learner.start(Public(domain=domain, randomness=PublicRandomness(1)))
    assert isinstance(state, State)
    mean = np.array([0.0, 0.0, 1e12])
    stretches = 0.0
    for _ in range(1000):
        _, stretches = learner._gradient(mean, stretches)
    assert stretches == -MOST_STRETCHES


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.1, math.nan])
def test_quantiles_out_of_range_are_refused(quantile):
    with pytest.raises(ParameterError, match="quantile"):
        DenseNetwork(quantile=quantile)
