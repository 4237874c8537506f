"""Pricing: from what is asked for to a plan with its guarantee, without opening any record."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from dpcore.accountant import Accountant
from dpcore.accounting.budget import PrivacyBudget
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.accounting.methods.zcdp import ZcdpAccountant
from dpcore.adjacency import Adjacency
from dpcore.bound import SensitivityBound
from dpcore.domain.domain import Domain
from dpcore.errors import (
    CoinsWithheldError,
    NoClaimError,
    ParameterError,
    SpecError,
)
from dpcore.functions.learner import FunctionLearner
from dpcore.guarantee import NO_FAILURE, Assumption, Guarantee, ReleaseKind, Status
from dpcore.learner import Learner
from dpcore.mechanism import Mechanism
from dpcore.pricing.bounds_in_force import Bounds
from dpcore.pricing.calibration import calibrate, compose
from dpcore.randomness import PublicCoins
from dpcore.registry.registry import Registry
from dpcore.running.ask import Ask, failure_over_coins
from dpcore.running.plan import Plan, Release
from dpcore.running.private_look import RELEASE, PrivateLook
from dpcore.running.schedule import Schedule, Scheduled, part_domain
from dpcore.sensitivity import Conditional, Refuted

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
    separate: int = 1,
    look: PrivateLook | None = None,
    holdout: float = 0.0,
    sealed: bool = False,
    on_invalid: Literal["refuse", "project"] = "refuse",
    accept_assumptions: Iterable[str] = (),
    registry: Registry | None = None,
    reproduce: bool = False,
) -> Plan:
    """State a run's whole guarantee before any record is opened.

    Args:
        domain: Declared public facts.
        adjacency: Which datasets are neighbours.
        budget: The target; noise left free is calibrated to it, explicit noise is checked.
        releases: What to publish; or one release as `learner`, `mechanism` and `bound`.
        accountant: Empty, for `adjacency`; the core's `auto` if None.
        coins: Pinned public coins; drawn if None.
        separate: The releases form that many equal consecutive groups, each calibrated to the
            budget by itself; the guarantee is the composition of all.
        look: Hold-out metrics that are paid for and published.
        sealed: Whether the run may tell nobody that it failed, and why.
        holdout: Share of the records kept from the learners, for the operator's evaluation.
        on_invalid: What a run does with records that do not fit.
        accept_assumptions: Names of the assumptions a conditional claim may rest on.
        registry: Where a learner's bounds are looked up by name; the default one if None.
        reproduce: Price a refuted or conditional claim as printed; the guarantee is then none.

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
    if len({*names, RELEASE}) < len(names) + 1:
        raise SpecError(
            f"releases need different names, none of them {RELEASE!r}, got {', '.join(names)}"
        )
    if separate < 1 or len(releases) % separate:
        raise SpecError(f"{len(releases)} releases cannot form {separate} equal groups")
    groups = [
        releases[start : start + len(releases) // separate]
        for start in range(0, len(releases), len(releases) // separate)
    ]
    bounds = Bounds(part_domain(domain, adjacency, holdout), adjacency, registry, reproduce)
    drawn, bounded = _bounded(groups, budget, bounds, coins)
    kind = _kind(releases, look)
    over_coins = failure_over_coins(
        ask for scheduled in itertools.chain(*bounded) for ask in scheduled.asks.values()
    )
    _check_over_coins(over_coins, budget.delta, coins, drawn)
    delta = budget.delta - over_coins
    accountant = AutoAccountant(adjacency) if accountant is None else accountant
    if accountant.adjacency != adjacency:
        raise SpecError(
            f"the accountant is about {accountant.adjacency}, the run about {adjacency}"
        )
    goal = accountant if budget.rho is None else ZcdpAccountant(adjacency)
    scheduled_releases: list[Scheduled] = []
    looks: list[Ask] = []
    for group, given in zip(bounded, groups, strict=True):
        paid = _look(look, group, domain, adjacency, holdout)
        scheduled_releases += _calibrated(group, given, paid, goal, budget.epsilon, delta)
        looks += paid
    placed = [ask for scheduled in scheduled_releases for ask in scheduled.asks.values()] + looks
    composed = compose(placed, accountant)
    assumptions = () if reproduce else _assumptions(releases, placed, {*accept_assumptions}, sealed)
    guarantee = Guarantee(
        epsilon=composed.epsilon(delta).upper,
        delta=budget.delta,
        adjacency=adjacency,
        release=kind,
        status=Status.CONDITIONAL if assumptions else Status.PROVED,
        assumptions=assumptions,
        premises=(*_premises(domain, on_invalid), *_questions(kind)),
        sampler="exact" if all(a.mechanism.arithmetic == "exact" for a in placed) else "real",
        statistic=_statistic(placed),
        accountant=composed.explain(delta) + _target(budget),
        sources=_sources(placed, over_coins),
    )
    if reproduce:
        guarantee = guarantee.void(_printed(placed))
    return Plan(
        schedule=Schedule(
            domain=domain,
            adjacency=adjacency,
            releases=tuple(scheduled_releases),
            holdout=holdout,
            on_invalid=on_invalid,
            sealed=sealed,
            look=tuple(looks),
        ),
        budget=budget,
        guarantee=guarantee,
        coins=None if over_coins else drawn or coins or PublicCoins.draw(),
    )


def _bounded(
    groups: Sequence[Sequence[Release]],
    budget: PrivacyBudget,
    bounds: Bounds,
    coins: PublicCoins | None,
) -> tuple[PublicCoins | None, list[list[Scheduled]]]:
    """Uncalibrated releases by group, and the coins if anything had to read them."""
    mu = budget.mu

    def evaluate(at: PublicCoins) -> list[list[Scheduled]]:
        found = []
        for group in groups:
            total = math.fsum(release.share for release in group)
            hints = [None if mu is None else mu * math.sqrt(r.share / total) for r in group]
            pairs = zip(group, hints, strict=True)
            found.append([bounds.release(release, hint, at) for release, hint in pairs])
        return found

    try:
        return None, evaluate(_WITHHELD)
    except CoinsWithheldError:
        drawn = coins or PublicCoins.draw()
        return drawn, evaluate(drawn)


def _check_over_coins(
    gamma: float, delta: float, pinned: PublicCoins | None, drawn: PublicCoins | None
) -> None:
    """Refuse pinned or read coins where a bound holds with a probability over them."""
    if not gamma:
        return
    if pinned is not None:
        raise SpecError("a bound holds with a probability over the public coins: do not pin them")
    if drawn is not None:
        raise SpecError("a bound that is a probability over the public coins may not read them")
    if gamma >= delta:
        raise NoClaimError(f"the bounds' failure probability {gamma!r} uses up delta={delta!r}")


def _look(
    look: PrivateLook | None,
    group: Sequence[Scheduled],
    domain: Domain,
    adjacency: Adjacency,
    holdout: float,
) -> tuple[Ask, ...]:
    """What is asked of the hold-out about a group."""
    if look is None:
        return ()
    return look.asks(tuple(scheduled.name for scheduled in group), domain, adjacency, holdout)


def _calibrated(
    group: Sequence[Scheduled],
    given: Sequence[Release],
    paid: tuple[Ask, ...],
    accountant: Accountant,
    epsilon: float,
    delta: float,
) -> list[Scheduled]:
    """The group with noise that meets the budget together with its private look."""
    asks = [
        attrs.evolve(ask, share=ask.share * release.share)
        for scheduled, release in zip(group, given, strict=True)
        for ask in scheduled.asks.values()
    ]
    placed = iter(calibrate([*asks, *paid], accountant, epsilon, delta))
    return [
        attrs.evolve(scheduled, asks={name: next(placed) for name in scheduled.asks})
        for scheduled in group
    ]


def _assumptions(
    releases: Sequence[Release], asks: Sequence[Ask], accepted: set[str], sealed: bool
) -> tuple[Assumption, ...]:
    """What the claim rests on, all of it accepted by name.

    Raises:
        NoClaimError: an assumption is not accepted, or the run is sealed and may fail.
        ParameterError: something is accepted that nothing needs.
    """
    needed = {
        name: Assumption(name, text)
        for ask in asks
        if isinstance(ask.sensitivity.validity, Conditional)
        for name, text in ask.sensitivity.validity.assumptions
    }
    if not all(release.learner.total for release in releases):
        if sealed:
            raise NoClaimError("a sealed run refuses a learner that is not total: it may fail")
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


def _kind(releases: Sequence[Release], look: PrivateLook | None) -> ReleaseKind:
    """What is published.

    Raises:
        SpecError: some functions are asked and others are not, or a paid look needs a function.
    """
    functions = [release for release in releases if isinstance(release.learner, FunctionLearner)]
    at = [release.predictions_at for release in releases]
    if not functions:
        if any(at):
            raise SpecError("predictions_at is for functions: this release publishes parameters")
        return ReleaseKind.PARAMETERS
    if any(release.predictions_at for release in releases if release not in functions):
        raise SpecError("predictions_at is for functions: parameters predict anywhere")
    asked = all(release.predictions_at for release in functions)
    if any(at) and not asked:
        raise SpecError("functions with and without predictions_at need runs of their own")
    if look is not None:
        raise SpecError(
            "a private look evaluates published models, and a function release publishes answers "
            "only; the operator's own evaluation works"
        )
    if len(functions) == len(releases):
        return ReleaseKind.PREDICTIONS if asked else ReleaseKind.FUNCTION
    if not asked:
        raise SpecError(
            "a function beside parameters needs predictions_at: its oracle ends with the run"
        )
    return ReleaseKind.PARAMETERS_AND_PREDICTIONS


def _printed(asks: Sequence[Ask]) -> str:
    """Why a reproduction is not private.

    Raises:
        SpecError: nothing in it is refuted or conditional.
    """
    reasons = []
    for ask in asks:
        validity = ask.sensitivity.validity
        if isinstance(validity, Refuted):
            reasons.append(f"refuted: {validity.reason}")
        elif isinstance(validity, Conditional):
            reasons += [f"rests on {name}: {text}" for name, text in validity.assumptions]
    if not reasons:
        raise SpecError("nothing here is refuted or conditional: run it instead")
    return "a reproduction as printed; " + "; ".join(dict.fromkeys(reasons))


def _target(budget: PrivacyBudget) -> str:
    return "" if budget.rho is None else f"; calibrated to {budget.rho!r}-zCDP"


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


def _questions(kind: ReleaseKind) -> tuple[str, ...]:
    """Where answers are published, who may choose the questions."""
    if kind is ReleaseKind.PARAMETERS:
        return ()
    return ("questions are chosen without the records, though maybe from earlier answers",)


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
