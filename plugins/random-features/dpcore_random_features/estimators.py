"""scikit-learn estimators of this plugin's learners; `dpcore.sklearn` imports them from here."""

from __future__ import annotations

from dpcore import Learner, Registry
from dpcore.bridges.sklearn.base import component
from dpcore.bridges.sklearn.named import given, parameters_of
from dpcore.bridges.sklearn.regressors import Regressor
from dpcore.learning.features.cos_sin import CosSin
from dpcore_random_features.ridge import Ridge


@parameters_of(Ridge, CosSin, count=100, regularization=0.1)
class RandomFeaturesRidge(Regressor):
    """Ridge regression on random Fourier features: `random_features.ridge` on `cos_sin`."""

    def _learner(self, registry: Registry) -> Learner:
        waves = CosSin(**given(self, CosSin))
        return component(registry, "random_features.ridge", features=waves, **given(self, Ridge))
