"""LinearModel: what a learner that is linear in features publishes."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Table
from dpcore.features.base import Features


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
        return self.domain.uncentre(self.features(self.domain.encode(table)) @ self.coefficients)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The coefficients, and what the feature map drew."""
        return {"coefficients": self.coefficients, **self.features.arrays()}
