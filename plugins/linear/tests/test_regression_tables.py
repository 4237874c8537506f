"""What a regression table publishes, what it says nothing of, and how often its intervals hold."""

import math

import attrs
import numpy as np
import pytest
from table_simulation import cell, converse, facts, noise_distributions, numbers

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.domain.classes import Classes
from dpcore.encoding.tables import encode_table
from dpcore.errors import ContractError, ParameterError
from dpcore_linear.logistic import LogisticTable
from dpcore_linear.ols import OrdinaryLeastSquares

from builders import price_learner

OLS, LOGISTIC = OrdinaryLeastSquares(), LogisticTable()
WAGES = Domain(
    columns={
        "years": Range(0, 40),
        "town": Categories(("village", "town", "city")),
        "degree": Categories(("no", "yes")),
    },
    target="wage",
    labels=Range(0, 60),
)
LINE = {"intercept": 10.0, "years": 0.4, "town=town": 2.0, "town=city": 5.0, "degree=yes": 8.0}


def wages(count=20_000, seed=0):
    rng = np.random.default_rng(seed)
    years = rng.uniform(0, 40, count)
    town = rng.choice(["village", "town", "city"], count)
    degree = rng.choice(["no", "yes"], count)
    mean = 10 + 0.4 * years + 2 * (town == "town") + 5 * (town == "city") + 8 * (degree == "yes")
    wage = np.clip(mean + rng.normal(size=count) * 4, 0, 60)
    return {"years": years, "town": town, "degree": degree, "wage": wage}


def fit(
    table, learner=OLS, domain=WAGES, epsilon=4.0, seed=3, mechanism=None, adjacency=ADD_REMOVE
):
    plan = price_learner(
        learner,
        domain=domain,
        adjacency=adjacency,
        mechanism=mechanism or Gaussian(),
        epsilon=epsilon,
        delta=1e-6,
    )
    return plan.run(table, secret=SecretRandomness.rehearsal(seed))


@pytest.fixture(scope="module")
def outcome():
    return fit(wages())


def test_coefficients_are_in_the_files_units_and_categories_compare_with_the_first(outcome):
    table = outcome.model
    assert table.names == tuple(LINE)
    truth = np.array([*LINE.values()])
    assert (np.abs(table.params - truth) <= 4 * table.bse).all()
    low, high = table.conf_int().T
    assert np.allclose((low + high) / 2, table.params)
    assert np.allclose((high - low) / 2, 1.959964 * table.bse)
    assert (table.conf_int(0.99)[:, 0] < low).all()
    assert (table.noise_errors < table.bse).all()
    with pytest.raises(ContractError, match="between 0 and 1"):
        table.conf_int(1.0)


def test_the_line_predicts_what_its_coefficients_say(outcome):
    table, rows = outcome.model, wages(50, seed=9)
    full = np.column_stack(
        [
            np.ones(50), rows["years"], rows["town"] == "town", rows["town"] == "city",
            rows["degree"] == "yes",
        ]
    )  # fmt: skip
    assert np.allclose(table.predict(rows), np.clip(full @ table.params, 0, 60))
    low, high = table.intervals(rows)
    assert (low <= table.predict(rows)).all()
    assert (table.predict(rows) <= high).all()


def test_a_lines_interval_is_that_of_its_coefficients_covariance(outcome):
    """predict(interval=) by the definition: x' Cov x at rows of the file, cut to the range."""
    table, rows = outcome.model, wages(50, seed=9)
    predictions, low, high = table.predict(rows, interval=0.9).T
    assert np.array_equal(predictions, table.predict(rows))
    phi = table.features(encode_table(WAGES, rows))
    half = 1.644854 * np.sqrt([row @ table.covariances.total @ row for row in phi])
    assert np.allclose(high - low, 2 * half)
    assert np.allclose((low + high) / 2, predictions)
    noise_low, noise_high = table.intervals(rows, 0.9)
    assert (low < noise_low).all()
    assert (noise_high < high).all()
    with pytest.raises(ContractError, match="between 0 and 1"):
        table.predict(rows, interval=90)


def test_intervals_follow_how_records_were_sampled(outcome):
    """By default both; the noise of a census; less sampling error of a finite population."""
    ways = ("independent", "census", 25_000)
    independent, census, finite = (
        fit(wages(), domain=attrs.evolve(WAGES, sampled=sampled)).model for sampled in ways
    )
    assert np.array_equal(independent.bse, outcome.model.bse)
    # All but a fifth of the population is here.
    sampled = finite.bse**2 - finite.noise_errors**2
    full = independent.bse**2 - independent.noise_errors**2
    assert np.allclose(sampled, 0.2 * full, rtol=0.01)
    assert "population of 25000" in finite.description().tables["coefficients"].population.covers
    # A census has one query, and no other bar than that of the noise.
    assert np.array_equal(census.bse, census.noise_errors)
    figures = census.description().tables["coefficients"]
    assert figures.population is None
    assert "of the noise alone" in figures.covers
    assert (census.noise_errors < independent.noise_errors).all()


@pytest.mark.parametrize("interval", ["population", "both"])
@pytest.mark.parametrize("learner", [OLS, LOGISTIC])
@pytest.mark.parametrize("sampled", [None, "census"])
def test_intervals_about_no_population_are_refused(learner, interval, sampled):
    labels = Classes((0, 1)) if learner is LOGISTIC else WAGES.labels
    domain = attrs.evolve(WAGES, sampled=sampled, labels=labels)
    public = dpcore.Public(domain=domain, randomness=dpcore.PublicRandomness(1), mu=1)
    with pytest.raises(ParameterError, match=r"data\.domain\.sampled: independent"):
        attrs.evolve(learner, interval=interval).queries(public)
    assert attrs.evolve(learner, interval="noise").queries(public)


def test_a_table_tells_the_population_alone_or_the_noise():
    domain = attrs.evolve(WAGES, sampled="independent")
    noise, both, population = (
        fit(wages(), OrdinaryLeastSquares(interval=interval), domain).model
        for interval in ("noise", "both", "population")
    )
    tables = [model.description().tables["coefficients"] for model in (noise, both, population)]
    assert [table.kind for table in tables] == ["noise", "noise", "population"]
    assert [table.population is None for table in tables] == [True, False, True]
    assert np.array_equal(tables[2].low, tables[1].population.low)
    assert np.allclose(tables[1].population.high, both.conf_int()[:, 1])
    kinds = [interval["kind"] for interval in tables[1].data()["intervals"]]
    assert kinds == ["noise", "population"]


def test_p_values_are_both_tails_of_a_normal_law(outcome):
    table = outcome.model
    z = table.params / table.bse
    by_erfc = [math.erfc(abs(size) / math.sqrt(2)) for size in z]
    assert table.pvalues == pytest.approx(by_erfc)
    assert table.pvalues.max() < 1e-3


def test_summary_and_published_table_say_what_they_cover(outcome):
    table = outcome.model
    text = table.summary()
    for word in ("coef", "std err", "P>|z|", "[0.025", "0.975]", "noise share", "independent draws",
                 "clipped to their declared ranges", "5 coefficients"):  # fmt: skip
        assert word in text
    figures = table.description().tables["coefficients"]
    assert figures["coefficient"] == table.names
    assert "town=village" in figures.covers
    assert "noise only" in figures.covers
    assert "independent draws" in figures.population.covers
    assert (figures.low > figures.population.low).all()
    assert (figures.high < figures.population.high).all()
    summary = str(table.shown_summary().tables[0].rows)
    assert "degree=yes" in summary


def test_equal_answers_give_equal_bytes():
    """A table is a function of answers and public facts: other records with the same answers."""
    domain = facts(2, Range(-1, 1))
    rng = np.random.default_rng(0)
    rows, labels = numbers(rng, 3000, 2)
    distributions = noise_distributions(OLS, domain, 1.0)
    first, second = (
        converse(OLS, domain, distributions, Records(features=rows[order], labels=labels[order]),
                 np.random.default_rng(5))
        for order in (np.arange(3000), rng.permutation(3000))
    )  # fmt: skip
    assert first.summary() == second.summary()
    for name, values in first.arrays().items():
        assert values.tobytes() == second.arrays()[name].tobytes()


@pytest.mark.parametrize("learner", [OLS, LOGISTIC])
def test_too_few_records_say_nothing_instead_of_a_bar(learner):
    domain = facts(4, Classes((-1, 1)) if learner is LOGISTIC else Range(-1, 1))
    rng = np.random.default_rng(1)
    rows, labels = numbers(rng, 60, 4)
    labels = np.where(labels > 0, 1, -1) if learner is LOGISTIC else labels
    table = {f"x{place}": rows[:, place] for place in range(4)} | {"y": labels}
    model = fit(table, learner, domain, epsilon=0.5).model
    assert model.reason == "says nothing: too few records for this budget"
    assert "Says nothing: too few records for this budget" in model.summary()
    assert np.isnan(model.bse).all()
    assert np.isinf(model.conf_int()).all()
    if learner is OLS:
        assert np.isin(model.predict(table, interval=0.9)[:, 1:], [-1, 1]).all()
    assert np.isinf(model.description().tables["coefficients"].population.high).all()
    assert np.isfinite(model.params).all()
    assert set(model.arrays()) == {"coefficients"}
    assert not np.isfinite(model.description().tables["coefficients"].low).any()
    with pytest.raises(ContractError, match="too few records"):
        model.intervals(table) if learner is OLS else model.standard_errors(table)


def test_other_noise_than_normal_says_nothing():
    model = fit(wages(2000), mechanism=Laplace()).model
    assert "normal noise alone" in model.reason
    assert np.isnan(model.bse).all()


def test_homoskedastic_errors_need_one_ask():
    learner = OrdinaryLeastSquares(errors="homoskedastic")
    one, two = fit(wages(), learner).model, fit(wages()).model
    assert (
        len(
            learner.queries(
                dpcore.Public(domain=WAGES, randomness=dpcore.PublicRandomness(1), mu=1)
            )
        )
        == 1
    )
    # errors are of one variance here, so that both find nearly the same
    assert np.allclose(one.bse, two.bse, rtol=0.25)
    assert "homoskedastic" in one.summary()


def test_a_table_of_classes_says_odds_and_probabilities():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10, 20_000)
    chances = 1 / (1 + np.exp(-(0.5 * x - 2)))
    table = {"x": x, "y": np.where(rng.random(20_000) < chances, "yes", "no")}
    domain = Domain(columns={"x": Range(0, 10)}, target="y", labels=Classes(("no", "yes")))
    result = fit(table, LOGISTIC, domain)
    model = result.model
    assert result.guarantee.epsilon <= 4
    assert (np.abs(model.params - [-2, 0.5]) <= 4 * model.bse).all()
    points = {"x": np.array([0.0, 4.0, 10.0])}
    by_hand = 1 / (1 + np.exp(-(model.params[0] + model.params[1] * points["x"])))
    assert np.allclose(model.probabilities(points)[:, 1], by_hand)
    assert np.mean(model.predict(table) == table["y"]) > 0.7


def test_replaced_records_and_a_public_number_serve_too():
    domain = attrs.evolve(WAGES, exact=20_000)
    result = fit(wages(), domain=domain, adjacency=REPLACE_ONE)
    assert result.guarantee.epsilon <= 4
    truth = np.array([*LINE.values()])
    assert (np.abs(result.model.params - truth) <= 4 * result.model.bse).all()


def test_a_plan_says_below_how_many_records_a_table_says_nothing():
    domain = facts(2, Range(-1, 1))
    public = dpcore.Public(domain=domain, randomness=dpcore.PublicRandomness(1), mu=0.25)
    (sentence,) = OLS.forecast(public, {})
    assert "below about 730 records" in sentence


def test_a_few_intervals_hold_through_whole_runs():
    """10 runs by the release boundary, 20 slopes: at .95 fewer than 15 covers have a chance below
    1e-3.
    """
    truth, hits = np.array([*LINE.values()])[1:3], 0
    for seed in range(10):
        low, high = fit(wages(3000, seed), seed=seed).model.conf_int().T
        hits += int(((low[1:3] <= truth) & (truth <= high[1:3])).sum())
    assert hits >= 15


CELLS = [
    (OLS, 3, 1000, 1.0, False),
    (OLS, 3, 5000, 0.5, False),
    (OLS, 3, 5000, 1.0, True),
    (OLS, 3, 20_000, 1.0, False),
    (OLS, 5, 2000, 4.0, False),
    (OLS, 5, 5000, 1.0, False),
    (OLS, 5, 5000, 4.0, True),
    (OLS, 10, 10_000, 4.0, False),
    (LOGISTIC, 3, 2000, 0.5, False),
    (LOGISTIC, 3, 2000, 1.0, False),
    (LOGISTIC, 3, 2000, 1.0, True),
    (LOGISTIC, 3, 10_000, 1.0, False),
    (LOGISTIC, 5, 2000, 4.0, False),
    (LOGISTIC, 5, 10_000, 1.0, False),
    (LOGISTIC, 5, 2000, 4.0, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "size", "count", "epsilon", "wrong"), CELLS)
def test_intervals_cover_the_populations_slopes(learner, size, count, epsilon, wrong):
    """1,000 draws: averaged over slopes .93 to .97; one slope has a binomial error of .007."""
    result = cell(learner, size - 1, count, epsilon, 1000, 7, wrong)
    assert 0.93 <= result.cover.mean() <= 0.97, str(result)
    assert result.cover.min() >= 0.92, str(result)
    assert result.refused < 0.05
    # what the noise by itself would cover is less: the difference is what this table adds
    assert result.noise_cover.mean() < result.cover.mean()
