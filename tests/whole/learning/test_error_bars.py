"""Confidence intervals of linear models: the distribution of the noise, coverage, and what they may
not read.
"""

import math

import attrs
import numpy as np
import pytest
import scipy.stats

import dpcore
from dpcore import PublicRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.l2_gamma import L2Gamma
from dpcore.encoding.tables import encode_table, project_table
from dpcore.errors import ContractError
from dpcore.interval import LaplaceDistribution, NormalDistribution
from dpcore.learner import Answer, Public
from dpcore.models.error_bars import NoIntervals
from dpcore.models.features.identity import Identity
from dpcore_linear import OutputPerturbation, SufficientStatistics
from dpcore_linear.linearised_noise import LinearisedNoise
from dpcore_models.learners.even_noise import EvenNoise, even_noise

from builders import price_learner
from doubles import domain, table

DRAWS = 400
BAND = 1e-7  # chance that a right bar is called wrong
POINTS = table(5, seed=9)


def priced(learner, records, mechanism=None, epsilon=1.0):
    return price_learner(
        learner,
        domain=domain(records),
        mechanism=mechanism or Gaussian(),
        randomness=PublicRandomness(7),
        epsilon=epsilon,
    )


def query_of(made):
    (scheduled,) = made.schedule.releases
    (planned_query,) = scheduled.queries.values()
    return scheduled, planned_query


def fitted(learner, planned_query, public, value):
    """The model from one released value, as the public part of a run makes it."""
    answer = Answer(
        query=planned_query.query,
        number=1,
        value=value,
        mechanism=planned_query.mechanism,
        noise_distribution=planned_query.noise_distribution,
    )
    return learner.model(learner.update(learner.start(public), answer))


def simulated(made, records, draws=DRAWS):
    """The model without noise, and models at fresh noise of the mechanism's own width."""
    scheduled, planned_query = query_of(made)
    public = Public(domain=scheduled.part, randomness=PublicRandomness(7), mu=scheduled.mu)
    learner = scheduled.learner
    secret = dpcore.SecretRandomness.rehearsal(1).learner(0, planned_query.query.name, 1)
    exact = np.asarray(
        learner.statistic(
            planned_query.query, project_table(domain(records), table(records)), public, secret
        )
    )
    rng = np.random.default_rng([records, 3])
    noisy = (
        fitted(
            learner,
            planned_query,
            public,
            exact + planned_query.noise_distribution.std * rng.normal(size=exact.shape),
        )
        for _ in range(draws)
    )
    return fitted(learner, planned_query, public, exact), noisy


def within(hits, draws, level=0.95):
    return scipy.stats.binomtest(hits, draws, level).pvalue > BAND


@pytest.mark.parametrize("records", [40, 300, 2000])
def test_bars_of_released_coefficients_cover(records):
    learner = OutputPerturbation(features=Identity(), total_regularization=20, clip=1.0)
    truth, noisy = simulated(priced(learner, records), records)
    score = truth.score(encode_table(truth.domain, POINTS))
    single = together = own = 0
    for model in noisy:
        intervals, phi = model.noise_intervals, model.features(encode_table(model.domain, POINTS))
        distance = np.abs(model.score(encode_table(model.domain, POINTS)) - score)
        single += distance[0] <= intervals.half_widths(phi, 0.95, together=False)[0]
        together += (distance <= intervals.half_widths(phi, 0.95, together=True)).all()
        off = abs(model.coefficients[1] - truth.coefficients[1])
        own += off <= 1.959964 * model.coefficient_errors()[1] + intervals.rounding
    assert within(single, DRAWS)
    assert within(own, DRAWS)
    assert scipy.stats.binomtest(int(together), DRAWS, 0.95, "less").pvalue > BAND


@pytest.mark.parametrize("records", [1000, 5000, 20000])
def test_bars_of_released_sums_cover(records):
    learner = SufficientStatistics(features=Identity(), total_regularization=5.0)
    truth, noisy = simulated(priced(learner, records), records)
    score, hits = truth.score(encode_table(truth.domain, POINTS)), 0
    for model in noisy:
        phi = model.features(encode_table(model.domain, POINTS))
        distance = np.abs(model.score(encode_table(model.domain, POINTS)) - score)
        hits += distance[0] <= model.noise_intervals.half_widths(phi, 0.95, together=False)[0]
    assert within(hits, DRAWS)


def test_the_covariance_of_released_sums_is_that_of_simulated_noise():
    """Against the ridge of a matrix with simulated noise, at s = 2 next to an eigenvalue of 170."""
    from dpcore_linear.exact_sums import GramUnits
    from dpcore_linear.gram_intervals import gram_intervals

    rng, units = np.random.default_rng(4), GramUnits.of(1.0, 1.0, 3, 1.0)
    noise_distribution = NormalDistribution(width=2.0 / units.a)
    gram, moments = np.diag([170.0, 200.0, 400.0]), np.array([60.0, -150.0, 90.0])
    theta = np.linalg.solve(gram, moments)
    noise = rng.normal(size=(20000, 3, 3)) * 2.0
    upper = np.triu(noise, 1) / math.sqrt(2)
    noise = upper + upper.transpose(0, 2, 1) + noise * np.eye(3)
    beta = moments + rng.normal(size=(20000, 3)) * units.w * noise_distribution.std
    found = np.linalg.solve(gram + noise, beta[:, :, None])[:, :, 0]
    intervals = gram_intervals(units, noise_distribution, np.linalg.eigh(gram), theta)
    assert isinstance(intervals, LinearisedNoise)
    covariance = intervals.root @ intervals.root.T
    assert covariance == pytest.approx(np.cov(found.T), abs=0.05 * np.abs(covariance).max())


def test_noise_too_large_to_linearise_has_no_bars():
    learner = SufficientStatistics(features=Identity(), total_regularization=1.0)
    _, noisy = simulated(priced(learner, 40, epsilon=0.1), 40, draws=1)
    (model,) = noisy
    assert isinstance(model.noise_intervals, NoIntervals)
    with pytest.raises(ContractError, match="too large"):
        model.intervals(POINTS)


def test_no_bars_where_noise_is_not_normal():
    assert L2Gamma(noise_scale=1.0).noise_distribution(None, None) is None
    for noise_distribution in (None, LaplaceDistribution(scale=1.0)):
        with pytest.raises(ContractError, match="normal noise"):
            even_noise(noise_distribution, 1.0).scores(np.eye(2))


def test_a_run_tells_its_bars_and_check_tells_the_same_before():
    learner = OutputPerturbation(features=Identity(), total_regularization=20, clip=1.0)
    made = priced(learner, 40)
    (model,) = made.run(table(40), secret=dpcore.SecretRandomness.rehearsal(5)).models.values()
    scheduled, planned_query = query_of(made)
    assert scheduled.forecast(PublicRandomness(7)) == (model.noise_intervals.describe(),)
    assert model.coefficient_errors() == pytest.approx(
        np.full(2, planned_query.noise_distribution.std)
    )
    phi = model.features(encode_table(model.domain, POINTS))
    errors = planned_query.noise_distribution.std * np.linalg.norm(phi, axis=1)
    assert model.standard_errors(POINTS) == pytest.approx(errors)
    low, high = model.intervals(POINTS, 0.9)
    centre = model.domain.uncentre(model.score(encode_table(model.domain, POINTS)))
    assert (low <= centre).all()
    assert (centre <= high).all()
    wide = model.intervals(POINTS, 0.9, together=True)
    assert (wide[0] <= low).all()
    assert (high <= wide[1]).all()


def test_equal_answers_give_equal_bars():
    """Intervals read released values and public facts: records that give the same answer change
    none.
    """
    learner = SufficientStatistics(features=Identity(), total_regularization=5.0)
    made = priced(learner, 5000)
    scheduled, planned_query = query_of(made)
    public = Public(domain=scheduled.part, randomness=PublicRandomness(7), mu=scheduled.mu)
    value = np.asarray(planned_query.query.nothing()) + 1000.0
    one, other = (fitted(learner, planned_query, public, value.copy()) for _ in range(2))
    assert np.array_equal(one.noise_intervals.root, other.noise_intervals.root)


def test_the_widths_are_those_of_the_textbook():
    intervals, phi = EvenNoise(std=2.0, longest=5.0, rounding=0.25), np.array([[3.0, -4.0]])
    assert intervals.half_widths(phi, 0.95, together=False) == pytest.approx([19.59964 + 0.25 * 7])
    expected = 10 * math.sqrt(scipy.stats.chi2.ppf(0.95, 2)) + 0.25 * 7
    assert intervals.half_widths(phi, 0.95, together=True) == pytest.approx([expected])
    assert intervals.describe() == "coefficients +- 3.92 each, predictions +- 19.6 at most"


def test_persons_are_clipped_in_released_sums():
    from dpcore.domain.domain import People

    people = People(column="id", records=4)
    learner = SufficientStatistics(
        features=Identity(), total_regularization=5.0, clip="person", counts_for=2.0
    )
    facts = attrs.evolve(domain(), exact=None, people=people)
    rows = {**table(400), "id": [n % 100 for n in range(400)]}
    found = []
    for one in (learner, attrs.evolve(learner, clip="record", counts_for=1.0)):
        made = price_learner(
            one,
            domain=facts,
            adjacency=people.relation(dpcore.ADD_REMOVE),
            randomness=PublicRandomness(7),
        )
        found.append(query_of(made)[1].sensitivity.value)
        (model,) = made.run(rows, secret=dpcore.SecretRandomness.rehearsal(5)).models.values()
        assert np.isfinite(model.predict(POINTS)).all()
    assert found[1] == pytest.approx(2 * found[0])
