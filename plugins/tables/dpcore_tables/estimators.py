"""The scikit-learn estimators that `dpcore.sklearn` makes of this plugin's learner."""

from dpcore.learners.estimator import Estimator
from dpcore_tables.shape_functions import ShapeFunctions


class ShapeRegressor(Estimator):
    """Shape functions of columns and pairs: `tables.shape_functions`; any adjacency."""

    learner = "tables.shape_functions"
    parts = (ShapeFunctions,)


class ShapeClassifier(Estimator):
    """The same for two classes or several, with probabilities."""

    learner = "tables.shape_functions"
    parts = (ShapeFunctions,)
    classifies = True
