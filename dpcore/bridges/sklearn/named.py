"""Estimators of one learner: their parameters are the fields of the learner and of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import attrs

from dpcore.bridges.sklearn.base import PrivateEstimator


def fields_of(part: type) -> dict[str, Any]:
    """The defaults of a component's own fields, by name; None where each component makes its own.

    A feature map is none of them: it is a part of its own.
    """
    found: tuple[attrs.Attribute[Any], ...] = attrs.fields(part)
    return {
        one.name: None if _made(one.default) else one.default
        for one in found
        if one.name != "features"
    }


def _made(default: object) -> bool:
    return isinstance(default, attrs.Factory)  # type: ignore[arg-type]


def parameters_of(*parts: type, **defaults: Any) -> Callable[[type[PrivateEstimator]], Any]:
    """A class decorator: an estimator whose parameters are the fields of these components.

    Args:
        parts: The learner, and a feature map that it takes.
        defaults: Of fields that have none.
    """

    def decorated(made: type[PrivateEstimator]) -> Any:
        own = {name: value for part in parts for name, value in fields_of(part).items()} | defaults
        assert attrs.NOTHING not in own.values(), "every parameter of an estimator has a default"
        made.__annotations__ = {**made.__annotations__, **dict.fromkeys(own, Any)}
        for name, default in own.items():
            setattr(made, name, default)
        return dataclass(kw_only=True, eq=False, repr=False)(made)

    return decorated


def given(estimator: PrivateEstimator, part: type) -> dict[str, Any]:
    """What the estimator was given for the fields of one of its components."""
    values = {name: getattr(estimator, name) for name in fields_of(part)}
    own = {one.name for one in attrs.fields(part) if _made(one.default)}
    return {name: value for name, value in values.items() if value is not None or name not in own}
