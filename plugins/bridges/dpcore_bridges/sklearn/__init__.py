"""Private estimators for scikit-learn.

Each wraps a learner, which a plugin provides: `fit` is one release, and `guarantee_` says what it
is worth. Ranges, classes and the budget are parameters; nothing about the records is read to set
them. Estimators of one learner are declared by its plugin, and made here at first use.
"""

from typing import Any

try:
    import sklearn as _  # noqa: F401  # only to say how to get it
except ImportError:
    raise ImportError(
        "dpcore_bridges.sklearn needs scikit-learn >= 1.6: pip install scikit-learn"
    ) from None

from dpcore.errors import RegistryError
from dpcore.registry.kinds import ESTIMATOR
from dpcore.registry.registry import Registry
from dpcore_bridges.sklearn.classifiers import PrivateClassifier
from dpcore_bridges.sklearn.named_estimators import estimator_of
from dpcore_bridges.sklearn.published import published
from dpcore_bridges.sklearn.regressors import PrivateRegressor
from dpcore_bridges.sklearn.transformers import PrivateTransformer
from dpcore_bridges.sklearn.warnings import ConstantModelWarning, ReleaseWarning

__all__ = [
    "ConstantModelWarning",
    "PrivateClassifier",
    "PrivateRegressor",
    "PrivateTransformer",
    "ReleaseWarning",
    "published",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        declared = Registry.default().component(ESTIMATOR, name)
    except RegistryError as error:
        if Registry.default().provides(ESTIMATOR, name):
            raise ImportError(str(error)) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from None
    # made once and kept: pickle finds the class by this name
    estimator = globals()[name] = estimator_of(name, declared)
    return estimator
