"""Kernels: what they are by definition, their errors, and that they are positive definite."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from dpcore import REPLACE_ONE, Registry
from dpcore.errors import ParameterError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.registry.kinds import KERNEL
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne
from dpcore_kernel_ridge.huber_ridge import KernelHuberRidge
from dpcore_kernel_ridge.matern import (
    ExponentialKernel,
    Matern32Kernel,
    Matern52Kernel,
)
from dpcore_kernel_ridge.ridge import KernelRidge

from doubles import domain

TWICE = {ExponentialKernel: 1, Matern32Kernel: 3, Matern52Kernel: 5}  # 2 nu
MATERN = [made(bandwidth=0.6) for made in TWICE]
ALL = [*MATERN, GaussianKernel(bandwidth=0.6), LinearKernel()]


@pytest.mark.parametrize("kernel", MATERN, ids=lambda k: type(k).__name__)
def test_a_matern_kernel_is_the_general_formula_with_a_bessel_function(kernel):
    nu = TWICE[type(kernel)] / 2
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 30, 3))
    t = math.sqrt(2 * nu) * np.linalg.norm(x[:, None] - y[None], axis=2) / 0.6
    expected = 2 ** (1 - nu) / special.gamma(nu) * t**nu * special.kv(nu, t)
    assert kernel(x, y) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kernel", MATERN, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("width", [1, 3, 20])
def test_computed_values_stay_within_the_declared_error(kernel, width):
    rng = np.random.default_rng(width)
    where = domain(10, min(width, 8))
    x = rng.uniform(-1, 1, (40, where.width))
    y = x + rng.normal(size=x.shape) * 10.0 ** rng.uniform(-9, 0.3, (40, 1))
    computed = np.diag(kernel(x, y))
    twice = TWICE[type(kernel)]
    for row, value in enumerate(computed):
        with mpmath.workdps(40):
            pairs = zip(x[row].tolist(), y[row].tolist(), strict=True)
            r = mpmath.sqrt(sum((mpmath.mpf(a) - b) ** 2 for a, b in pairs))
            t = mpmath.sqrt(twice) * r / mpmath.mpf(0.6)
            factor = {1: 1, 3: 1 + t, 5: 1 + t + t**2 / 3}[twice]
            assert abs(factor * mpmath.exp(-t) - float(value)) <= kernel.error(where)


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: type(k).__name__)
def test_a_kernel_is_symmetric_positive_definite_and_within_its_norm(kernel):
    rng = np.random.default_rng(1)
    for noise_distribution in (1.0, 1e-3):
        rows = rng.uniform(-1, 1, (60, 2)) * noise_distribution
        gram = kernel(rows, rows)
        assert (gram == gram.T).all()
        assert np.linalg.eigvalsh(gram)[0] > -1e-12
        assert gram.diagonal() == pytest.approx(kernel.diagonal(rows))
        assert (kernel.diagonal(rows) <= kernel.norm(domain(10)) ** 2).all()


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: type(k).__name__)
def test_kernel_ridge_stands_in_every_kernels_space(kernel):
    if hasattr(kernel, "bandwidth"):
        kernel = type(kernel)(bandwidth=0.5)
    learner = KernelRidge(kernel=kernel, regularization=0.5)
    case = Case(
        learner=learner,
        bound=KernelRidgeReplaceOne(),
        domain=domain(20, 2, norm=1.0),
        adjacency=REPLACE_ONE,
    )
    (finding,) = falsify(case, Effort(pairs=120))
    assert 0.4 < finding.worst <= 1


def test_every_kernel_has_one_name():
    registry = Registry.default()
    named = {name: registry.component(KERNEL, name) for name in registry.names(KERNEL)}
    assert named == {
        "exponential": ExponentialKernel,
        "gaussian": GaussianKernel,
        "linear": LinearKernel,
        "matern_3_2": Matern32Kernel,
        "matern_5_2": Matern52Kernel,
    }


def test_a_bandwidth_out_of_range_is_refused():
    with pytest.raises(ParameterError, match="bandwidth"):
        Matern32Kernel(bandwidth=1e-200)


@pytest.mark.parametrize(
    "make",
    [
        lambda **fields: KernelRidge(regularization=0.1, **fields),
        lambda **fields: KernelHuberRidge(total_regularization=1.0, clip=1.0, **fields),
    ],
)
def test_a_bandwidth_beside_the_kernel_is_the_kernels_own(make):
    assert make(bandwidth=2.0).kernel_in_force == GaussianKernel(bandwidth=2.0)
    adjacent = make(kernel=ExponentialKernel(), bandwidth=2.0)
    assert adjacent.kernel_in_force == ExponentialKernel(bandwidth=2.0)
    assert make(kernel=LinearKernel()).kernel_in_force == LinearKernel()
    with pytest.raises(ParameterError, match="LinearKernel does not have"):
        make(kernel=LinearKernel(), bandwidth=2.0)
    with pytest.raises(ParameterError, match="has its own"):
        make(kernel=GaussianKernel(bandwidth=0.5), bandwidth=2.0)
    with pytest.raises(ParameterError, match="a kernel, such as"):
        make(kernel="cubic")
