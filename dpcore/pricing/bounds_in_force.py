"""Bounding: which theorem limits each query of a release, evaluated before records are opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Refused, SensitivityBound
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError, SpecError, UndeclaredError
from dpcore.functions.interactive import Interactive
from dpcore.functions.learner import FunctionQuery
from dpcore.learner import Learner, Public
from dpcore.mechanism import Mechanism
from dpcore.query import Query
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import BOUND
from dpcore.registry.registry import Registry
from dpcore.running.ask import Ask
from dpcore.running.plan import Release
from dpcore.running.schedule import Scheduled
from dpcore.sampling.schemes import Order
from dpcore.sensitivity import Refuted, Sensitivity


@attrs.frozen(eq=False, slots=False)
class Bounds:
    """Finds each release's bound and evaluates it at the learners' part."""

    part: Domain
    adjacency: Adjacency
    registry: Registry | None
    reproduce: bool = False
    """Whether refuted bounds are priced, for a reproduction that is marked not private."""

    def release(self, release: Release, mu: float | None, coins: PublicCoins) -> Scheduled:
        """Every planned query with its bound and uncalibrated mechanism; shares sum to 1.

        The first of the learner's bounds that covers the adjacency for every query is taken.

        Raises:
            NoClaimError: no bound covers the adjacency.
        """
        refusals = []
        for name, bound in self._candidates(release):
            if bound.learner is not type(release.learner):
                raise SpecError(
                    f"bound {name} is about {bound.learner.__name__}, "
                    f"not {type(release.learner).__name__}"
                )
            part = self.part
            if bound.withholds_count:
                part = attrs.evolve(part, exact=None, limit=part.at_most)
            public = Public(domain=part, coins=coins, mu=mu)
            found = self._evaluate_all(bound, release, public)
            if not isinstance(found, Refused):
                return Scheduled(
                    name=release.name,
                    learner=release.learner,
                    asks={ask.query.name: ask for ask in found},
                    mu=mu,
                    part=part,
                    point=release.point,
                )
            refusals.append(f"{name}: {found.reason}")
        reasons = "; ".join(refusals) or "it names none"
        raise NoClaimError(f"no bound of {type(release.learner).__name__} gives a claim: {reasons}")

    def _evaluate_all(
        self, bound: SensitivityBound, release: Release, public: Public
    ) -> list[Ask] | Refused:
        """Every query of a release under one bound, or the first refusal."""
        queries = self._queries(release, public)
        if isinstance(queries, Refused):
            return queries
        total = sum(release.query_shares.get(q.name, q.share) for q in queries)
        asks = []
        for query in queries:
            sensitivity = self._evaluate(bound, query, release.learner, public)
            if isinstance(sensitivity, Refused):
                return sensitivity
            mechanism = _mechanism(release, query, sensitivity)
            if sensitivity.law is not None and not mechanism.prices_laws:
                return Refused(
                    f"its sensitivity is a law over the order of records, which mechanism "
                    f"{type(mechanism).__name__} cannot price (gaussian can)"
                )
            asks.append(
                Ask(
                    query=mechanism.planned(query) if isinstance(mechanism, Interactive) else query,
                    sensitivity=sensitivity,
                    mechanism=mechanism,
                    share=release.query_shares.get(query.name, query.share) / total,
                )
            )
        return asks

    def _queries(self, release: Release, public: Public) -> tuple[Query, ...] | Refused:
        owner = type(release.learner).__name__
        if not release.learner.several_classes and public.domain.classes > 2:
            return Refused(
                f"{owner} fits a target range or two classes, the target has "
                f"{public.domain.classes} classes"
            )
        try:
            queries = release.learner.queries(public)
        except UndeclaredError as error:
            return Refused(str(error))
        names = [query.name for query in queries]
        if not names or len(set(names)) < len(names):
            raise SpecError(f"{owner} must plan queries with different names, plans {names}")
        given = {*release.mechanism} if isinstance(release.mechanism, Mapping) else set()
        groups = {name.split(".")[0] for name in names}
        if extra := sorted((given - groups | {*release.query_shares}) - {*names}):
            raise SpecError(f"{owner} has no query {extra[0]!r}; it has {', '.join(names)}")
        lacking = {name for name in names if not {name, name.split(".")[0]} & given}
        if isinstance(release.mechanism, Mapping) and lacking:
            raise SpecError(f"no mechanism is given for the query {min(lacking)!r} of {owner}")
        return queries

    def _candidates(self, release: Release) -> Iterable[tuple[str, SensitivityBound]]:
        if release.bound is not None:
            yield type(release.bound).__name__, release.bound
            return
        for name in release.learner.bounds:
            yield name, self._named(name).about(release.learner, self._named)

    def _named(self, name: str) -> SensitivityBound:
        return cast(SensitivityBound, self._known.component(BOUND, name)())

    @cached_property
    def _known(self) -> Registry:
        return Registry.default() if self.registry is None else self.registry

    def _evaluate(
        self, bound: SensitivityBound, query: Query, learner: Learner, public: Public
    ) -> Sensitivity | Refused:
        try:
            result = bound.sensitivity(query, learner, public, self.adjacency)
        except UndeclaredError as error:
            return Refused(str(error))
        if isinstance(result, Refused):
            return result
        if not result.adjacency.covers(self.adjacency):
            return Refused(f"it holds for {result.adjacency}, which does not cover the run's")
        if query.sampling is not None and (reason := query.sampling.refusal(self.adjacency)):
            return Refused(reason)
        if isinstance(query, FunctionQuery) and query.sampling is not None:
            raise SpecError(f"the function {query.name!r} is fitted on all records: no sampling")
        if result.law is not None and not isinstance(query.sampling, Order):
            raise SpecError(
                f"{type(bound).__name__} states a law over orders, the query {query.name!r} draws "
                f"none"
            )
        if result.distance is not query.distance:
            raise SpecError(
                f"{type(bound).__name__} bounds {result.distance}, the query {query.name!r} "
                f"needs {query.distance}"
            )
        if isinstance(result.validity, Refuted) and not self.reproduce:
            return Refused(f"refuted: {result.validity.reason}")
        return result


def _mechanism(release: Release, query: Query, sensitivity: Sensitivity) -> Mechanism:
    """The query's mechanism, with what the learner supplies filled in."""
    chosen = release.mechanism
    if isinstance(chosen, Mapping):  # by the query's name, or by the group before its first dot
        group = query.name.split(".")[0]
        mechanism = chosen[query.name if query.name in chosen else group]
    else:
        mechanism = chosen
    if mechanism.distance is not query.distance:
        raise SpecError(
            f"mechanism {type(mechanism).__name__} needs a {mechanism.distance} bound, the query "
            f"{query.name!r} is bounded in {query.distance}"
        )
    if isinstance(mechanism, Interactive) != isinstance(query, FunctionQuery):
        raise SpecError(
            f"mechanism {type(mechanism).__name__} and the query {query.name!r} do not fit: a "
            f"function is answered by an interactive mechanism, and nothing else is"
        )
    if foreign := sorted(name for name in query.fixed if not hasattr(mechanism, name)):
        raise SpecError(
            f"the query {query.name!r} fixes {foreign[0]!r}, which mechanism "
            f"{type(mechanism).__name__} does not have"
        )
    unset = {name: v for name, v in query.fixed.items() if getattr(mechanism, name) is None}
    evolved: Mechanism = attrs.evolve(cast(Any, mechanism), **unset)
    return evolved
