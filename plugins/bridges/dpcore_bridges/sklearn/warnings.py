"""Warnings of an estimator: what its user should know and no error says."""

import itertools
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.columns import write_cells

_DEEPEST = 40  # calls between a pipeline's `fit` and its last step's
_PROBES = 128
_SAME = 1e-9  # of the label's range


class ReleaseWarning(UserWarning):
    """What a fit costs or protects may be less than it looks: clones add up, rehearsals and fitted
    steps in front are not private."""


class ConstantModelWarning(UserWarning):
    """The published model predicts the same everywhere in the declared domain."""


def fitted_in_front(estimator: Any) -> list[str]:
    """Names of steps that were fitted on the rows that now come to `estimator`.

    scikit-learn says a step nothing of the pipeline around it. So it is found by who called `fit`:
    a pipeline whose last step it is, or what transforms its target. No value is looked at.
    """
    # only who called is looked at; rows in the same frames are not
    for frame, _ in itertools.islice(traceback.walk_stack(None), _DEEPEST):
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline) and owner.steps and owner.steps[-1][1] is estimator:
            return [name for name, step in owner.steps[:-1] if _fitted(step)]
        if isinstance(owner, TransformedTargetRegressor):
            inner = getattr(owner, "regressor_", None)
            if inner is estimator and _fitted(owner.transformer):
                return ["transformer"]
    return []


def _fitted(step: Any) -> bool:
    if step is None or isinstance(step, str):
        return False
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # a stranger's step, which says nothing of itself
        return True


def warn_of_steps(estimator: Any) -> None:
    """Warn of steps whose fit is not private."""
    if steps := fitted_in_front(estimator):
        warnings.warn(
            f"{', '.join(steps)} in front of {type(estimator).__name__} was fitted on the same "
            "private rows: what it learned from them reaches the model and is not covered by "
            "guarantee_. Declare ranges in `columns` and leave it out: they do the scaling",
            ReleaseWarning,
            stacklevel=5,
        )


def warn_of_constant(
    name: str, predict: Callable[[Mapping[str, Any]], NDArray[Any]], domain: Domain
) -> None:
    """Warn where a model, which is published, predicts one thing at public points."""
    # a published model at public points: this looks at no record and costs nothing
    predictions = predict(probes(domain))
    if domain.classes:
        same = len({*predictions.tolist()}) == 1
        advice = "; `predict_proba` may still distinguish rows : see `threshold`" if same else ""
    else:
        low, high = domain.uncentre(np.array([-np.inf, np.inf]))
        same, advice = bool(np.ptp(predictions) <= _SAME * (high - low)), ""
    if same:
        warnings.warn(
            f"the model that {name} published predicts the same at {_PROBES} points all over the "
            f"declared domain{advice}: the budget or the number of rows was too small for more, or "
            "the declared ranges are much wider than the data",
            ConstantModelWarning,
            stacklevel=5,
        )


def probes(domain: Domain) -> Table:
    """Points spread over the declared domain: public, and the same every time."""
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {}
    for name, column in domain.columns.items():
        # stratified in each column, so that every part of its range is met
        fraction = rng.permutation((np.arange(_PROBES) + 0.5) / _PROBES)
        if isinstance(column, Range):
            table[name] = write_cells(column, column.low + fraction * (column.high - column.low))
        elif isinstance(column, Categories):
            places = (fraction * len(column.values)).astype(int)
            table[name] = [column.values[place] for place in places]
        else:
            table[name] = [f"{number:.6f}" for number in fraction]
    return table
