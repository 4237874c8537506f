r"""Least squares by noisy gradient steps whose noise is correlated from step to step.

Step t asks for the sum x_t of clipped gradients at the present weights, over the records whose turn
it is. Released is :math:`y_t=\sum_{i<b}k_ix_{t-i}+Z_t` (a query with bands), and the step is taken
along what everyone solves for, :math:`\hat x=K^{-1}y`. Weights are running totals of steps, in
which most of that noise cancels.

Theorem: T16 in docs/theorems-noise.md, with L the clip. It holds for any weights of a query,
so also for those that start from public records or from an earlier release.
"""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Records, Sum, SummingLearner, SumQuery
from dpcore.checks import positive, positive_integer, probability
from dpcore.errors import UnknownCountError, need
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.models.features.base import Features, row_by_row
from dpcore.models.features.identity import Identity
from dpcore.records import PublicRecords
from dpcore.sampling import Cyclic
from dpcore_models.solvers.banded import Solved, square_root_bands

_RADIUS = 1000.0  # weights stay in this ball, in units of the label's half-range over kappa
_RIDGE = 1e-3  # of the mean squared error on public records


@attrs.frozen(kw_only=True, eq=False)
class _State:
    """Between two steps, all of it in units in which features and labels are at most 1 long."""

    public: Public
    query: SumQuery
    weights: NDArray[np.float64]
    solved: Solved
    total: NDArray[np.float64]
    steps: int = 0


@attrs.frozen(kw_only=True)
class Banded(SummingLearner):
    r"""Descend along gradients with banded noise, from zero or from public records.

    Every record draws one of `groups` and is seen in that group's turns only, so that it is in at
    most :math:`\lceil` steps / groups :math:`\rceil` of the answers: those are charged. The later
    half of the weights is averaged. Sums are divided by the number of records that a turn has on
    average, by their public number or limit.

    Public records among the inputs give the start: their own least squares, with a little ridge.

    Total, and its sums are exact: see `SummingLearner`.

    Args:
        features: Map from encoded columns to features; the columns themselves if None.
        steps: T, how many gradients are released.
        groups: How many turns there are.
        bands: How many sums an answer weighs, at most `groups`. 1: every step's noise is its own.
        probability: With which a record takes part in a turn of its group.
        clip: Most that a gradient may be, over M kappa: 1 is what it can be at weights of zero.
        rate: eta, of the mean gradient and over kappa^2: up to 1 is stable.
    """

    publishes: ClassVar[type[Any]] = ScoringModel

    features: FeatureMap | None = None
    steps: int = attrs.field(default=64, validator=positive_integer)
    groups: int = attrs.field(default=8, validator=positive_integer)
    bands: int = attrs.field(default=8, validator=positive_integer)
    probability: float = attrs.field(default=1.0, validator=probability)
    clip: float = attrs.field(default=0.5, validator=positive)
    rate: float = attrs.field(default=1.0, validator=positive)

    def map(self, domain: Domain) -> FeatureMap:
        """Return the feature map in use."""
        return Identity() if self.features is None else self.features

    def queries(self, public: Public) -> tuple[SumQuery, ...]:
        """Return the gradient, once a step."""
        self.turn(public.domain)  # what cannot be divided is refused unspent
        query = SumQuery(
            name="gradient",
            shape=(self.map(public.domain).width(public.domain),),
            distance=Distance.L2,
            at_most=self.steps,
            sampling=Cyclic(groups=self.groups, probability=self.probability),
            sum=Sum(clip=self.clip),
            bands=square_root_bands(self.bands),  # type: ignore[arg-type]  # a converter's type
        )
        return (query,)

    def turn(self, domain: Domain) -> float:
        """Return the mean number of records of a turn, at the public number or limit.

        Raises:
            UnknownCountError: there is neither.
        """
        message = "sgd.banded divides by a public number of records: declare one, or at_most"
        need(domain.at_most is not None, UnknownCountError, message)
        return (domain.at_most or 0) * self.probability / self.groups

    def start(self, public: Public) -> _State:
        """Start at zero, or at the best fit of public records."""
        (query,) = self.queries(public)
        weights = np.zeros(query.shape)
        references = [item for item in public.inputs.values() if isinstance(item, PublicRecords)]
        if references:
            scaled = [self._scaled(item.records, public) for item in references]
            phi, labels = (np.concatenate(parts) for parts in zip(*scaled, strict=True))
            gram = phi.T @ phi / len(phi) + _RIDGE * np.eye(weights.size)
            weights = np.linalg.solve(gram, phi.T @ labels / len(phi))
        return _State(
            public=public,
            query=query,
            weights=weights,
            solved=Solved(square_root_bands(self.bands)),
            total=np.zeros(query.shape),
        )

    def ask(self, state: _State) -> SumQuery | None:
        """Return the gradient at the present weights."""
        if state.steps == self.steps:
            return None
        return attrs.evolve(state.query, args={"weights": state.weights})

    def update(self, state: _State, answer: Answer) -> _State:
        """Take a step along the estimate of this turn's own gradient, and back into the ball."""
        solved = state.solved.after(answer.value)
        gradient = solved.recent[0] / self.turn(state.public.domain)
        weights = state.weights - self.rate * gradient
        weights = weights * min(1.0, _RADIUS / max(float(np.linalg.norm(weights)), _RADIUS))
        steps = state.steps + 1
        is_late = 2 * steps > self.steps
        total = state.total + weights if is_late else state.total
        return attrs.evolve(state, weights=weights, solved=solved, total=total, steps=steps)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return every record's gradient at the weights in the query."""
        assert query.args is not None, "a query says its weights"
        phi, labels = self._scaled(block, public)
        # Row by row: in a matrix product, the last bits would depend on the other rows.
        residuals = (phi * query.args["weights"]).sum(axis=1) - labels
        return np.asarray(residuals[:, None] * phi)

    def model(self, state: _State) -> LinearModel:
        """Return the mean of the later half of the weights, in the label's units."""
        domain, count = state.public.domain, self.steps - self.steps // 2
        scale = domain.label_bound / self.map(domain).norm(domain)
        return LinearModel(
            domain=domain,
            features=self._drawn(state.public),
            coefficients=scale * state.total / count,
        )

    def _drawn(self, public: Public) -> Features:
        return self.map(public.domain).draw(public.domain, public.randomness)

    def _scaled(
        self, records: Records, public: Public
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scale features and labels to length at most 1, each a function of its row only."""
        domain = public.domain
        recipe = self.map(domain)
        phi = row_by_row(self._drawn(public), records.features, recipe.width(domain))
        return phi / recipe.norm(domain), records.labels / domain.label_bound
