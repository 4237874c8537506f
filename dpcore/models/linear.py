"""LinearModel: what a learner that is linear in features publishes."""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import ContractError, need
from dpcore.models.description import ShownModel
from dpcore.models.error_bars import UNSTATED, NoiseIntervals
from dpcore.models.features.base import Features
from dpcore.models.features.identity import SAME

_ENTRIES = 1 << 22  # of a feature matrix that are held at a time


def in_blocks(
    function: Callable[[NDArray[Any]], NDArray[Any]], encoded: NDArray[Any], width: int
) -> NDArray[Any]:
    """Return what a model says of rows, some at a time, so that its features of all are never held.

    Args:
        function: Of rows of shape (n, p), numbers whose first axis is n long.
        width: How many features a row has.
    """
    step = max(1, _ENTRIES // max(1, width))
    # No rows are one empty block, so that the result has its type and shape.
    starts = range(0, max(1, encoded.shape[0]), step)
    return np.concatenate([function(encoded[start : start + step]) for start in starts])


@attrs.frozen(kw_only=True, eq=False)
class LinearModel(ShownModel):
    """f(x) = centre + phi(x) . coefficients, clipped to the label range.

    Args:
        features: phi; the encoded columns themselves if left out.
        coefficients: Shape (width,), for centred labels.
        noise_intervals: What the noise did to them; public, and no more than `coefficients` say.
    """

    domain: Domain
    features: Features = SAME
    coefficients: NDArray[np.float64]
    noise_intervals: NoiseIntervals = UNSTATED

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, or classes. Shape (n,)."""
        return self.domain.uncentre(self.score(encode_table(self.domain, table)))

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi . coefficients, shape (n,)."""
        return self._by_rows(encoded, lambda phi: phi @ self.coefficients)

    def coefficient_errors(self) -> NDArray[np.float64]:
        """Return the standard error of each coefficient, from the noise only; shape (width,).

        Raises:
            ContractError: there are none, and why.
        """
        return self.noise_intervals.coefficients(self.coefficients.size)

    def standard_errors(self, table: Table) -> NDArray[np.float64]:
        """Return how much the noise moved each score before clipping, in label units; shape (n,).

        Raises:
            ContractError: there are none, and why.
        """
        return self._by_rows(encode_table(self.domain, table), self.noise_intervals.scores)

    def intervals(
        self, table: Table, level: float = 0.95, *, together: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound predictions of the same fit without noise, clipped to the label range.

        Args:
            level: With what probability each interval holds.
            together: Whether intervals at all tables hold at once, which are wider.

        Returns:
            Lower and upper ends, shape (n,) each.

        Raises:
            ContractError: there are none, and why; or the target is classes.
        """
        need(
            not self.domain.classes,
            ContractError,
            "classes have no intervals: see `standard_errors` of the scores",
        )
        encoded = encode_table(self.domain, table)
        # Clipping both ends is monotone, so that an interval around the score keeps its cover.
        half = self._by_rows(
            encoded, lambda phi: self.noise_intervals.half_widths(phi, level, together=together)
        )
        scores = self.score(encoded)
        return self.domain.uncentre(scores - half), self.domain.uncentre(scores + half)

    def _by_rows(self, encoded: NDArray[np.float64], function: Any) -> NDArray[np.float64]:
        """Return a function of features, some rows at a time."""
        return in_blocks(
            lambda rows: function(self.features(rows)), encoded, self.coefficients.size
        )

    def lengths(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """||phi||, shape (n,): what noise of 1 on every coefficient moves a score by."""
        return self._by_rows(encoded, lambda phi: np.linalg.norm(phi, axis=1))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the coefficients, and what the feature map drew."""
        return {"coefficients": self.coefficients, **self.features.arrays()}
