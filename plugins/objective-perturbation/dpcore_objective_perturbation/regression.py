r"""Linear or logistic regression whose objective is perturbed before it is minimised.

Claim: a record's clipped gradient is at most B long, so that the minimiser, which is 1/Lam-
Lipschitz in the gradient, moves by at most B/Lam where a record comes or goes and by 2B/Lam where
one is replaced, at every linear term. Clipping a derivative at B keeps the loss convex (Huber's).
"""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Distance,
    Domain,
    Learner,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive
from dpcore.errors import UnfitTargetError, UnknownCountError, need
from dpcore.functions import Process
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore.models.features.identity import Identity
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore_linear.affine import Affine
from dpcore_models.solvers.slopes import logistic, square
from dpcore_objective_perturbation.mechanism import ObjectivePerturbation
from dpcore_objective_perturbation.objective import ObjectiveQuery


def _linear() -> FeatureMap:
    return Affine(features=Identity(), intercept=0.3)


@attrs.frozen(kw_only=True)
class Regression(OneShot):
    r"""Minimise :math:`\sum\ell(\phi(x_i)\cdot\theta,y_i)+\tfrac\Lambda2\|\theta\|^2+b\cdot\theta`.

    Squared loss for numbers, logistic loss for two classes; features and labels count as at most 1
    in size. There is no step and no number of steps to choose. A public limit on the number of
    records is needed, since the tolerance of the minimiser grows with it.

    Total: on every dataset the search is proved to reach its tolerance.

    Args:
        regularization: Lam > 0, of the sum over records. The least epsilon is log(1 + 1/Lam),
            log(1 + 1/(4 Lam)) for two classes.
        clip: B > 0: derivatives of losses are cut off there, labels counting as 1.
        features: Map from encoded columns to features; the columns and a constant if left out.
    """

    bounds: ClassVar[tuple[str, ...]] = ("objective_perturbation.regression",)
    publishes: ClassVar[type[Any]] = ScoringModel
    total: ClassVar[bool] = True

    regularization: float = attrs.field(validator=positive)
    clip: float = attrs.field(default=1.0, validator=positive)
    features: FeatureMap = attrs.field(factory=_linear)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one: the minimiser, as a function of the linear term."""
        return (self.objective(public.domain),)

    def objective(self, domain: Domain) -> ObjectiveQuery:
        """Return what is minimised, as far as it is public.

        Raises:
            UnfitTargetError: more than two classes.
            UnknownCountError: no limit on the number of records is declared.
        """
        need(
            not domain.classes or domain.classes == 2,
            UnfitTargetError,
            "objective_perturbation.regression fits numbers or two classes",
        )
        if domain.at_most is None:
            message = "objective_perturbation.regression needs a public limit on the records"
            raise UnknownCountError(message)
        return ObjectiveQuery(
            name="minimiser",
            shape=(self.features.width(domain),),
            distance=Distance.L2,
            mechanism=ObjectivePerturbation(),
            ridge=self.regularization,
            slope=self.clip,
            curvature=0.25 if domain.classes else 1.0,
            most=domain.at_most,
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE: from a linear term to the minimiser; it draws nothing."""
        domain, objective = public.domain, self.objective(public.domain)
        # A row at most as long as the map's norm is at most 1 long after this, rounded or not.
        longest = up(self.features.norm(domain), roundings=8)
        feature_map = self.features.drawn(domain, public.randomness)
        rows = row_by_row(feature_map, records.features, self.features.width(domain)) / longest
        labels = np.clip(records.labels / domain.label_bound, -1.0, 1.0)
        loss = logistic if domain.classes else square
        return Process(
            function=lambda number, term: objective.solve(rows, labels, loss, term),
            shape=query.shape,
        )

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Return the minimiser, in units of the labels."""
        domain = public.domain
        unit = domain.label_bound / up(self.features.norm(domain), roundings=8)
        return LinearModel(
            domain=domain,
            features=self.features.drawn(domain, public.randomness),
            coefficients=unit * np.asarray(answers["minimiser"]),
        )

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Of all rows, and of a hundred Newton steps."""
        count, width = domain.at_most or 0, self.features.width(domain)
        return 16 * count * (width + 4), 100 * (count + width) * width**2


@attrs.frozen(kw_only=True)
class RegressionBound(SensitivityBound):
    """What the minimiser moves by at equal linear terms; the mechanism prices what that costs."""

    learner: ClassVar[type[Learner]] = Regression

    def sensitivity(
        self, query: Query, learner: Regression, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """B/Lam or 2B/Lam; refused where the minimiser's error is not small next to it."""
        objective = learner.objective(public.domain)
        one = up(objective.slope / objective.ridge, roundings=3)
        relation, value = ByRelation(add_remove=one, replace_one=2 * one).under(adjacency)
        # The error at the longest term that the conformance suite tries; a release charges that of
        # its own term.
        error = objective.tolerance(100 * objective.slope * query.real_size) / objective.ridge
        if not error < value / 8:
            return Refused(
                f"regularization={learner.regularization!r} is too small for a certified minimiser "
                f"of {objective.most} records: raise it, or declare fewer records"
            )
        return Sensitivity(
            value=value,
            distance=query.distance,
            adjacency=relation,
            solver_error=error,
            source=f"clipped gradients over the ridge ({relation})",
            facts={"slope": objective.slope, "ridge": objective.ridge},
        )
