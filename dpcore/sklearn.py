"""Private estimators for scikit-learn (the extra `sklearn`), from `dpcore.bridges.sklearn`."""

from typing import Any

from dpcore.bridges import sklearn as _home
from dpcore.bridges.sklearn import (
    ConstantModelWarning,
    PrivateClassifier,
    PrivateRegressor,
    ReleaseWarning,
    published,
)

__all__ = [
    "ConstantModelWarning",
    "PrivateClassifier",
    "PrivateRegressor",
    "ReleaseWarning",
    "published",
]


def __getattr__(name: str) -> Any:
    return getattr(_home, name)
