r"""Gradient perturbation: full-batch descent on clipped gradients, on any feature map.

Theorem: every step releases a sum of clipped gradients, which moves by at most C (add/remove), 2C
(replace-one) or min(2C, 2 M kappa) (label only, up to the rounding of rows) at any weights; T steps
with Gaussian noise are exactly one Gaussian. See `dpcore_linear.clipped_sum` for the lemma, and
`dpcore_linear.integers` for sums without any rounding.
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
    Learner,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.checks import one_of, positive, positive_integer
from dpcore.errors import UnfitTargetError, UnknownCountError, need, need_value
from dpcore.exact import Exact
from dpcore.learners.bounds.sum import derived_as_sum, moved_by_sum
from dpcore.models import FeatureMap, Features, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore.sampling import Poisson
from dpcore_linear.descent import Descent, Steps
from dpcore_linear.integers import (
    BLOCK,
    IntegerRows,
    Link,
    clipped_gradients,
    integer_rows,
    label_moves,
    multipliers,
    unit_of,
)
from dpcore_models.solvers.elementary import half_tanh


def _count(domain: Domain) -> int:
    """Return the divisor of sums: the public number of records, or a public limit."""
    return need_value(
        domain.at_most,
        UnknownCountError,
        "clipped_gradient needs a public limit on the number of records: declare at_most",
    )


@attrs.frozen(kw_only=True, eq=False)
class _State:
    domain: Domain
    features: Features
    descent: Descent


@attrs.frozen(kw_only=True)
class ClippedGradient(SummingLearner):
    r"""Descend on :math:`\sum h(\phi(x_i)\cdot w-y_i)` by released gradients, and average.

    A record's gradient is at most `clip` long, so that far-off labels count linearly, as in Huber
    regression. The later half of the iterates is averaged. Where only a limit on the number of
    records is public, a step is shorter by that factor; under add/remove that is all it changes.
    Weights are kept within a ball of radius 1000 in units of the label's half-range over kappa.
    The loss changes neither what a record can move nor what the steps cost.

    Total, and its sums are exact: see `SummingLearner`. The gradient is that at weights rounded to
    about 26 binary places, of rows rounded to 20, and its weights are public.

    Args:
        features: Map from encoded columns to features.
        steps: T, number of gradients released.
        clip: C > 0, in label units times feature units: most a record's gradient may be.
        rate: eta > 0, per step and for the mean gradient; up to 1/kappa^2 is stable.
        loss: `squared`, or `logistic` for two classes: h then is twice the logistic loss.
        batch: About how many records a step sees, b; all of them if None. Every record is seen with
            probability b / n, n their public number or limit, drawn anew for each step by secret
            randomness. Sums are divided by b, whatever was drawn.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.clipped_gradient",)
    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    features: FeatureMap
    steps: int = attrs.field(default=100, validator=positive_integer)
    clip: float = attrs.field(validator=positive)
    rate: float = attrs.field(default=1.0, validator=positive)
    loss: Literal["squared", "logistic"] = attrs.field(
        default="squared", validator=one_of("squared", "logistic")
    )
    batch: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    @property
    def link(self) -> Link | None:
        """The link between scores and labels: none, or the slope of twice the logistic loss."""
        return half_tanh if self.loss == "logistic" else None

    def scaled_clip(self, domain: Domain) -> float:
        """Return C for features of norm <= 1 and labels in [-1, 1], the descent's units."""
        return self.clip / (self.features.norm(domain) * domain.label_bound)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the gradient, once a step."""
        _count(public.domain)
        # Twice the logistic loss is a loss for labels -1 and +1 only.
        need(
            self.loss != "logistic" or public.domain.classes == 2,
            UnfitTargetError,
            "the logistic loss needs a target of two classes",
        )
        return (self._query(public.domain),)

    def _query(self, domain: Domain) -> SumQuery:
        clip = self.scaled_clip(domain)
        return SumQuery(
            name="gradient",
            shape=(self.features.width(domain),),
            distance=Distance.L2,
            at_most=self.steps,
            sampling=self._sampling(domain),
            sum=Sum(clip=clip, exponent=unit_of(clip)),
        )

    def _sampling(self, domain: Domain) -> Poisson | None:
        """Return the sampling of a step; a subset of fixed size would cost more when replacing."""
        count = _count(domain)
        # Without a subset smaller than the limit there is no amplification to account for.
        if self.batch is None or self.batch >= count:
            return None
        return Poisson(probability=self.batch / count)

    def start(self, public: Public) -> _State:
        """Return the descent at zero weights, with its public divisor and schedule."""
        domain = public.domain
        # Own units: features over kappa, labels over M. The rate is scaled by kappa^2 to match.
        kappa = self.features.norm(domain)
        divisor = min(_count(domain), self.batch or _count(domain))  # public, whatever is drawn
        steps = Steps(
            clip=self.scaled_clip(domain), count=self.steps, rate=self.rate * kappa * kappa
        )
        return _State(
            domain=domain,
            features=self.features.draw(domain, public.randomness),
            descent=Descent.start(steps, divisor, np.zeros(self.features.width(domain))),
        )

    def ask(self, state: _State) -> Query | None:
        """Return the gradient at the latest iterate."""
        if state.descent.done:
            return None
        return self._query(state.domain).with_args({"weights": state.descent.weights})

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return clipped gradients, for features and labels scaled to at most 1."""
        rows, weights = self._rows(query, block, public), _weights(query)
        # u a of each record: at most C long, in integers, before any sum is taken.
        gradients = rows.rows * multipliers(rows, weights, self.link)[:, None]
        return np.ldexp(gradients, rows.exponent)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the contributions, as integers."""
        return clipped_gradients(self._rows(query, block, public), _weights(query), self.link)

    def _rows(self, query: SumQuery, block: Records, public: Public) -> IntegerRows:
        """PRIVATE: compute the rows in integers, once for all steps."""
        domain, randomness, exponent = public.domain, public.randomness, query.sum.unit
        return block.derived(
            (self, domain, randomness, float(exponent)),
            # Features and limits do not depend on the weights:
            # a block is prepared once, and read T times.
            lambda: integer_rows(
                row_by_row(
                    self.features.drawn(domain, randomness),
                    block.features,
                    self.features.width(domain),
                )
                / self.features.norm(domain),
                block.labels / domain.label_bound,
                self.scaled_clip(domain),
                exponent,
                overwrite=True,
            ),
        )

    def update(self, state: _State, answer: Answer) -> _State:
        """Return the state after one more step along the released gradient."""
        return attrs.evolve(state, descent=state.descent.after(answer.value))

    def model(self, state: _State) -> LinearModel:
        """Return the averaged iterates, in units of the labels."""
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
        """Return the claim for each relation; a changed label may move the sum by less."""
        assert isinstance(learner, ClippedGradient)
        clip = learner.scaled_clip(public.domain)
        # Features fixed, a clipped residual moves no
        # farther than the label did, up to its rounding.
        label = min(2 * clip, label_moves(clip, query.shape[0]))
        movements = attrs.evolve(moved_by_sum(query), replace_label=label)
        claim, value = movements.under(adjacency)
        sensitivity = Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            source=f"sums of gradients clipped at C ({claim}), in integers",
        )
        return derived_as_sum(sensitivity, query)


def _weights(query: Query) -> NDArray[np.float64]:
    assert query.args is not None, "a query carries the weights"
    weights: NDArray[np.float64] = query.args["weights"]
    return weights
