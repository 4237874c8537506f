"""Group metrics of experiments: closed forms next to draws, files that are groups, grids."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpcore.errors import SpecError
from dpcore_experiments.data import Split, _parts, within
from dpcore_experiments.grammar import DataText
from dpcore_experiments.groups import Predicted, drawn_gap, exact_gap, parity
from dpcore_experiments.running import _error


class Normal:
    """Noise of a stated variance."""

    def __init__(self, variance):
        self._variance = variance

    def __call__(self, fit, randomness, count):
        return math.sqrt(self._variance) * randomness.standard_normal((count, 6))

    def variance(self, fit):
        return self._variance


def shown(rng, records=80):
    groups = rng.choice(["p", "q"], records, p=[0.25, 0.75])
    matrix = rng.normal(size=(records, 6)) * np.where(groups == "p", 1.6, 0.8)[:, None]
    theta = rng.normal(size=6)
    labels = matrix @ theta + rng.normal(size=records)
    return Predicted(matrix=matrix, coefficients=theta, labels=labels, groups=groups)


def test_the_exact_gap_is_what_many_draws_tend_to():
    # 100,000 draws of each term; a gap of 1.3 is found to .02 (four standard errors).
    hold_out, rng = shown(np.random.default_rng(0)), np.random.default_rng(1)
    noise = Normal(0.7)
    for group in "pq":
        exact = exact_gap(hold_out.matrix, hold_out.groups, group, noise, {}, None)
        drawn = drawn_gap(hold_out, group, lambda: noise(None, rng, 100_000))
        assert drawn == pytest.approx(exact, abs=0.05 * exact + 0.02)
    fractions = [np.mean(hold_out.groups == group) for group in "pq"]
    gaps = [exact_gap(hold_out.matrix, hold_out.groups, group, noise, {}, None) for group in "pq"]
    assert gaps[0] / gaps[1] == pytest.approx((1 - fractions[0]) / (1 - fractions[1]))


def test_the_exact_gap_is_its_formula():
    hold_out = shown(np.random.default_rng(2))
    lengths = [sum(x * x for x in row) for row in hold_out.matrix.tolist()]
    own = [square for square, group in zip(lengths, hold_out.groups, strict=True) if group == "p"]
    formula = 0.7 * abs(sum(own) / len(own) - sum(lengths) / len(lengths))
    assert exact_gap(hold_out.matrix, hold_out.groups, "p", Normal(0.7), {}, None) == pytest.approx(
        formula, rel=1e-6
    )


def test_an_exact_gap_needs_a_variance():
    hold_out = shown(np.random.default_rng(2))
    with pytest.raises(SpecError, match="says its variance"):
        exact_gap(hold_out.matrix, hold_out.groups, "p", lambda: None, {}, None)


def test_parity_on_a_grid_is_at_most_the_exact_one_and_tends_to_it():
    rng = np.random.default_rng(3)
    values, groups = rng.normal(size=300), rng.choice(["p", "q", "r"], 300)
    pairs = [("p", "q"), ("p", "r"), ("q", "r")]
    expected = max(
        stats.ks_2samp(values[groups == a], values[groups == b]).statistic for a, b in pairs
    )
    exact = parity(values, groups, 0)
    assert exact == pytest.approx(expected)
    assert parity(values, groups, 20) <= exact
    assert parity(values, groups, 20000) == pytest.approx(exact, abs=0.02)
    assert parity(values, groups, 2, [-50, 50]) == 0.0  # all between two points


def test_a_split_of_groups_takes_as_many_of_each():
    groups = np.array(["p"] * 10 + ["q"] * 40)
    covered, fitted = _parts(groups, DataText(test=3, train=6), 6)
    assert [np.sum(groups[covered] == g) for g in "pq"] == [3, 3]
    assert [np.sum(groups[fitted] == g) for g in "pq"] == [6, 6]
    assert not {*covered.tolist()} & {*fitted.tolist()}
    covered, fitted = _parts(groups, DataText(share=0.1), None)
    assert [np.sum(groups[covered] == g) for g in "pq"] == [1, 4]
    assert [np.sum(groups[fitted] == g) for g in "pq"] == [9, 36]


def test_scaling_within_groups_takes_each_to_its_own_ends():
    found = within(np.array([1.0, 3.0, 10.0, 30.0]), np.array(["p", "p", "q", "q"]))
    assert found.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_a_clipped_error_is_that_of_predictions_cut_to_the_ends():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(30, 6)), rng.uniform(size=30)
    split = Split(x, y, x, y, np.full(30, ""))
    fit = SimpleNamespace(coefficients=rng.normal(size=6), features=lambda rows: rows)
    noise = rng.normal(size=(7, 6))
    by_hand = [
        (min(max(float(row @ (fit.coefficients + z)), 0.0), 1.0) - label) ** 2
        for z in noise
        for row, label in zip(x, y, strict=True)
    ]
    assert _error("mse", split, fit, noise, [0, 1]) == pytest.approx(np.mean(by_hand))
    assert _error("mse", split, fit, noise, None) > 2 * np.mean(by_hand)
    sure = np.mean((np.clip(x @ fit.coefficients, 0, 1) - y) ** 2)
    assert _error("mse", split, fit, None, [0, 1]) == pytest.approx(sure)
