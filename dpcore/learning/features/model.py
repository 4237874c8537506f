"""LinearModel: what a learner that is linear in features publishes."""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.learning.features.base import Features

_ENTRIES = 1 << 22  # of a feature matrix that are held at a time


def in_blocks(
    said: Callable[[NDArray[np.float64]], NDArray[Any]], encoded: NDArray[np.float64], width: int
) -> NDArray[Any]:
    """What a model says of rows, some at a time, so that its features of all are never held.

    Args:
        said: Of rows of shape (n, p), numbers whose first axis is n long.
        width: How many features a row has.
    """
    step = max(1, _ENTRIES // max(1, width))
    starts = range(0, max(1, encoded.shape[0]), step)
    return np.concatenate([said(encoded[start : start + step]) for start in starts])


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
        return in_blocks(
            lambda rows: self.features(rows) @ self.coefficients, encoded, self.coefficients.size
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The coefficients, and what the feature map drew."""
        return {"coefficients": self.coefficients, **self.features.arrays()}
