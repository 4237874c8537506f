"""The bounds of a learner that chooses among others: each candidate's own, and 1 for the choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Claims, Refused, SensitivityBound
from dpcore.distance import Distance
from dpcore.learner import AnyLearner, Learner, Public
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.learners.best_of import CHOICE, FITS, BestOf
from dpcore.query import Query
from dpcore.sensitivity import AnySensitivity, Sensitivity

_WITHHOLDS = "its bound withholds the number of records, which candidates share"


@attrs.frozen
class BestOfBound(SensitivityBound):
    """Each candidate's first bound that gives a claim, and 1 for the scores of the choice.

    A candidate's query moves as it does alone, whatever was asked before. Losses are rounded to
    multiples of 2^-30 and summed as integers, so that no solver error is left.
    """

    learner: ClassVar[type[AnyLearner]] = BestOf

    def about(
        self, learner: BestOf, public: Public, adjacency: Adjacency, claims: Claims
    ) -> SensitivityBound | Refused:
        """The same, with one bound for each candidate."""
        chosen: list[SensitivityBound] = []
        for index, candidate in enumerate(learner.candidates):
            part = learner.part(public)
            within = _Within(claims, f"{FITS}.{index + 1}.")
            found = _first(candidate, part, adjacency, within)
            if isinstance(found, Refused):
                who = f"candidate {index + 1} ({type(candidate).__name__})"
                return Refused(f"{who}: {found.reason}")
            chosen.append(found)
        return CandidatesBound(tuple(chosen))

    def sensitivity(
        self, query: Query, learner: BestOf, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Refused: it is not known which bounds the candidates have."""
        return Refused("the candidates' bounds are chosen when a run is priced")


@attrs.frozen
class CandidatesBound(SensitivityBound):
    """The same, with one bound for each candidate: what a plan rests on."""

    learner: ClassVar[type[AnyLearner]] = BestOf

    bounds: tuple[SensitivityBound, ...]

    def sensitivity(
        self, query: Query, learner: BestOf, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """The candidate's, or 1."""
        if query.name == CHOICE:
            claim, spread = ByRelation(add_remove=1.0, replace_one=2.0).under(adjacency)
            return Sensitivity(
                value=1.0,
                range=spread,
                distance=Distance.LINF,
                adjacency=claim,
                source="sums of losses in [0, 1], one of each record alone",
            )
        index, own = learner.own(query, public)
        candidate, part = learner.candidates[index], learner.part(public)
        if self.bounds[index].withholds_count:
            return Refused(_WITHHOLDS)
        return self.bounds[index].sensitivity(own, candidate, part, adjacency)


@attrs.frozen(eq=False)
class _Within:
    """Claims about a candidate, whose queries the run plans under longer names."""

    claims: Claims
    prefix: str

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        return self.claims.of_learner(learner)

    def claim(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public, name: str
    ) -> AnySensitivity | Refused:
        return self.claims.claim(bound, query, learner, public, self.prefix + name)


def _first(
    candidate: Learner, public: Public, adjacency: Adjacency, claims: Claims
) -> SensitivityBound | Refused:
    """A candidate's first bound that claims something of each of its queries."""
    refusals = []
    for _, bound in claims.of_learner(candidate):
        found = _definite(bound, candidate, public, adjacency, claims)
        if not isinstance(found, Refused):
            return found
        refusals.append(found.reason)
    return Refused("; ".join(refusals) or "it names no bound")


def _definite(
    bound: SensitivityBound,
    candidate: Learner,
    public: Public,
    adjacency: Adjacency,
    claims: Claims,
) -> SensitivityBound | Refused:
    if not bound.is_about(candidate):
        return Refused(f"{type(bound).__name__} is about another learner")
    if bound.withholds_count:
        return Refused(_WITHHOLDS)
    found = bound.about(candidate, public, adjacency, claims)
    if isinstance(found, Refused):
        return found
    for query in candidate.queries(public):
        claim = claims.claim(found, query, candidate, public, query.name)
        if isinstance(claim, Refused):
            return claim
    return found
