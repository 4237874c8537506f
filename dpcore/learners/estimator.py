"""Estimator: what a plugin declares of a scikit-learn estimator; scikit-learn is not imported."""

from abc import ABC
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from dpcore.mechanism import AnyMechanism
from dpcore.models.features.base import FeatureMap


class Estimator(ABC):
    """An estimator of one learner, made by `dpcore.sklearn` from the components that it names.

    Its docstring is the estimator's. The parameters are the fields of `parts`, with the components'
    own defaults but for `defaults`; further names in `defaults` are parameters, too.
    """

    learner: ClassVar[str]
    """The learner's name, as a spec gives it."""

    parts: ClassVar[tuple[type[Any], ...]]
    """The learner's class, and that of a feature map that it takes."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    classifies: ClassVar[bool] = False
    """Whether the target has classes; else it is a number."""

    @classmethod
    def features(cls, fields: Mapping[str, Any]) -> FeatureMap:
        """Return the feature map of the second of `parts`, from what was given for its fields."""
        # By convention the learner is the first part, and the map that it takes the second.
        feature_map: FeatureMap = cls.parts[1](**fields)
        return feature_map

    @classmethod
    def mechanism(cls, parameters: Mapping[str, Any]) -> AnyMechanism | None:
        """Return the mechanism at these parameters; None for what fits each query's distance."""
        return None
