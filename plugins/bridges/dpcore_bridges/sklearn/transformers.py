"""Transformers: what a release publishes maps rows to new columns, and predicts nothing."""

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin

from dpcore.learner import AnyLearner, Transformer as Transforming
from dpcore.private.outcome import Outcome
from dpcore_bridges.sklearn.any_learner import OfAnyLearner
from dpcore_bridges.sklearn.base import PrivateEstimator
from dpcore_bridges.sklearn.components import transforming


@dataclass(kw_only=True, eq=False, repr=False)
class Transformer(TransformerMixin, PrivateEstimator):
    """A private transformer: `fit` is one release, and `components_` is what it published."""

    def _labels(self) -> None:
        return None

    def _fitting(self, learner: AnyLearner) -> AnyLearner:
        return transforming(learner)

    def _keep(self, outcome: Outcome) -> None:
        self.components_ = cast(Transforming, outcome.published)

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Release a map of rows of X: these are people, at most one each.

        Args:
            X: Shape (n, p); a data frame is taken by its column names.
            y: Ignored.

        Raises:
            ParameterError: a public fact is missing or impossible (a ValueError).
            ContractError: the learner publishes no map of rows.
            NoClaimError: no guarantee can be stated.
            BudgetExceededError: the ledger refuses; nothing was released.
            SourceError: `on_invalid` is `refuse` and a row does not fit.
        """
        columns, _ = self._intake(X, None)
        return self._release(columns, None)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the new columns of each row, shape (n, k): computed from what was published."""
        return np.asarray(self.components_.transform(self._table(X)), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the new columns, in order."""
        self._require_features(input_features)
        return np.array(self.components_.column_names(), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # y is no part of it
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTransformer(OfAnyLearner, Transformer):
    """Any learner that publishes a map of rows, as a transformer; it has to be named."""
