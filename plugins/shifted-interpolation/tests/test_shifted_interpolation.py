"""The last iterate's cost: in closed form, by search over schedules, and as printed."""

import math

import numpy as np
import pytest
import scipy.optimize

from dpcore.errors import ParameterError
from dpcore_experiments.compare import judged
from dpcore_experiments.experiment import load_experiment
from dpcore_experiments.running import run
from dpcore_shifted_interpolation import printed
from dpcore_shifted_interpolation.clipping import softmax_contraction, softmax_expansion
from dpcore_shifted_interpolation.statements import STATEMENTS
from dpcore_shifted_interpolation.taut_string import least_mu


def equal_steps(steps, contraction, shift, noise):
    return np.full(steps, contraction), np.full(steps, shift), np.full(steps, noise)


def mu_of_quadratic(steps, rate, curvature, gap, std):
    """Of two runs on (m/2) x^2 - g x and the same with g + gap: Gaussians, step by step."""
    contraction, mean, variance = 1 - rate * curvature, 0.0, 0.0
    for _ in range(steps):
        mean, variance = contraction * mean + rate * gap, contraction**2 * variance
        variance += (rate * std) ** 2
    return mean / math.sqrt(variance)


@pytest.mark.parametrize("curvature", [0.002, 0.5, 9.0])
@pytest.mark.parametrize("steps", [1, 2, 30, 800])
def test_the_last_iterate_of_a_quadratic_attains_the_bound_to_12_digits(steps, curvature):
    rate, gap, std = 0.1, 2 / 50, 0.3
    truth = mu_of_quadratic(steps, rate, curvature, gap, std)
    contraction = 1 - rate * curvature
    string = least_mu(*equal_steps(steps, contraction, rate * gap, rate * std))
    assert string == pytest.approx(truth, rel=1e-12)
    formula = printed.full_batch(2, 50, std, contraction, steps)
    assert formula == pytest.approx(truth, rel=1e-12)


def cost(given_away, noise):
    return float(np.sum((given_away / noise) ** 2))


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_of_shifts_costs_less_than_the_string(seed):
    """A general solver of convex programs finds the same minimum, and random schedules no less."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 6))
    contraction, noise = rng.uniform(0.3, 1.3, steps), rng.uniform(0.2, 2, steps)
    shifts = rng.uniform(0, 1, steps) * rng.integers(0, 2, steps)
    shifts[rng.integers(steps)] = 1.0

    def distances(given_away):
        path = [0.0]
        for factor, shift, part in zip(contraction, shifts, given_away, strict=True):
            path.append(factor * path[-1] + shift - part)
        return np.array(path[1:])

    best = scipy.optimize.minimize(
        cost,
        shifts,
        (noise,),
        method="SLSQP",
        bounds=[(0, None)] * steps,
        constraints=[
            {"type": "ineq", "fun": lambda a: distances(a)[:-1]},
            {"type": "eq", "fun": lambda a: distances(a)[-1]},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    square = least_mu(contraction, shifts, noise) ** 2
    assert square == pytest.approx(best.fun, rel=1e-5)
    for _ in range(300):
        parts, state = np.zeros(steps), 0.0
        for k in range(steps):
            state = contraction[k] * state + shifts[k]
            parts[k] = state * (rng.random() if k < steps - 1 else 1)
            state -= parts[k]
        assert cost(parts, noise) >= square * (1 - 1e-12)


def test_a_late_difference_is_not_hidden_by_noise_that_may_be_contracted_away():
    """Shift over standard deviation, which holds for linear maps, is below what two maps attain:
    both forget the first state, and the second step by itself distinguishes them ."""
    contraction, shifts, noise = np.ones(2), np.array([0.0, 1.0]), np.ones(2)
    linear = 1 / math.sqrt(2)
    forgetful = 1.0  # phi_2(x) = 0 and phi'_2(x) = 1: N(0, 1) against N(1, 1)
    assert linear < forgetful == pytest.approx(least_mu(contraction, shifts, noise))


@pytest.mark.parametrize("contraction", [0.3, 0.95, 0.9999, 1.0])
@pytest.mark.parametrize(("batches", "epochs"), [(2, 5), (4, 1), (3, 9), (40, 20)])
def test_the_cyclic_formula_is_the_string_at_its_worst_place(contraction, batches, epochs):
    options = {"L": 3, "b": 10, "sigma": 0.7, "c": contraction, "l": batches, "E": epochs}
    statement = STATEMENTS["shifted_interpolation/place"]
    places = [
        statement.values({**options, "place": place + 1})["corrected"]["value"]
        for place in range(batches)
    ]
    formula = printed.cyclic(3, 10, 0.7, contraction, batches, epochs)
    assert max(places) == places[-1] == pytest.approx(formula, rel=1e-12)


def test_one_batch_costs_less_than_the_cyclic_formula_says():
    cyclic = printed.cyclic(1, 10, 0.7, 0.5, 1, 5)
    assert 1.1 < cyclic / printed.full_batch(1, 10, 0.7, 0.5, 5) < 1.2


def test_the_formulas_for_sets_are_at_or_above_the_string_and_stop_growing():
    # Whole numbers of steps, 100 of them: the formula is the optimum once the runs are long.
    string = least_mu(*equal_steps(900, 1.0, 0.01, 0.05), diameter=1.0)
    assert string == pytest.approx(printed.full_batch_in_set(1, 10, 0.5, 0.1, 900, 1.0), rel=1e-12)
    assert string == pytest.approx(least_mu(*equal_steps(1200, 1.0, 0.01, 0.05), diameter=1.0))
    assert printed.full_batch_in_set(1, 10, 0.5, 0.1, 50, 1.0) == pytest.approx(
        least_mu(*equal_steps(50, 1.0, 0.01, 0.05), diameter=1.0), rel=1e-12
    )
    # Between 100 and 400 steps all iterates cost less than the formula says.
    assert least_mu(*equal_steps(120, 1.0, 0.01, 0.05)) < 0.6 * string
    # Cyclic: a record in one of three batches, at any place.
    for place in range(3):
        shifts = np.where(np.arange(180) % 3 == place, 0.6 / 7, 0.0)
        mu = least_mu(np.ones(180), shifts, np.full(180, 0.3), diameter=0.55)
        assert 0.8 < mu / printed.cyclic_in_set(2, 7, 1, 0.3, 3, 0.55) <= 1


def test_what_a_last_iterate_saves_is_a_function_of_steps_times_rate_times_ridge():
    """sqrt(2 tanh(x/2)/x) for small steps, x = t eta lam; a minimiser in its place costs more."""
    for x in (1.0, 4.0, 10.0):
        options = {"L": 2, "n": 100, "sigma": 0.1, "eta": 1e-3, "lam": x / 10, "t": 10_000}
        (mu,) = STATEMENTS["shifted_interpolation/steps"].values(options).values()
        saving = math.sqrt(2 * math.tanh(x / 2) / x)
        assert mu["last iterate"] / mu["all iterates"] == pytest.approx(saving, rel=1e-3)
        assert mu["minimiser"] > mu["last iterate"]


def clipped_gradient(state, row, label, clip):
    scores = state @ row
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    chances[label] -= 1
    gradient = np.outer(chances, row)
    return gradient * min(1, clip / np.linalg.norm(gradient))


def test_a_clipped_step_on_ten_classes_stretches_a_distance_by_1_027():
    """Two states, one step each on a batch of equal rows, in the setting of the paper's code."""
    rate, clip, ridge, length, classes = 0.05, 5.0, 0.002, math.sqrt(65), 10
    stretch = softmax_expansion(rate, clip, ridge, length, classes)
    assert 1.0277 < stretch < 1.0278
    assert softmax_contraction(rate, ridge, length) == pytest.approx(0.9999, abs=1e-9)
    row = np.ones(65)
    state = np.outer(np.log([0.03, 0.65, *[0.04] * 8]), row) / 65

    def step(theta):
        return theta - rate * (clipped_gradient(theta, row, 0, clip) + ridge * theta)

    # Both sides of each class's scores; then along the most stretched direction.
    unit, small = row / math.sqrt(65), 1e-4
    sides = [np.outer(small * axis, unit) for axis in np.eye(classes)]
    columns = [(step(state + away) - step(state - away)) @ unit / (2 * small) for away in sides]
    direction = np.linalg.svd(np.transpose(columns))[2][0]
    away = np.outer(small * direction, unit)
    apart = np.linalg.norm(step(state + away) - step(state - away))
    assert apart / np.linalg.norm(2 * away) == pytest.approx(stretch, abs=1e-6)


@pytest.mark.parametrize("clip", [0.5, 3.0])
def test_a_clipped_step_on_one_score_never_stretches(clip):
    rng, rate, ridge, row = np.random.default_rng(3), 0.3, 0.01, np.array([1.0, -1.0, 0.5])
    bound = max(1 - rate * ridge, abs(1 - rate * (row @ row / 4 + ridge)))

    def step(theta):
        gradient = (1 / (1 + math.exp(-theta @ row)) - 1) * row
        gradient *= min(1, clip / max(np.linalg.norm(gradient), 1e-9))
        return theta - rate * (gradient + ridge * theta)

    for _ in range(500):
        theta = rng.standard_normal((2, 3)) * rng.choice([0.1, 3, 10])
        stretch = np.linalg.norm(step(theta[0]) - step(theta[1])) / np.linalg.norm(
            theta[0] - theta[1]
        )
        assert stretch <= bound * (1 + 1e-9)


def test_the_table_of_the_paper_s_setting_is_the_recomputed_one():
    experiment = load_experiment("shifted_interpolation/table1")
    cells = judged(experiment.text, run(experiment, None))
    assert len(cells) == 9
    assert all(cell.within for cell in cells)


def test_a_schedule_that_is_none_is_refused():
    one, none = np.ones(2), np.zeros(2)
    with pytest.raises(ParameterError, match="noise > 0"):
        least_mu(one, one, none)
    with pytest.raises(ParameterError, match="one length"):
        least_mu(one, one, np.ones(3))
    # Long runs, whose first steps are contracted to nothing, are computed all the same.
    assert least_mu(*equal_steps(5000, 0.5, 1.0, 1.0)) == pytest.approx(math.sqrt(3))
