"""A published run as a fitted estimator: nothing private is needed, and nothing is fitted."""

from pathlib import Path
from typing import Any, cast

import numpy as np

from dpcore.domain.classes import Classes
from dpcore.errors import RequestError
from dpcore.learner import Model
from dpcore.models.predictions import Predictions
from dpcore.published.folder import Run
from dpcore.published.replay import load_run
from dpcore_bridges.sklearn.classifiers import PrivateClassifier
from dpcore_bridges.sklearn.regressors import PrivateRegressor


def published(run: Run | Path | str, release: str = "") -> PrivateClassifier | PrivateRegressor:
    """A run's model as an estimator that is fitted already.

    It predicts as `run.model` does, and has the scores, probabilities, thresholds and coefficients
    of an estimator. Its parameters are those of the run, so fitting it again is a release like it.

    Args:
        run: A run, or the folder of one, which is loaded by `load_run`.
        release: Its name; not needed where only one release predicts.

    Raises:
        RequestError: the run has no such model, or several and none is named.
        ReplayError: the folder is incomplete, was changed, or was made by other versions.
    """
    run = run if isinstance(run, Run) else load_run(run)
    # published predictions are a table, and no model that could predict a new row
    models = {
        name: model
        for name, model in run.models.items()
        if isinstance(model, Model) and not isinstance(model, Predictions)
    }
    if not release and len(models) == 1:
        (release,) = models
    if release not in models:
        listed = ", ".join(models) or "none"
        raise RequestError(f"the run has no model {release!r}; it publishes {listed}")
    estimator: Any = _estimator_of(run, release)
    domain = run.spec.request.domain
    estimator.model_, estimator.guarantee_, estimator.domain_ = (
        models[release],
        run.guarantee,
        domain,
    )
    estimator.n_features_in_ = len(domain.columns)
    estimator.feature_names_in_ = np.array([*domain.columns], dtype=object)
    if isinstance(domain.labels, Classes):
        estimator.classes_ = domain.labels.named(np.arange(domain.classes))
    return cast("PrivateClassifier | PrivateRegressor", estimator)


def _estimator_of(run: Run, release: str) -> PrivateClassifier | PrivateRegressor:
    """Return the estimator whose fit would be that release."""
    request = run.spec.request
    (release_request,) = [candidate for candidate in request.releases if candidate.name == release]
    shared: dict[str, Any] = {
        "epsilon": request.budget.epsilon,
        "delta": request.budget.delta,
        "columns": dict(request.domain.columns),
        "norm": request.domain.norm,
        "adjacency": request.adjacency,
        "on_invalid": request.records.on_invalid,
        "accept_assumptions": request.accepted.assumptions,
        "accept_delta": request.accepted.delta,
        "learner": release_request.learner,
        "mechanism": release_request.mechanism,
        "bound": release_request.bound,
    }
    labels = request.domain.labels
    if isinstance(labels, Classes):
        return PrivateClassifier(classes=labels.values, **shared)
    return PrivateRegressor(target=(labels.low, labels.high), **shared)
