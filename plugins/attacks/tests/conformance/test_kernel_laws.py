"""The laws of kernels: no right one raises an alarm, every wrong one is caught."""

import attrs
import numpy as np
import pytest
from scipy.spatial import distance

from dpcore.functions.kernels.base import Kernel
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore_attacks.laws.learners.kernels import kernel_verdicts
from dpcore_kernel_ridge.matern import (
    ExponentialKernel,
    Matern32Kernel,
    Matern52Kernel,
)

from doubles import domain


@attrs.frozen(kw_only=True)
class Polynomial(Kernel):
    """1 + x . y, right but for what a subclass changes."""

    def norm(self, domain):
        return np.sqrt(1 + domain.width)

    def error(self, domain):
        return 1e-14 * domain.width

    def diagonal(self, rows):
        return 1 + np.sum(rows * rows, axis=1)

    def __call__(self, left, right):
        return 1 + left @ right.T


class OfShortRows(Polynomial):
    """States the norm of a row of norm 1, whatever the domain."""

    def norm(self, domain):
        return np.sqrt(2)


class OfItself(Polynomial):
    """Takes the mean of the rows at hand out of them."""

    def __call__(self, left, right):
        return 1 + (left - left.mean(axis=0)) @ right.T


class OneSided(Polynomial):
    """Scales one argument only."""

    def __call__(self, left, right):
        return (1 + 1e-9 * left[:, :1]) * (1 + left @ right.T)


class OtherDiagonal(Polynomial):
    """Forgets the constant where K(x, x) is asked for only, so that its norm looks kept."""

    def diagonal(self, rows):
        return np.sum(rows * rows, axis=1)


class Box(Polynomial):
    """1 within a distance, else 0: Fourier transforms of balls are not positive."""

    def norm(self, domain):
        return 1.0

    def diagonal(self, rows):
        return np.ones(len(rows))

    def __call__(self, left, right):
        return (distance.cdist(left, right) < 1.0).astype(float)


class Boundless(Polynomial):
    """Says nothing about its rounding."""

    def error(self, domain):
        return np.inf


RIGHT = [
    Polynomial(),
    GaussianKernel(bandwidth=0.3),
    GaussianKernel(bandwidth=50.0),
    LinearKernel(),
    ExponentialKernel(),
    Matern32Kernel(bandwidth=3.0),
    Matern52Kernel(bandwidth=0.1),
]
WRONG = [
    (OfShortRows(), "kernel.norm"),
    (OfItself(), "kernel.pairwise"),
    (OneSided(), "kernel.symmetric"),
    (OtherDiagonal(), "kernel.symmetric"),
    (Box(), "kernel.positive-definite"),
    (Boundless(), "kernel.error"),
]


def broken(kernel, seed=0, **options):
    found = kernel_verdicts(kernel, domain(10, 3, **options), seed)
    return {verdict.law.id for verdict in found if verdict.failed}


@pytest.mark.parametrize("kernel", RIGHT, ids=repr)
def test_no_right_kernel_raises_an_alarm(kernel):
    for seed in range(10):
        assert broken(kernel, seed) == set()
        assert broken(kernel, seed, norm=1.0) == set()


@pytest.mark.parametrize(("kernel", "law"), WRONG, ids=lambda part: getattr(part, "__doc__", part))
def test_every_wrong_kernel_is_caught(kernel, law):
    assert law in broken(kernel)
