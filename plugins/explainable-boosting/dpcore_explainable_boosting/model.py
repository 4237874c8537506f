"""BoostedModel: a sum of step functions of single columns."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, Range, Records
from dpcore.domain.bins import equal_edges
from dpcore.domain.domain import Table
from dpcore.encoding.tables import project_table
from dpcore.errors import UndeclaredError, need_value
from dpcore.models.description import ShownModel
from dpcore.models.linear import in_blocks
from dpcore_explainable_boosting.bins import Cells


@attrs.frozen(kw_only=True, eq=False)
class BoostedModel(ShownModel):
    """Predictions that add up what each column's cell says.

    Args:
        cell_scores: The score of each cell, all columns side by side: in units of the label's
            range, or logarithms of odds of the second class.
        first_score: What is added to their sum, from the middle of the range.
    """

    domain: Domain
    cells: Cells
    cell_scores: NDArray[np.float64]
    first_score: float = 0.0

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centred predictions, not clipped; of two classes 2p - 1. Shape (n,)."""
        return self._scores(Records(features=encoded, labels=np.zeros(len(encoded))))

    def _scores(self, records: Records) -> NDArray[np.float64]:
        """Return the same of records that may have numbers next to what is encoded."""

        def of_block(places: NDArray[np.intp]) -> NDArray[np.float64]:
            scores = self.cell_scores[places.T + self.cells.offsets[:-1, None]]
            return np.asarray(self.first_score + scores.sum(axis=0))

        scores = in_blocks(of_block, self.cells.places(records).T, len(self.cells.sizes))
        if self.domain.classes:
            return np.asarray(np.tanh(scores / 2))
        return np.asarray(2 * self.domain.label_bound * scores)

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predictions in the file's units, clipped to the label's range, or classes; shape (n,)."""
        return self.domain.uncentre(self._scores(self._read(table)))

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of both classes, in the order in which they are declared; shape (n, 2).

        Raises:
            AttributeError: the target is a number.
        """
        if not self.domain.classes:
            raise AttributeError("a target that is a number has no probabilities of classes")
        second = (1 + self._scores(self._read(table))) / 2
        return np.stack([1 - second, second], axis=1)

    def _read(self, table: Table) -> Records:
        # Anyone who is to be predicted has no label.
        return project_table(
            attrs.evolve(self.domain, target=None, labels=None, groups={}, people=None, only={}),
            table,
        )

    def step_function(self, name: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return what one column adds: the ends of its cells, one more than values, or its
        categories; and values in units of the label, or logarithms of odds.

        Raises:
            UndeclaredError: there is no such column.
        """
        column = need_value(
            self.domain.columns.get(name) if name in self.cells.names else None,
            UndeclaredError,
            f"there is no column {name!r} to show",
        )
        place = self.cells.names.index(name)
        unit = 1.0 if self.domain.classes else 2 * self.domain.label_bound
        values = unit * np.split(self.cell_scores, self.cells.offsets[1:-1])[place]
        if isinstance(column, Range):
            return np.array(equal_edges(column.low, column.high, len(values))), values
        assert isinstance(column, Categories), "other columns are refused"
        return np.array(column.values), values

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the shapes of all columns, where each begins, and what is added to their sum."""
        offsets, first = self.cells.offsets, np.array(self.first_score)
        return {"shapes": self.cell_scores, "offsets": offsets, "first_score": first}
