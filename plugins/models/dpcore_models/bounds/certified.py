"""CertifiedBound: what one record moves a certified minimiser by, and what its solver errs by."""

import math
from typing import Any, ClassVar, Protocol, runtime_checkable

import attrs

from dpcore import Adjacency, Domain, Public, Query, Refused, Sensitivity, SensitivityBound
from dpcore.learners.bounds.by_relation import ByRelation


@runtime_checkable
class CertifiedLearner(Protocol):
    """A learner whose result is proved to lie within a public distance of a minimiser."""

    @property
    def total_regularization(self) -> float:
        """Lam > 0 of the sum form."""

    def moves(self, domain: Domain) -> ByRelation:
        """Return the movement of the exact result by one record."""

    def solver_error(self, domain: Domain) -> float:
        """Return the largest distance of the computed from the exact result; maybe infinity."""


@attrs.frozen(kw_only=True)
class CertifiedBound(SensitivityBound):
    """The learner's `moves`; what is left to write is whose it is and the theorem."""

    theorem: ClassVar[str]
    """Of the movement, with {} for the relation."""

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuse if floating point cannot certify the minimiser on every dataset."""
        assert isinstance(learner, CertifiedLearner)
        error = learner.solver_error(public.domain)
        # An infinite error would be added to the movement: a refusal says so in words.
        if math.isinf(error):
            return Refused(
                f"total_regularization={learner.total_regularization!r} is too small for a "
                f"certified minimiser on every dataset: raise it, or declare fewer records"
            )
        # The error is stated next to the movement, and never
        # added here: the sensitivity does that once.
        claim, value = learner.moves(public.domain).under(adjacency)
        return Sensitivity(
            value=value,
            distance=query.distance,
            adjacency=claim,
            solver_error=error,
            source=self.theorem.format(claim),
        )
