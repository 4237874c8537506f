"""Private estimators for scikit-learn (the extra `sklearn`).

Each wraps a learner, which a plugin provides: `fit` is one release, and `guarantee_` says what it
is worth. Ranges, classes and the budget are parameters; nothing about the records is read to set
them.
"""

try:
    import sklearn as _  # noqa: F401  # only to say how to get it
except ImportError:
    raise ImportError(
        "dpcore.bridges.sklearn needs scikit-learn >= 1.6: pip install dpcore[sklearn]"
    ) from None

from dpcore.bridges.sklearn.base import ReleaseWarning
from dpcore.bridges.sklearn.classifiers import NTKClassifier, PrivateClassifier
from dpcore.bridges.sklearn.regressors import (
    KernelRidge,
    PrivateRegressor,
    RandomFeaturesRidge,
    SufficientStatisticsRidge,
)

__all__ = [
    "KernelRidge",
    "NTKClassifier",
    "PrivateClassifier",
    "PrivateRegressor",
    "RandomFeaturesRidge",
    "ReleaseWarning",
    "SufficientStatisticsRidge",
]
