"""Labels as targets of a quadratic form, and its outputs as predictions."""

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.models.probabilities import of_scores
from dpcore.rounding import up

LONGEST = 1.0
"""No target vector is longer in l2."""


@attrs.frozen(kw_only=True)
class Targets:
    """What a domain's labels become: one target in [-1, 1], or one a class.

    With C > 2 classes the target of class c is 1 - 1/C in its own place and -1/C elsewhere; an
    unknown class is -1/C everywhere.

    Args:
        domain: Whose labels.
    """

    domain: Domain

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return self.domain.classes > 2

    @property
    def count(self) -> int:
        """C of several classes, else 1."""
        return self.domain.classes if self.several else 1

    @property
    def centre(self) -> float:
        """What indicators exceed targets by."""
        return 1 / self.count if self.several else 0.0

    @property
    def apart(self) -> float:
        """Two target vectors are at most this far apart in l2, rounded up."""
        return up(math.sqrt(2), roundings=3) if self.several else 2.0

    def indicators(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of several classes 0 and 1, else labels in [-1, 1]. Shape (n,) to (n, count)."""
        if self.several:
            classes: Any = self.domain.labels
            return np.asarray(classes.one_hot(labels))
        return np.clip(labels / self.domain.label_bound, -1, 1)[:, None]

    def encode(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the targets of labels, shape (n,) to (n, count)."""
        return self.indicators(labels) - self.centre

    def probabilities(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs, shape (n, count), to probabilities of every class, shape (n, classes).

        Raises:
            AttributeError: the target is a number.
        """
        if not self.domain.classes:
            raise AttributeError("a target that is a number has no probabilities of classes")
        if not self.several:
            return of_scores(outputs[:, 0])
        return of_indicators(outputs + self.centre)

    def decode(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """Outputs, shape (n, count), to predictions in the file's units, or classes."""
        if self.several:
            # The class with the largest output; the first one where several are equal.
            return self.domain.uncentre(np.argmax(outputs, axis=1).astype(np.float64))
        return self.domain.uncentre(self.domain.label_bound * outputs[:, 0])


def of_indicators(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of several classes, of estimates of their indicators, shape (n, classes).

    Estimates below 0 count as 0; a row of such by itself says the same of every class.
    """
    positive_parts = np.maximum(outputs, 0.0)
    total = positive_parts.sum(axis=1, keepdims=True)
    # A row without a positive estimate keeps this default.
    even = np.full_like(positive_parts, 1 / positive_parts.shape[1])
    return np.asarray(np.divide(positive_parts, total, out=even, where=total > 0))
