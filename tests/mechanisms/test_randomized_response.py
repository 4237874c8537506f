"""Randomized response: the exact law, its event, and refusals."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.randomized_response import RandomizedResponseEvent
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.errors import ContractError, ParameterError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise

DRAWS = 100_000
MANY = Query(name="answers", shape=(DRAWS,), distance="hamming")
ONE = Query(name="answer", shape=(1,), distance="hamming")


@pytest.mark.parametrize("categories", [2, 5])
def test_reports_follow_the_stated_probabilities(categories: int) -> None:
    mechanism = RandomizedResponse(epsilon=1.2, categories=categories)
    reports = mechanism.release(np.ones(DRAWS), MANY, bound(1.0, "hamming"), noise(f"{categories}"))
    weights = np.ones(categories)
    weights[1] = math.exp(1.2)
    counts = np.bincount(reports.astype(int), minlength=categories)
    assert stats.chisquare(counts, weights / weights.sum() * DRAWS).pvalue > 1e-4
    weights[1] = math.exp(1.3)
    assert stats.chisquare(counts, weights / weights.sum() * DRAWS).pvalue < 1e-4


@pytest.mark.parametrize("categories", [2, 4])
def test_the_event_is_the_curve_of_the_two_laws(categories: int) -> None:
    mechanism = RandomizedResponse(epsilon=0.9, categories=categories)
    event = mechanism.event(ONE, bound(1.0, "hamming"))
    p = np.ones(categories)
    q = p.copy()
    p[0] = q[1] = math.exp(0.9)
    for epsilon in np.linspace(0, 1, 11):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum()
        assert event.curve.upper_at(epsilon, Direction.ADD) == pytest.approx(exact, abs=1e-12)


def test_sampled_losses_of_two_differing_entries_stay_below_the_event() -> None:
    mechanism, sensitivity = RandomizedResponse(epsilon=0.7), bound(2.0, "hamming")
    query = Query(name="pairs", shape=(DRAWS, 2), distance="hamming")
    p = mechanism.release(np.ones((DRAWS, 2)), query, sensitivity, noise("p")).sum(axis=1)
    q = mechanism.release(np.zeros((DRAWS, 2)), query, sensitivity, noise("q")).sum(axis=1)
    event = mechanism.event(query, sensitivity)
    assert event.claims.pure >= 1.4
    assert excess(event, p, q) <= 0
    single = RandomizedResponseEvent(epsilon=0.7, classes=2, adjacency=REPLACE_ONE)
    assert excess(single, p, q) > 0


def test_at_costs_one_over_scale_whatever_the_number_of_entries() -> None:
    for entries in (1.0, 3.0):
        mechanism = RandomizedResponse().at(2.0, ONE, bound(entries, "hamming"))
        epsilon = mechanism.event(ONE, bound(entries, "hamming")).claims.pure
        assert epsilon == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("value", [[2.0], [-1.0], [0.5], [math.nan]])
def test_what_is_no_category_is_an_error_and_draws_nothing(value: list[float]) -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        RandomizedResponse(epsilon=1.0).release(np.array(value), ONE, bound(1.0, "hamming"), stream)
    assert (stream.words(3) == noise("untouched").words(3)).all()


def test_shapes_and_dtypes_are_kept() -> None:
    query = Query(name="q", shape=(2, 3), distance="hamming")
    given = np.array([[0, 1, 1], [1, 0, 0]])
    reports = RandomizedResponse(epsilon=60.0).release(
        given, query, bound(1.0, "hamming"), noise("shape")
    )
    assert (reports == given).all()  # wrong with probability below 6 exp(-60)
    assert reports.dtype == np.float64


def test_parameters_out_of_range_are_refused() -> None:
    for categories in (1, 2.0, True):
        with pytest.raises(ParameterError, match="categories"):
            RandomizedResponse(categories=categories)
    with pytest.raises(ParameterError, match="epsilon"):
        RandomizedResponse(epsilon=math.inf)
    complex_query = Query(name="q", shape=(1,), distance="hamming", field="complex")
    with pytest.raises(ParameterError, match="real"):
        RandomizedResponse(epsilon=1.0).event(complex_query, bound(1.0, "hamming"))
