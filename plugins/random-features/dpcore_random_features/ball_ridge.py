r"""Ball-constrained ridge on random features: sound without any number of records.

Theorem (T6a): for features of norm at most kappa and labels in [-M, M], the minimiser of
:math:`\sum(\phi(x_i)\cdot c-y_i)^2+\Lambda\|c\|^2` over :math:`\|c\|\le R` moves by at most

.. math:: \min(2R, \kappa(2M+\kappa R)/\Lambda)\ \text{(replace-one)},\qquad
          \min(2R, \kappa(M+\kappa R)/\Lambda)\ \text{(add/remove)}.
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
    FeatureRegression,
    Learner,
    LearnerCoins,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive
from dpcore.learning.solvers.ball_ridge import BallRidge, ball_ridge_error, solve_ball_ridge
from dpcore.learning.theorems.projection import ball_diameter
from dpcore.learning.theorems.sum_form import (
    ball_ridge_add_remove,
    ball_ridge_replace_label,
    ball_ridge_replace_one,
)
from dpcore.learning.theorems.taper import Taper


@attrs.frozen(kw_only=True)
class BallRidgeLearner(FeatureRegression):
    r"""Minimise :math:`\sum(\phi(x_i)\cdot c-y_i)^2+\Lambda\|c\|^2` on a public ball; publish c.

    No exact number of records is read. The solver's tolerance is public and grows with the largest
    number of records it must hold for: a public upper bound, or else 2^22, before which the result
    tapers off (from 2^20 records on; see `dpcore.learning.theorems.taper`). Declare `at_most` to
    avoid that.

    Total: where the bound declares a solver error, the solver's certificate is proved to reach it
    on every dataset of the domain; where it does not, only the ball's diameter is claimed, and the
    solver then returns some point of the ball for any records.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0, of the sum form: not multiplied by the number of records.
        radius: R > 0, public.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.ball_ridge",)
    total: ClassVar[bool] = True

    total_regularization: float = attrs.field(validator=positive)
    radius: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> BallRidge:
        """The public parameters of the minimisation."""
        return BallRidge(
            kappa=self.features.norm(domain),
            label_bound=domain.label_bound,
            total_regularization=self.total_regularization,
            radius=self.radius,
        )

    def solver_error(self, domain: Domain) -> float:
        """The public tolerance, or infinity where none is reached on every dataset."""
        records = Taper.at_most(domain.at_most).records
        return ball_ridge_error(self.problem(domain), records, self.features.width(domain))

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The exact minimiser to within the declared error, in the ball; tapered."""
        weight = Taper.at_most(public.domain.at_most).weight(len(records))
        if weight == 0:
            return np.zeros(query.shape)
        phi = self.mapped(records, public)
        problem, tolerance = self.problem(public.domain), self.solver_error(public.domain)
        return weight * solve_ball_ridge(problem, phi, records.labels, tolerance)


@attrs.frozen(kw_only=True)
class BallRidgeBound(SensitivityBound):
    """T6(a) for `random_features.ball_ridge`, or T1 where the ball's diameter is no more.

    Answers for add/remove, for label changes alone, and with the replace-one claim for every other
    replacement.
    """

    learner: ClassVar[type[Learner]] = BallRidgeLearner

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuses where floating point cannot certify the minimiser and 2R is not the claim."""
        assert isinstance(learner, BallRidgeLearner)
        if math.isinf(2 * learner.radius):
            return Refused(f"radius={learner.radius!r} is too large: twice it is infinite")
        problem = learner.problem(public.domain)
        limits = (problem.kappa, problem.label_bound, learner.total_regularization, learner.radius)
        taper = Taper.at_most(public.domain.at_most)
        cost = taper.cost(learner.radius, membership=adjacency.membership)
        if adjacency.membership:
            claim, value = ADD_REMOVE, ball_ridge_add_remove(*limits)
        elif REPLACE_LABEL.covers(adjacency):
            claim, value = REPLACE_LABEL, ball_ridge_replace_label(*limits)
        else:
            claim, value = REPLACE_ONE, ball_ridge_replace_one(*limits)
        error, diameter = learner.solver_error(public.domain), ball_diameter(learner.radius)
        if (value + cost + 2 * error) < diameter:
            return Sensitivity(
                value=(value + cost) * (1 + 2.0**-52) if cost else value,
                distance=Distance.L2,
                adjacency=claim,
                solver_error=error,
                source=f"T6(a) (ball-constrained ridge, {claim})",
            )
        if value < diameter and math.isinf(error):
            return Refused(
                f"total_regularization={learner.total_regularization!r} is too small for a "
                f"certified minimiser on every dataset: raise it, or declare fewer records"
            )
        return Sensitivity(
            value=diameter,
            distance=Distance.L2,
            adjacency=claim,
            covers_fallback=True,
            source="T1 (diameter of the ball)",
        )
