"""scikit-learn estimators of this plugin's learners; `dpcore.sklearn` imports them from here."""

from __future__ import annotations

from dpcore import Learner, Registry
from dpcore.bridges.sklearn.base import component
from dpcore.bridges.sklearn.classifiers import Classifier
from dpcore.bridges.sklearn.named import given, parameters_of
from dpcore_ntk.central import Central


@parameters_of(Central)
class NTKClassifier(Classifier):
    """Any number of classes, with a neural tangent kernel: `ntk.central`."""

    def _learner(self, registry: Registry) -> Learner:
        return component(registry, "ntk.central", **given(self, Central))
