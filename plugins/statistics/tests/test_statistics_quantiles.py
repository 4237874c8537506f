"""Quantiles by choices: ranks from their definition, the range of scores, intervals, and ties."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Answer, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_statistics.quantiles import Quantiles, RankBound

from statistics_checks import band, domain, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)


def definition(values, q, points, shift=Fraction(0)):
    """The score of every grid point, by counting; ends have nothing beyond them."""
    grid = [Fraction(10 * k, points - 1) for k in range(points)]
    step = grid[1]
    rounded = [grid[round(Fraction(v) / step)] for v in values]
    rank, scores = q * len(values) + shift, []
    for k, t in enumerate(grid):
        below, at_most = sum(v < t for v in rounded), sum(v <= t for v in rounded)
        above = below - rank if k > 0 else 0
        beneath = rank - at_most if k < points - 1 else 0
        scores.append(-max(0, above, beneath))
    return scores


def scores(learner, values, shift=None):
    public = Public(domain=domain(), randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    if shift is not None:
        import attrs

        query = attrs.evolve(query, args={"shift": shift})
    return learner.statistic(query, project_table(domain(), {"x": values}), public, SECRET)


@pytest.mark.parametrize("shift", [-7, 0, 5])
def test_scores_are_those_of_the_definition(shift):
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 9, 30):
        values = rng.integers(0, 11, size).astype(float)  # atoms and ties
        found = scores(Quantiles(column="x", quantiles=(0.3,), points=11), values, shift)
        report = definition(values, Fraction(3, 10), 11, Fraction(shift, 10))
        assert found.tolist() == [float(10 * one) for one in report]


def test_a_value_between_two_points_counts_at_the_nearer_one():
    learner = Quantiles(column="x", points=11)
    assert scores(learner, [3.4]).argmax() == 3
    assert scores(learner, [3.6]).argmax() == 4


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_claims_are_the_largest_moves_and_ranges_of_all_neighbours(q, adjacency):
    """All tables of up to four values on four points, from the definition; both are attained, but
    for the range of a replacement, which is claimed as twice the largest move."""
    learner = Quantiles(column="x", quantiles=(float(q),), points=4)
    records = None if adjacency is ADD_REMOVE else 4
    public = Public(domain=domain(records), randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    claim = RankBound().sensitivity(query, learner, public, adjacency)
    point = [Fraction(10 * k, 3) for k in range(4)]
    move = cutoff = Fraction(0)
    for size in range(4):
        for rest in itertools.product(point, repeat=size):
            for one, other in itertools.product(point, [None, *point]):
                if (other is None) != (adjacency is ADD_REMOVE):
                    continue
                first = [*rest, one]
                second = [*rest] if other is None else [*rest, other]
                for shift in (Fraction(0), Fraction(-1), Fraction(2)):
                    pairs = zip(
                        definition(first, q, 4, shift), definition(second, q, 4, shift), strict=True
                    )
                    moved = [a - b for a, b in pairs]
                    move = max(move, *map(abs, moved))
                    cutoff = max(cutoff, max(moved) - min(moved))
    assert move * q.denominator == claim.value  # attained
    assert cutoff * q.denominator <= claim.range
    if adjacency is ADD_REMOVE:
        assert claim.value == max(q.numerator, q.denominator - q.numerator)
        assert claim.range == 2 * claim.value


def published(priced, values, seed):
    """One run's table, at known randomness."""
    (scheduled,) = priced.schedule.releases
    facts, learner = scheduled.public(PublicRandomness(1)), scheduled.learner
    records = project_table(priced.request.domain, {"x": values})
    state, number = learner.start(facts), 0
    while (query := learner.ask(state)) is not None:
        number += 1
        planned_query = scheduled.queries[query.name]
        value = learner.statistic(query, records, facts, SECRET)
        noise = SecretRandomness.rehearsal(seed).noise(0, query.name, number)
        answer = Answer(
            query=query,
            number=number,
            value=planned_query.release(value, query, noise),
            mechanism=planned_query.mechanism,
            noise_distribution=planned_query.noise_distribution,
        )
        state = learner.update(state, answer)
    (figures,) = learner.model(state).tables.values()
    return figures


@pytest.mark.parametrize("size", [15, 150, 1500])
@pytest.mark.parametrize("mechanism", [Exponential(), PermuteAndFlip()])
def test_an_interval_holds_a_quantile_of_the_values(size, mechanism):
    draws, rng = 60, np.random.default_rng(size)
    values = np.where(rng.random(size) < 0.4, 2.0, 10 * rng.beta(1, 3, size))  # an atom of 40 %
    delta = 1e-6 if isinstance(mechanism, Exponential) else 0.0
    learner = Quantiles(column="x", quantiles=(0.3, 0.5), points=101, method="choice")
    priced = plan(learner, mechanism, domain(), delta=delta, epsilon=2.0)
    found = np.zeros(2)
    for seed in range(draws):
        figures = published(priced, values, seed)
        for k, q in enumerate((0.3, 0.5)):
            low, high = figures.low[k] - 1e-9, figures.high[k] + 1e-9
            found[k] += (values < low).sum() <= q * size <= (values <= high).sum()
    assert (found >= band(draws)[0]).all()


def test_intervals_shrink_with_the_records_and_are_everything_for_few():
    learner = Quantiles(column="x", points=101)
    priced = plan(learner, Exponential(), domain(), epsilon=2.0)
    rng = np.random.default_rng(0)
    few, many = (published(priced, rng.uniform(4, 6, size), 1) for size in (3, 4000))
    assert few.low[0] <= 4
    assert few.high[0] >= 6
    assert many.high[0] - many.low[0] < 0.2
    assert 4.9 < many.estimate[0] < 5.1


def test_thousands_of_ties_neither_fail_nor_hide_the_quantile():
    """A float softmax underflows to 0/0 here, and gaps between equal values have no width."""
    learner = Quantiles(column="x", quantiles=(0.1, 0.5, 0.9), points=1001, method="choice")
    priced = plan(learner, Exponential(), domain(), epsilon=1.0)
    values = np.repeat([1.0, 7.0], [4000, 6000])
    assert published(priced, values, 5)["estimate"] == pytest.approx((1.0, 7.0, 7.0), abs=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantiles": ()},
        {"quantiles": (0.5, 0.5)},
        {"quantiles": (0.5, 0.25)},
        {"quantiles": (0.0,)},
        {"quantiles": (1.0,)},
        {"quantiles": (0.1234,)},
        {"points": 1},
        {"points": 1 << 17},
        {"method": "recursion"},
        {"by": ("g",), "method": "choice"},
    ],
)
def test_quantiles_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError):
        Quantiles(column="x", **wrong)


def test_without_an_interval_a_quantile_is_asked_once():
    single = Quantiles(column="x", points=11, interval=False)
    (query,) = single.queries(Public(domain=domain(), randomness=PublicRandomness(1), mu=1.0))
    assert query.at_most == 1
    values = np.linspace(0, 10, 2001)
    (found,) = plan(single, Exponential(), domain(), epsilon=1.0).run({"x": values}).models.values()
    ((_, estimate, low, high),) = found.tables[""].rows()
    assert abs(estimate - 5) <= 1
    assert (low, high) == (0.0, 10.0)
    assert "none was asked for" in found.tables[""].covers
