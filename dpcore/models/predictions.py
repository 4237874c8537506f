"""What is published of a function: answers at public points, and nothing between them."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import SourceError
from dpcore.models.description import ShownModel


@attrs.frozen(kw_only=True, eq=False)
class Predictions(ShownModel):
    """What a run publishes of a function: its answers at the points of a file, and no more.

    Args:
        points: Encoded, shape (n, p). values: In the file's units, or classes, shape (n,).
    """

    domain: Domain
    points: NDArray[np.float64]
    values: NDArray[Any]

    def predict(self, table: Table) -> NDArray[Any]:
        """Return the published predictions at points among the published ones, shape (n,).

        Raises:
            SourceError: at a point that was not asked about.
        """
        values_by_point = {
            row.tobytes(): value for row, value in zip(self.points, self.values, strict=True)
        }
        # Adding 0.0 turns -0.0 into 0.0: the two are equal as numbers but not as bytes.
        rows = np.ascontiguousarray(encode_table(self.domain, table) + 0.0)
        predictions = [values_by_point.get(row.tobytes()) for row in rows]
        if None in predictions:
            raise SourceError(
                f"point {predictions.index(None) + 1} is not among the published ones"
            )
        return np.array(predictions, dtype=self.values.dtype)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the points and the predictions at them, by the names of their files."""
        return {"points": self.points, "predictions": self.values}
