"""Small right components, each with the bound a theory page proves for it. Only tests use them."""

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Learner,
    OneShot,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.models.features.identity import Identity
from dpcore.sensitivity import Conditional, WorstCase
from dpcore_models.theorems.ridge import ridge_add_remove

from doubles import Numbers


class Vector(OneShot):
    """Releases one real vector as wide as the features."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = True
    features: Any = Identity()

    def queries(self, public):
        return (Query(name="c", shape=(self.features.width(public.domain),), distance="l2"),)

    def phi(self, records, public):
        return self.features.draw(public.domain, public.randomness)(records.features)

    def assemble(self, answers, public):
        return Numbers(answers["c"])


def l2(value, source, adjacency=REPLACE_ONE, **more):
    return Sensitivity(value=value, distance="l2", adjacency=adjacency, source=source, **more)


@attrs.frozen(kw_only=True)
class ProjectedMinNorm(Vector):
    """Minimum-norm interpolation, pulled into a public ball (T1)."""

    radius: float = 1.0

    def statistic(self, query, records, public, secret):
        c = np.linalg.pinv(self.phi(records, public), rcond=1e-14) @ records.labels
        return c * min(1.0, self.radius / max(np.linalg.norm(c), 1e-300))


@attrs.frozen(kw_only=True)
class Ball(SensitivityBound):
    """T1: two points of a ball are at most 2R apart, and R is at most R from 0."""

    learner: ClassVar[type[Learner]] = ProjectedMinNorm

    def sensitivity(self, query, learner, public, adjacency):
        return l2(2 * learner.radius * (1 + 1e-12), "T1", adjacency, covers_fallback=True)


@attrs.frozen(kw_only=True)
class SumRidge(Vector):
    """Ridge in sum form with a fixed public Lam."""

    total_regularization: float = 2.0

    def statistic(self, query, records, public, secret):
        phi = self.phi(records, public)
        gram = phi.T @ phi + self.total_regularization * np.eye(phi.shape[1])
        return np.linalg.solve(gram, phi.T @ records.labels)


@attrs.frozen(kw_only=True)
class SumRidgeAddRemove(SensitivityBound):
    """T5, closed form."""

    learner: ClassVar[type[Learner]] = SumRidge

    def sensitivity(self, query, learner, public, adjacency):
        if not adjacency.membership:
            return Refused("T5 is about add/remove")
        kappa, limit = learner.features.norm(public.domain), public.domain.at_most
        if limit is None:
            return Refused("T5 needs a public limit on the number of records")
        value = ridge_add_remove(
            kappa, public.domain.label_bound, learner.total_regularization, max(1, limit - 1)
        )
        return l2(value, "T5", ADD_REMOVE, solver_error=1e-12)


@attrs.frozen(kw_only=True)
class BallRidge(SumRidge):
    """Ridge constrained to a ball: Lam is raised until the solution fits (T6a)."""

    radius: float = 0.02

    def statistic(self, query, records, public, secret):
        phi = self.phi(records, public)
        values, vectors = np.linalg.eigh(phi.T @ phi)
        right = vectors.T @ (phi.T @ records.labels)

        def solution(lam):
            return right / (np.maximum(values, 0) + lam)

        low = high = self.total_regularization
        while np.linalg.norm(solution(high)) > self.radius:
            low, high = high, 2 * high
        for _ in range(200):
            middle = 0.5 * (low + high)
            if np.linalg.norm(solution(middle)) > self.radius:
                low = middle
            else:
                high = middle
        return vectors @ solution(high)


@attrs.frozen(kw_only=True)
class BallRidgeBound(SensitivityBound):
    """T6a, replace-one and add/remove; n-free."""

    learner: ClassVar[type[Learner]] = BallRidge

    def sensitivity(self, query, learner, public, adjacency):
        kappa, m = learner.features.norm(public.domain), public.domain.label_bound
        labels = m if adjacency.membership else 2 * m
        moved = kappa * (labels + kappa * learner.radius) / learner.total_regularization
        relation = ADD_REMOVE if adjacency.membership else REPLACE_ONE
        return l2(min(2 * learner.radius, moved), "T6a", relation, solver_error=1e-12)


@attrs.frozen(kw_only=True)
class HuberRidge(Vector):
    """sum huber_B(residual) + (Lam/2)|c|^2 by Newton's method to a tiny gradient (T6b)."""

    total_regularization: float = 20.0
    clip: float = 0.5

    def statistic(self, query, records, public, secret):
        phi, lam = self.phi(records, public), self.total_regularization
        c = np.zeros(phi.shape[1])

        def gradient(at):
            residual = phi @ at - records.labels
            return phi.T @ np.clip(residual, -self.clip, self.clip) + lam * at, residual

        for _ in range(200):
            g, residual = gradient(c)
            if np.linalg.norm(g) < 1e-11 * lam:
                break
            active = phi[np.abs(residual) < self.clip]
            step = np.linalg.solve(active.T @ active + lam * np.eye(len(c)), g)
            size = 1.0
            while size > 1e-3 and np.linalg.norm(gradient(c - size * step)[0]) > np.linalg.norm(g):
                size /= 2
            c = c - size * step
        return c


@attrs.frozen(kw_only=True)
class HuberRidgeBound(SensitivityBound):
    """T6b, replace-one and add/remove; n-free and without a label bound."""

    learner: ClassVar[type[Learner]] = HuberRidge

    def sensitivity(self, query, learner, public, adjacency):
        kappa = learner.features.norm(public.domain)
        one = kappa * learner.clip / learner.total_regularization
        relation = ADD_REMOVE if adjacency.membership else REPLACE_ONE
        value = one if adjacency.membership else 2 * one
        return l2(value, "T6b", relation, solver_error=1e-10)


@attrs.frozen(kw_only=True)
class ComplexMinNorm(OneShot):
    """Minimum-norm coefficients on complex exponentials (Liao et al., Algorithm 1, no noise)."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = False
    count: int = 200
    bandwidth: float = 0.15

    def queries(self, public):
        return (Query(name="c", shape=(self.count,), distance="l2", field="complex"),)

    def matrix(self, records, public):
        stream = public.randomness.stream("features")
        frequencies = stream.normal((public.domain.width, self.count)) / self.bandwidth
        return np.exp(1j * (records.features @ frequencies))

    def statistic(self, query, records, public, secret):
        return np.linalg.pinv(self.matrix(records, public)) @ records.labels

    def assemble(self, answers, public):
        return Numbers(np.abs(answers["c"]))


@attrs.frozen(kw_only=True)
class WellConditioned(SensitivityBound):
    """Row 1 of the random-feature page: 2/sqrt(N(1-2 eta)) for |y|_2 <= 1 and a good spectrum."""

    learner: ClassVar[type[Learner]] = ComplexMinNorm
    eta: float = 0.375
    worst_case: bool = False

    def sensitivity(self, query, learner, public, adjacency):
        value = 2 / np.sqrt(learner.count * (1 - 2 * self.eta))
        texts = (("spectrum", "lam_min(AA*/N) >= 1 - 2 eta"), ("labels", "|y|_2 <= 1"))
        validity = WorstCase() if self.worst_case else Conditional(texts)
        return l2(value, "Liao et al., Lemma 9", REPLACE_ONE, validity=validity)

    def assumption_holds(self, records, learner, public):
        a = learner.matrix(records, public)
        least = np.linalg.eigvalsh(a @ a.conj().T / learner.count)[0]
        return bool(least >= 1 - 2 * self.eta and np.linalg.norm(records.labels) <= 1)


@attrs.frozen(kw_only=True)
class OnePass(Vector):
    """One cyclic pass of SGD with step eta from w = 0, last iterate."""

    step: float = 1e-6

    def statistic(self, query, records, public, secret):
        phi, w = self.phi(records, public), np.zeros(public.domain.width)
        for row, label in zip(phi, records.labels, strict=True):
            w = w - self.step * (row @ w - label) * row
        return w
