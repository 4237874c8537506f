"""The scikit-learn estimator that `dpcore.sklearn` makes of this plugin's learner."""

from collections.abc import Mapping
from typing import Any

from dpcore.learners.estimator import Estimator
from dpcore.models import FeatureMap
from dpcore.models.features.identity import Identity
from dpcore_linear.affine import Affine
from dpcore_linear.sufficient_statistics import SufficientStatistics


class SufficientStatisticsRidge(Estimator):
    """Linear ridge from one release of its sums: `linear.sufficient_statistics`; any adjacency."""

    learner = "linear.sufficient_statistics"
    parts = (SufficientStatistics, Affine)

    @classmethod
    def features(cls, fields: Mapping[str, Any]) -> FeatureMap:
        """Return the columns themselves, and a constant."""
        return Affine(features=Identity(), **fields)
