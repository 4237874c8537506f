"""Private estimators for scikit-learn (the extra `sklearn`).

Each wraps a learner, which a plugin provides: `fit` is one release, and `guarantee_` says what it
is worth. Ranges, classes and the budget are parameters; nothing about the records is read to set
them. Estimators of one learner belong to its plugin, and are imported from there at first use.
"""

from importlib import import_module
from typing import Any

try:
    import sklearn as _  # noqa: F401  # only to say how to get it
except ImportError:
    raise ImportError(
        "dpcore.bridges.sklearn needs scikit-learn >= 1.6: pip install dpcore[sklearn]"
    ) from None

from dpcore.bridges.sklearn.classifiers import PrivateClassifier
from dpcore.bridges.sklearn.published import published
from dpcore.bridges.sklearn.regressors import PrivateRegressor
from dpcore.bridges.sklearn.warned import ConstantModelWarning, ReleaseWarning

__all__ = [
    "ConstantModelWarning",
    "PrivateClassifier",
    "PrivateRegressor",
    "ReleaseWarning",
    "published",
]

_PLUGINS = {
    "KernelRidge": "kernel-ridge",
    "NTKClassifier": "ntk",
    "RandomFeaturesRidge": "random-features",
    "ShapeClassifier": "tables",
    "ShapeRegressor": "tables",
    "SufficientStatisticsRidge": "linear",
}


def __getattr__(name: str) -> Any:
    plugin = _PLUGINS.get(name)
    if plugin is None:
        raise AttributeError(f"module 'dpcore.bridges.sklearn' has no attribute {name!r}")
    try:
        home = import_module(f"dpcore_{plugin.replace('-', '_')}.estimators")
    except ImportError as error:
        raise ImportError(
            f"{name} belongs to the plugin dpcore-{plugin}: pip install dpcore-{plugin}"
        ) from error
    return getattr(home, name)
