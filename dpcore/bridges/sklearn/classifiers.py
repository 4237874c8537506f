"""Classifiers: a target with a public list of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from dpcore.bridges.sklearn.base import OfAnyLearner, PrivateEstimator
from dpcore.bridges.sklearn.declared import classes_of, labels_of
from dpcore.domain.classes import Classes


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, PrivateEstimator):
    """A private classifier.

    Args:
        classes: The public list of what y may be, all texts or all numbers.
    """

    classes: Sequence[Any] | None = None

    def _labels(self) -> Classes:
        return classes_of(self.classes)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803  # scikit-learn's name
        """Release a model of y given X: rows of X are people, at most one each.

        `classes_` is what was declared, whichever of them occur.

        Args:
            X: Shape (n, p); a data frame is taken by its column names.
            y: Shape (n,).

        Raises: as a regressor's.
        """
        rows, labels = self._rows(X, y=y)
        check_classification_targets(labels)
        declared = self._labels()
        self._release(rows, labels_of(y, labels))
        self.classes_ = np.array(declared.values)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a small budget on few rows buys no good score
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(OfAnyLearner, Classifier):
    """Any learner as a classifier; by default the one to start with on tables."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = self.learner
        tags.classifier_tags.multi_class = learner is None or getattr(
            learner, "several_classes", False
        )
        return tags
