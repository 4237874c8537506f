r"""Central regression with a neural tangent kernel: clipped passes, one noisy quadratic form.

Theorem (2.9): the state of `dpcore_ntk.passes` moves by at most :math:`2\eta LP` in l2 when one
record is replaced, features and label, whatever n, the kernel and the other records are. With noise
of standard deviation sigma on every entry, an output f_c(x) gets noise of standard deviation
:math:`\sigma\|F(x)\|\le\sigma`, however many entries there are.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_LABEL,
    REPLACE_ONE,
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
from dpcore.checks import component_name, positive, positive_integer
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError
from dpcore.models import ProbabilityModel
from dpcore.models.description import ShownModel
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore_ntk.inputs import Inputs, below_one
from dpcore_ntk.neurons import Neurons, optional_count
from dpcore_ntk.passes import clipped_passes, moved, outputs, rounding
from dpcore_ntk.targets import LONGEST, Targets

_RATE = 0.1


def _below_two(instance: Any, attribute: Any, value: Any) -> None:
    if value is None:
        return
    positive(instance, attribute, value)
    if value >= 2:
        raise ParameterError(
            component_name(instance), f"a {attribute.name} in (0, 2)", attribute.name, value
        )


@attrs.frozen(kw_only=True, eq=False)
class QuadraticModel(ShownModel):
    """f_c(x) = x^T A_c R x / kappa: a number, or the class of the largest.

    Args:
        state: A, shape (C, d, rank), in units of the targets.
    """

    inputs: Inputs
    neurons: Neurons
    state: NDArray[np.float64]

    def outputs(self, table: Table) -> NDArray[np.float64]:
        """Return one output a class, or one, in units of the targets; shape (n, C)."""
        rows = self.inputs(encode_table(self.inputs.domain, table))
        return outputs(self.state, rows, self.neurons.hidden(rows) / self.neurons.feature_norm)

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of every class, shape (n, classes)."""
        return Targets(domain=self.inputs.domain).probabilities(self.outputs(table))

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, or classes. Shape (n,)."""
        return Targets(domain=self.inputs.domain).decode(self.outputs(table))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The released state, and the neurons."""
        return {"state": self.state, **self.neurons.arrays()}


@attrs.frozen(kw_only=True)
class Central(OneShot):
    r"""Passes of clipped stochastic gradient steps on a quadratic form, published with noise.

    It fits a number, two classes (-1 and +1), or several (one output each, their residuals clipped
    jointly). The kernel is that of `neurons` quadratic neurons, normalised to at most 1 on the
    domain; rate and clip are in those units, and targets in [-1, 1].

    With Gaussian noise for a budget of mu, an output at the longest x has noise of standard
    deviation :math:`2\eta LP/\mu`, independent of n and of the number of features, while n records
    move it by up to :math:`n\eta L`: one pass of short steps is mostly enough.

    Total: finitely many clipped steps in finite numbers; the bound refuses so many or such steps
    that rounding could not be bounded.

    Args:
        neurons: m; infinitely many, for which S = I, if None.
        intercept: w0 in [0, 1), the proportion of the norm that goes to a constant input, without
            which only squares and products of columns are seen; 0 for the paper's kernel.
        rate: eta in (0, 2); 0.1 min(1, mu) if None, mu being the budget's.
        clip: L > 0: a residual at the longest x counts up to this.
        passes: P, over the records in one order, which the runtime has shuffled.
        average: Whether the mean of all iterates is published; that halves what many passes add.
    """

    bounds: ClassVar[tuple[str, ...]] = ("ntk.central",)
    total: ClassVar[bool] = True
    publishes: ClassVar[type[Any]] = ProbabilityModel

    neurons: int | None = attrs.field(default=None, validator=optional_count)
    intercept: float = attrs.field(default=0.3, validator=below_one)
    rate: float | None = attrs.field(default=None, validator=_below_two)
    clip: float = attrs.field(default=0.5, validator=positive)
    passes: int = attrs.field(default=1, validator=positive_integer)
    average: bool = False

    def step(self, public: Public) -> float:
        """eta: the rate as stated, or the default at the budget's mu."""
        if self.rate is not None:
            return self.rate
        # The noise is 2 eta L P/mu: eta in proportion to mu
        # keeps it from growing as budgets shrink.
        return _RATE if public.mu is None else _RATE * min(1.0, public.mu)

    def inputs(self, public: Public) -> Inputs:
        """Return what the kernel is a function of."""
        return Inputs(domain=public.domain, intercept=self.intercept)

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the neurons, their matrix, and what they say of all records."""
        records, width = domain.at_most or 0, domain.width + 1
        neurons = self.neurons or 0
        memory = 8 * (3 * neurons * width + 4 * records * width + 4 * width**2)
        return memory, neurons * width**2 + 2 * self.passes * records * width**2

    def drawn(self, public: Public) -> Neurons:
        """Return the neurons, drawn from the public randomness: the same at every call."""
        return Neurons.draw(self.neurons, self.inputs(public), public.randomness)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one: the state, in l2, which is passed along a secret order."""
        # The shape is public: columns, neurons and classes, and no number of records.
        neurons = self.drawn(public)
        targets = Targets(domain=public.domain)
        shape = (targets.count, neurons.width, neurons.rank)
        return (Query(name="state", shape=shape, distance=Distance.L2, reads=Reads.ORDER),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """The state after all passes, in the order of the records."""
        neurons, rows = self.drawn(public), self.inputs(public)(records.features)
        return clipped_passes(
            rows,
            # Divided by a public bound, so that |F(x)| <= 1,
            # which the theorem needs of every record.
            neurons.hidden(rows) / neurons.feature_norm,
            Targets(domain=public.domain).encode(records.labels),
            rate=self.step(public),
            clip=self.clip,
            passes=self.passes,
            average=self.average,
        )

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> QuadraticModel:
        """Return the quadratic form whose matrix is the released state, as a model."""
        return QuadraticModel(
            inputs=self.inputs(public),
            neurons=self.drawn(public),
            state=answers["state"],
        )


@attrs.frozen(kw_only=True)
class CentralBound(SensitivityBound):
    """2 eta L P, or eta L (P + 1) for the mean; less where only a label moves."""

    learner: ClassVar[type[Learner]] = Central

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Under replace-one and every smaller relation; the number of records is public there."""
        assert isinstance(learner, Central)
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"the order of passes needs a public number of records: {adjacency}")
        # The width and the rank enter the rounding error
        # alone; the movement does not depend on them.
        targets, rate = Targets(domain=public.domain), learner.step(public)
        _, width, rank = query.shape
        error = rounding(
            rate=rate,
            clip=learner.clip,
            records=public.domain.records,
            passes=learner.passes,
            target=LONGEST,
            width=width,
            rank=rank,
            deviation=up(math.sqrt(rank), roundings=3),
        )
        # Where the computed state may differ too much from
        # the exact one the theorem says nothing of it.
        if math.isinf(error):
            return Refused(
                f"rounding is not bounded over {learner.passes} passes with rate={rate!r}, "
                f"clip={learner.clip!r}: take fewer passes, or a larger clip"
            )
        # With features fixed a clipped residual moves no farther than its target: by min(2L, D).
        label_only = REPLACE_LABEL.covers(adjacency)
        value = moved(
            rate,
            learner.clip,
            learner.passes,
            average=learner.average,
            targets=targets.apart if label_only else None,
        )
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=REPLACE_LABEL if label_only else REPLACE_ONE,
            solver_error=error,
            source="clipped passes: non-expansive steps, 2 eta L a visit (ntk README, theorem 1)",
            facts={"rate": rate, "clip": learner.clip, "passes": learner.passes},
        )
