"""The scikit-learn estimator that `dpcore.sklearn` makes of this plugin's learner."""

from types import MappingProxyType

from dpcore.learners.estimator import Estimator
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.ridge import Ridge


class RandomFeaturesRidge(Estimator):
    """Ridge regression on random Fourier features: `random_features.ridge` on `cos_sin`."""

    learner = "random_features.ridge"
    parts = (Ridge, CosSin)
    defaults = MappingProxyType({"count": 100, "regularization": 0.1})
