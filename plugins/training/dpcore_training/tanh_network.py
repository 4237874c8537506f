"""A small network of hyperbolic tangents: what `dpcore test` examines `training.program` on."""

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.randomness import Stream
from dpcore_training.jax_network import JaxNetwork
from dpcore_training.program_network import Parameters


@attrs.frozen(kw_only=True)
class TanhNetwork(JaxNetwork):
    """One hidden layer of hyperbolic tangents, for a number or for classes.

    Args:
        units: Of the hidden layer.
    """

    units: int = 4

    def parameters(self, stream: Stream, domain: Domain) -> Mapping[str, NDArray[np.float64]]:
        """Normal draws over the root of the number of columns; zeros in the last layer."""
        first = stream.normal((domain.width, self.units)) / np.sqrt(domain.width)
        return {"first": first, "second": np.zeros((self.units, domain.classes or 1))}

    def output(self, parameters: Parameters, row: Any) -> Any:
        """Return a logit for each class, or one number."""
        import jax.numpy as jnp

        return jnp.tanh(row @ parameters["first"]) @ parameters["second"]

    def loss(self, parameters: Parameters, row: Any, target: Any) -> Any:
        """Logistic for classes, reported by the type of their places; else half the squared
        error.
        """
        import jax

        output = self.output(parameters, row)
        if jax.numpy.issubdtype(target.dtype, jax.numpy.integer):
            return -jax.nn.log_softmax(output)[target]
        return (output[0] - target) ** 2 / 2
