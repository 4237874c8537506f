"""scikit-learn estimators of this plugin's learners; `dpcore.sklearn` imports them from here."""

from __future__ import annotations

from dpcore import Learner, Registry
from dpcore.bridges.sklearn.base import component
from dpcore.bridges.sklearn.named import given, parameters_of
from dpcore.bridges.sklearn.regressors import Regressor
from dpcore.learning.features.identity import Identity
from dpcore_linear.affine import Affine
from dpcore_linear.sufficient_statistics import SufficientStatistics


@parameters_of(SufficientStatistics, Affine)
class SufficientStatisticsRidge(Regressor):
    """Linear ridge from one release of its sums: `linear.sufficient_statistics`; any adjacency."""

    def _learner(self, registry: Registry) -> Learner:
        return component(
            registry,
            "linear.sufficient_statistics",
            features=Affine(features=Identity(), **given(self, Affine)),
            **given(self, SufficientStatistics),
        )
