"""Classifiers: a target with a public list of classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from dpcore.domain.classes import Classes
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError, need
from dpcore.models.probabilities import decision, of_scores, probabilities, scored
from dpcore_bridges.sklearn.any_learner import OfAnyLearner
from dpcore_bridges.sklearn.base import Predictor
from dpcore_bridges.sklearn.domain import classes_of


def _scores(estimator: Classifier) -> bool:
    """Return whether its model states scores; no one knows before the fit."""
    # An estimator with an oracle has no model, and its oracle answers with scores.
    model = getattr(estimator, "model_", None)
    return model is None or scored(model, estimator.domain_)


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, Predictor):
    """A private classifier.

    Args:
        classes: The public list of what y may be, all texts or all numbers.
        threshold: Of two classes, the second is predicted from this probability on; where the model
            predicts it if None. It is applied to what is published, so it costs nothing and may be
            changed after the fit; choosing it by an evaluation at records is not private.
        class_weight: Public weights by class, 1 where none is given: the class with the largest
            weight times probability is predicted. They may be what a mistake costs, or how common
            classes are where the model will be used over how common they are known to be here.
    """

    classes: Sequence[Any] | None = None
    threshold: float | None = None
    class_weight: Mapping[Any, float] | None = None

    def _labels(self) -> Classes:
        return classes_of(self.classes)

    def _check_labels(self, labels: NDArray[Any]) -> None:
        check_classification_targets(labels)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803  # scikit-learn's name
        """Release a model of y given X: rows of X are people, at most one each.

        `classes_` is what was declared, whichever of them occur.

        Args:
            X: Shape (n, p); a data frame is taken by its column names.
            y: Shape (n,).

        Raises: as a regressor's.
        """
        columns, labels = self._intake(X, y)
        declared = self._labels()
        # impossible weights are found before anything is spent
        self._weights(declared)
        self._release(columns, labels)
        self.classes_ = declared.named(np.arange(declared.count))
        return self

    def _predicted(self, table: Mapping[str, Any]) -> NDArray[Any]:
        """Classes, shape (n,); by `threshold` or `class_weight` where they are given."""
        if self.threshold is None and self.class_weight is None:
            return super()._predicted(table)
        declared = self._labels()
        # post-processing of a published model: it costs no budget
        weighed = self._chances(table) * self._weights(declared)
        if self.threshold is None:
            return declared.named(np.argmax(weighed, axis=1))
        return declared.named((weighed[:, 1] >= self.threshold).astype(np.intp))

    def _chances(self, table: Mapping[str, Any]) -> NDArray[np.float64]:
        if hasattr(self, "predictor_"):
            return of_scores(self._ask_oracle(table))
        return probabilities(self.model_, self.domain_, table)

    @available_if(_scores)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of `classes_`, shape (n, classes), by the model only.

        Of a model that fits two classes as labels -1 and +1: (1 + score)/2, with tails that never
        reach 0 or 1.
        """
        return self._chances(self._table(X))

    @available_if(_scores)
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Of two classes a score, shape (n,), from 0 on for the second; of several a probability
        of each, shape (n, classes)."""
        table = self._table(X)
        if hasattr(self, "predictor_"):
            return self._ask_oracle(table)
        return decision(self.model_, self.domain_, table)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Of a model that is a line: what one unit of each of `get_feature_names_out()` adds to the
        score of the second class; shape (1, features).

        Raises:
            AttributeError: the model is no line, or is an oracle.
        """
        return self._line().values[None]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of a model that is a line; shape (1,)."""
        return np.array([self._line().intercept])

    def _ask_oracle(self, table: Mapping[str, Any]) -> NDArray[np.float64]:
        """Centred answers of the oracle."""
        encoded = encode_table(self.domain_, table)
        return np.asarray(self.predictor_.oracle.ask(encoded), dtype=np.float64)

    def _weights(self, declared: Classes) -> NDArray[np.float64]:
        """Return a weight for each class.

        Raises:
            ParameterError: weights or threshold are impossible, or would be read off y.
        """
        owner = type(self).__name__
        if self.threshold is not None:
            inside = isinstance(self.threshold, int | float) and 0 < self.threshold < 1
            need(
                inside and declared.count == 2 and self.class_weight is None,
                ParameterError,
                owner,
                "a probability in (0, 1) of the second of two classes, and no weights",
                "threshold",
                self.threshold,
            )
        # `balanced` would count the labels: only public numbers by class are taken
        by_class: Any = {} if self.class_weight is None else self.class_weight
        need(
            isinstance(by_class, Mapping) and {*by_class} <= {*declared.values},
            ParameterError,
            owner,
            "public weights {class: weight}, not read off y",
            "class_weight",
            by_class,
        )
        weights = [by_class.get(value, 1.0) for value in declared.values]
        need(
            all(isinstance(w, int | float) and math.isfinite(w) and w > 0 for w in weights),
            ParameterError,
            owner,
            "finite weights > 0",
            "class_weight",
            by_class,
        )
        return np.array(weights, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a small budget on few rows buys no good score
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(OfAnyLearner, Classifier):
    """Any learner as a classifier; by default the one to start with on tables."""
