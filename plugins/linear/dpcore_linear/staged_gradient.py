r"""Clipped gradient descent in three stages: standardise, screen, fit. What to use on tables.

Theorem: every release is a sum of one vector per record, fixed by earlier answers. Replacing a
record moves a sum of vectors of norm at most c by at most 2c, of non-negative ones by at most
:math:`\sqrt2c` (:math:`\|a-b\|^2\le\|a\|^2+\|b\|^2`), and a sum of clipped gradients by at most 2C.
All of them are sums of integers (`dpcore_linear.integers`), so that no rounding is left.
With Gaussian noise all of them compose to exactly one Gaussian.

The constants are one set for every table, chosen on synthetic and other public data: see
`docs/records/choosing-measured.md`.
"""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
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
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import NoClaimError, need_value
from dpcore.exact import Exact
from dpcore.learners.bounds.sum import derived_as_sum, moved_by_sum
from dpcore.models import ScoringModel
from dpcore.models.description import ShownModel
from dpcore.models.linear import in_blocks
from dpcore_linear import portable
from dpcore_linear.descent import Descent, Steps
from dpcore_linear.integers import (
    BLOCK,
    IntegerRows,
    clipped_gradients,
    integer_rows,
    multipliers,
    unit_of,
)
from dpcore_linear.staged_features import INTERCEPT, Layout, StagedFeatures

_STANDARDISE, _SCREEN = 0.10, 0.30  # fractions of the budget; the fit has the rest
_MEANS, _SQUARES = 0.5, 0.15  # norms of clipped rows over the root of the number of columns
_FLOOR = 0.2


@attrs.frozen(eq=False)
class _Recipe:
    """Everything that public facts determine."""

    layout: Layout
    records: int
    mu: float

    @classmethod
    def of(cls, public: Public) -> "_Recipe":
        # Schedules depend on mu: without a Gaussian budget there is nothing to plan by.
        requirement = "staged_gradient plans its steps by a Gaussian budget: give a delta"
        mu = need_value(public.mu, NoClaimError, requirement, "budget", top=True)
        return cls(Layout.of(public.domain), public.domain.records, mu)

    @property
    def standardise(self) -> float:
        """Proportion of the means and squares together."""
        return _STANDARDISE if self.layout.numeric.size else 0.0

    @property
    def fit(self) -> float:
        """Proportion of the last stage."""
        return 1 - self.standardise - _SCREEN

    @property
    def row(self) -> float:
        """c: rows of numeric columns are at most this long."""
        return _MEANS * math.sqrt(self.layout.numeric.size)

    @property
    def square(self) -> float:
        """c2: rows of squared deviations are at most this long."""
        return _SQUARES * math.sqrt(self.layout.numeric.size)

    def steps(self, name: str) -> Steps:
        """Return the schedule of a stage."""
        if name == "screen":
            return Steps.for_stage(self.records, self.mu, _SCREEN, self.layout.screened)
        return Steps.for_stage(self.records, self.mu, self.fit, self.layout.fitted)

    def queries(self) -> tuple[Query, ...]:
        """Return the plan: `means` and `squares` once each, then `screen` and `fit` once a step."""
        numeric = self.layout.numeric.size
        # Means and squares halve the proportion of the standardising stage.
        half = self.standardise / 2
        plan = []
        if numeric:
            squares = Sum(clip=self.square, sign="non_negative")
            plan = [
                _query("means", numeric, 1, half, Sum(clip=self.row)),
                _query("squares", numeric, 1, half, squares),
            ]
        widths = {"screen": (self.layout.screened, _SCREEN), "fit": (self.layout.fitted, self.fit)}
        for name, (width, fraction) in widths.items():
            steps = self.steps(name)
            declaration = Sum(clip=steps.clip, exponent=unit_of(steps.clip))
            plan.append(_query(name, width, steps.count, fraction, declaration))
        return tuple(plan)

    def means(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the means from the released sum of rows."""
        return np.clip(total / self.records, -0.9, 0.9)

    def variances(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate variances from released squared deviations, at least half the planned noise."""
        # A variance below the noise of its own release would be scaled up into noise.
        noise = math.sqrt(2) * self.square / (self.mu * math.sqrt(self.standardise / 2))
        floor = min(max(0.01, noise / self.records / 2), 0.35)
        return np.clip(total / self.records, floor, 0.35)

    def screened(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a'_j: larger for a column in which the screen found an effect."""
        # Released weights only: the screen's result is post-processing and costs nothing more.
        effects = np.abs(weights[1:])
        typical = math.sqrt(float(np.mean(effects**2)))
        relative = effects / typical if typical > 0 else np.ones(effects.shape)
        scales = self.layout.equal_scales() * (np.sqrt(relative) + _FLOOR)
        return scales * math.sqrt((1 - INTERCEPT**2) / float(np.sum(scales**2)))


def _query(name: str, width: int, at_most: int, fraction: float, declaration: Sum) -> SumQuery:
    return SumQuery(
        name=name,
        shape=(width,),
        distance=Distance.L2,
        at_most=at_most,
        share=fraction,
        sum=declaration,
    )


@attrs.frozen(kw_only=True, eq=False)
class _State:
    """What the answers so far have fixed."""

    recipe: _Recipe
    queries: Mapping[str, Query]
    domain: Domain
    stage: str
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    features: StagedFeatures | None = None
    descent: Descent | None = None


@attrs.frozen(kw_only=True, eq=False)
class StagedModel(ShownModel):
    """Clipped predictions that are linear in staged features, for labels scaled to [0, 1]."""

    domain: Domain
    features: StagedFeatures
    coefficients: NDArray[np.float64]

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predict in the file's units, shape (n,)."""
        bound = self.domain.label_bound
        return self.domain.uncentre(
            np.clip(self.score(encode_table(self.domain, table)), -bound, bound)
        )

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict in encoded units, centred at 0 and not clipped, shape (n,)."""
        predictions = in_blocks(
            lambda rows: self.features(rows) @ self.coefficients, encoded, self.coefficients.size
        )
        return np.asarray((2 * predictions - 1) * self.domain.label_bound)

    def exported(self) -> tuple[ModuleType, dict[str, Any]]:
        """Return a numpy-only module whose `score` gives the same scores, and its values."""
        layout = self.features.layout
        return portable, {
            "bound": self.domain.label_bound,
            "coefficients": self.coefficients,
            "numeric": layout.numeric,
            "owner": layout.owner,
            **self.features.arrays(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the coefficients, and the standardisation and weights of the columns."""
        return {"coefficients": self.coefficients, **self.features.arrays()}


@attrs.frozen(kw_only=True)
class StagedGradient(SummingLearner):
    """Main effects, pairs, squares and soft steps of all columns; it has nothing to tune.

    It spends 10 % of its budget on means and variances of the numeric columns, 30 % on finding the
    columns that matter, and the rest on the fit. It needs the exact public number of records and a
    budget with a delta.

    Total, and its sums are exact: see `SummingLearner`.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.staged_gradient",)
    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return `means`, `squares` (if a column is numeric), `screen` and `fit` (per step)."""
        return _Recipe.of(public).queries()

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the features of the fit at all records: pairs of columns, squares and steps."""
        records, fitted = domain.at_most or 0, Layout.of(domain).fitted
        return 8 * fitted * (2 * records + 20), 2 * fitted * records

    def start(self, public: Public) -> _State:
        """Return the state before the first stage, without any answer."""
        recipe = _Recipe.of(public)
        state = _State(
            recipe=recipe,
            queries={query.name: query for query in recipe.queries()},
            domain=public.domain,
            stage="means",
            means=np.zeros(0),
            variances=np.zeros(0),
        )
        return state if recipe.layout.numeric.size else _screen(state)

    def ask(self, state: _State) -> Query | None:
        """Return the stage's query, with all that is fixed before it."""
        if state.stage == "done":
            return None
        args: dict[str, Any] = {"means": state.means}
        if state.descent is not None:
            assert state.features is not None, "a descent has its features"
            args = {**state.features.arrays(), "weights": state.descent.weights}
        return state.queries[state.stage].with_args(args)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return each record's contribution to the named query."""
        assert query.args is not None, "a query carries what earlier answers fixed"
        if query.name in ("means", "squares"):
            numeric = block.features[:, _Recipe.of(public).layout.numeric]
            return numeric if query.name == "means" else (numeric - query.args["means"]) ** 2
        # Clipped gradients in integers, one row a record, as `partial` adds them up.
        rows = self._rows(query, block, public)
        gradients = rows.rows * multipliers(rows, query.args["weights"])[:, None]
        return np.ldexp(gradients, rows.exponent)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the contributions; gradients by products of integers."""
        if query.name in ("means", "squares"):
            return super().partial(query, block, public)
        assert query.args is not None, "a query carries the weights"
        return clipped_gradients(self._rows(query, block, public), query.args["weights"])

    def _rows(self, query: SumQuery, block: Records, public: Public) -> IntegerRows:
        """PRIVATE: compute the rows in integers, once for all steps of a stage."""
        assert query.args is not None, "a query carries what earlier answers fixed"
        args, exponent = query.args, query.sum.unit
        key = (args["means"], args["variances"], args["scales"])

        def rows() -> IntegerRows:
            recipe = _Recipe.of(public)
            features = StagedFeatures(
                layout=recipe.layout,
                means=args["means"],
                variances=args["variances"],
                scales=args["scales"],
                quadratic=query.name == "fit",
            )
            bound = public.domain.label_bound
            # Labels in [0, 1], which the schedule of `Steps.for_stage` is made for.
            labels = (block.labels + bound) / (2 * bound)
            clip = recipe.steps(query.name).clip
            feature_rows = features(block.features)
            return integer_rows(feature_rows, labels, clip, exponent, overwrite=True)

        return block.derived((*key, self, public.domain, public.mu, query.name), rows)

    def update(self, state: _State, answer: Answer) -> _State:
        """Advance by one stage, or by one step of a descent."""
        if state.stage == "means":
            return attrs.evolve(state, stage="squares", means=state.recipe.means(answer.value))
        if state.stage == "squares":
            return _screen(attrs.evolve(state, variances=state.recipe.variances(answer.value)))
        assert state.descent is not None, "a descent is under way"
        # A stage ends after a public number of steps, never by what an answer says.
        state = attrs.evolve(state, descent=state.descent.after(answer.value))
        if state.descent is None or not state.descent.done:
            return state
        return _fit(state) if state.stage == "screen" else attrs.evolve(state, stage="done")

    def model(self, state: _State) -> StagedModel:
        """Return the averaged iterates of the fit."""
        assert state.features is not None, "the fit is over"
        assert state.descent is not None, "the fit is over"
        return StagedModel(
            domain=state.domain, features=state.features, coefficients=state.descent.average
        )


def _screen(state: _State) -> _State:
    """Start the screen: main effects, all columns scaled alike, from zero."""
    layout = state.recipe.layout
    features = StagedFeatures(
        layout=layout,
        means=state.means,
        variances=state.variances,
        scales=layout.equal_scales(),
        quadratic=False,
    )
    start = np.zeros(features.width)
    descent = Descent.start(state.recipe.steps("screen"), state.recipe.records, start)
    return attrs.evolve(state, stage="screen", features=features, descent=descent)


def _fit(state: _State) -> _State:
    """Start the fit: all features, columns weighted by the screen, from its main effects."""
    assert state.features is not None, "the screen is over"
    assert state.descent is not None, "the screen is over"
    effects = state.descent.average
    scales = state.recipe.screened(effects)
    features = attrs.evolve(state.features, scales=scales, quadratic=True)
    start = np.zeros(features.width)
    start[0] = effects[0]
    # The same function as the screen found, in the new
    # scales: the fit starts where the screen ended.
    start[1 : effects.size] = effects[1:] * state.features.scales / scales
    descent = Descent.start(state.recipe.steps("fit"), state.recipe.records, start)
    return attrs.evolve(state, stage="fit", features=features, descent=descent)


@attrs.frozen(kw_only=True)
class StagedGradientBound(SensitivityBound):
    """2c, sqrt(2) c2 (c2 for one column) and 2C, under replace-one and every smaller one."""

    learner: ClassVar[type[Learner]] = StagedGradient

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the sensitivity by the query's declaration: 2c, sqrt(2) c2 or 2C."""
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"its steps need a public number of records, which {adjacency} hides")
        sensitivity = Sensitivity(
            value=moved_by_sum(query).replace_one,
            distance=Distance.L2,
            adjacency=REPLACE_ONE,
            source=_SOURCES.get(query.name, "sums of gradients clipped at C (2C), in integers"),
        )
        return derived_as_sum(sensitivity, query)


_SOURCES = {
    "means": "sums of vectors of norm at most c (2c), in integers",
    "squares": "sums of non-negative vectors at most c long (sqrt(2) c; one entry: c), in integers",
}
