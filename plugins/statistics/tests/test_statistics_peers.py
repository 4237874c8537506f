"""Known defects of other toolkits' statistics, each as a test that it is not one of ours."""

import math

import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Domain, PrivacyBudget, Range
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.errors import ParameterError
from dpcore.event import Direction
from dpcore_statistics.count import Count
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.mechanisms.thresholded import Thresholded
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance

from mechanisms.mechanism_checks import bound
from statistics_checks import Lab, domain, plan


def test_the_atom_at_a_threshold_is_on_the_side_that_is_priced():
    """Publishing at the threshold itself, or pricing the tail without it, loses an atom a key.

    A coarse law makes the atom visible: it is no part of what a single record may show.
    """
    mechanism = Thresholded(noise_std=0.001, shown=1e-3)
    gap = mechanism.threshold - (1 << 10)
    k = np.arange(-200, 201)
    distribution = (
        np.exp(-0.5 * (k / mechanism.width) ** 2) / np.exp(-0.5 * (k / mechanism.width) ** 2).sum()
    )
    assert distribution[k > gap].sum() <= 1e-3
    assert distribution[k == gap][0] > 0.1 * distribution[k > gap].sum()


def test_the_number_of_records_is_not_published_where_it_is_private():
    """No published number of any statistic is the same for n and n + 1 by more than its noise."""
    with pytest.raises(ParameterError, match="exact count"):
        plan(Mean(column="x"), Gaussian(), domain(100), ADD_REMOVE)
    for learner in (Mean(column="x"), Variance(column="x"), Histogram(column="x", bins=2)):
        lab = Lab.of(plan(learner, Gaussian(), domain()), {"x": np.full(50, 5.0)})
        found = {lab.published(seed).arrays()["estimate"].sum() for seed in range(20)}
        assert len(found) == 20


def test_a_choice_by_permute_and_flip_is_not_priced_as_one_of_bounded_range():
    claim = bound(1.0, "linf")
    query = dpcore.Query(name="q", shape=(3,), distance="linf")
    flip = PermuteAndFlip(epsilon=0.1).event(query, claim)
    assert flip.claims.rho > 3.9 * 0.1**2 / 8
    assert Exponential(epsilon=0.1).event(query, claim).claims.rho < 1.001 * 0.1**2 / 8
    assert flip.curve.upper_at(0.0, Direction.ADD) > Exponential(epsilon=0.1).event(
        query, claim
    ).curve.upper_at(0.0, Direction.ADD)


@pytest.mark.parametrize("values", [[5.0] * 400, [0.0, 10.0] * 200, [3.0], []])
def test_a_variance_is_never_negative_nor_no_number(values):
    for facts, adjacency in ((domain(), ADD_REMOVE), (domain(max(1, len(values))), REPLACE_ONE)):
        if adjacency is REPLACE_ONE and not values:
            continue
        lab = Lab.of(plan(Variance(column="x"), Gaussian(), facts, adjacency), {"x": values})
        for seed in range(30):
            (figures,) = lab.published(seed).tables.values()
            assert np.isfinite(figures.estimate).all()
            assert (figures.estimate[1:3] >= 0).all()
            assert (figures.low[:3] <= figures.estimate[:3]).all()
            assert (figures.estimate[:3] <= figures.high[:3]).all()


def test_a_median_of_equal_values_neither_fails_nor_wanders():
    lab_of = plan(Quantiles(column="x", points=1001), Exponential(), domain(), epsilon=2.0)
    outcome = lab_of.run({"x": np.full(5000, 3.0)})
    (figures,) = outcome.models["release"].tables.values()
    assert figures.estimate[0] == pytest.approx(3.0)
    assert figures.low[0] == pytest.approx(3.0 - 0.005)
    assert figures.high[0] == pytest.approx(3.0 + 0.005)


def test_sums_of_huge_values_do_not_wrap_around():
    facts = Domain(columns={"x": Range(0, 2.0**62)})
    table = {"x": np.full(1000, 2.0**62)}
    lab = Lab.of(plan(Total(column="x"), Gaussian(), facts), table)
    (figures,) = lab.published(1).tables.values()
    assert figures.estimate[0] == pytest.approx(1000 * 2.0**62, rel=0.05)


def test_values_outside_the_range_and_missing_ones_count_where_it_is_declared():
    """Values below the smallest cell, or no numbers at all, leak nothing and break nothing."""
    wild = {"x": [-1e300, 1e300, math.nan, math.inf, -math.inf, "text", None]}
    for missing, inside in ((True, 4), (False, 7)):
        facts = Domain(columns={"x": Range(0, 10, missing=missing)})
        lab = Lab.of(plan(Histogram(column="x", bins=2), Gaussian(), facts), wild)
        assert np.asarray(lab.value).sum() == inside
        for learner in (Mean(column="x"), Total(column="x"), Count(where={"x": {"from": 1}})):
            (figures,) = Lab.of(plan(learner, Gaussian(), facts), wild).published(1).tables.values()
            assert np.isfinite(figures.estimate).all()


def test_an_interval_of_integers_is_not_one_step_short():
    """A normal quantile rounded down covers .883 at s = 1 instead of .95."""
    lab = Lab.of(
        plan(Count(), DiscreteGaussian(noise_width=1.0),
             domain(), epsilon=50.0), {"x": [1.0] * 9},
    )  # fmt: skip
    (figures,) = lab.published(0).tables.values()
    assert min(figures.estimate[0] + 2, 1e9) == figures.high[0]


def test_a_budget_is_not_spent_by_what_is_refused():
    session = dpcore.Session(PrivacyBudget(epsilon=0.5, delta=1e-6), domain(), {"x": [1.0]})
    before = session.left
    with pytest.raises(ParameterError):
        session.histogram("x", epsilon=0.1, edges=(0, 5, 5, 10))
    assert session.left == before
