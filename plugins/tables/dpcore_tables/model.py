"""ShapeModel: what a release of shape functions publishes, and what people look at."""

from types import ModuleType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.domain.classes import Classes
from dpcore.domain.domain import Table
from dpcore.learning.models.linear import in_blocks
from dpcore.learning.models.notebook_views import ShownModel
from dpcore.learning.models.shapes import Shape
from dpcore_tables import portable
from dpcore_tables.classes import softmax, unclipped
from dpcore_tables.conversation import State
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.plan import Kind
from dpcore_tables.shapes.inference import shapes_of


@attrs.frozen(kw_only=True, eq=False)
class ShapeModel(ShownModel):
    """Sums of shape functions, for labels scaled to [0, 1] or scores of classes.

    Args:
        weights: w, shape (d, m). offset: Of the scores, shape (m,).
        spread: Covariance of one output's weights by the noise, shape (d, d).
        state: What the answers fixed, from which shapes and their tests follow.
    """

    domain: Domain
    kind: Kind
    dictionary: Dictionary
    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    spread: NDArray[np.float64]
    state: State

    def outputs(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of encoded rows, shape (n, m)."""

        # In blocks: a dictionary has hundreds of functions, and memory is bounded by one block.
        def block_scores(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(self.dictionary.rows(rows).T @ self.weights + self.offset)

        return in_blocks(block_scores, encoded, len(self.weights))

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centred predictions, shape (n,); of two classes 2p - 1, of several the class's code."""
        if self.kind == "several":
            return np.asarray(np.argmax(self.outputs(encoded), axis=1), dtype=np.float64)
        scores = self.outputs(encoded)[:, 0]
        # Clipped residuals bias the logistic score in the fit: `unclipped` inverts that.
        if self.kind == "two":
            return 2 * unclipped(_sigmoid(scores)) - 1
        return (2 * np.clip(scores, 0.0, 1.0) - 1) * self.domain.label_bound

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predictions in the file's units, or classes; shape (n,)."""
        return self.domain.uncentre(self.score(self.domain.encode(table)))

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of every class, in the order in which they are declared; shape (n, classes).

        Raises:
            AttributeError: the target is a number.
        """
        if not isinstance(self.domain.labels, Classes):
            raise AttributeError("a target that is a number has no probabilities of classes")
        scores = self.outputs(self.domain.encode(table))
        if self.kind == "two":
            second = unclipped(_sigmoid(scores[:, 0]))
            return np.stack([1 - second, second], axis=1)
        return softmax(scores)

    def standard_errors(self, table: Table) -> NDArray[np.float64]:
        """How much the privacy noise moved each score, in label units for numbers; shape (n,)."""

        def block_variances(encoded: NDArray[np.float64]) -> NDArray[np.float64]:
            rows = self.dictionary.rows(encoded)
            return np.asarray(np.einsum("in,ij,jn->n", rows, self.spread, rows))

        # The variance of a score is phi' S phi, S the covariance of one output's weights.
        squares = in_blocks(block_variances, self.domain.encode(table), len(self.weights))
        deviations = np.sqrt(np.maximum(squares, 0.0))
        return np.asarray(
            deviations * (2 * self.domain.label_bound if self.kind == "number" else 1.0)
        )

    def shapes(self) -> tuple[Shape, ...]:
        """What the model says of every column and pair, the most important first.

        Pairs are purified: what they say of one column alone stands in that column's shape.
        """
        unit = 2 * self.domain.label_bound if self.kind == "number" else 1.0
        return shapes_of(
            self.domain,
            self.dictionary,
            self.state.levels,
            self.weights,
            self.spread,
            self.state.error_covariance(self.spread),
            unit,
            self.state.plan.pairs,
        )

    def exported(self) -> tuple[ModuleType, dict[str, Any]]:
        """A module of numpy alone whose `score` gives the same scores, and the values it takes."""
        layout, fixed = self.dictionary.layout, self.dictionary.arrays()
        names = ("terms", "sizes", "means", "widths", "waves", "shares")
        return portable, {
            "kind": self.kind,
            "bound": self.domain.label_bound if self.kind == "number" else 1.0,
            "levels": layout.levels,
            "starts": layout.starts,
            "weights": self.weights,
            "offset": self.offset,
            **{name: fixed[name] for name in names},
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, what fixes the features, and the spread of the weights."""
        weights = {"coefficients": self.weights, "offset": self.offset, "spread": self.spread}
        return {**weights, **self.dictionary.arrays()}


def _sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 + 0.5 * np.tanh(scores / 2))
