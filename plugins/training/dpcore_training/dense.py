"""The network that needs no code: layers of rectified units, or none, on the encoded columns.

Its gradients are numpy's, one record at a time: a product of matrices would round a record's row by
its place in the block, and by how many others there are. What is computed of several records at
once is products, sums and correctly rounded functions, entry by entry.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Public, Records
from dpcore.errors import need
from dpcore.randomness import Stream
from dpcore_training.descent import GradientDescent
from dpcore_training.model import softmax

Layers = list[NDArray[np.float64]]


def _sides(hidden: Any) -> tuple[int, ...]:
    return tuple(hidden)


@attrs.frozen(kw_only=True)
class DenseNetwork(GradientDescent):
    """A network of layers, each of which sees all of the one before; without any, a linear model.

    Classes are fitted by the logistic loss of several classes, numbers by half the squared error.

    Args:
        hidden: How many units each hidden layer has, from the inputs on.
    """

    hidden: tuple[int, ...] = attrs.field(default=(), converter=_sides)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        need(
            all(isinstance(units, int) and units >= 1 for units in self.hidden),
            "training",
            "whole numbers of units, at least one a layer",
            "hidden",
            self.hidden,
        )

    def size(self, domain: Domain) -> int:
        """Return one weight for each pair of units of neighbouring layers, and one for each
        unit.
        """
        return sum((inputs + 1) * units for inputs, units in self._shape(domain))

    def _shape(self, domain: Domain) -> list[tuple[int, int]]:
        """Inputs and units of every layer."""
        return [*pairwise((domain.width, *self.hidden, domain.classes or 1))]

    def layers(self, weights: NDArray[np.float64], domain: Domain) -> Layers:
        """Views of the weights, shape (inputs + 1, units) each; the last row is added as it is."""
        layers, begin = [], 0
        for inputs, units in self._shape(domain):
            end = begin + (inputs + 1) * units
            layers.append(weights[begin:end].reshape(inputs + 1, units))
            begin = end
        return layers

    def initial(self, stream: Stream, domain: Domain) -> NDArray[np.float64]:
        """Normal draws of variance 2 over the inputs in hidden layers (He et al. 2015), else 0."""
        weights = np.zeros(self.size(domain))
        for layer in self.layers(weights, domain)[:-1]:
            inputs = len(layer) - 1
            layer[:-1] = stream.normal((inputs, layer.shape[1])) * math.sqrt(2 / inputs)
        return weights

    def gradients(
        self, weights: NDArray[np.float64], block: Records, targets: NDArray[Any], public: Public
    ) -> Iterator[NDArray[np.floating]]:
        """PRIVATE: by backward propagation; one buffer serves them all."""
        layers = self.layers(weights, public.domain)
        inputs = [block.features]
        for layer in layers[:-1]:
            inputs.append(np.maximum(_forward(inputs[-1], layer), 0.0))
        errors = [_residuals(_forward(inputs[-1], layers[-1]), targets, public.domain)]
        # Errors go back through each layer, where its unit was on.
        for layer, values in zip(layers[:0:-1], inputs[:0:-1], strict=True):
            errors.insert(0, _products(errors[0], layer[:-1].T) * (values > 0))
        gradient = np.empty(weights.size)
        parts = self.layers(gradient, public.domain)
        for record in range(len(block)):
            for part, values, error in zip(parts, inputs, errors, strict=True):
                np.multiply.outer(values[record], error[record], out=part[:-1])
                part[-1] = error[record]
            yield gradient

    def outputs(
        self, weights: NDArray[np.float64], encoded: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""
        layers, values = self.layers(weights, domain), encoded
        for layer in layers[:-1]:
            values = np.maximum(values @ layer[:-1] + layer[-1], 0.0)
        return np.asarray(values @ layers[-1][:-1] + layers[-1][-1])


def _products(rows: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: return each row times the matrix, by itself."""
    products = np.empty((len(rows), matrix.shape[1]))
    for row, product in zip(rows, products, strict=True):
        np.matmul(row, matrix, out=product)
    return products


def _forward(rows: NDArray[np.float64], layer: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(_products(rows, layer[:-1]) + layer[-1])


def _residuals(
    outputs: NDArray[np.float64], targets: NDArray[Any], domain: Domain
) -> NDArray[np.float64]:
    """PRIVATE: return the loss's slope in each output, shape (rows, outputs)."""
    if not domain.classes:
        return np.asarray(outputs - targets[:, None])
    # An unknown class has no indicator, and its record adds nothing in the end.
    return np.asarray(softmax(outputs) - (targets[:, None] == np.arange(domain.classes)))
