"""What a release of a network publishes: its weights, and predictions by its outputs."""

from abc import ABC, abstractmethod
from functools import reduce
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.models.description import ShownModel
from dpcore.models.linear import in_blocks
from dpcore_models.solvers.elementary import falling_exp


class Network(ABC):
    """A public function of weights and encoded rows."""

    @abstractmethod
    def size(self, domain: Domain) -> int:
        """Return how many weights there are."""

    @abstractmethod
    def outputs(
        self, weights: NDArray[np.float64], encoded: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""


def softmax(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of logits, shape (n, classes): of each row by itself, to the last bit."""
    powers = falling_exp(outputs.max(axis=1, keepdims=True, initial=-np.inf) - outputs)
    # Added one class after the other: an order that no shape of an array changes.
    return np.asarray(powers / reduce(np.add, powers.T)[:, None])


@attrs.frozen(kw_only=True, eq=False)
class NetworkModel(ShownModel):
    """A trained network: predictions of a number or of classes.

    Args:
        weights: Released, shape (size,).
    """

    domain: Domain
    network: Network
    weights: NDArray[np.float64]

    def outputs(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""
        return in_blocks(
            lambda rows: self.network.outputs(self.weights, rows, self.domain),
            encoded,
            self.weights.size,
        )

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centred predictions, shape (n,); of two classes 2p - 1, of several the class's place."""
        outputs = self.outputs(encoded)
        if self.domain.classes > 2:
            return np.asarray(outputs.argmax(axis=1), dtype=np.float64)
        if self.domain.classes == 2:
            return 2 * softmax(outputs)[:, 1] - 1
        return outputs[:, 0] * self.domain.label_bound

    def predict(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, or classes; shape (n,)."""
        return self.domain.uncentre(self.score(encode_table(self.domain, table)))

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Of every class, in the order in which they are declared; shape (n, classes).

        Raises:
            AttributeError: the target is a number.
        """
        if not self.domain.classes:
            raise AttributeError("a target that is a number has no probabilities of classes")
        return softmax(self.outputs(encode_table(self.domain, table)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights, which are all that was released."""
        return {"weights": self.weights}
