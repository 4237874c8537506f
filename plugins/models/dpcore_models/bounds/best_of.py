"""The bounds of a learner that chooses among others: each candidate's own, and 1 for the choice."""

from collections.abc import Iterator
from typing import ClassVar

import attrs

from dpcore import (
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.bound import Claims
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.sensitivity import AnySensitivity
from dpcore_models.learners.best_of import CHOICE, FITS, BestOf

_WITHHOLDS = "its bound withholds the number of records, which candidates share"


@attrs.frozen
class BestOfBound(SensitivityBound):
    """Each candidate's first bound that gives a claim, and 1 for the scores of the choice.

    A candidate's query moves as it does only, whatever was asked before. Losses are rounded to
    multiples of 2^-30 and summed as integers, so that no solver error is left.
    """

    learner: ClassVar[type[AnyLearner]] = BestOf

    def about(
        self, learner: BestOf, public: Public, adjacency: Adjacency, claims: Claims
    ) -> SensitivityBound | Refused:
        """Return the bound with one bound chosen for each candidate."""
        bounds: list[SensitivityBound] = []
        for index, candidate in enumerate(learner.candidates):
            part = learner.part(public)
            # The run plans this candidate's queries under longer names, which claims go by.
            candidate_claims = _CandidateClaims(claims, f"{FITS}.{index + 1}.")
            bound = _pick_bound(candidate, part, adjacency, candidate_claims)
            # One candidate without a bound refuses the learner: the choice sees all models.
            if isinstance(bound, Refused):
                label = f"candidate {index + 1} ({type(candidate).__name__})"
                return Refused(f"{label}: {bound.reason}")
            bounds.append(bound)
        return CandidatesBound(tuple(bounds))

    def sensitivity(
        self, query: Query, learner: BestOf, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Refuse: the candidates' bounds are not yet known."""
        return Refused("the candidates' bounds are chosen when a run is priced")


@attrs.frozen
class CandidatesBound(SensitivityBound):
    """The same, with one bound for each candidate: what a plan rests on."""

    learner: ClassVar[type[AnyLearner]] = BestOf

    bounds: tuple[SensitivityBound, ...]

    def sensitivity(
        self, query: Query, learner: BestOf, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Return the sensitivity of a candidate's query, or of the choice (1 in max norm)."""
        if query.name == CHOICE:
            # A record that comes or goes moves all sums one way, at most 1 apart;
            # a replaced one may raise one candidate's sum and lower another's.
            claim, noise_distribution = ByRelation(add_remove=1.0, replace_one=2.0).under(adjacency)
            return Sensitivity(
                value=1.0,
                range=noise_distribution,
                distance=Distance.LINF,
                adjacency=claim,
                source="sums of losses in [0, 1], one of each record alone",
            )
        # A candidate sees the same records as only: its own bound holds for its own query.
        index, inner_query = learner.own(query, public)
        candidate, part = learner.candidates[index], learner.part(public)
        if self.bounds[index].withholds_count:
            return Refused(_WITHHOLDS)
        return self.bounds[index].sensitivity(inner_query, candidate, part, adjacency)


@attrs.frozen(eq=False)
class _CandidateClaims:
    """Claims about a candidate, whose queries the run plans under longer names."""

    claims: Claims
    prefix: str

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        return self.claims.of_learner(learner)

    def claim(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public, name: str
    ) -> AnySensitivity | Refused:
        return self.claims.claim(bound, query, learner, public, self.prefix + name)


def _pick_bound(
    candidate: Learner, public: Public, adjacency: Adjacency, claims: Claims
) -> SensitivityBound | Refused:
    """Return a candidate's first bound that makes a claim for each of its queries."""
    refusals = []
    for _, bound in claims.of_learner(candidate):
        settled_bound = _settle_bound(bound, candidate, public, adjacency, claims)
        if not isinstance(settled_bound, Refused):
            return settled_bound
        refusals.append(settled_bound.reason)
    return Refused("; ".join(refusals) or "it names no bound")


def _settle_bound(
    bound: SensitivityBound,
    candidate: Learner,
    public: Public,
    adjacency: Adjacency,
    claims: Claims,
) -> SensitivityBound | Refused:
    """Return the bound made for this candidate if it covers each query; else the refusal."""
    if not bound.is_about(candidate):
        return Refused(f"{type(bound).__name__} is about another learner")
    if bound.withholds_count:
        return Refused(_WITHHOLDS)
    if isinstance(definite_bound := bound.about(candidate, public, adjacency, claims), Refused):
        return definite_bound
    # A bound must claim something of each query, or the next one is tried.
    for query in candidate.queries(public):
        claim = claims.claim(definite_bound, query, candidate, public, query.name)
        if isinstance(claim, Refused):
            return claim
    return definite_bound
