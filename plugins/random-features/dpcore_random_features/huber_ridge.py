r"""Huber ridge on random features: one record pulls by at most B, whatever its label.

Theorem (T6b): for features of norm at most kappa the minimiser of
:math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2`, with :math:`h_B'` the residual clipped
to [-B, B], moves by at most :math:`2\kappa B/\Lambda` (replace-one) or :math:`\kappa B/\Lambda`
(add/remove). Where no residual is longer than B it is the ridge solution with the same Lam.
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
from dpcore.learning.solvers.huber_ridge import HuberRidge, huber_ridge_error, solve_huber_ridge
from dpcore.learning.theorems.sum_form import (
    huber_ridge_add_remove,
    huber_ridge_replace_label,
    huber_ridge_replace_one,
)
from dpcore.learning.theorems.taper import Taper


@attrs.frozen(kw_only=True)
class HuberRidgeLearner(FeatureRegression):
    r"""Minimise :math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` and publish c.

    No exact number of records is read. The solver's tolerance is public and grows with the largest
    number of records it must hold for: a public upper bound, or else 2^22, before which the result
    tapers off (from 2^20 records on; see `dpcore.learning.theorems.taper`). Declare `at_most` to
    avoid that.

    Total: the bound refuses parameters at which floating point could miss the tolerance; for all
    others the solver is proved to reach it on every dataset of the domain.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0, of the sum form: not multiplied by the number of records.
        clip: B > 0, in label units: residuals beyond it count linearly.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.huber_ridge",)
    total: ClassVar[bool] = True

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
        records = Taper.at_most(domain.at_most).records
        return huber_ridge_error(self.problem(domain), records, self.features.width(domain))

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The exact minimiser to within the declared error; tapered."""
        weight = Taper.at_most(public.domain.at_most).weight(len(records))
        if weight == 0:
            return np.zeros(query.shape)
        phi = self.mapped(records, public)
        problem, tolerance = self.problem(public.domain), self.solver_error(public.domain)
        return weight * solve_huber_ridge(problem, phi, records.labels, tolerance)


@attrs.frozen(kw_only=True)
class HuberRidgeBound(SensitivityBound):
    """T6(b) for `random_features.huber_ridge`.

    Answers for add/remove, for label changes alone, and with the replace-one claim for every other
    replacement.
    """

    learner: ClassVar[type[Learner]] = HuberRidgeLearner

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuses where floating point cannot certify the minimiser on every dataset."""
        assert isinstance(learner, HuberRidgeLearner)
        error = learner.solver_error(public.domain)
        if math.isinf(error):
            return Refused(
                f"total_regularization={learner.total_regularization!r} is too small for a "
                f"certified minimiser on every dataset: raise it, or declare fewer records"
            )
        problem, lam = learner.problem(public.domain), learner.total_regularization
        kappa, clip = problem.kappa, learner.clip
        taper = Taper.at_most(public.domain.at_most)
        cost = taper.cost(problem.norm(taper.records), membership=adjacency.membership)
        if adjacency.membership:
            claim, value = ADD_REMOVE, huber_ridge_add_remove(kappa, clip, lam)
        elif REPLACE_LABEL.covers(adjacency):
            value = huber_ridge_replace_label(kappa, problem.label_bound, clip, lam)
            claim = REPLACE_LABEL
        else:
            claim, value = REPLACE_ONE, huber_ridge_replace_one(kappa, clip, lam)
        return Sensitivity(
            value=(value + cost) * (1 + 2.0**-52) if cost else value,
            distance=Distance.L2,
            adjacency=claim,
            solver_error=error,
            source=f"T6(b) (Huber ridge, {claim})",
        )
