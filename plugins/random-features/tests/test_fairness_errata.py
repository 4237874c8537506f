"""Every erratum of the paper's fairness section, as the plugin's README states it."""

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest

from dpcore_experiments.groups import Predicted, drawn_gap, exact_gap, parity
from dpcore_random_features.experiment_groups import fit_ridge
from dpcore_random_features.experiment_methods import cosines, fit_cosines
from dpcore_random_features.experiment_noises import ALGORITHM_NOISE, GAP_NOISE
from dpcore_statistics.metrics.parity import distance, floor, tail

FEATURES = 400


def insurance():
    folder = os.environ.get("DPCORE_DATA", "")
    file = Path(folder) / "insurance.csv"
    if not folder or not file.is_file():
        pytest.skip("DPCORE_DATA has no insurance.csv")
    return list(csv.DictReader(file.read_text().splitlines()))


def groups_of(rng, records=200):
    """Two groups of equal size whose columns differ in length."""
    groups = np.array(["p", "q"] * (records // 2))
    x = rng.normal(size=(records, 3)) * np.where(groups == "p", 2.0, 0.5)[:, None]
    return x, rng.uniform(size=records), groups


def test_equation_9_is_exact_for_every_theta_with_the_true_hessian():
    # (1/2) sigma^2 |Tr H_a - Tr H|, where the Hessian of the mean of (f - y)^2 has the trace
    # 2 mean ||x||^2: by finite differences.
    x, y, groups = groups_of(np.random.default_rng(0))
    for theta in (np.zeros(3), np.array([1.0, -2.0, 0.3])):

        def trace(rows, theta=theta):
            def loss(at):
                return np.mean((x[rows] @ at - y[rows]) ** 2)

            step, axes = 1e-3, np.eye(3)
            return sum(
                (loss(theta + step * e) - 2 * loss(theta) + loss(theta - step * e)) / step**2
                for e in axes
            )

        everyone, own = np.ones(200, bool), groups == "p"
        assert trace(own) == pytest.approx(2 * (x[own] ** 2).sum(axis=1).mean(), rel=1e-5)
        shown = Predicted(matrix=x, coefficients=theta, labels=y, groups=groups)
        noise = {"epsilon": 0.1, "delta": 1e-5, "movement": 4, "features": FEATURES}
        variance = GAP_NOISE.variance(None, **noise)
        printed = 0.5 * variance * abs(trace(own) - trace(everyone))
        assert exact_gap(shown.matrix, shown.groups, "p", GAP_NOISE, noise, None) == pytest.approx(
            printed, rel=1e-5
        )
        halved = 0.5 * variance * abs(trace(own) - trace(everyone)) / 2  # with Tr H = E||x||^2
        assert halved == pytest.approx(printed / 2)


def test_algorithm_1_adds_375_5_at_epsilon_1():
    # Features of squared norm N: R = N sigma^2 = 8 ln(1.25/delta)/(eps^2 (1 - 2 eta)).
    eta, delta = 3 / 8, 1e-5
    movement = 2 / math.sqrt(1 - 2 * eta)
    sigma_2 = ALGORITHM_NOISE.variance(
        None, epsilon=1.0, delta=delta, movement=movement, features=4000
    )
    assert 4000 * sigma_2 == pytest.approx(8 * math.log(1.25 / delta) / (1 - 2 * eta))
    assert 4000 * sigma_2 == pytest.approx(375.55, abs=0.01)


def test_cosines_have_a_small_gap_and_cosines_beside_sines_have_none():
    rng = np.random.default_rng(1)
    x, _, groups = groups_of(rng)
    w, b = rng.normal(size=(3, FEATURES)), 2 * math.pi * rng.uniform(size=FEATURES)
    both = np.hstack([np.cos(x @ w), np.sin(x @ w)]) / math.sqrt(FEATURES)
    squares = [(matrix**2).sum(axis=1) for matrix in (cosines(x, w, b), both)]
    assert squares[0].std() == pytest.approx(1 / math.sqrt(2 * FEATURES), rel=0.25)
    assert squares[1] == pytest.approx(np.ones(200))
    gaps = [abs(s[groups == "p"].mean() - s[groups == "q"].mean()) for s in squares]
    assert gaps[0] > 1e-4
    assert gaps[1] < 1e-12


def test_equal_groups_have_equal_gaps_though_one_is_harmed_more():
    x, y, groups = groups_of(np.random.default_rng(2))
    shown = Predicted(matrix=x, coefficients=np.zeros(3), labels=y, groups=groups)
    noise = {"epsilon": 0.1, "delta": 1e-5, "movement": 4, "features": FEATURES}
    gaps = [exact_gap(shown.matrix, shown.groups, group, GAP_NOISE, noise, None) for group in "pq"]
    assert gaps[0] == pytest.approx(gaps[1])
    risks = [(x[groups == group] ** 2).sum(axis=1).mean() for group in "pq"]
    assert risks[0] > 10 * risks[1]


def test_a_hundred_draws_are_off_by_far_more_than_the_gap():
    rng = np.random.default_rng(3)
    x, y, groups = groups_of(rng)
    fit = fit_cosines(x, y, rng, features=FEATURES, frequency_sd=0.01, solver="pinv")
    shown = Predicted(
        matrix=fit.features(x), coefficients=fit.coefficients, labels=y, groups=groups
    )
    noise = {"epsilon": 0.05, "delta": 1e-5, "movement": 4, "features": FEATURES}
    exact = exact_gap(shown.matrix, shown.groups, "p", GAP_NOISE, noise, fit)
    drawn = [drawn_gap(shown, "p", lambda: GAP_NOISE(fit, rng, 100, **noise)) for _ in range(8)]
    assert np.median(drawn) > 20 * exact
    # The formula of its error: sqrt(2) v sqrt(2 ||Phi^T Phi/n||_F^2 / r), half-normal.
    variance = GAP_NOISE.variance(fit, **noise)
    gram = np.linalg.norm(shown.matrix.T @ shown.matrix / 200)
    error = math.sqrt(2) * variance * math.sqrt(2 * gram**2 / 100)
    assert error / 4 < np.mean(drawn) < 2 * error


def test_the_parity_of_noise_alone_is_that_of_a_noisy_model():
    # Scale-free: noise far larger than the coefficients leaves data-free noise.
    rng = np.random.default_rng(4)
    x, y, groups = groups_of(rng)
    fit = fit_cosines(x, y, rng, features=FEATURES, frequency_sd=1, solver="zero")
    matrix = fit.features(x)
    noises = 1e6 * rng.normal(size=(40, FEATURES))
    ridge = np.linalg.lstsq(matrix, y, rcond=None)[0]
    single, noisy = (
        np.mean([parity(matrix @ (theta + z), groups, 0) for z in noises])
        for theta in (np.zeros(FEATURES), ridge)
    )
    assert noisy == pytest.approx(single, abs=1e-3)


def test_the_distance_by_sex_depends_on_the_grid():
    rows = insurance()
    y = np.array([float(row["charges"]) for row in rows])
    sex = np.array([row["sex"] for row in rows])
    unit = (y - y.min()) / (y.max() - y.min())
    assert parity(unit, sex, 500, [-20, 20]) == pytest.approx(0.0595, abs=5e-5)
    assert parity(unit, sex, 500) == pytest.approx(0.0703, abs=5e-5)
    exact = distance(y[sex == "male"], y[sex == "female"])
    assert exact == pytest.approx(0.0717, abs=5e-5)
    assert floor(676, 662) == pytest.approx(0.0475, abs=5e-5)
    assert tail(exact, 676, 662) == pytest.approx(0.064, abs=2e-3)


def test_inputs_scaled_by_group_need_the_group_to_predict():
    rows = insurance()
    bmi = np.array([float(row["bmi"]) for row in rows])
    smoker = np.array([row["smoker"] for row in rows])
    ends = {g: (bmi[smoker == g].min(), bmi[smoker == g].max()) for g in ("yes", "no")}
    assert ends["yes"] != ends["no"]  # one value is two inputs, and the ends are private


def test_ridge_is_its_definition():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    fit = fit_ridge(x, y, rng, regularization=0.7)
    gradient = x.T @ (x @ fit.coefficients - y) + 0.7 * fit.coefficients
    assert gradient == pytest.approx(np.zeros(4), abs=1e-12)
    assert fit.features(x) is x


def test_the_shortest_solution_of_more_records_than_features_is_least_squares():
    from dpcore_random_features.experiment_methods import shortest

    rng = np.random.default_rng(6)
    matrix, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    matrix[:, 3] = matrix[:, 2]
    assert shortest(matrix, y) == pytest.approx(np.linalg.pinv(matrix) @ y, abs=1e-10)
