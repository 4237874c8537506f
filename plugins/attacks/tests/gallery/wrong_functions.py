"""Wrong mechanisms and bounds for functions, each wrong in one way, and what catches it."""

import math
from typing import ClassVar

import attrs
import numpy as np
import pytest

from dpcore import Distance, Learner, Sensitivity, SensitivityBound
from dpcore.adjacency import REPLACE_ONE
from dpcore.checks import positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.functions import Interactive, Oracle
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.mechanism import free
from dpcore_attacks.attacks.setting import Case
from dpcore_kernel_ridge.bounds import lemma_2
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.ridge import KernelRidge

from doubles import domain


class NoisyOracle(Oracle):
    """f + std * noise(points), where `make` says which noise."""

    def __init__(self, query, function, std, noise, make, at_most=64):
        super().__init__(query, function, at_most)
        self._std, self._noise, self._make = std, noise, make

    def _answer(self, fresh):
        return self._function(fresh) + self._std * self._make(self, fresh)


def mechanism(make, *, paid=1, at_most=64, oracle=NoisyOracle, unit_kernel=False):
    """An interactive mechanism that charges `paid` Gaussians and answers by `make`."""

    class Wrong(Interactive):
        source = "wrong"
        arithmetic = "real"
        noise_multiplier: float = free(validator=positive)
        query_count = paid
        most_points = at_most

        def at(self, scale, query, sensitivity):
            return attrs.evolve(self, noise_multiplier=scale)

        def event(self, query, sensitivity, moved=None):
            return GaussianEvent(mu=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

        def open(self, value, query, sensitivity, noise):
            size = 1.0 if unit_kernel else query.kappa
            std = self.noise_multiplier * sensitivity.unit * size
            return oracle(query, value, std, noise, make, at_most)

    return attrs.frozen(kw_only=True)(Wrong)()


def fresh(oracle, points):
    return oracle._noise.normal(len(points))


def one_scalar(oracle, points):
    if not hasattr(oracle, "_scalar"):
        oracle._scalar = oracle._noise.normal(1)[0]
    return np.full(len(points), oracle._scalar)


def own_generator(oracle, points):
    return np.random.default_rng().normal(size=len(points))


def fixed_seed(oracle, points):
    return np.random.default_rng(0).normal(size=len(points))


class PathOracle(Oracle):
    """f + std * path of a Gaussian process with a kernel of its own choice, jointly drawn."""

    def __init__(self, query, function, std, noise, make, at_most=64):
        super().__init__(query, function, at_most)
        self._std, self._noise, self._kernel = std / query.kappa, noise, make(query)
        self._points, self._path = np.empty((0, query.width)), np.empty(0)

    def _answer(self, points):
        old, kernel = self._points, self._kernel
        cross, own = kernel(points, old), kernel(points, points)
        size = own.max()
        known = kernel(old, old) + 1e-7 * size * np.eye(len(old))
        pull = np.linalg.solve(known, cross.T).T if len(old) else np.zeros((len(points), 0))
        rest = own - pull @ cross.T + 1e-7 * size * np.eye(len(points))
        values, vectors = np.linalg.eigh(rest)
        drawn = self._noise.normal(len(points)) * np.sqrt(np.maximum(values, 0))
        path = pull @ self._path + vectors @ drawn
        self._points, self._path = np.vstack([old, points]), np.append(self._path, path)
        return self._function(points) + self._std * path


def wide(query):
    """A much smoother process than the functions are."""
    return GaussianKernel(bandwidth=5.0)


def right(query):
    return query.kernel


class Forgetful(PathOracle):
    """Draws anew for a point it has answered."""

    def ask(self, points):
        self._answers.clear()
        self._points, self._path = np.empty((0, self._query.width)), np.empty(0)
        return super().ask(points)


class Generous(NoisyOracle):
    """Never refuses."""

    @property
    def left(self):
        return self._at_most

    def ask(self, points):
        self._at_most = len(self._answers) + len(points)
        try:
            return super().ask(points)
        finally:
            self._at_most = 4


class Grudging(NoisyOracle):
    """Counts what it refuses."""

    def ask(self, points):
        try:
            return super().ask(points)
        except Exception:
            self._at_most -= 1
            raise


class Copied(NoisyOracle):
    """May be copied and pickled, noise and all."""

    def __reduce_ex__(self, protocol):
        return (str, ("a copy",))


class Open(NoisyOracle):
    """Shows its function."""

    @property
    def function(self):
        return self._function


@attrs.frozen(kw_only=True)
class StatesTooLittle(Interactive):
    """The process with the right noise, of which it states half the variance."""

    source = "wrong"
    arithmetic = "real"
    noise_multiplier: float = free(validator=positive)
    query_count = 1
    most_points = 1 << 20

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        return GaussianProcess(noise_multiplier=self.noise_multiplier).event(query, sensitivity)

    def open(self, value, query, sensitivity, noise):
        inner = GaussianProcess(noise_multiplier=self.noise_multiplier)
        return inner.open(value, query, sensitivity, noise)

    def covariance(self, points, query, sensitivity):
        inner = GaussianProcess(noise_multiplier=self.noise_multiplier)
        return 0.5 * inner.covariance(points, query, sensitivity)


EVENT = "interactive.event-matches-answers"
KEYED, LIMIT, PRIVATE = (f"interactive.{law}" for law in ("noise-keyed", "limit", "value-private"))
GAUSSIAN, LINEAR = (
    0,
    1,
)  # the conformance suite's kernels: K(x, x) = 1, and values that grow to kappa = 2
FEW = {"paid": 4, "at_most": 4}
MANY = {"paid": 16, "at_most": 16}

ORACLES = [
    pytest.param(
        made, law, kernel, id=name, marks=[pytest.mark.slow] if name.endswith(", attacked") else []
    )
    for name, made, law, kernel in (
        ("one scalar for all points", mechanism(one_scalar), EVENT, GAUSSIAN),
        ("one price for many questions", mechanism(fresh), EVENT, GAUSSIAN),
        ("drawn anew", mechanism(right, oracle=Forgetful), "interactive.repeats", GAUSSIAN),
        ("drawn anew, attacked", mechanism(right, oracle=Forgetful), EVENT, GAUSSIAN),
        ("K(x, x) = 1", mechanism(fresh, **FEW, unit_kernel=True), EVENT, LINEAR),
        ("K = 1, a path", mechanism(right, oracle=PathOracle, unit_kernel=True), EVENT, LINEAR),
        ("too smooth a path", mechanism(wide, oracle=PathOracle), EVENT, GAUSSIAN),
        (
            "its own generator",
            mechanism(own_generator, **MANY),
            KEYED,
            GAUSSIAN,
        ),
        ("a fixed seed", mechanism(fixed_seed, **MANY), KEYED, GAUSSIAN),
        ("never refuses", mechanism(fresh, **FEW, oracle=Generous), LIMIT, GAUSSIAN),
        (
            "counts refusals",
            mechanism(fresh, **FEW, oracle=Grudging),
            LIMIT,
            GAUSSIAN,
        ),
        ("copied", mechanism(fresh, **FEW, oracle=Copied), PRIVATE, GAUSSIAN),
        ("shows f", mechanism(fresh, **FEW, oracle=Open), PRIVATE, GAUSSIAN),
        ("half the variance stated", StatesTooLittle(), "interactive.covariance", GAUSSIAN),
    )
]


def bound(value):
    """A bound on kernel ridge in the kernel's norm, worth `value(kappa, M, lam, m)`."""

    class Wrong(SensitivityBound):
        learner: ClassVar[type[Learner]] = KernelRidge

        def sensitivity(self, query, learner, public, adjacency):
            problem = learner.problem(public.domain)
            own = (problem.kappa, public.domain.label_bound, learner.regularization)
            return Sensitivity(
                value=value(*own, public.domain.records),
                distance=Distance.RKHS,
                adjacency=REPLACE_ONE,
                source="wrong",
            )

    return attrs.frozen(kw_only=True)(Wrong)()


KERNEL = GaussianKernel(bandwidth=0.5)


def case(value, *, kernel=KERNEL, lam=0.1, records=40, norm=1.0):
    return Case(
        learner=KernelRidge(kernel=kernel, regularization=lam),
        bound=bound(value),
        domain=domain(records, 2, norm=norm),
        adjacency=REPLACE_ONE,
    )


BOUNDS = {
    "Lemma 2 where lam is not at most 1": case(lemma_2, lam=16.0),
    "residuals said to be at most M": case(
        lambda k, m, lam, n: 2 * k * m / (n * lam), kernel=LinearKernel()
    ),
    "a single evaluation's movement at a typical kappa": case(
        lambda k, m, lam, n: m / (n * lam) * (2 + 1 / (2 * math.sqrt(lam))),
        kernel=LinearKernel(),
        norm=None,
    ),
    "one side of a replacement": case(lambda k, m, lam, n: k * m / (n * lam)),
    "the number of another dataset": case(
        lambda k, m, lam, n: k * m / (10 * n * lam) * (2 + k / (2 * math.sqrt(lam)))
    ),
}
