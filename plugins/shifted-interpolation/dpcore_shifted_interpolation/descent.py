r"""Descent on all records whose last iterate is released, with the noise inside.

.. math:: \theta_{k+1}=\theta_k-\eta\Big(\tfrac1N\sum_i\mathrm{clip}(\ell'(x_i\cdot\theta_k,y_i),
          \pm B)\,x_i+\lambda\theta_k\Big)+\text{noise},\qquad \|x_i\|\le1 ,

N the declared number of records, or limit on it: never more than N terms are added.

Theorem: a step is (1 - eta lam)-Lipschitz for eta <= 2/(beta + 2 lam), and two neighbours' steps
from one state lie eta B/N apart where a record comes or goes, twice that where one is replaced.

Proof. A loss in one score whose derivative is clipped is convex, with a second derivative in
[0, beta]: so the mean of gradients has a Jacobian, where there is one, between 0 and beta, and the
step one between 1 - eta (beta + lam) >= -(1 - eta lam) and 1 - eta lam. The ridge is outside the
clip. Of several classes the clipped gradient has no such Jacobian (`clipping`): they are refused.
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
    SensitivityBound,
)
from dpcore.checks import fraction, positive, positive_integer
from dpcore.errors import UnfitTargetError, UnknownCountError, need
from dpcore.functions import Process, ProcessQuery
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore.models.features.identity import Identity
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore.sensitivity import StepSensitivity
from dpcore_linear.affine import Affine
from dpcore_models.solvers.slopes import logistic, square
from dpcore_shifted_interpolation.inner_gaussian import InnerGaussian


def _linear() -> FeatureMap:
    return Affine(features=Identity(), intercept=0.3)


@attrs.frozen(kw_only=True)
class Descent(OneShot):
    """Linear or logistic regression by descent whose last iterate by itself is released.

    For researchers: the noise is inside, and no other iterate is paid for. On the tables that were
    measured, descent whose iterates are all paid for is as good or better
    (`linear.staged_gradient`).
    Features and labels count as at most 1 in size.

    Total: a step of finite states is finite.

    Args:
        regularization: lam in (0, 1), of the mean over records: what contraction comes from.
        clip: B > 0, of derivatives of losses.
        rate: eta as a proportion of 2/(beta + 2 lam), the largest at which steps are proved to
            contract.
        steps: How many.
        features: Map from encoded columns to features; the columns and a constant if left out.
    """

    bounds: ClassVar[tuple[str, ...]] = ("shifted_interpolation.descent",)
    publishes: ClassVar[type[Any]] = ScoringModel
    total: ClassVar[bool] = True

    regularization: float = attrs.field(default=0.01, validator=fraction)
    clip: float = attrs.field(default=0.3, validator=positive)
    rate: float = attrs.field(default=0.99, validator=fraction)
    steps: int = attrs.field(default=400, validator=positive_integer)
    features: FeatureMap = attrs.field(factory=_linear)

    def eta(self, domain: Domain) -> float:
        """Return the step, from the largest second derivative of the loss."""
        beta = 0.25 if domain.classes else 1.0
        return self.rate * 2 / (beta + 2 * self.regularization)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one: the process of all steps.

        Raises:
            UnfitTargetError: more than two classes.
            UnknownCountError: no number of records, and no limit on it, is declared.
        """
        domain = public.domain
        # In one score only a clipped derivative is that of a convex loss.
        need(
            not domain.classes or domain.classes == 2,
            UnfitTargetError,
            "shifted_interpolation.descent fits numbers or two classes: a clipped step on several "
            "classes is no contraction",
        )
        if domain.at_most is None:
            message = "shifted_interpolation.descent divides by a public limit on the records"
            raise UnknownCountError(message)
        return (
            ProcessQuery(
                name="iterate",
                shape=(self.features.width(domain),),
                distance=Distance.L2,
                mechanism=InnerGaussian(),
                steps=self.steps,
            ),
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE: return one step of descent; it draws nothing, and keeps no state."""
        domain, eta = public.domain, self.eta(public.domain)
        longest = up(self.features.norm(domain), roundings=8)
        feature_map = self.features.drawn(domain, public.randomness)
        rows = row_by_row(feature_map, records.features, self.features.width(domain)) / longest
        labels = np.clip(records.labels / domain.label_bound, -1.0, 1.0)
        loss, count = logistic if domain.classes else square, domain.at_most or 1

        def descend(number: int, theta: NDArray[np.float64]) -> NDArray[np.float64]:
            slopes, _ = loss(rows @ theta, labels)
            pull = rows.T @ np.clip(slopes, -self.clip, self.clip) / count
            return theta - eta * (pull + self.regularization * theta)

        return Process(function=descend, shape=query.shape, steps=self.steps)

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Return the last iterate, in units of the labels."""
        domain = public.domain
        unit = domain.label_bound / up(self.features.norm(domain), roundings=8)
        return LinearModel(
            domain=domain,
            features=self.features.drawn(domain, public.randomness),
            coefficients=unit * np.asarray(answers["iterate"]),
        )

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Of all rows, once for every step."""
        count, width = domain.at_most or 0, self.features.width(domain)
        return 16 * count * (width + 2), 4 * self.steps * count * width


@attrs.frozen(kw_only=True)
class DescentBound(SensitivityBound):
    """What a step moves by and what it leaves of a distance: the theorem above."""

    learner: ClassVar[type[Learner]] = Descent

    def sensitivity(
        self, query: Query, learner: Descent, public: Public, adjacency: Adjacency
    ) -> StepSensitivity | Refused:
        """eta B/N or 2 eta B/N, and 1 - eta lam, for every step alike."""
        domain, eta = public.domain, learner.eta(public.domain)
        one = up(eta * learner.clip / (domain.at_most or 1), roundings=8)
        relation, moved = ByRelation(add_remove=one, replace_one=2 * one).under(adjacency)
        contraction = up(1 - eta * learner.regularization, roundings=8)
        return StepSensitivity(
            moved=(moved,) * learner.steps,
            contraction=(contraction,) * learner.steps,
            distance=query.distance,
            adjacency=relation,
            source=f"a clipped convex loss in one score contracts ({relation})",
            facts={"rate": eta, "clip": learner.clip, "regularization": learner.regularization},
        )
