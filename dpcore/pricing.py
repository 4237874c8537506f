"""Pricing: from what is asked for to a plan with its guarantee, without opening any record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.accountants.auto import AutoAccountant
from dpcore.adjacency import Adjacency
from dpcore.budget import PrivacyBudget
from dpcore.calibration import Ask, calibrate, compose
from dpcore.domain import Domain
from dpcore.errors import (
    CoinsWithheldError,
    NoClaimError,
    ParameterError,
    SpecError,
    UnknownCountError,
)
from dpcore.guarantee import NO_FAILURE, Assumption, Guarantee, ReleaseKind, Status
from dpcore.kinds import BOUND
from dpcore.learner import Learner, Public
from dpcore.mechanism import Mechanism
from dpcore.plan import Plan, Release
from dpcore.query import Query
from dpcore.randomness import PublicCoins
from dpcore.registry import Registry
from dpcore.schedule import Schedule, Scheduled, part_domain
from dpcore.sensitivity import (
    Conditional,
    OverCoins,
    Refused,
    Refuted,
    Sensitivity,
    SensitivityBound,
)

_WITHHELD = PublicCoins(None)


def price(
    *,
    domain: Domain,
    adjacency: Adjacency,
    budget: PrivacyBudget,
    releases: Sequence[Release] = (),
    learner: Learner | None = None,
    mechanism: Mechanism | Mapping[str, Mechanism] | None = None,
    bound: SensitivityBound | None = None,
    accountant: Accountant | None = None,
    coins: PublicCoins | None = None,
    holdout: float = 0.0,
    on_invalid: Literal["refuse", "project"] = "refuse",
    accept_assumptions: Iterable[str] = (),
    registry: Registry | None = None,
) -> Plan:
    """State a run's whole guarantee before any record is opened.

    Args:
        domain: Declared public facts.
        adjacency: Which datasets are neighbours.
        budget: The target; noise left free is calibrated to it, explicit noise is checked.
        releases: What to publish; or one release as `learner`, `mechanism` and `bound`.
        accountant: Empty, for `adjacency`; the core's `auto` if None.
        coins: Pinned public coins; drawn if None.
        holdout: Share of the records kept from the learners, for the operator's evaluation.
        on_invalid: What a run does with records that do not fit.
        accept_assumptions: Names of the assumptions a conditional claim may rest on.
        registry: Where a learner's bounds are looked up by name; the default one if None.

    Raises:
        NoClaimError: a bound refuses or is refuted, an assumption is not accepted, or no noise
            meets the budget.
        SpecError: components do not fit together.
    """
    if (learner is None) == (not releases) or (learner is None) != (mechanism is None):
        raise SpecError("price needs either releases, or a learner with its mechanism")
    if learner is not None and mechanism is not None:
        releases = [Release(learner=learner, mechanism=mechanism, bound=bound)]
    names = [release.name for release in releases]
    if len(set(names)) < len(names):
        raise SpecError(f"releases need different names, got {', '.join(names)}")
    part = part_domain(domain, adjacency, holdout)
    bounds = _Bounds(part, adjacency, registry)
    total = sum(release.share for release in releases)
    mu = budget.mu
    hints = [None if mu is None else mu * (r.share / total) ** 0.5 for r in releases]
    drawn, asks = _price_asks(releases, hints, bounds, coins)
    over_coins = sum(
        ask.sensitivity.validity.gamma
        for group in asks
        for ask in group
        if isinstance(ask.sensitivity.validity, OverCoins)
    )
    if over_coins and coins is not None:
        raise SpecError("a bound holds with a probability over the public coins: do not pin them")
    if over_coins and drawn is not None:
        raise SpecError("a bound that is a probability over the public coins may not read them")
    if over_coins >= budget.delta > 0 or (over_coins and budget.delta == 0):
        raise NoClaimError(f"the bounds' failure probability {over_coins!r} uses up delta")
    delta = budget.delta - over_coins
    accountant = AutoAccountant(adjacency) if accountant is None else accountant
    placed = calibrate([a for group in asks for a in group], accountant, budget.epsilon, delta)
    composed = compose(placed, accountant)
    scheduled, start = [], 0
    for release, hint, group in zip(releases, hints, asks, strict=True):
        mine = placed[start : start + len(group)]
        start += len(group)
        scheduled.append(
            Scheduled(
                name=release.name,
                learner=release.learner,
                asks={ask.query.name: ask for ask in mine},
                mu=hint,
            )
        )
    assumptions = _assumptions(releases, placed, set(accept_assumptions))
    guarantee = Guarantee(
        epsilon=composed.epsilon(delta).upper,
        delta=budget.delta,
        adjacency=adjacency,
        release=ReleaseKind.PARAMETERS,
        status=Status.CONDITIONAL if assumptions else Status.PROVED,
        assumptions=assumptions,
        premises=_premises(domain, on_invalid),
        sampler="exact" if all(a.mechanism.arithmetic == "exact" for a in placed) else "real",
        statistic=_statistic(placed),
        accountant=composed.explain(delta),
        sources=_sources(placed, over_coins),
    )
    return Plan(
        schedule=Schedule(
            domain=domain,
            part=part,
            adjacency=adjacency,
            releases=tuple(scheduled),
            holdout=holdout,
            on_invalid=on_invalid,
        ),
        budget=budget,
        guarantee=guarantee,
        coins=None if over_coins else drawn or coins or PublicCoins.draw(),
    )


def _price_asks(
    releases: Sequence[Release],
    hints: Sequence[float | None],
    bounds: _Bounds,
    coins: PublicCoins | None,
) -> tuple[PublicCoins | None, list[list[Ask]]]:
    """Uncalibrated asks of each release, and the coins if anything had to read them."""

    def asks(at: PublicCoins) -> list[list[Ask]]:
        return [bounds.asks(r, hint, at) for r, hint in zip(releases, hints, strict=True)]

    try:
        return None, asks(_WITHHELD)
    except CoinsWithheldError:
        drawn = coins or PublicCoins.draw()
        return drawn, asks(drawn)


@attrs.frozen(eq=False)
class _Bounds:
    """Finds each release's bound and evaluates it at the learners' part."""

    part: Domain
    adjacency: Adjacency
    registry: Registry | None

    def asks(self, release: Release, mu: float | None, coins: PublicCoins) -> list[Ask]:
        """Every planned query with its bound and mechanism.

        Raises:
            NoClaimError: no bound covers the adjacency.
        """
        public = Public(domain=self.part, coins=coins, mu=mu)
        queries = self._queries(release, public)
        sensitivities = self._sensitivities(release, queries, public)
        total = sum(release.query_shares.get(q.name, q.share) for q in queries)
        return [
            Ask(
                query=query,
                sensitivity=sensitivity,
                mechanism=_mechanism(release, query, sensitivity),
                share=release.share * release.query_shares.get(query.name, query.share) / total,
            )
            for query, sensitivity in zip(queries, sensitivities, strict=True)
        ]

    def _queries(self, release: Release, public: Public) -> tuple[Query, ...]:
        owner = type(release.learner).__name__
        try:
            queries = release.learner.queries(public)
        except UnknownCountError as error:
            raise NoClaimError(f"{owner}: {error}") from None
        names = [query.name for query in queries]
        if not names or len(set(names)) < len(names):
            raise SpecError(f"{owner} must plan queries with different names, plans {names}")
        given = {*release.query_shares}
        if isinstance(release.mechanism, Mapping):
            given |= {*release.mechanism}
            if lacking := sorted({*names} - {*release.mechanism}):
                raise SpecError(f"no mechanism is given for the query {lacking[0]!r} of {owner}")
        if extra := sorted(given - {*names}):
            raise SpecError(f"{owner} has no query {extra[0]!r}; it has {', '.join(names)}")
        return queries

    def _sensitivities(
        self, release: Release, queries: Sequence[Query], public: Public
    ) -> list[Sensitivity]:
        """By the first bound that covers the adjacency for every query."""
        learner, refusals = release.learner, []
        for name, bound in self._candidates(release):
            if bound.learner is not type(learner):
                raise SpecError(
                    f"bound {name} is about {bound.learner.__name__}, not {type(learner).__name__}"
                )
            found: list[Sensitivity] = []
            for query in queries:
                result = self._evaluate(bound, query, learner, public)
                if isinstance(result, Refused):
                    refusals.append(f"{name}: {result.reason}")
                    break
                found.append(result)
            else:
                return found
        reasons = "; ".join(refusals) or "it names none"
        raise NoClaimError(f"no bound of {type(learner).__name__} gives a claim: {reasons}")

    def _candidates(self, release: Release) -> Iterable[tuple[str, SensitivityBound]]:
        if release.bound is not None:
            yield type(release.bound).__name__, release.bound
            return
        registry = Registry.default() if self.registry is None else self.registry
        for name in release.learner.bounds:
            yield name, cast(SensitivityBound, registry.component(BOUND, name)())

    def _evaluate(
        self, bound: SensitivityBound, query: Query, learner: Learner, public: Public
    ) -> Sensitivity | Refused:
        try:
            result = bound.sensitivity(query, learner, public, self.adjacency)
        except UnknownCountError as error:
            return Refused(str(error))
        if isinstance(result, Refused):
            return result
        if not result.adjacency.covers(self.adjacency):
            return Refused(f"it holds for {result.adjacency}, which does not cover the run's")
        if result.distance is not query.distance:
            raise SpecError(
                f"{type(bound).__name__} bounds {result.distance}, the query {query.name!r} "
                f"needs {query.distance}"
            )
        if isinstance(result.validity, Refuted):
            return Refused(f"refuted: {result.validity.reason}")
        return result


def _mechanism(release: Release, query: Query, sensitivity: Sensitivity) -> Mechanism:
    """The query's mechanism, with what the learner supplies filled in."""
    chosen = release.mechanism
    mechanism = chosen[query.name] if isinstance(chosen, Mapping) else chosen
    if mechanism.distance is not query.distance:
        raise SpecError(
            f"mechanism {type(mechanism).__name__} needs a {mechanism.distance} bound, the query "
            f"{query.name!r} is bounded in {query.distance}"
        )
    unset = {name: v for name, v in query.fixed.items() if getattr(mechanism, name) is None}
    evolved: Mechanism = attrs.evolve(cast(Any, mechanism), **unset)
    return evolved


def _assumptions(
    releases: Sequence[Release], asks: Sequence[Ask], accepted: set[str]
) -> tuple[Assumption, ...]:
    """What the claim rests on, all of it accepted by name.

    Raises:
        NoClaimError: an assumption is not accepted.
        ParameterError: something is accepted that nothing needs.
    """
    needed = {
        name: Assumption(name, text)
        for ask in asks
        if isinstance(ask.sensitivity.validity, Conditional)
        for name, text in ask.sensitivity.validity.assumptions
    }
    if not all(release.learner.total for release in releases):
        needed[NO_FAILURE.name] = NO_FAILURE
    if extra := sorted(accepted - {*needed}):
        raise ParameterError(
            "accept_assumptions", f"assumptions that are needed ({', '.join(needed) or 'none'})",
            "accept_assumptions", extra[0],
        )  # fmt: skip
    for name, assumption in sorted(needed.items()):
        if name not in accepted:
            raise NoClaimError(
                f"the claim rests on the assumption {name!r} ({assumption.text}); to accept it, "
                f"list it under accept_assumptions"
            )
    return tuple(needed[name] for name in sorted(needed))


def _premises(domain: Domain, on_invalid: str) -> tuple[str, ...]:
    columns = {**domain.columns, domain.target: domain.labels}
    rules = ", ".join(f"{name}: {column.describe()}" for name, column in columns.items())
    fits = (
        f"every record fits the declared columns ({rules})"
        if on_invalid == "refuse"
        else f"the declared columns ({rules}), into which every record is mapped"
    )
    count = []
    if domain.exact is not None:
        count = [f"there are exactly {domain.exact} records"]
    elif domain.limit is not None:
        count = [f"there are at most {domain.limit} records"]
    return (fits, *count, "one person is at most one record")


def _statistic(asks: Sequence[Ask]) -> str:
    allowance = max(ask.sensitivity.solver_error for ask in asks)
    if allowance == 0:
        return "the statistic is taken as computed in real arithmetic"
    return (
        f"the statistic is computed in floating point, and an error of up to {allowance:.2e} on "
        f"either neighbour is part of its sensitivity"
    )


def _sources(asks: Sequence[Ask], over_coins: float) -> tuple[str, ...]:
    sources = [ask.sensitivity.source for ask in asks] + [ask.mechanism.source for ask in asks]
    if over_coins:
        sources.append(f"{over_coins:.3g} of delta for the public coins")
    return tuple(dict.fromkeys(sources))
