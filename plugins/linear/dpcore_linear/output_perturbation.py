r"""Output perturbation: the regularised minimiser, published with noise.

Theorem (T6b): for features of norm at most kappa and residuals clipped to [-B, B] the minimiser of
:math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` moves by at most
:math:`2\kappa B/\Lambda` (replace-one) or :math:`\kappa B/\Lambda` (add/remove).

As printed (Chaudhuri, Monteleoni & Sarwate 2011, Corollary 8): :math:`2/(m\lambda)`, for losses
with slope at most 1 and rows of norm at most 1. With :math:`\Lambda=m\lambda` that is T6(b) where
:math:`\kappa B\le1`. Ridge, that is a B which no residual reaches, has a slope as large as its
residuals, and labels in [-1, 1] do not make them small: the claim is refuted by two records that
differ in direction, at m = 1000, lambda = 0.1 by a factor 1.55.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    Distance,
    Domain,
    FeatureMap,
    Learner,
    LearnerCoins,
    LinearModel,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Refuted,
    Sensitivity,
    SensitivityBound,
    WorstCase,
)
from dpcore.checks import positive
from dpcore.errors import UnknownCountError
from dpcore.learning.solvers.huber_ridge import HuberRidge, huber_ridge_error, solve_huber_ridge
from dpcore.learning.theorems.sum_form import (
    huber_ridge_add_remove,
    huber_ridge_replace_label,
    huber_ridge_replace_one,
)
from dpcore.rounding import up


@attrs.frozen(kw_only=True)
class OutputPerturbation(OneShot):
    r"""Minimise :math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` and publish c.

    The solver's tolerance is public and grows with the number of records, on which a public limit
    is needed.

    Total: the bound refuses parameters at which floating point could miss the tolerance; for all
    others the solver is proved to reach it on every dataset of the domain.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0; the paper's m lambda.
        clip: B > 0, in label units; ridge where no residual is longer.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.output_perturbation",)
    total: ClassVar[bool] = True

    features: FeatureMap
    total_regularization: float = attrs.field(validator=positive)
    clip: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> HuberRidge:
        """The public parameters of the minimisation."""
        return HuberRidge(
            kappa=self.features.norm(domain),
            label_bound=domain.label_bound,
            total_regularization=self.total_regularization,
            clip=self.clip,
        )

    def solver_error(self, domain: Domain) -> float:
        """The public tolerance, or infinity where none is reached on every dataset."""
        if domain.at_most is None:
            raise UnknownCountError("output_perturbation needs a public limit on the records")
        return huber_ridge_error(self.problem(domain), domain.at_most, self.features.width(domain))

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One: the coefficients, in l2."""
        width = self.features.width(public.domain)
        return (Query(name="coefficients", shape=(width,), distance=Distance.L2),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The exact minimiser to within the declared error."""
        rows = self.features.drawn(public.domain, public.coins)(records.features)
        tolerance = self.solver_error(public.domain)
        return solve_huber_ridge(self.problem(public.domain), rows, records.labels, tolerance)

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """A linear model in the features."""
        return LinearModel(
            domain=public.domain,
            features=self.features.drawn(public.domain, public.coins),
            coefficients=np.asarray(answers["coefficients"], dtype=np.float64),
        )


def _uncertified(learner: OutputPerturbation) -> Refused:
    return Refused(
        f"total_regularization={learner.total_regularization!r} is too small for a certified "
        f"minimiser on every dataset: raise it, or declare fewer records"
    )


@attrs.frozen(kw_only=True)
class OutputPerturbationBound(SensitivityBound):
    """T6(b): sound for every pair of neighbours, for every clip."""

    learner: ClassVar[type[Learner]] = OutputPerturbation

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuses where floating point cannot certify the minimiser on every dataset."""
        assert isinstance(learner, OutputPerturbation)
        error = learner.solver_error(public.domain)
        if math.isinf(error):
            return _uncertified(learner)
        problem, lam = learner.problem(public.domain), learner.total_regularization
        kappa, clip = problem.kappa, problem.clip
        if adjacency.membership:
            claim, value = ADD_REMOVE, huber_ridge_add_remove(kappa, clip, lam)
        elif REPLACE_LABEL.covers(adjacency):
            value = huber_ridge_replace_label(kappa, problem.label_bound, clip, lam)
            claim = REPLACE_LABEL
        else:
            claim, value = REPLACE_ONE, huber_ridge_replace_one(kappa, clip, lam)
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            solver_error=error,
            source=f"T6(b) (Huber ridge, {claim})",
        )


@attrs.frozen(kw_only=True)
class PrintedBound(SensitivityBound):
    """2/(m lambda) as printed, under replace-one; refuted where a loss has a slope above 1."""

    learner: ClassVar[type[Learner]] = OutputPerturbation

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """The number 2/Lam, and what it is worth."""
        assert isinstance(learner, OutputPerturbation)
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"2/(m lambda) is about a replaced record, not {adjacency}")
        error = learner.solver_error(public.domain)
        if math.isinf(error):
            return _uncertified(learner)
        problem, lam = learner.problem(public.domain), learner.total_regularization
        slope = problem.kappa * problem.clip
        printed = up(2 / lam, roundings=20)
        sound = huber_ridge_replace_one(problem.kappa, problem.clip, lam) <= printed
        reason = (
            f"2/(m lambda) needs rows of norm at most 1 and a loss with slope at most 1; here the "
            f"slope times the norm may reach {slope:.6g}"
        )
        return Sensitivity(
            value=printed,
            distance=Distance.L2,
            adjacency=REPLACE_ONE,
            solver_error=error,
            validity=WorstCase() if sound else Refuted(reason),
            source="Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12:1069-1109, Corollary 8",
        )
