r"""Gradient perturbation: full-batch descent on clipped gradients, on any feature map.

Theorem: every step releases a sum of clipped gradients, which moves by at most C (add/remove), 2C
(replace-one) or min(2C, 2 M kappa) (label only) at any weights; T steps with Gaussian noise are
exactly one Gaussian. See `dpcore_linear.clipped_sum`.
"""

from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Domain,
    FeatureMap,
    Features,
    Learner,
    LearnerCoins,
    LinearModel,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import one_of, positive, positive_integer
from dpcore.errors import UnfitTargetError, UnknownCountError
from dpcore.learning.theorems.by_relation import ByRelation
from dpcore.rounding import up
from dpcore_linear.clipped_sum import clipped_sum, clipped_sum_error, logistic, prepare
from dpcore_linear.descent import Descent, Steps


def _count(domain: Domain) -> int:
    """What sums are divided by: the public number of records, or a public limit."""
    if domain.at_most is None:
        raise UnknownCountError(
            "clipped_gradient needs a public limit on the number of records: declare at_most"
        )
    return domain.at_most


@attrs.frozen(kw_only=True, eq=False)
class _State:
    domain: Domain
    features: Features
    descent: Descent


@attrs.frozen(kw_only=True)
class ClippedGradient(Learner):
    r"""Descend on :math:`\sum h(\phi(x_i)\cdot w-y_i)` by released gradients, and average.

    A record's gradient is at most `clip` long, so that far-off labels count linearly, as in Huber
    regression. The later half of the iterates is averaged. Where only a limit on the number of
    records is public, a step is shorter by that factor; under add/remove that is all it changes.
    Weights are kept within a ball of radius 1000 in units of the label's half-range over kappa.
    The loss changes neither what a record can move nor what the steps cost.

    Total: sums of clipped finite vectors at finite weights.

    Args:
        features: Map from encoded columns to features.
        steps: T, number of gradients released.
        clip: C > 0, in label units times feature units: most a record's gradient may be.
        rate: eta > 0, per step and for the mean gradient; up to 1/kappa^2 is stable.
        loss: `squared`, or `logistic` for two classes: h then is twice the logistic loss.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.clipped_gradient",)
    total: ClassVar[bool] = True
    scores: ClassVar[bool] = True

    features: FeatureMap
    steps: int = attrs.field(default=100, validator=positive_integer)
    clip: float = attrs.field(validator=positive)
    rate: float = attrs.field(default=1.0, validator=positive)
    loss: Literal["squared", "logistic"] = attrs.field(
        default="squared", validator=one_of("squared", "logistic")
    )

    def scaled_clip(self, domain: Domain) -> float:
        """C for features of norm at most 1 and labels in [-1, 1], the descent's own units."""
        return self.clip / (self.features.norm(domain) * domain.label_bound)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """The gradient, once a step."""
        _count(public.domain)
        if self.loss == "logistic" and public.domain.classes != 2:
            raise UnfitTargetError("the logistic loss needs a target of two classes")
        width = self.features.width(public.domain)
        gradient = Query(name="gradient", shape=(width,), distance=Distance.L2, at_most=self.steps)
        return (gradient,)

    def start(self, public: Public) -> _State:
        """At zero."""
        domain = public.domain
        kappa = self.features.norm(domain)
        steps = Steps(
            clip=self.scaled_clip(domain), count=self.steps, rate=self.rate * kappa * kappa
        )
        return _State(
            domain=domain,
            features=self.features.draw(domain, public.coins),
            descent=Descent.start(steps, _count(domain), np.zeros(self.features.width(domain))),
        )

    def ask(self, state: _State) -> Query | None:
        """The gradient at the latest iterate."""
        if state.descent.done:
            return None
        return Query(
            name="gradient",
            shape=state.descent.weights.shape,
            distance=Distance.L2,
            at_most=self.steps,
            args={"weights": state.descent.weights},
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The sum of clipped gradients, for features and labels scaled to at most 1."""
        assert query.args is not None, "an ask carries the weights"
        domain, coins = public.domain, public.coins
        prepared = records.derived(
            (self, domain, coins),
            lambda: prepare(
                self.features.draw(domain, coins)(records.features) / self.features.norm(domain),
                records.labels / domain.label_bound,
                self.scaled_clip(domain),
            ),
        )
        link = logistic if self.loss == "logistic" else None
        return clipped_sum(prepared, query.args["weights"], link)

    def update(self, state: _State, answer: Answer) -> _State:
        """One step."""
        return attrs.evolve(state, descent=state.descent.after(answer.value))

    def model(self, state: _State) -> LinearModel:
        """The averaged iterates, in units of the labels."""
        unit = state.domain.label_bound / self.features.norm(state.domain)
        return LinearModel(
            domain=state.domain,
            features=state.features,
            coefficients=unit * state.descent.average,
        )


@attrs.frozen(kw_only=True)
class ClippedGradientBound(SensitivityBound):
    """C, 2C or min(2C, 2 M kappa), in the descent's own units."""

    learner: ClassVar[type[Learner]] = ClippedGradient

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """For each relation; a label alone may do less."""
        assert isinstance(learner, ClippedGradient)
        clip = learner.scaled_clip(public.domain)
        moved = ByRelation(add_remove=clip, replace_one=2 * clip, replace_label=2 * min(clip, 1.0))
        claim, value = moved.under(adjacency)
        return Sensitivity(
            value=up(value, roundings=5000),
            distance=Distance.L2,
            adjacency=claim,
            solver_error=clipped_sum_error(_count(public.domain), query.shape[0], clip),
            source=f"sums of gradients clipped at C ({claim})",
        )
