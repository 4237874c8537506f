"""The scikit-learn estimator that `dpcore.sklearn` makes of this plugin's learner."""

from dpcore.learners.estimator import Estimator
from dpcore_ntk.central import Central


class NTKClassifier(Estimator):
    """Any number of classes, with a neural tangent kernel: `ntk.central`."""

    learner = "ntk.central"
    parts = (Central,)
    classifies = True
