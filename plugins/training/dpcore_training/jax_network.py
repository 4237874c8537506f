"""JaxNetwork: a model of one's own, as two functions of JAX, trained like the others.

JAX exports the gradient of the author's loss as a program without callbacks. It takes blocks of one
public size, filled up with zeros, and goes through them one record at a time.
"""

import hashlib
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Public
from dpcore.errors import ContractError, need
from dpcore_training.program_network import Program, ProgramNetwork


@attrs.frozen(kw_only=True)
class JaxNetwork(ProgramNetwork):
    """A learner whose model is a loss of one record in JAX, for plugins to extend."""

    def export(self, public: Public) -> Program:
        """Return the gradients of a block as StableHLO.

        Raises:
            ContractError: JAX is missing, or the loss is no pure function of one record that JAX
                can trace, differentiate and export.
        """
        jax, domain = require_jax(), public.domain
        (query,) = self.queries(public)
        size, rows = self.size(domain), self.block_rows(query)

        def gradients(weights: Any, features: Any, targets: Any) -> Any:
            def gradient(record: Any) -> Any:
                def loss_of_record(at: Any) -> Any:
                    return self.loss(self.unpacked(at, domain), *record)

                return jax.grad(loss_of_record)(weights)

            # One record after the other: with all of them in one product, a record's last bits
            # would depend on how many there are.
            return jax.lax.map(gradient, (features, targets))

        numbers, places = np.float32, np.int32 if domain.classes else np.float32
        shapes = (
            jax.ShapeDtypeStruct((size,), numbers),
            jax.ShapeDtypeStruct((rows, domain.width), numbers),
            jax.ShapeDtypeStruct((rows,), places),
        )
        # Whatever reaches beyond its arguments is refused here: what has effects, and what cannot
        # be written down, such as a call back into Python.
        try:
            exported = jax.export.export(jax.jit(gradients))(*shapes)
            exported.serialize()
        except Exception as error:  # of JAX or of the author's loss, on shapes only
            raise self.unexportable("JAX", error) from error
        effects = [*exported.ordered_effects, *exported.unordered_effects]
        need(not effects, ContractError, f"{type(self).__name__}: its loss has effects: {effects}")
        digest = hashlib.sha256(exported.mlir_module_serialized).hexdigest()
        return Program(jax.jit(exported.call), digest, rows)

    def outputs(
        self, weights: NDArray[np.float64], encoded: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""
        jax = require_jax()
        parameters = self.unpacked(weights.astype(np.float32), domain)
        outputs = jax.vmap(lambda row: self.output(parameters, row))(encoded.astype(np.float32))
        return np.asarray(outputs, dtype=np.float64).reshape(len(encoded), domain.classes or 1)


def require_jax() -> Any:
    """JAX with its exporter.

    Raises:
        ContractError: it is not installed, and how it is.
    """
    try:
        import flatbuffers  # noqa: F401  # without it nothing is exported
        import jax
        import jax.export
    except ImportError as error:
        message = "a JaxNetwork needs JAX: pip install jax flatbuffers"
        raise ContractError(message) from error
    return jax
