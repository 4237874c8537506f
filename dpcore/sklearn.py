"""Private estimators for scikit-learn (the extra `sklearn`), from `dpcore.bridges.sklearn`."""

from dpcore.bridges.sklearn import (
    KernelRidge,
    NTKClassifier,
    PrivateClassifier,
    PrivateRegressor,
    RandomFeaturesRidge,
    ReleaseWarning,
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
