r"""Ridge from sufficient statistics with a privately chosen regularization, in one guarantee.

Theorem: with coefficients fixed by the first release, a record's loss
:math:`\big((\mathrm{clip}(\phi\cdot c,\pm M)-y)/(2M)\big)^2` is in [0, 1]; a candidate's score,
the sum of 1 minus its losses, moves by at most 1 when a record comes, goes or is replaced, in the
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
from dpcore.checks import fraction
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.bounds.sum import derived_as_sum, moved_by_sum
from dpcore.models import FeatureMap, Features, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore_linear.clipped_sum import shortened
from dpcore_linear.integers import BLOCK, integer_rows, scores, unit_of
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound

_PLACES = -30  # log2 of what scores are counted in


def _candidates(instance: Any, attribute: Any, value: tuple[float, ...]) -> None:
    """Validate the candidates: at least two different finite numbers > 0."""
    # One candidate would be no choice, and would still be paid for.
    valid = all(isinstance(v, int | float) and 0 < v < float("inf") for v in value)
    need(
        valid and len(set(value)) >= max(2, len(value)),
        "ChosenRidge",
        "two or more different finite candidates > 0",
        attribute.name,
        value,
    )


@attrs.frozen(kw_only=True, eq=False)
class _State:
    public: Public
    queries: tuple[Query, ...]  # the sums, then the choice
    features: Features
    coefficients: NDArray[np.float64] | None = None  # of all candidates, shape (k, d)
    choice: int | None = None


@attrs.frozen(kw_only=True)
class ChosenRidge(SummingLearner):
    """Release the sums once, fit every candidate from them, and choose one by its private loss.

    The query `statistics` needs an l2 mechanism, `choice` permute-and-flip or, for less
    next to Gaussian noise, the exponential mechanism.

    Total, and its sums are exact: see `SummingLearner`. A score is a sum of 1 minus the loss,
    rounded to 30 binary places; predictions are those at coefficients rounded to about 26.

    Args:
        features: Map from encoded columns to features.
        candidates: Values of Lam, of the sum form, in units of kappa^2.
        share: Of the budget, for the choice.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.chosen_ridge",)
    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    features: FeatureMap
    candidates: tuple[float, ...] = attrs.field(
        default=(10.0, 30.0, 100.0, 300.0), validator=_candidates
    )
    share: float = attrs.field(default=0.1, validator=fraction)

    def ridge(self, candidate: float, domain: Domain) -> SufficientStatistics:
        """Return the learner that one candidate is."""
        kappa = self.features.norm(domain)
        return SufficientStatistics(
            features=self.features, total_regularization=candidate * kappa * kappa
        )

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return two queries: `statistics` and `choice`, once each."""
        (statistics,) = self.ridge(self.candidates[0], public.domain).queries(public)
        choice = SumQuery(
            name="choice",
            shape=(len(self.candidates),),
            distance=Distance.LINF,
            share=self.share,
            # Every entry of a score's row is in [0, 1] in units
            # that are integers: the sum has no rounding.
            sum=Sum(clip=1.0, sign="non_negative", exponent=_PLACES),
        )
        return (attrs.evolve(statistics, share=1 - self.share), choice)

    def start(self, public: Public) -> _State:
        """Return the state before the first release: public facts and the drawn features."""
        features = self.features.drawn(public.domain, public.randomness)
        return _State(public=public, queries=self.queries(public), features=features)

    def ask(self, state: _State) -> Query | None:
        """Ask for the sums first, then for the choice among their fits."""
        statistics, choice = state.queries
        if state.coefficients is None:
            return statistics
        if state.choice is None:
            # The second query depends on the first answer only: adaptive composition allows that.
            return attrs.evolve(choice, args={"coefficients": state.coefficients})
        return None

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return each record's products, or 1 minus its loss under each candidate."""
        domain = public.domain
        if query.name == "statistics":
            return self.ridge(self.candidates[0], domain).contributions(query, block, public)
        assert query.args is not None, "a query carries the candidates"
        kappa, bound = self.features.norm(domain), domain.label_bound
        features = self.features.drawn(domain, public.randomness)
        rows = row_by_row(features, block.features, self.features.width(domain)) / kappa
        # Scores are integers of each row only, so that a
        # record's loss has the same bits in any block.
        integers = integer_rows(rows, block.labels / bound, 1.0, unit_of(1.0))
        predictions = np.column_stack(
            [scores(integers, fit * (kappa / bound)) for fit in query.args["coefficients"]]
        )
        # Both are in [-1, 1], so that half their difference,
        # squared, is in [0, 1]: the range of the claim.
        errors = (np.clip(predictions, -1, 1) - (block.labels / bound)[:, None]) / 2
        return 1 - errors * errors

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the contributions; products as integers."""
        if query.name != "statistics":
            return super().partial(query, block, public)
        return self.ridge(self.candidates[0], public.domain).partial(query, block, public)

    def update(self, state: _State, answer: Answer) -> _State:
        """Store all candidates' coefficients, or the choice."""
        if state.coefficients is not None:
            return attrs.evolve(state, choice=int(np.argmax(answer.value)))
        domain = state.public.domain
        unit = domain.label_bound / self.features.norm(domain)
        fits = [
            self.ridge(value, domain).assemble({"statistics": answer.value}, state.public)
            for value in self.candidates
        ]
        # All candidates are solved from one release: post-processing costs nothing.
        rows = [unit * shortened(fit.coefficients / unit) for fit in fits]
        return attrs.evolve(state, coefficients=np.array(rows))

    def model(self, state: _State) -> LinearModel:
        """Return the linear model of the candidate that was chosen."""
        assert state.coefficients is not None, "the sums are released"
        return LinearModel(
            domain=state.public.domain,
            features=state.features,
            coefficients=state.coefficients[state.choice],
        )


@attrs.frozen(kw_only=True)
class ChosenRidgeBound(SensitivityBound):
    """T9 for the sums, 1 for the scores."""

    learner: ClassVar[type[Learner]] = ChosenRidge

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the claim for every relation and any number of records."""
        assert isinstance(learner, ChosenRidge)
        if query.name == "statistics":
            ridge = learner.ridge(learner.candidates[0], public.domain)
            return SufficientStatisticsBound().sensitivity(query, ridge, public, adjacency)
        # `value` is how far any score moves; `range` how far two may move apart, which the
        # exponential mechanism can use: a replaced record moves some up and some down.
        claim, value = moved_by_sum(query).under(adjacency)
        _, noise_distribution = ByRelation(add_remove=1.0, replace_one=2.0).under(adjacency)
        sensitivity = Sensitivity(
            value=value,
            range=noise_distribution,
            distance=Distance.LINF,
            adjacency=claim,
            source="sums of losses in [0, 1], in integers",
        )
        return derived_as_sum(sensitivity, query)
