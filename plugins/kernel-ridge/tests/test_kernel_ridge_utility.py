import math

import numpy as np
import pytest

from dpcore.errors import ParameterError
from dpcore.functions.kernels.linear import LinearKernel
from dpcore_kernel_ridge import utility
from dpcore_kernel_ridge.bounds import lemma_2
from dpcore_kernel_ridge.solver import solve_kernel_ridge
from dpcore_models.theorems.ridge import ridge_replace_one


def test_the_choices_are_those_of_the_theorems():
    assert utility.regularization_2(10_000, 0.5) == pytest.approx(10_000**-0.5)
    assert utility.regularization_2(10_000, 0.25) == pytest.approx(10_000 ** (-2 / 3.5))
    assert utility.rate_2(0.5) == 0.5
    assert utility.rate_2(0.25) == pytest.approx(1 / 3.5)
    assert utility.epsilon_3(10**6, 0.5) == pytest.approx(0.01)
    assert utility.regularization_3(10**6, 0.5) == pytest.approx(0.01)


def test_the_printed_constant_lacks_a_factor():
    """kappa = M = epsilon = source_norm = 1, r = 1/2: 96 + 24 sqrt(2 pi) + 4, or + 12."""
    arguments = (1.0, 1.0, 1.0, 0.5, 1.0)
    base = 96 + 24 * math.sqrt(2 * math.pi)
    assert utility.constant_2_printed(*arguments) == pytest.approx(base + 4)
    assert utility.constant_2_corrected(*arguments) == pytest.approx(base + 12)


def test_theorem_3_holds_with_its_base_corrected_and_not_as_proved():
    """r = 1/2: with the printed base, (e^eps - 1) M^2 by itself is above the claimed m^(-1/3)."""
    records, rate = 10**8, 1 / 3
    printed = math.pow(records, -rate / 2)
    assert 8 * printed > 8 * math.pow(records, -rate)
    assert utility.epsilon_3(records, 0.5) == pytest.approx(math.pow(records, -rate))


def test_t4_lowers_the_error_of_theorem_2():
    lam = utility.regularization_2(10_000, 0.5)
    common = {
        "epsilon": 0.5,
        "label_bound": 1.0,
        "regularization": lam,
        "kappa": 1.0,
        "smoothness": 0.5,
        "source_norm": 1.0,
    }
    ours = utility.excess_error(moved=ridge_replace_one(1.0, 1.0, lam, 10_000), **common)
    printed = utility.excess_error(moved=lemma_2(1.0, 1.0, lam, 10_000), **common)
    constant = utility.constant_2_corrected(1.0, 1.0, 0.5, 0.5, 1.0)
    assert ours < printed < 2 * 0.5 + constant * 10_000 ** -utility.rate_2(0.5)


def test_the_expected_error_of_one_evaluation_is_below_its_bound():
    """y = a x with x = +-1 and |a| = 1/2, linear kernel: L_K is 1, so that f_rho has norm 1/2.

    2000 data sets of 200 records with label noise; one evaluation with Laplace noise each.
    """
    rng, kernel, lam, epsilon = np.random.default_rng(0), LinearKernel(), 0.1, 1.0
    moved = ridge_replace_one(1.0, 1.0, lam, 200)
    errors = []
    for _ in range(2000):
        x = rng.choice([-1.0, 1.0], (200, 1))
        y = 0.5 * x[:, 0] + rng.choice([-0.5, 0.5], 200)
        slope = x[:, 0] @ solve_kernel_ridge(kernel, x, y, 200 * lam)
        noise = rng.laplace(scale=moved / epsilon)
        errors.append((np.clip(slope, -1, 1) + noise - 0.5) ** 2)
    bound = utility.excess_error(
        epsilon=epsilon,
        moved=moved,
        label_bound=1.0,
        regularization=lam,
        kappa=1.0,
        smoothness=0.5,
        source_norm=0.5,
    )
    assert 0 < np.mean(errors) < bound


def test_parameters_outside_the_theorems_are_refused():
    with pytest.raises(ParameterError, match="smoothness"):
        utility.rate_2(0.0)
    with pytest.raises(ParameterError, match="regularization"):
        utility.excess_error(
            epsilon=1.0,
            moved=1.0,
            label_bound=1.0,
            regularization=2.0,
            kappa=1.0,
            smoothness=0.5,
            source_norm=1.0,
        )
