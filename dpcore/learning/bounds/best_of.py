"""The bounds of a learner that chooses among others: each candidate's own, and 1 for the choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Refused, SensitivityBound
from dpcore.distance import Distance
from dpcore.learner import Learner, Public
from dpcore.learning.learners.best_of import CHOICE, BestOf
from dpcore.learning.theorems.by_relation import ByRelation
from dpcore.query import Query
from dpcore.sensitivity import Refuted, Sensitivity


@attrs.frozen
class BestOfBound(SensitivityBound):
    """Each candidate's first bound that gives a claim, and 1 for the scores of the choice.

    A candidate's query moves as it does alone, whatever was asked before. Losses are rounded to
    multiples of 2^-30 and summed as integers, so that no solver error is left.
    """

    learner: ClassVar[type[Learner]] = BestOf

    def about(self, learner: Learner, named: Callable[[str], SensitivityBound]) -> SensitivityBound:
        """With the candidates' bounds, in their order of preference."""
        assert isinstance(learner, BestOf)
        return CandidatesBound(
            tuple(
                tuple(named(name).about(candidate, named) for name in candidate.bounds)
                for candidate in learner.candidates
            )
        )

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refused: it is not known which bounds the candidates have."""
        return Refused("the candidates' bounds are looked up when a run is priced")


@attrs.frozen
class CandidatesBound(SensitivityBound):
    """The same, with the candidates' bounds."""

    learner: ClassVar[type[Learner]] = BestOf

    bounds: tuple[tuple[SensitivityBound, ...], ...]

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """The candidate's, or 1."""
        assert isinstance(learner, BestOf)
        if query.name == CHOICE:
            claim, value = ByRelation(add_remove=1.0, replace_one=1.0).under(adjacency)
            return Sensitivity(
                value=value,
                distance=Distance.LINF,
                adjacency=claim,
                source="sums of losses in [0, 1], one of each record alone",
            )
        index, own = learner.own(query, public)
        candidate, part = learner.candidates[index], learner.part(public)
        refusals = []
        for bound in self.bounds[index]:
            found = _claim(bound, own, candidate, part, adjacency)
            if isinstance(found, Sensitivity):
                return found
            refusals.append(found.reason)
        reasons = "; ".join(refusals) or "it names no bound"
        return Refused(f"candidate {index + 1} ({type(candidate).__name__}): {reasons}")


def _claim(
    bound: SensitivityBound,
    query: Query,
    learner: Learner,
    public: Public,
    adjacency: Adjacency,
) -> Sensitivity | Refused:
    """What a candidate's bound claims; refuted claims are none."""
    if bound.withholds_count:
        return Refused("its bound withholds the number of records, which candidates share")
    found = bound.sensitivity(query, learner, public, adjacency)
    if isinstance(found, Refused):
        return found
    if isinstance(found.validity, Refuted):
        return Refused(f"refuted: {found.validity.reason}")
    if not found.adjacency.covers(adjacency):
        return Refused(f"it holds for {found.adjacency}, which does not cover the run's")
    return found
