r"""Ridge from sufficient statistics with a privately chosen regularization, in one guarantee.

Theorem: with coefficients fixed by the first release, a record's loss
:math:`\big((\mathrm{clip}(\phi\cdot c,\pm M)-y)/(2M)\big)^2` is in [0, 1]; a candidate's score,
minus the sum of its losses, moves by at most 1 when a record comes, goes or is replaced, in the
maximum norm over all candidates. Permute-and-flip chooses (McKenna & Sheldon 2020).
"""

from typing import Any, ClassVar

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
from dpcore.checks import fraction
from dpcore.errors import ParameterError, UnknownCountError
from dpcore.learning.solvers.sums import depth, pull
from dpcore.learning.theorems.by_relation import ByRelation
from dpcore.rounding import gamma, up
from dpcore_linear.clipped_sum import LONGEST, shortened
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound


def _candidates(instance: Any, attribute: Any, value: tuple[float, ...]) -> None:
    """At least two different finite numbers > 0."""
    good = all(isinstance(v, int | float) and 0 < v < float("inf") for v in value)
    if not good or len(set(value)) < max(2, len(value)):
        raise ParameterError(
            "ChosenRidge", "two or more different finite candidates > 0", attribute.name, value
        )


@attrs.frozen(kw_only=True, eq=False)
class _State:
    public: Public
    features: Features
    coefficients: NDArray[np.float64] | None = None  # of all candidates, shape (k, d)
    chosen: int | None = None


@attrs.frozen(kw_only=True)
class ChosenRidge(Learner):
    """Release the sums once, fit every candidate from them, and choose one by its private loss.

    The query `statistics` needs an l2 mechanism, `choice` permute-and-flip or, for less
    beside Gaussian noise, the exponential mechanism.

    Total: the first query as for `linear.sufficient_statistics`; losses are clipped.

    Args:
        features: Map from encoded columns to features.
        candidates: Values of Lam, of the sum form, in units of kappa^2.
        share: Of the budget, for the choice.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.chosen_ridge",)
    total: ClassVar[bool] = True
    scores: ClassVar[bool] = True

    features: FeatureMap
    candidates: tuple[float, ...] = attrs.field(
        default=(10.0, 30.0, 100.0, 300.0), validator=_candidates
    )
    share: float = attrs.field(default=0.1, validator=fraction)

    def ridge(self, candidate: float, domain: Domain) -> SufficientStatistics:
        """The learner that one candidate is."""
        kappa = self.features.norm(domain)
        return SufficientStatistics(
            features=self.features, total_regularization=candidate * kappa * kappa
        )

    def queries(self, public: Public) -> tuple[Query, ...]:
        """`statistics` once and `choice` once."""
        (statistics,) = self.ridge(self.candidates[0], public.domain).queries(public)
        choice = Query(
            name="choice",
            shape=(len(self.candidates),),
            distance=Distance.LINF,
            share=self.share,
        )
        return (attrs.evolve(statistics, share=1 - self.share), choice)

    def start(self, public: Public) -> _State:
        """Nothing released."""
        return _State(public=public, features=self.features.drawn(public.domain, public.coins))

    def ask(self, state: _State) -> Query | None:
        """First the sums, then the choice among what they give."""
        statistics, choice = self.queries(state.public)
        if state.coefficients is None:
            return statistics
        if state.chosen is None:
            return attrs.evolve(choice, args={"coefficients": state.coefficients})
        return None

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The sums, or minus each candidate's sum of losses."""
        domain = public.domain
        if query.name == "statistics":
            ridge = self.ridge(self.candidates[0], domain)
            return ridge.statistic(query, records, public, secret)
        assert query.args is not None, "an ask carries the candidates"
        rows = self.features.draw(domain, public.coins)(records.features)
        bound = domain.label_bound
        predictions = np.clip(rows @ query.args["coefficients"].T, -bound, bound)
        losses = ((predictions - records.labels[:, None]) / (2 * bound)) ** 2
        return -pull(losses, np.ones(len(records)))

    def update(self, state: _State, answer: Answer) -> _State:
        """All candidates' coefficients, or the choice."""
        if state.coefficients is not None:
            return attrs.evolve(state, chosen=int(np.argmax(answer.value)))
        domain = state.public.domain
        unit = domain.label_bound / self.features.norm(domain)
        fits = [
            self.ridge(value, domain).assemble({"statistics": answer.value}, state.public)
            for value in self.candidates
        ]
        rows = [unit * shortened(fit.coefficients / unit) for fit in fits]
        return attrs.evolve(state, coefficients=np.array(rows))

    def model(self, state: _State) -> LinearModel:
        """The chosen candidate."""
        assert state.coefficients is not None, "the sums are released"
        return LinearModel(
            domain=state.public.domain,
            features=state.features,
            coefficients=state.coefficients[state.chosen],
        )


@attrs.frozen(kw_only=True)
class ChosenRidgeBound(SensitivityBound):
    """T9 for the sums, 1 for the scores."""

    learner: ClassVar[type[Learner]] = ChosenRidge

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """For every relation; a public limit on the records bounds the rounding of scores."""
        assert isinstance(learner, ChosenRidge)
        if query.name == "statistics":
            ridge = learner.ridge(learner.candidates[0], public.domain)
            return SufficientStatisticsBound().sensitivity(query, ridge, public, adjacency)
        records = public.domain.at_most
        if records is None:
            raise UnknownCountError("chosen_ridge needs a public limit on the number of records")
        width = learner.features.width(public.domain)
        # a loss is 1/M-Lipschitz in a prediction, which errs by gamma_{d+2} kappa |c|
        one = gamma(width + 8) * (LONGEST + 4) + gamma(depth(records) + 2)
        claim, spread = ByRelation(add_remove=1.0, replace_one=2.0).under(adjacency)
        return Sensitivity(
            value=up(1.0, roundings=5000),
            range=up(spread, roundings=5000),
            distance=Distance.LINF,
            adjacency=claim,
            solver_error=up(records * one, roundings=5000),
            source="sums of losses in [0, 1]",
        )
