"""Lemmas of the paper by their definitions: quadrature, and targets that take two values."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from dpcore_random_features.statements import STATEMENTS


def sides(name, **options):
    values = STATEMENTS[f"random_features/{name}"].values(options)
    return values["printed"]["value"], values["corrected"]["value"]


def delta_of_noise(multiplier, epsilon):
    """Of N(0, s^2) against N(1, s^2), by the definition."""
    distribution = scipy.stats.norm(0, multiplier)
    grid = np.linspace(-12 * multiplier, 12 * multiplier + 1, 400_001)
    excess = distribution.pdf(grid - 1) - math.exp(epsilon) * distribution.pdf(grid)
    return scipy.integrate.simpson(np.maximum(excess, 0), x=grid)


def test_the_printed_gaussian_noise_is_private_below_one_and_not_from_8_4_on():
    for epsilon in (0.2, 1.0, 8.0, 9.0, 20.0):
        printed, exact = sides("theorem_7", epsilon=epsilon, delta_p=1e-5)
        assert delta_of_noise(exact, epsilon) == pytest.approx(1e-5, rel=1e-4)
        assert (delta_of_noise(printed, epsilon) <= 1e-5) == (epsilon < 8.4)


def test_the_gap_of_equation_9_is_that_of_the_noise():
    rng = np.random.default_rng(0)
    features, std = rng.standard_normal((8, 3)), 0.7
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)

    def added(rows):  # E (phi . z)^2 over three normal numbers, exactly
        total = 0.0
        for i, j, k in np.ndindex(4, 4, 4):
            z = std * nodes[[i, j, k]]
            total += weights[i] * weights[j] * weights[k] * np.mean((rows @ z) ** 2)
        return total / weights.sum() ** 3

    squares = [float((rows**2).sum(axis=1).mean()) for rows in (features[:3], features)]
    printed, corrected = sides("equation_9", std=std, group_square=squares[0], square=squares[1])
    assert corrected == pytest.approx(abs(added(features[:3]) - added(features)), rel=1e-12)
    assert printed == pytest.approx(corrected / 2)


def outcomes(count, value, chance):
    """Squared norms, and squared distances from the mean at x = 0, of a target whose alpha is
    `value` with a chance and else 0; and their chances."""
    hits = np.arange(count + 1)
    squares = hits * value**2 / count**2
    distances = (hits * value / count - chance * value) ** 2
    return squares, distances, scipy.stats.binom.pmf(hits, count, chance)


def test_lemma_14_is_false_as_printed():
    count, value, chance = 4, 0.9, 0.5
    norm = math.sqrt(chance) * value
    assert value > math.sqrt(count) * norm**2  # all of alpha is cut off
    printed, corrected = sides("lemma_14", count=count, norm=norm)
    assert printed < (chance * value) ** 2 <= corrected


def test_lemma_16_is_false_as_printed():
    count, value, chance, delta = 1, 61.0, 0.0165, 0.016
    norm = math.sqrt(chance) * value
    assert value <= math.sqrt(count) * norm**2  # nothing is cut off
    printed, corrected = sides("lemma_16", count=count, norm=norm, delta=delta)
    squares, _, chances = outcomes(count, value, chance)
    assert chances[squares > printed].sum() > delta
    assert chances[squares > corrected].sum() <= delta


@pytest.mark.parametrize("count", [1, 5, 60])
def test_the_corrected_lemmas_hold_for_targets_of_two_values(count):
    for value in (0.3, 1.0, 8.0, 61.0):
        for chance in (0.01, 0.1, 0.5, 0.99):
            norm = math.sqrt(chance) * value
            if value > math.sqrt(count) * norm**2:
                continue  # cut off: nothing is random
            squares, distances, chances = outcomes(count, value, chance)
            for delta in (0.001, 0.05, 0.5):
                options = {"count": count, "norm": norm, "delta": delta}
                assert chances[squares > sides("lemma_16", **options)[1]].sum() <= delta
                assert chances[distances > sides("lemma_15", **options)[1]].sum() <= delta
