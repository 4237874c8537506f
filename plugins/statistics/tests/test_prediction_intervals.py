"""Prediction intervals of a model on its hold-out: sensitivities, cover by draws, and refusals."""

import itertools

import attrs
import numpy as np
import pytest
from scipy.stats import norm as normal

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
from dpcore.domain.classes import Classes
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, ParameterError, UnfitTargetError
from dpcore.specs.spec import spec_of_text
from dpcore_statistics.ranks.prediction_interval import PredictionInterval, rank_margin
from dpcore_statistics.statistic import StatisticBound

from builders import price_learner

HALF = 2.0


def facts(exact=None, **more):
    columns = {"g": Categories(("p", "q")), "predicted": Range(-HALF, HALF)}
    fields = {"columns": columns, "target": "y", "labels": Range(-HALF, HALF), **more}
    return Domain(exact=exact, **fields)


def public_of(domain):
    return Public(domain=domain, randomness=PublicRandomness(1), mu=0.3)


def distribution_of(learner, domain, epsilon):
    plan = price_learner(
        learner,
        domain=domain,
        adjacency=ADD_REMOVE if domain.exact is None else REPLACE_ONE,
        epsilon=epsilon,
        delta=1e-6,
    )
    (planned_query,) = plan.schedule.releases[0].queries.values()
    return planned_query.mechanism, planned_query.mechanism.noise_distribution(
        planned_query.query, planned_query.sensitivity
    )


def published(learner, domain, errors, distributions, rng, group="p"):
    """The table of records with these errors: their exact sums, and noise on the grid."""
    public, (mechanism, distribution) = public_of(domain), distributions
    size = len(errors)
    records = project_table(
        domain, {"g": np.full(size, group), "predicted": np.zeros(size), "y": np.asarray(errors)}
    )
    query = learner.query(public)
    exact = learner.total_of(query, records, public).floats()
    steps = np.rint(rng.normal(size=exact.shape) * (distribution.width / distribution.step))
    value = exact + steps * distribution.step
    answer = Answer(
        query=query, number=1, value=value, mechanism=mechanism, noise_distribution=distribution
    )
    return learner.tables(answer, public).tables[""]


@pytest.mark.parametrize("by", [(), ("g",)])
@pytest.mark.parametrize("exact", [None, 3])
def test_no_pair_of_a_small_universe_moves_further_than_claimed(by, exact):
    """All records with a group, a prediction and a label on a grid: the claims are attained."""
    learner, domain = PredictionInterval(by=by, points=9), facts(exact)
    public = public_of(domain)
    ends = np.linspace(-HALF, HALF, 5)
    group, predicted, label = map(np.array, zip(*itertools.product("pq", ends, ends), strict=True))
    block = project_table(domain, {"g": group, "predicted": predicted, "y": label})
    query = learner.query(public)
    values = learner.contributions(query, block, public).reshape(50, -1)

    def claim(relation):
        return StatisticBound().sensitivity(query, learner, public, relation).unit

    apart = np.linalg.norm(values[:, None] - values, axis=2).max()
    assert np.linalg.norm(values, axis=1).max() <= claim(ADD_REMOVE) * (1 + 1e-9)
    assert np.linalg.norm(values, axis=1).max() > 0.999 * claim(ADD_REMOVE)
    assert 0.95 * claim(REPLACE_ONE) < apart <= claim(REPLACE_ONE)


def test_errors_are_rounded_up_so_that_a_point_holds_what_it_counts():
    learner, domain = PredictionInterval(points=5), facts()
    errors = np.array([0.0, 0.1, 1.0, 1.01, -2.0, 2.0])
    records = project_table(domain, {"g": np.full(6, "p"), "predicted": np.zeros(6), "y": errors})
    _, points = learner._places(records, public_of(domain))
    assert points.tolist() == [0, 1, 1, 2, 2, 2]
    widest = project_table(domain, {"g": ["p"], "predicted": [-HALF], "y": [HALF]})
    assert learner._places(widest, public_of(domain))[1].tolist() == [4]


def test_without_noise_it_is_the_split_conformal_quantile():
    """By definition: the ceil(q (n + 1))-th smallest error, on a fine grid."""
    learner, domain = PredictionInterval(points=2001, levels=(0.5, 0.9)), facts(400)
    mechanism, distribution = distribution_of(learner, domain, 1.0)
    quiet = (mechanism, attrs.evolve(distribution, width=1e-9, step=1e-12))
    errors = np.random.default_rng(0).normal(size=400).clip(-2, 2) * 0.5
    table = published(learner, domain, errors, quiet, np.random.default_rng(1))
    for level, half in zip((0.5, 0.9), table.estimate, strict=True):
        rank = int(np.ceil(level * 401))
        exact = np.sort(np.abs(errors))[rank - 1]
        assert exact <= half <= exact + 2 * HALF / 2000 + 1e-9


@pytest.mark.parametrize("level", [0.1, 0.5, 0.65, 0.8, 0.83, 0.9, 0.99])
@pytest.mark.parametrize("deviation", [1e-3, 0.3, 2.0, 13.0])
def test_the_margin_suffices_for_every_number_of_records(level, deviation):
    """The sum of the theorem, term by term, for each n: nothing is integrated."""
    for n in [*range(80), 100, 300, 1000, 3000]:
        for margin in {rank_margin(level, deviation, None), rank_margin(level, deviation, n)}:
            j = np.arange(n + 1)
            rest = margin + level * (n + 1) - j
            at_least = np.where(rest >= 0, normal.cdf(rest / deviation), 0.0).sum()
            assert at_least >= level * (n + 1) * (1 - 1e-12)


@pytest.mark.parametrize("n", [0, 1, 4, 9, 30, 100])
@pytest.mark.parametrize("is_public", [False, True])
def test_few_records_are_covered_too_by_the_definition_of_the_rule(n, is_public):
    """8,000 draws of errors, noise of uneven deviations and a new record, with and without ties.

    Within four binomial errors of the level.
    """
    rng, level, points, draws = np.random.default_rng(n), 0.9, 12, 8_000
    deviations = np.where(np.arange(points) % 3, 3.0, 0.2)
    margin = rank_margin(level, 3.0, n if is_public else None)
    for ties in (1, 4, points):
        errors = rng.integers(0, ties, (draws, n + 1)) * (points // ties) + (points // ties - 1)
        counts = (errors[:, :-1, None] <= np.arange(points)).sum(axis=1)
        noise = rng.normal(size=(draws, points)) * deviations
        passing = counts + noise - level * (n + 1) >= margin
        failing = ~passing[:, ::-1]
        first = np.where(passing.all(axis=1), 0, points - np.argmax(failing, axis=1))
        first = np.minimum(first, points - 1)
        covered = float((errors[:, -1] <= first).mean())
        assert covered >= level - 4 * np.sqrt(level * (1 - level) / draws)


def test_too_few_records_give_the_whole_range_or_say_nothing():
    domain, rng = facts(), np.random.default_rng(2)
    for cap, worst in ((None, 2 * HALF), (1.0, np.inf)):
        learner = PredictionInterval(cap=cap)
        distributions = distribution_of(learner, domain, 0.5)
        assert published(learner, domain, [0.1] * 20, distributions, rng).estimate.tolist() == [
            worst
        ]


def test_each_group_has_an_interval_of_its_own():
    learner, domain = PredictionInterval(by=("g",), levels=(0.8, 0.9)), facts()
    rng = np.random.default_rng(3)
    table = published(
        learner, domain, rng.uniform(-1, 1, 5000), distribution_of(learner, domain, 2.0), rng
    )
    assert table["g"] == ("p", "p", "q", "q")
    assert table["probability"] == (0.8, 0.9, 0.8, 0.9)
    # the other group is empty: its intervals are the whole range
    assert table.estimate[2:].tolist() == [2 * HALF] * 2
    assert 0.8 < table.estimate[0] < table.estimate[1] < 1.1


def test_what_has_no_interval_is_refused_before_any_record_is_read():
    def refusal(domain, error, learner=PredictionInterval(), mu=0.3):  # noqa: B008
        with pytest.raises(error) as caught:
            learner.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=mu))
        return str(caught.value)

    good = facts()
    assert "name that release" in refusal(
        attrs.evolve(good, columns={"a": Range(0, 1)}), ParameterError
    )
    people = People(column="id", records=2)
    assert "each person" in refusal(attrs.evolve(good, people=people), NoClaimError)
    assert "normal noise" in refusal(good, NoClaimError, mu=None)
    assert "numbers" in refusal(attrs.evolve(good, labels=Classes(("no", "yes"))), UnfitTargetError)
    assert "at most 4" in refusal(good, ParameterError, PredictionInterval(cap=5.0))
    with pytest.raises(ParameterError):
        PredictionInterval(levels=(1.0,))


SPEC = """
dpcore: 1
data:
  source: none.csv
  target: y
  domain:
    records: 6000
    columns: {x: [-1, 1]}
    target: [-2, 2]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-6}
releases:
  - {name: line, learner: linear.ols}
  - {name: interval, of: line, learner: {name: statistics.prediction_interval, levels: [0.5, 0.9]}}
evaluate: {holdout: 0.5}
"""


def test_a_spec_publishes_intervals_that_hold_new_records():
    rng = np.random.default_rng(4)

    def draw(count):
        x = rng.uniform(-1, 1, count)
        return {"x": x, "y": np.clip(x + 0.3 * rng.normal(size=count), -2, 2)}

    plan = spec_of_text(SPEC, "spec.yaml").price()
    outcome = plan.run(draw(6000), secret=SecretRandomness.rehearsal(1))
    table, fresh = outcome.models["interval"].tables[""], draw(20_000)
    errors = np.abs(outcome.models["line"].predict(fresh) - fresh["y"])
    for level, half in zip((0.5, 0.9), table.estimate, strict=True):
        # Of one hold-out of 3,000: four deviations of a share, and 20 ranks of noise.
        near = 4 * np.sqrt(level * (1 - level) / 3000) + 20 / 3000
        assert level - near <= np.mean(errors <= half) <= level + near + 0.01


LAWS = {
    "normal": lambda rng, size: 0.4 * rng.normal(size=size),
    "mostly equal": lambda rng, size: np.where(
        rng.random(size) < 0.8, 0.25, rng.uniform(0, 2, size)
    ),
    "skewed": lambda rng, size: 0.2 * rng.gamma(0.7, 1.0, size),
}


@pytest.mark.slow
@pytest.mark.parametrize("distribution", LAWS)
@pytest.mark.parametrize(
    ("exact", "count", "epsilon", "widest"),
    [
        (None, 1000, 0.5, None),
        (None, 1000, 1.0, None),
        (5000, 5000, 0.5, None),
        (5000, 5000, 1.0, 1.1),
        (None, 5000, 1.0, 1.1),
        (None, 5000, 4.0, 1.1),
    ],
)
def test_intervals_cover_new_records(distribution, exact, count, epsilon, widest):
    """1,000 draws with a new record each: .90 within three binomial errors of .0095.

    Widths are over the split conformal interval without noise.
    """
    learner, domain = PredictionInterval(), facts(exact)
    distributions, rng = distribution_of(learner, domain, epsilon), np.random.default_rng(11)
    hits, ratios = 0, []
    for _ in range(1000):
        errors = np.clip(LAWS[distribution](rng, count), -HALF, HALF)
        half = published(learner, domain, errors, distributions, rng).estimate[0]
        hits += abs(float(np.clip(LAWS[distribution](rng, 1), -HALF, HALF)[0])) <= half
        ratios.append(half / np.sort(np.abs(errors))[int(np.ceil(0.9 * (count + 1))) - 1])
    assert hits / 1000 >= 0.90 - 0.0285
    if widest:
        assert np.mean(ratios) <= widest
