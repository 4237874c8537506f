import math

import numpy as np
import pytest

from dpcore.errors import ParameterError
from dpcore_sgd import printed, utility


@pytest.mark.parametrize("small_steps", [True, False])
@pytest.mark.parametrize(("r", "alpha"), [(1.0, 0.5), (0.75, 0.9), (0.6, 1.0)])
def test_the_exponents_are_those_of_the_noise_at_the_papers_schedule(small_steps, r, alpha):
    """Slopes between two huge n of the formulas themselves; gamma = 1 leaves no logarithm in n."""

    def noise(n, *, clipped):
        plan = utility.schedule(n, r, alpha, small_steps=small_steps)
        uses = plan.steps / n
        if clipped:
            return (2 * plan.rate * uses) ** 2
        diameter = printed.corrected_sensitivity(
            rate=plan.rate, kappa=1.0, label_bound=1.0, steps=plan.steps, most=uses
        )
        return diameter**2

    small, large = 10**120, 10**150
    ends = math.log(large) - math.log(small)
    for clipped, exponent in (
        (False, utility.privacy_exponent(r, alpha)),
        (True, utility.privacy_exponent_clipped(r, alpha)),
    ):
        slope = math.log(noise(large, clipped=clipped) / noise(small, clipped=clipped)) / ends
        if alpha < 1 or small_steps:  # else uses stay near 1, where N(1+N) is neither N nor N^2
            assert -slope == pytest.approx(exponent, abs=2e-2)
    features = [utility.schedule(n, r, alpha).features for n in (small, large)]
    per_feature = math.log(features[1] / features[0]) / ends
    assert utility.privacy_exponent_printed(r, alpha) == pytest.approx(
        utility.privacy_exponent(r, alpha) - per_feature
    )


def test_noise_costs_a_prediction_kappa_squared_times_its_variance_and_no_factor_m():
    rng = np.random.default_rng(0)
    features, std = 400, 0.3
    rows = rng.normal(size=(200, features))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    noise = std * rng.normal(size=(features, 300))
    cost = float(np.mean((rows @ noise) ** 2))
    assert cost == pytest.approx(utility.noise_error(1.0, std), rel=0.05)
    assert utility.noise_error_printed(features, 1.0, std, 0.01) > 300 * cost


def test_parameters_outside_the_theorem_are_refused():
    for r, alpha in ((0.5, 0.5), (1.1, 0.5), (1.0, 0.0), (1.0, 1.5)):
        with pytest.raises(ParameterError, match="Theorem 1"):
            utility.statistical_exponent(r, alpha)
    assert utility.statistical_exponent(1.0, 0.5) == 0.8
    with pytest.raises(ParameterError, match=r"4\.1"):
        utility.noise_error(0.0, 1.0)
