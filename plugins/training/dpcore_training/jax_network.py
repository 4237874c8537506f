"""JaxNetwork: a model of one's own, as two functions of JAX, trained like the others.

The author of a plugin writes the loss of *one* record. What runs on records is not that Python but
what JAX makes of it on abstract shapes, before any record is opened: a program without callbacks,
whose SHA-256 is in the guarantee and so in the lock. It takes blocks of one public size, filled up
with zeros, and goes through them one record at a time, so that a gradient does not change its last
bits with the records beside it. A replay reads answers alone, and needs no JAX.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Public, Records
from dpcore.domain.domain import Domain
from dpcore.errors import ContractError, need
from dpcore.randomness import Stream
from dpcore_training.descent import GradientDescent

Parameters = Mapping[str, Any]
"""Arrays of weights by name, in a fixed order."""


@attrs.frozen(eq=False)
class Program:
    """What computes the gradients of a block of records.

    Args:
        call: Of weights, encoded rows and targets, in single precision; shape (rows, size).
        digest: SHA-256 of what JAX exports, as StableHLO.
    """

    call: Callable[..., Any]
    digest: str


@attrs.frozen(kw_only=True)
class JaxNetwork(GradientDescent):
    """A learner whose model is a loss of one record, for plugins to extend.

    `training.program` is its bound. It needs JAX where it is priced, run and used to predict, and
    not where a run is replayed, if the plugin imports JAX inside of its functions alone.
    """

    bounds: ClassVar[tuple[Any, ...]] = ("training.program",)

    @abstractmethod
    def parameters(self, stream: Stream, domain: Domain) -> Mapping[str, NDArray[np.float64]]:
        """The weights before the first step, by numpy from public coins.

        Names, their order and shapes depend on the domain alone.
        """

    @abstractmethod
    def loss(self, parameters: Parameters, row: Any, target: Any) -> Any:
        """Pure, of JAX: one record's loss, a number.

        Args:
            row: Encoded columns, shape (width,).
            target: The place of its class, an integer; else its label over the largest, in
                [-1, 1].
        """

    @abstractmethod
    def output(self, parameters: Parameters, row: Any) -> Any:
        """Pure, of JAX: of one row a logit for each class, or a label over the largest, shape
        (1,)."""

    def _template(self, domain: Domain) -> dict[str, tuple[int, ...]]:
        """Shapes by name, from coins that are the same for everybody."""
        drawn = self.parameters(Stream(b"public", ("training.shapes",)), domain)
        return {name: np.shape(array) for name, array in drawn.items()}

    def size(self, domain: Domain) -> int:
        """How many weights there are."""
        return sum(int(np.prod(shape)) for shape in self._template(domain).values())

    def initial(self, stream: Stream, domain: Domain) -> NDArray[np.float64]:
        """All of `parameters`, one after the other.

        Raises:
            ContractError: their shapes depend on the coins.
        """
        drawn = self.parameters(stream, domain)
        shapes = {name: np.shape(array) for name, array in drawn.items()}
        need(
            [*shapes.items()] == [*self._template(domain).items()],
            ContractError,
            f"{type(self).__name__}: shapes of parameters must not depend on the coins",
        )
        return np.concatenate([np.ravel(array).astype(np.float64) for array in drawn.values()])

    def _unpacked(self, weights: Any, domain: Domain) -> Parameters:
        unpacked, begin = {}, 0
        for name, shape in self._template(domain).items():
            end = begin + int(np.prod(shape))
            unpacked[name] = weights[begin:end].reshape(shape)
            begin = end
        return unpacked

    def program(self, public: Public) -> Program:
        """The exported gradients of a block, made once for asks in a row.

        Raises:
            ContractError: JAX is missing, or the loss is no pure function of one record that JAX
                can trace, differentiate and export.
        """
        return public.coins.once(
            ("training.program", self, public.domain), lambda: self._export(public)
        )

    def _export(self, public: Public) -> Program:
        jax, domain = require_jax(), public.domain
        (query,) = self.queries(public)
        size, rows = self.size(domain), self.block_rows(query)

        def gradients(weights: Any, features: Any, targets: Any) -> Any:
            def gradient(record: Any) -> Any:
                def loss_of_record(at: Any) -> Any:
                    return self.loss(self._unpacked(at, domain), *record)

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
        except Exception as error:  # of JAX or of the author's loss, on shapes alone
            message = f"{type(self).__name__}: JAX cannot export its loss: {error}"
            raise ContractError(message.splitlines()[0]) from error
        effects = [*exported.ordered_effects, *exported.unordered_effects]
        need(not effects, ContractError, f"{type(self).__name__}: its loss has effects: {effects}")
        digest = hashlib.sha256(exported.mlir_module_serialized).hexdigest()
        return Program(jax.jit(exported.call), digest)

    def gradients(
        self, weights: NDArray[np.float64], block: Records, targets: NDArray[Any], public: Public
    ) -> Iterator[NDArray[np.floating]]:
        """PRIVATE: by the exported program, in blocks of one size."""
        program, (query,) = self.program(public), self.queries(public)
        rows, parameters = self.block_rows(query), weights.astype(np.float32)
        for begin in range(0, len(block), rows):
            count = min(rows, len(block) - begin)
            features = np.zeros((rows, public.domain.width), dtype=np.float32)
            padded = np.zeros(rows, dtype=np.int32 if public.domain.classes else np.float32)
            features[:count] = block.features[begin : begin + count]
            # An unknown class, -1, is no place: its gradient is of no use, and adds nothing.
            padded[:count] = targets[begin : begin + count]
            yield from np.asarray(program.call(parameters, features, padded))[:count]

    def outputs(
        self, weights: NDArray[np.float64], encoded: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""
        jax = require_jax()
        parameters = self._unpacked(weights.astype(np.float32), domain)
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
