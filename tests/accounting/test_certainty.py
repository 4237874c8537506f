"""What an attacker learns at most, against the trade-off functions of known mechanisms."""

import numpy as np
import pytest
from scipy.stats import norm

from dpcore.claims.accounting.certainty import Curve

ALPHAS = (0.0, 1e-6, 0.01, 0.05, 0.3, 0.9, 1.0)


def gaussian(mu):
    """The curve of Balle & Wang (2018, Theorem 8), inverted by its own epsilons."""
    epsilons = np.linspace(0, 8 * mu + mu * mu, 400)[::-1]
    deltas = norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons) * norm.cdf(-mu / 2 - epsilons / mu)
    return Curve(deltas=deltas, epsilons=epsilons)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_a_gaussian_curve_gives_its_trade_off_and_never_less(mu):
    """Dong, Roth & Su (2022): the most powerful test has power Phi(Phi^-1(alpha) + mu)."""
    curve = gaussian(mu)
    for alpha in ALPHAS:
        power = norm.cdf(norm.ppf(alpha) + mu)
        assert power <= curve.true_positive_rate(alpha) <= power + 2e-3
    right = norm.cdf(mu / 2)
    assert right <= curve.right <= right + 1e-3


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 50.0])
def test_a_pure_epsilon_is_randomized_response(epsilon):
    """It answers truly with odds e^epsilon: guesses right so often, and two lines as trade-off."""
    curve = Curve(deltas=np.array([0.0]), epsilons=np.array([epsilon]))
    truly = 1 / (1 + np.exp(-epsilon))
    assert truly <= curve.right <= truly + 1e-12
    for alpha in ALPHAS:
        power = min(np.exp(epsilon) * alpha, 1 - np.exp(-epsilon) * (1 - alpha))
        assert power <= curve.true_positive_rate(alpha) <= power + 1e-12


def test_a_delta_alone_is_a_release_of_everything_so_often():
    curve = Curve(deltas=np.array([0.2]), epsilons=np.array([0.0]))
    assert 0.6 <= curve.right <= 0.6 + 1e-12
    assert 0.3 <= curve.true_positive_rate(0.1) <= 0.3 + 1e-12


@pytest.mark.parametrize("epsilon", [701.0, 1e6, np.inf])
def test_a_huge_epsilon_bounds_nothing(epsilon):
    curve = Curve(deltas=np.array([0.0]), epsilons=np.array([epsilon]))
    assert curve.right == 1.0
    assert curve.true_positive_rate(5e-324) == 1.0
