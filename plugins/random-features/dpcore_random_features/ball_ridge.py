r"""Ball-constrained ridge on random features: sound without any number of records.

Theorem (T6a): for features of norm at most kappa and labels in [-M, M], the minimiser of
:math:`\sum(\phi(x_i)\cdot c-y_i)^2+\Lambda\|c\|^2` over :math:`\|c\|\le R` moves by at most

.. math:: \min(2R, \kappa(2M+\kappa R)/\Lambda)\ \text{(replace-one)},\qquad
          \min(2R, \kappa(M+\kappa R)/\Lambda)\ \text{(add/remove)}.
"""

import math
from typing import ClassVar

import attrs

from dpcore import Adjacency, Distance, Domain, Learner, Public, Query, Refused, Sensitivity
from dpcore.checks import positive
from dpcore.query import Reads
from dpcore_models.bounds.certified import CertifiedBound
from dpcore_models.learners.certified import CertifiedRegression
from dpcore_models.theorems.projection import ball_diameter
from dpcore_random_features.solvers.ball_ridge import BallRidge


@attrs.frozen(kw_only=True)
class BallRidgeLearner(CertifiedRegression):
    r"""Minimise :math:`\sum(\phi(x_i)\cdot c-y_i)^2+\Lambda\|c\|^2` on a public ball; publish c.

    No exact number of records is read. The solver's tolerance is public and grows with the largest
    number of records it must hold for: a public upper bound, or else 2^22, before which the result
    tapers off (from 2^20 records on; see `dpcore_models.theorems.taper`). Declare `at_most` to
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
    narrow_reads: ClassVar[Reads] = Reads.FOLDS

    radius: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> BallRidge:
        """Return the public parameters of the minimisation."""
        return BallRidge(
            kappa=self.features.norm(domain),
            label_bound=domain.label_bound,
            total_regularization=self.total_regularization,
            radius=self.radius,
        )


@attrs.frozen(kw_only=True)
class BallRidgeBound(CertifiedBound):
    """T6(a) for `random_features.ball_ridge`, or T1 where the ball's diameter is no more.

    Answers for add/remove, for label changes only, and with the replace-one claim for every other
    replacement.
    """

    learner: ClassVar[type[Learner]] = BallRidgeLearner
    theorem: ClassVar[str] = "T6(a) (ball-constrained ridge, {})"

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuses where floating point cannot certify the minimiser and 2R is not the claim."""
        assert isinstance(learner, BallRidgeLearner)
        if math.isinf(2 * learner.radius):
            return Refused(f"radius={learner.radius!r} is too large: twice it is infinite")
        diameter = ball_diameter(learner.radius)
        claim, value = learner.problem(public.domain).moves().under(adjacency)
        # Two claims: the theorem's, with the solver's
        # error, and the diameter, which needs no solver.
        certified_claim = super().sensitivity(query, learner, public, adjacency)
        is_smaller = (
            value < diameter
            if isinstance(certified_claim, Refused)
            else certified_claim.unit < diameter
        )
        # A refusal of the solver's error is passed on only
        # where the diameter would be the larger claim.
        if is_smaller:
            if isinstance(certified_claim, Refused):
                return certified_claim
            return attrs.evolve(certified_claim, diameter=diameter)
        # The diameter holds for any points of the ball, the fallback 0 included.
        return Sensitivity(
            value=diameter,
            diameter=diameter,
            distance=Distance.L2,
            adjacency=claim,
            covers_fallback=True,
            source="T1 (diameter of the ball)",
            facts={"diameter": diameter},
        )
