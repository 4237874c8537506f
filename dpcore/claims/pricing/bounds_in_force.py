"""`bounds_in_force`: evaluate the theorem that limits each query, before records are opened."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Components, Refused, SensitivityBound, own_distribution
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.request import Release
from dpcore.claims.plan.schedule import FunctionRelease, LearnerRelease, Scheduled
from dpcore.claims.pricing.unit_claims import (
    bound_relation,
    clips_persons,
    explain_unbanded,
    explain_unpriced,
    unit_claim,
)
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError, SpecError, UndeclaredError, below, near, need
from dpcore.learner import AnyLearner, Learner, Model, ProbabilityModel, Public, promises
from dpcore.mechanism import AnyMechanism, Mechanism, fill_in
from dpcore.query import Query, SumQuery
from dpcore.randomness import PublicRandomness
from dpcore.sampling import Order
from dpcore.sensitivity import (
    CONVERTIBLE,
    AnySensitivity,
    Distance,
    Refuted,
    SensitivityDistribution,
    WorstCase,
)
from dpcore.summing import sums_exactly

_ADDITIVE = "gaussian, laplace and other noise on every coordinate fit"
_FITTING = {
    Distance.L1: _ADDITIVE,
    Distance.L2: _ADDITIVE,
    Distance.LINF: "exponential and permute_and_flip choose among scores",
    Distance.RKHS: "gaussian_process and per_query answer a function",
    Distance.PSD_ROWS: "gaussian_sampling answers a Gram matrix",
    Distance.HAMMING: "randomized_response answers categories",
}
"""What releases a query that moves in each distance, for messages."""


@attrs.frozen(eq=False)
class Bounds:
    """Finds each release's bound and evaluates it at the learners' part."""

    part: Domain
    adjacency: Adjacency
    components: Components
    reproduce: bool = False
    """Whether refuted bounds are priced, for a reproduction that is marked not private."""
    locked: bool = False
    """Whether bounds say what a lock says: of persons, too, where they are the unit."""

    def release(
        self, release: Release, mu: float | None, randomness: PublicRandomness
    ) -> Scheduled:
        """Return every planned query with its bound and uncalibrated mechanism; weights sum to 1.

        The first of the learner's bounds that covers the adjacency for every query is taken.

        Raises:
            NoClaimError: no bound covers the adjacency.
        """
        learner, refusals = release.learner, []
        location = "learner" if release.bound is None else "bound"
        # In the learner's order of preference. If none holds, the error says why each was refused.
        for name, bound in self._candidates(release):
            # A theorem about another learner says nothing of this one's statistic.
            need(
                bound.is_about(learner),
                SpecError,
                f"bound {name} is not about {type(learner).__name__}: it must name that class "
                f"under `learner`, or stand in that class's own `bounds`",
                location,
            )
            part = self.part
            # This theorem holds only for a learner that plans without the exact number of records.
            if bound.withholds_count:
                part = attrs.evolve(part, exact=None, limit=part.at_most)
            public = Public(domain=part, randomness=randomness, mu=mu)
            outcome = self._in_force(bound, release, public)
            if not isinstance(outcome, Refused):
                definite_bound, queries = outcome
                return scheduled(
                    learner,
                    release=release,
                    bound=definite_bound,
                    queries=queries,
                    mu=mu,
                    part=part,
                )
            refusals.append(f"{name}: {outcome.reason}")
        reasons = "; ".join(refusals) or "it names none: choose among those of its plugin"
        raise NoClaimError(
            f"no bound of {type(learner).__name__} gives a claim: {reasons}", location
        )

    def _in_force(
        self, bound: SensitivityBound, release: Release, public: Public
    ) -> tuple[SensitivityBound, dict[str, PlannedQuery]] | Refused:
        """Return the bound for this learner with every query under it; or the first refusal."""
        queries = self._queries(release, public)
        if isinstance(queries, Refused):
            return queries
        if release.of is not None and (reason := _explain_unfit(queries)):
            return Refused(reason)
        has_delta = public.mu is not None
        named = self.components.mechanism
        claims = _Claims(self, _choose_mechanisms(release, queries, has_delta, named))
        # A bound about a learner within a learner chooses the inner one's bound here, once.
        definite_bound = bound.about(
            release.learner, public, bound_relation(self.adjacency), claims
        )
        if isinstance(definite_bound, Refused):
            return definite_bound
        # The release's own shares are relative to each other; `price` weighs releases.
        total = sum(release.query_shares.get(q.name, q.share) for q in queries)
        planned_queries = {}
        for query in queries:
            sensitivity = claims.claim(definite_bound, query, release.learner, public, query.name)
            if isinstance(sensitivity, Refused):
                return sensitivity
            mechanism = claims.mechanism(query, query.name)
            if reason := explain_unbanded(
                query, release.learner, sensitivity, mechanism, single=len(queries) == 1
            ):
                return Refused(reason)
            planned_queries[query.name] = PlannedQuery(
                query=query,
                sensitivity=sensitivity,
                mechanism=mechanism,
                share=release.query_shares.get(query.name, query.share) / total,
            )
        return definite_bound, planned_queries

    def _queries(self, release: Release, public: Public) -> tuple[Query, ...] | Refused:
        owner = type(release.learner).__name__
        # Refusals, not errors: another of the learner's bounds may still give a claim.
        predicts = promises(release.learner, Model)
        if predicts and not public.domain.labelled:
            return Refused(f"{owner} predicts a target, and the domain declares none")
        # Labels of three or more classes are codes, which a model of sizes would take for numbers.
        is_sized = predicts and not promises(release.learner, ProbabilityModel)
        if is_sized and public.domain.classes > 2:
            return Refused(
                f"{owner} fits a target range or two classes, the target has "
                f"{public.domain.classes} classes"
            )
        try:
            with below("learner"):
                queries = release.learner.queries(public)
        except UndeclaredError as error:
            return Refused(error.message)
        names = [query.name for query in queries]
        need(
            names and len(set(names)) == len(names),
            SpecError,
            f"{owner} must plan queries with different names, plans {names}",
            "learner",
        )
        # A mechanism may be given for a group of queries: by what is before their first dot.
        mechanism_names = {*release.mechanism} if isinstance(release.mechanism, Mapping) else set()
        groups = {name.split(".")[0] for name in names}
        if extra_names := sorted((mechanism_names - groups | {*release.query_shares}) - {*names}):
            hint = near(extra_names[0], {*names, *groups}) or f"; it has {', '.join(names)}"
            raise SpecError(
                f"{owner} has no query {extra_names[0]!r}{hint}", "mechanism", key=extra_names[0]
            )
        missing_names = {name for name in names if not {name, name.split(".")[0]} & mechanism_names}
        if isinstance(release.mechanism, Mapping) and missing_names:
            raise SpecError(
                f"no mechanism is given for the query {min(missing_names)!r} of {owner}",
                "mechanism",
            )
        return queries

    def _candidates(self, release: Release) -> Iterator[tuple[str, SensitivityBound]]:
        """Return the bound that a release is given, else its learner's, in order of preference."""
        if (bound := release.bound) is not None:
            return iter([(type(bound).__name__, bound)])
        return self.components.of_learner(release.learner)

    def evaluate(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public
    ) -> AnySensitivity | Refused:
        """Return a bound's claim about one query, in its distance, or why it is of no use here."""
        claim = partial(bound.sensitivity, query, learner, public)

        def derived(answer: AnySensitivity | Refused) -> AnySensitivity | Refused:
            return answer if isinstance(answer, Refused) else self._derived(answer, bound)

        try:
            result = (
                claim(self.adjacency)
                if self.locked
                else derived(
                    unit_claim(query, learner, self.adjacency, lambda step: derived(claim(step)))
                )
            )
        except UndeclaredError as error:
            return Refused(error.message)
        if isinstance(result, Refused):
            return result
        # A bound may be a third party's: relation, sampling and norm of its claim are checked here.
        if not result.adjacency.covers(self.adjacency):
            return Refused(f"it holds for {result.adjacency}, which does not cover the run's")
        if reason := _explain_unsampled(query, learner, self.adjacency, result):
            return Refused(reason)
        owner = type(bound).__name__
        need(
            not isinstance(result, SensitivityDistribution) or isinstance(query.sampling, Order),
            SpecError,
            f"{owner} states a distribution over orders, the query {query.name!r} draws none",
        )
        # A lock states the sensitivity in its mechanism's norm, which `_Claims` holds it against.
        need(
            self.locked or result.distance is query.distance,
            SpecError,
            f"{owner} bounds {result.distance}, the query {query.name!r} needs {query.distance}",
        )
        # A refuted bound is priced in a reproduction only, which carries no guarantee.
        if isinstance(result.validity, Refuted) and not self.reproduce:
            return Refused(f"refuted: {result.validity.reason}")
        # A lock says what was taken for granted when it was written.
        if self.locked:
            return result
        premises = dict.fromkeys((*result.premises, *self.components.premises()))
        return attrs.evolve(result, premises=tuple(premises))

    def _derived(self, claim: AnySensitivity, bound: SensitivityBound) -> AnySensitivity:
        """Return the claim with its derivation; what a bound states without one is its theorem."""
        if claim.tree is not None:
            return claim
        return claim.taken(own_distribution(self.components, type(bound)))


def _explain_unsampled(
    query: Query, learner: AnyLearner, adjacency: Adjacency, claim: AnySensitivity
) -> str:
    """Explain why the query's sampling cannot amplify the claim; empty if it can.

    Of an exact sum it is known, too, what a record moves by not being seen: at most the clip.
    """
    sampling = query.sampling
    if sampling is None:
        return ""
    reason = sampling.refusal(adjacency) or sampling.refusal(claim.adjacency)
    # Amplification is proved of records that come and go. Of replaced ones it is known for exact
    # sums only, where a record that is not seen moves the sum by its clip at most.
    is_replacement = adjacency.replaces and claim.adjacency.replaces
    if not (reason and is_replacement and sampling.replaces_in_sums and sums_exactly(learner)):
        return reason
    if not isinstance(query, SumQuery) or not query.longest(claim.distance) <= claim.smallest:
        return f"{reason}, and for sums that a replacement moves by the clip or more"
    return ""


def scheduled(learner: AnyLearner, queries: Mapping[str, PlannedQuery], **fields: Any) -> Scheduled:
    """Return a release of the learner's kind: the one place where the two are distinguished.

    Raises:
        SpecError: the learner is of neither kind, its mechanisms are of the other kind, or a
            function is to be fitted on a sample.
    """
    name, mechanisms = (
        type(learner).__name__,
        [planned_query.mechanism for planned_query in queries.values()],
    )
    if isinstance(learner, Learner):
        need(
            all(isinstance(item, Mechanism) for item in mechanisms),
            SpecError,
            f"{name} asks for arrays, and a mechanism of it serves functions",
        )
        return LearnerRelease(queries=queries, **fields)
    # A `FunctionLearner`, whose mechanism opens an oracle: neither is imported to be priced.
    need(
        hasattr(learner, "function_query"),
        SpecError,
        f"{name} must extend Learner or FunctionLearner",
    )
    need(
        all(hasattr(item, "opener") for item in mechanisms),
        SpecError,
        f"{name} asks for functions, and a mechanism of it releases arrays",
    )
    need(
        all(planned_query.query.sampling is None for planned_query in queries.values()),
        SpecError,
        f"the function of {name} is fitted on all records: no sampling",
    )
    return FunctionRelease(
        queries={key: _of_questions(planned_query) for key, planned_query in queries.items()},
        **fields,
    )


def _of_questions(planned_query: PlannedQuery) -> PlannedQuery:
    """Return the query for a function, charged as often as its oracle answers with fresh noise."""
    query_count = planned_query.query.at_most * cast(Any, planned_query.mechanism).query_count
    return attrs.evolve(planned_query, query=attrs.evolve(planned_query.query, at_most=query_count))


@attrs.frozen(eq=False)
class _Claims:
    """What bounds claim, as far as the mechanisms of one release can price it."""

    bounds: Bounds
    mechanisms: Mapping[str, tuple[AnyMechanism, list[str]]]

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        return self.bounds.components.of_learner(learner)

    def claim(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public, name: str
    ) -> AnySensitivity | Refused:
        """Return the claim in the norm of the query's mechanism that costs the least noise."""
        norms = dict.fromkeys((query.distance, *query.norms))
        answers = [
            self.bounds.evaluate(bound, attrs.evolve(query, distance=norm), learner, public)
            for norm in norms
        ]
        claims = [answer for answer in answers if not isinstance(answer, Refused)]
        if not claims:
            return answers[0]
        mechanism = self.mechanism(query, name)
        if reason := explain_unpriced(self.bounds.adjacency, mechanism):
            return Refused(reason)
        prices = [claim for claim in claims if isinstance(claim, mechanism.needs.sensitivities)]
        converted = [claim.in_norm(mechanism.needs.distance, query.real_size) for claim in prices]
        usable = [claim for claim in converted if claim is not None]
        if not usable:
            return Refused(
                f"its sensitivity is a distribution over the order of records, which mechanism "
                f"{type(mechanism).__name__} cannot price (gaussian can)"
            )
        # What is proved for all data comes before a smaller number that is not.
        return min(
            usable, key=lambda claim: (not isinstance(claim.validity, WorstCase), claim.largest)
        )

    def mechanism(self, query: Query, name: str) -> AnyMechanism:
        """Return the mechanism of the query that the run plans as `name`."""
        return _complete(*self.mechanisms[name], query, name)


def _explain_unfit(queries: tuple[Query, ...]) -> str:
    """Explain why evaluated records cannot be queried so; empty if they can."""
    if any(query.sampling is not None for query in queries):
        return "evaluated records are not sampled: all of the hold-out is seen"
    if any(map(clips_persons, queries)):
        return "evaluated records do not say whose they are: take clip: record"
    return ""


def _choose_mechanisms(
    release: Release,
    queries: tuple[Query, ...],
    has_delta: bool,
    named: Callable[[str], type[AnyMechanism]],
) -> dict[str, tuple[AnyMechanism, list[str]]]:
    """Return each query's mechanism, and under which keys the release names it.

    One mechanism for all queries answers those that it fits. Where it fits some of them, and where
    the release names none, a query has the usual one.
    """
    choice = release.mechanism
    if isinstance(choice, Mapping):  # by the query's name, or by the group before its first dot
        keys = {q.name: q.name if q.name in choice else q.name.split(".")[0] for q in queries}
        return {name: (choice[key], ["mechanism", key]) for name, key in keys.items()}
    misfits = [q for q in queries if choice is None or _explain_misfit(choice, q)]
    if choice is not None and len(misfits) in (0, len(queries)):
        return {query.name: (choice, ["mechanism"]) for query in queries}
    # Imported where a mechanism is missing: these are many.
    from dpcore.claims.mechanisms.usual import usual_mechanism

    usual = {
        q.name: (usual_mechanism(q, has_delta=has_delta, named=named), list[str]()) for q in misfits
    }
    fitting = {} if choice is None else {q.name: (choice, ["mechanism"]) for q in queries}
    return {**fitting, **usual}


def _explain_misfit(mechanism: AnyMechanism, query: Query) -> str:
    """Explain why a mechanism does not fit a query's norm and kind, and which does; or empty."""
    name, needs = f"{query.name!r}", mechanism.needs
    usual = _FITTING[query.distance]
    if query.mechanism is not None:
        usual = f"{type(query.mechanism).__name__} fits"
    # Noise scaled in one norm covers no move that is bounded in another: what is added to every
    # coordinate takes a converted bound. Not of scores, which are no vector, and not of a query of
    # its own kind, whose coordinates may be more than its shape says.
    is_converted = (
        needs.additive
        and type(query) in (Query, SumQuery)
        and query.norms != (Distance.LINF,)
        and {needs.distance, query.distance} <= CONVERTIBLE
    )
    if needs.distance != query.distance and not is_converted:
        return (
            f"mechanism {type(mechanism).__name__} needs a {needs.distance} bound, the query "
            f"{name} is bounded in {query.distance}; {usual}"
        )
    # Matched exactly, for other kinds have other values; a sum's value is as that of a plain query.
    kinds = (Query, SumQuery) if type(query) is SumQuery else (type(query),)
    if needs.query in kinds:
        return ""
    return (
        f"mechanism {type(mechanism).__name__} and the query {name} do not fit: it answers a "
        f"{needs.query.__name__}, and the query is a {type(query).__name__}; {usual}"
    )


def _complete(mechanism: AnyMechanism, path: list[str], query: Query, name: str) -> AnyMechanism:
    """Return the mechanism of the query called `name`, with what the learner supplies filled in."""
    reason = _explain_misfit(mechanism, attrs.evolve(query, name=name))
    need(not reason, SpecError, reason, path)
    # The query fills in what the spec leaves open, and changes nothing that the spec sets.
    complete_mechanism = fill_in(mechanism, query.mechanism)
    if reason := complete_mechanism.refusal(query):
        raise SpecError(
            f"mechanism {type(mechanism).__name__} cannot release every value of the query "
            f"{name!r}: {reason}",
            path,
        )
    return complete_mechanism
