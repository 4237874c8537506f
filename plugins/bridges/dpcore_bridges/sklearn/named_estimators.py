"""Estimators of one learner, made from what a plugin declares by the hook `dpcore_estimators`.

Their parameters are the fields of the learner and of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import attrs

from dpcore.learner import Learner, Transformer as Transforming, promises
from dpcore.learners.estimator import Estimator
from dpcore.mechanism import AnyMechanism
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry
from dpcore_bridges.sklearn.base import PrivateEstimator
from dpcore_bridges.sklearn.classifiers import Classifier
from dpcore_bridges.sklearn.regressors import Regressor
from dpcore_bridges.sklearn.transformers import Transformer

_HOME = __name__.rpartition(".")[0]  # where pickle looks their classes up


def fields_of(part: type) -> dict[str, Any]:
    """Return the defaults of a component's own fields, by name; None where each component makes its
    own.

    A feature map is none of them: it is a part of its own.
    """
    attributes: tuple[attrs.Attribute[Any], ...] = attrs.fields(part)
    return {
        field.name: None if _is_factory(field.default) else field.default
        for field in attributes
        if field.name != "features"
    }


def _is_factory(default: object) -> bool:
    return isinstance(default, attrs.Factory)  # type: ignore[arg-type]


def given(estimator: PrivateEstimator, part: type) -> dict[str, Any]:
    """Return what the estimator was given for the fields of one of its components."""
    values = {name: getattr(estimator, name) for name in fields_of(part)}
    # None means a default that each component makes for itself
    factory_fields = {field.name for field in attrs.fields(part) if _is_factory(field.default)}
    return {
        name: value
        for name, value in values.items()
        if value is not None or name not in factory_fields
    }


def estimator_of(name: str, declared: type[Estimator]) -> type[PrivateEstimator]:
    """Return the estimator class that a plugin declares, under the name by which it is offered."""
    defaults = {n: value for part in declared.parts for n, value in fields_of(part).items()}
    defaults |= declared.defaults
    assert attrs.NOTHING not in defaults.values(), "every parameter of an estimator has a default"

    def _learner(self: PrivateEstimator, registry: Registry) -> Learner:
        learner, *maps = declared.parts
        fields = given(self, learner)
        if maps:
            fields["features"] = declared.features(given(self, maps[0]))
        return cast(Learner, registry.component(LEARNER, declared.learner)(**fields))

    def _mechanism(self: PrivateEstimator, registry: Registry) -> AnyMechanism | None:
        return declared.mechanism({n: getattr(self, n) for n in defaults})

    # annotations make parameters of a dataclass, and scikit-learn reads those of its `__init__`
    body = {
        "__annotations__": dict.fromkeys(defaults, Any),
        "__doc__": declared.__doc__,
        "__module__": _HOME,
        "_learner": _learner,
        "_mechanism": _mechanism,
        **defaults,
    }
    base: type[PrivateEstimator] = Classifier if declared.classifies else Regressor
    # A learner says itself that it predicts nothing.
    if promises(declared.parts[0], Transforming):
        base = Transformer
    return dataclass(kw_only=True, eq=False, repr=False)(type(name, (base,), body))
