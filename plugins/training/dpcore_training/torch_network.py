"""TorchNetwork: a model of one's own, as two functions of PyTorch, trained like the others.

PyTorch traces the gradient of the author's loss on a record without values, to a graph of its own
operations on the CPU. Of such a graph PyTorch has no stable file: the digest is of its text, of the
numbers that it holds, and of PyTorch's version. The graph runs for one record after the other, each
copied to the same place in memory, because products round by where their arguments lie.
"""

import hashlib
import operator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Public
from dpcore.errors import ContractError, need
from dpcore_training.program_network import Program, ProgramNetwork


@attrs.frozen(kw_only=True)
class TorchNetwork(ProgramNetwork):
    """A learner whose model is a loss of one record in PyTorch, for plugins to extend."""

    def export(self, public: Public) -> Program:
        """Return the gradient of a record as a graph of PyTorch's operations.

        Raises:
            ContractError: PyTorch is missing, or the loss is no pure function of one record that
                PyTorch can trace and differentiate.
        """
        torch, domain = require_torch(), public.domain
        from torch.fx.experimental.proxy_tensor import make_fx

        def gradient(weights: Any, row: Any, target: Any) -> Any:
            def loss_of_record(at: Any) -> Any:
                return self.loss(self.unpacked(at, domain), row, target)

            return torch.func.grad(loss_of_record)(weights)

        weights = torch.zeros(self.size(domain))
        row = torch.zeros(domain.width)
        target = torch.zeros((), dtype=torch.int64 if domain.classes else torch.float32)
        # On tensors without values, a branch on what a record holds cannot be taken.
        try:
            function = torch.func.functionalize(gradient)
            graph = make_fx(function, tracing_mode="fake")(weights, row, target)
        except Exception as error:  # of PyTorch or of the author's loss, on shapes only
            raise self.unexportable("PyTorch", error) from error
        _require_pure(graph, torch, type(self).__name__)

        def gradients(parameters: Any, features: Any, targets: Any) -> NDArray[np.float32]:
            rows = np.empty((len(features), len(parameters)), dtype=np.float32)
            weights.copy_(torch.from_numpy(parameters))
            with torch.no_grad():
                for place, (cells, label) in enumerate(zip(features, targets, strict=True)):
                    row.copy_(torch.from_numpy(cells))
                    target.fill_(label.item())
                    rows[place] = graph(weights, row, target).numpy()
            return rows

        return Program(gradients, _digest(graph, torch))

    def outputs(
        self, weights: NDArray[np.float64], encoded: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """Of every row a logit for each class, or a label over the largest; shape (n, outputs)."""
        torch = require_torch()
        parameters = self.unpacked(torch.from_numpy(weights.astype(np.float32)), domain)
        rows = torch.from_numpy(encoded.astype(np.float32))
        outputs = torch.func.vmap(lambda row: self.output(parameters, row))(rows)
        numbers = outputs.detach().numpy().astype(np.float64)
        return np.asarray(numbers).reshape(len(encoded), domain.classes or 1)


def _require_pure(graph: Any, torch: Any, owner: str) -> None:
    """Refuse operations that draw, that write, and that are not PyTorch's own.

    What writes could hand something of one record to the next.

    Raises:
        ContractError: there is one; its name.
    """
    for node in graph.graph.nodes:
        # What an operation returns several of is taken apart.
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        tags = getattr(node.target, "tags", ())
        is_own = getattr(node.target, "namespace", "") in ("aten", "prim", "prims")
        draws = torch.Tag.nondeterministic_seeded in tags
        is_pure = is_own and not draws and not node.target._schema.is_mutable
        need(is_pure, ContractError, f"{owner}: its loss has effects: {node.target}")


def _digest(graph: Any, torch: Any) -> str:
    """SHA-256 of the graph's text, its numbers and PyTorch's version."""
    digest = hashlib.sha256(f"torch {torch.__version__}\n{graph.code}".encode())
    for name, numbers in sorted(graph.named_buffers()):
        array = numbers.detach().contiguous().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()


def require_torch() -> Any:
    """PyTorch with its functions of functions.

    Raises:
        ContractError: it is not installed, and how it is.
    """
    try:
        import torch
        import torch.func
    except ImportError as error:
        raise ContractError("a TorchNetwork needs PyTorch: pip install torch") from error
    return torch
