"""One private learner for tables: shape functions of private ranks, for numbers and classes."""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_tables.shape_functions import ShapeFunctions


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """The learner to start with on tables."""
    return {"tables.shape_functions": ShapeFunctions}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec of each kind of target."""
    folder = Path(__file__).parent / "examples"
    return {f"tables.{name}": folder / f"{name}.yaml" for name in ("classes", "numbers")}


@hookimpl
def dpcore_estimators() -> Mapping[str, type[Estimator]]:
    """The estimators that scikit-learn's users see, by class name; imported when used."""
    # Lazily: scikit-learn's names are imported only where somebody asks for them.
    return LazyMapping(
        {
            "ShapeClassifier": ("dpcore_tables.estimators", "ShapeClassifier"),
            "ShapeRegressor": ("dpcore_tables.estimators", "ShapeRegressor"),
        }
    )
