"""Regressors: a target with a public range."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from dpcore.domain.columns import Range
from dpcore_bridges.sklearn.any_learner import OfAnyLearner
from dpcore_bridges.sklearn.base import Predictor
from dpcore_bridges.sklearn.domain import range_of


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(RegressorMixin, Predictor):
    """A private regressor.

    Args:
        target: The public range (low, high) of y.
    """

    target: tuple[float, float] | None = None

    def _labels(self) -> Range:
        return range_of(self.target, "target")

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803  # scikit-learn's name
        """Release a model of y given X: rows of X are people, at most one each.

        Args:
            X: Shape (n, p); a data frame is taken by its column names.
            y: Shape (n,).

        Raises:
            ParameterError: a public fact is missing or impossible (a ValueError).
            NoClaimError: no guarantee can be stated.
            BudgetExceededError: the ledger refuses; nothing was released.
            SourceError: `on_invalid` is `refuse` and a row does not fit.
        """
        columns, labels = self._intake(X, y, y_numeric=True)
        return self._release(columns, labels)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Of a model that is a line: what one unit of each of `get_feature_names_out()` adds.

        Raises:
            AttributeError: the model is no line, or is an oracle.
        """
        return self._line().values

    @property
    def intercept_(self) -> float:
        """Of a model that is a line, in the units of y."""
        return self._line().intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a small budget on few rows buys no good score
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(OfAnyLearner, Regressor):
    """Any learner as a regressor; by default the one to start with on tables."""
