r"""How far one record moves kernel ridge, in the kernel's norm.

* T4, replace-one: :math:`\min\{\frac{\kappa M}{m\lambda}(2+\kappa\tau), 2M\tau, 2S(m-1,m\lambda)\}`
  with :math:`\tau\le 1/(2\sqrt\lambda)` (T3). The theorems of ridge on features hold in any
  dimension, a kernel's space included.
* Lemma 2 as printed: :math:`2R\kappa(\kappa+1)/(m\lambda)` with
  :math:`R=M/\sqrt\lambda`, for :math:`\lambda\le1`. It holds and is 1.6 to 8 times larger.
"""

import math
from typing import ClassVar

import attrs

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Distance,
    Public,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.learner import AnyLearner
from dpcore.rounding import up
from dpcore.sensitivity import Refuted
from dpcore_kernel_ridge.ridge import KernelRidge, Problem
from dpcore_models.theorems.ridge import ridge_replace_one

SHARED_SCALAR = (
    "one scalar b shared by all points publishes every difference f(x1) - f(x2) exactly; it covers "
    "one evaluation at one point fixed without the data"
)


def lemma_2(kappa: float, label_bound: float, regularization: float, records: int) -> float:
    r"""Lemma 2 as printed, in the kernel's norm: :math:`2R\kappa(\kappa+1)/(m\lambda)`.

    Args:
        regularization: lam in (0, 1], so that R = M/sqrt(lam) >= M.

    Source: Nie & Wang (2017), Lemma 2 (its sup norm is kappa times this).
    """
    radius = label_bound / math.sqrt(regularization)
    return up(2 * radius * kappa * (kappa + 1) / (regularization * records), roundings=20)


def _refusal(problem: Problem, adjacency: Adjacency) -> Refused | None:
    """Return why neither bound holds; None if they do."""
    if not REPLACE_ONE.covers(adjacency):
        # The mean form divides by m: where m is private,
        # the objective itself moves with membership.
        return Refused(f"kernel ridge in mean form needs a public number of records: {adjacency}")
    # An infinite error means that some dataset of the domain could make Cholesky break down.
    if math.isinf(problem.solver_error):
        return Refused(
            f"regularization={problem.regularization!r} is too small for floating-point Cholesky "
            f"on every dataset: raise it"
        )
    return None


@attrs.frozen(kw_only=True)
class KernelRidgeReplaceOne(SensitivityBound):
    """T4 for `kernel_ridge.ridge`, under replace-one and every smaller relation."""

    learner: ClassVar[type[AnyLearner]] = KernelRidge

    def sensitivity(
        self, query: Query, learner: AnyLearner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the claim at the exact number of records; refuse add/remove: n is private."""
        assert isinstance(learner, KernelRidge)
        problem = learner.problem(public.domain)
        if refusal := _refusal(problem, adjacency):
            return refusal
        domain = public.domain
        return Sensitivity(
            value=ridge_replace_one(
                problem.kappa, domain.label_bound, problem.regularization, domain.records
            ),
            distance=Distance.RKHS,
            adjacency=REPLACE_ONE,
            solver_error=problem.solver_error,
            source="T4 (kernel ridge, replace-one)",
            facts=problem.facts,
        )


@attrs.frozen(kw_only=True)
class Lemma2(SensitivityBound):
    """Lemma 2 as printed for `kernel_ridge.ridge`: holds, and is looser than T4."""

    learner: ClassVar[type[AnyLearner]] = KernelRidge

    def sensitivity(
        self, query: Query, learner: AnyLearner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the claim, as T4 does; refuse lam > 1, which the lemma excludes."""
        assert isinstance(learner, KernelRidge)
        # The printed number holds, so that the claim is the worst case and not merely conditional.
        return _claim_lemma_2(learner.problem(public.domain), adjacency)


@attrs.frozen(kw_only=True)
class Proposition1(SensitivityBound):
    """Proposition 1 as printed for `kernel_ridge.ridge`: refuted as a function release.

    It goes with the mechanism `kernel_ridge.one_scalar`, under `dpcore reproduce` only.
    """

    learner: ClassVar[type[AnyLearner]] = KernelRidge

    def sensitivity(
        self, query: Query, learner: AnyLearner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return Lemma 2's number, marked as refuted for its use here."""
        assert isinstance(learner, KernelRidge)
        claim = _claim_lemma_2(learner.problem(public.domain), adjacency)
        if isinstance(claim, Refused):
            return claim
        source = "Nie & Wang (2017), Proposition 1"
        # Same number, other release: as a function with one shared scalar it protects nothing.
        return attrs.evolve(claim, validity=Refuted(SHARED_SCALAR), source=source)


def _claim_lemma_2(problem: Problem, adjacency: Adjacency) -> Sensitivity | Refused:
    if refusal := _refusal(problem, adjacency):
        return refusal
    domain, lam = problem.domain, problem.regularization
    # R = M/sqrt(lam) bounds labels only where lam <= 1.
    if lam > 1:
        return Refused(f"Lemma 2 is about regularization at most 1, got {lam!r}")
    return Sensitivity(
        value=lemma_2(problem.kappa, domain.label_bound, lam, domain.records),
        distance=Distance.RKHS,
        adjacency=REPLACE_ONE,
        solver_error=problem.solver_error,
        source="Nie & Wang (2017), Lemma 2 with R = M/sqrt(lam)",
        facts=problem.facts,
    )
