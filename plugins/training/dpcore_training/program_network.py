"""ProgramNetwork: a model of one's own, whose gradients an exported program computes.

The author of a plugin writes the loss of *one* record. What runs on records is not that Python but
a program that a framework made of it on abstract shapes, before any record is opened, and whose
SHA-256 is in the guarantee and so in the lock. It goes through records one at a time, so that a
gradient does not change its last bits with the records next to it. A replay reads answers only, and
needs no framework.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Public, Records
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
        digest: SHA-256 of what was exported.
        rows: The one size of a block, which is filled up with zeros; None if it takes any.
    """

    call: Callable[..., Any]
    digest: str
    rows: int | None = None


@attrs.frozen(kw_only=True)
class ProgramNetwork(GradientDescent):
    """A learner whose model is a loss of one record; `JaxNetwork` and `TorchNetwork` extend it.

    `training.program` is its bound. It needs its framework where it is priced, run and used to
    predict, and not where a run is replayed, if the plugin imports the framework inside of its
    functions only.
    """

    bounds: ClassVar[tuple[Any, ...]] = ("training.program",)

    @abstractmethod
    def parameters(self, stream: Stream, domain: Domain) -> Mapping[str, NDArray[np.float64]]:
        """Return the weights before the first step, by numpy from public randomness.

        Names, their order and shapes depend on the domain only.
        """

    @abstractmethod
    def loss(self, parameters: Parameters, row: Any, target: Any) -> Any:
        """Pure, of the framework: one record's loss, a number.

        Args:
            row: Encoded columns, shape (width,).
            target: The place of its class, an integer; else its label over the largest, in
                [-1, 1].
        """

    @abstractmethod
    def output(self, parameters: Parameters, row: Any) -> Any:
        """Pure, of the framework: of one row a logit for each class, or a label over the largest,
        shape (1,)."""

    @abstractmethod
    def export(self, public: Public) -> Program:
        """Return the program of a block's gradients, from abstract shapes.

        Raises:
            ContractError: the framework is missing, or cannot export the loss.
        """

    def _template(self, domain: Domain) -> dict[str, tuple[int, ...]]:
        """Shapes by name, from randomness that are the same for everybody."""
        parameters = self.parameters(Stream(b"public", ("training.shapes",)), domain)
        return {name: np.shape(array) for name, array in parameters.items()}

    def size(self, domain: Domain) -> int:
        """Return how many weights there are."""
        return sum(int(np.prod(shape)) for shape in self._template(domain).values())

    def initial(self, stream: Stream, domain: Domain) -> NDArray[np.float64]:
        """Return all of `parameters`, one after the other.

        Raises:
            ContractError: their shapes depend on the randomness.
        """
        parameters = self.parameters(stream, domain)
        shapes = {name: np.shape(array) for name, array in parameters.items()}
        need(
            [*shapes.items()] == [*self._template(domain).items()],
            ContractError,
            f"{type(self).__name__}: shapes of parameters must not depend on the randomness",
        )
        return np.concatenate([np.ravel(array).astype(np.float64) for array in parameters.values()])

    def unpacked(self, weights: Any, domain: Domain) -> Parameters:
        """Views of a flat array of the framework, by name."""
        unpacked, begin = {}, 0
        for name, shape in self._template(domain).items():
            end = begin + int(np.prod(shape))
            unpacked[name] = weights[begin:end].reshape(shape)
            begin = end
        return unpacked

    def program(self, public: Public) -> Program:
        """Return the exported gradients of a block, made once for asks in a row.

        Raises:
            ContractError: the framework is missing, or the loss is no pure function of one record
                that it can trace, differentiate and export.
        """
        return public.randomness.once(
            ("training.program", self, public.domain), lambda: self.export(public)
        )

    def unexportable(self, framework: str, error: Exception) -> ContractError:
        """Return what says that the author's loss could not be exported, on shapes only: one
        line.
        """
        message = f"{type(self).__name__}: {framework} cannot export its loss: {error}"
        return ContractError(message.splitlines()[0])

    def gradients(
        self, weights: NDArray[np.float64], block: Records, targets: NDArray[Any], public: Public
    ) -> Iterator[NDArray[np.floating]]:
        """PRIVATE: by the exported program, in blocks of its size."""
        program, parameters = self.program(public), weights.astype(np.float32)
        rows = program.rows or max(1, len(block))
        for begin in range(0, len(block), rows):
            count = min(rows, len(block) - begin)
            features = np.zeros((rows, public.domain.width), dtype=np.float32)
            padded = np.zeros(rows, dtype=np.int32 if public.domain.classes else np.float32)
            features[:count] = block.features[begin : begin + count]
            # An unknown class, -1, is no place: its gradient is of no use, and adds nothing.
            padded[:count] = targets[begin : begin + count]
            yield from np.asarray(program.call(parameters, features, padded))[:count]
