"""The bound of models of one's own: what a record moves, and which program computes gradients."""

from typing import Any

import attrs

from dpcore import Adjacency, Public, Query, Refused, Sensitivity, SensitivityBound
from dpcore.errors import ContractError
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.sum import SumBound
from dpcore.summing import sums_exactly
from dpcore_training.jax_network import JaxNetwork, require_jax
from dpcore_training.program_network import ProgramNetwork
from dpcore_training.tanh_network import TanhNetwork


@attrs.frozen
class ProgramBound(SensitivityBound):
    """C for a record that comes or goes, 2C for one that is replaced, with the program's digest."""

    def is_about(self, learner: AnyLearner) -> bool:
        """Return every `ProgramNetwork` whose sums the core adds."""
        return isinstance(learner, ProgramNetwork) and sums_exactly(learner)

    @classmethod
    def example_learner(cls) -> JaxNetwork:
        """Return a small network, which `dpcore test` examines; no run calls this.

        Raises:
            ContractError: JAX is missing.
        """
        require_jax()
        return TanhNetwork(steps=2)

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """That of any exact sum; refused where no program can be exported."""
        claim = SumBound().sensitivity(query, learner, public, adjacency)
        if isinstance(claim, Refused):
            return claim
        try:
            digest = learner.program(public).digest
        except ContractError as error:
            return Refused(str(error))
        premise = f"gradients are computed by the exported program {digest}, one record at a time"
        return attrs.evolve(claim, premises=(*claim.premises, premise))
