"""scikit-learn estimators of this plugin's learner; `dpcore.sklearn` imports them from here."""

from __future__ import annotations

from dpcore import Learner, Registry
from dpcore.bridges.sklearn.base import component
from dpcore.bridges.sklearn.classifiers import Classifier
from dpcore.bridges.sklearn.named import given, parameters_of
from dpcore.bridges.sklearn.regressors import Regressor
from dpcore_tables.shape_functions import ShapeFunctions


@parameters_of(ShapeFunctions)
class ShapeRegressor(Regressor):
    """Shape functions of columns and pairs: `tables.shape_functions`; any adjacency."""

    def _learner(self, registry: Registry) -> Learner:
        return component(registry, "tables.shape_functions", **given(self, ShapeFunctions))


@parameters_of(ShapeFunctions)
class ShapeClassifier(Classifier):
    """The same for two classes or several, with probabilities."""

    def _learner(self, registry: Registry) -> Learner:
        return component(registry, "tables.shape_functions", **given(self, ShapeFunctions))
