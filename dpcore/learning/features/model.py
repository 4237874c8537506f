"""LinearModel: what a learner that is linear in features publishes."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.learning.features.base import Features

_ENTRIES = 1 << 22  # of a feature matrix that are held at a time


@attrs.frozen(kw_only=True, eq=False)
class LinearModel:
    """f(x) = centre + phi(x) . coefficients, clipped to the label range.

    Args:
        coefficients: Shape (width,), for centred labels.
    """

    domain: Domain
    features: Features
    coefficients: NDArray[np.float64]

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, or classes. Shape (n,)."""
        return self.domain.uncentre(self.score(self.domain.encode(table)))

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi . coefficients, shape (n,)."""
        scores = np.empty(encoded.shape[0])
        step = max(1, _ENTRIES // max(1, self.coefficients.size))
        for start in range(0, encoded.shape[0], step):
            rows = slice(start, start + step)
            scores[rows] = self.features(encoded[rows]) @ self.coefficients
        return scores

    def lengths(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """||phi||, shape (n,): what noise of 1 on every coefficient moves a score by."""
        return np.array([*map(np.linalg.norm, self.features(encoded))], dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The coefficients, and what the feature map drew."""
        return {"coefficients": self.coefficients, **self.features.arrays()}
