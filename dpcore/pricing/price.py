"""Pricing: from a request to a plan with its guarantee, without opening any record."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from dpcore.accountant import Accountant
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.accounting.methods.zcdp import ZcdpAccountant
from dpcore.errors import CoinsWithheldError, NoClaimError, SpecError, below
from dpcore.plan.ask import Ask, failure_over_coins
from dpcore.plan.paid_evaluation import RELEASE
from dpcore.plan.parts import part_domain
from dpcore.plan.request import Release, Request
from dpcore.pricing.blame import at_fault, require_drawable
from dpcore.pricing.bounds_in_force import Bounds
from dpcore.pricing.calibration import calibrate
from dpcore.pricing.cost_estimate import require_room, with_queries
from dpcore.pricing.effort import require_quick
from dpcore.pricing.release_domains import seen
from dpcore.pricing.statement import publication, statement
from dpcore.randomness import PublicCoins
from dpcore.running.plan import Plan
from dpcore.running.schedule import Schedule, Scheduled

_WITHHELD = PublicCoins(None)


def price(request: Request | None = None, /, **fields: Any) -> Plan:
    """State a run's whole guarantee before any record is opened.

    Args:
        request: What is asked for.
        fields: Fields of `Request`, in its place or changing it. In its place, a single release may
            be given as `learner`, `mechanism` and `bound`.

    Raises:
        NoClaimError: a bound refuses or is refuted, an assumption is not accepted, or no noise
            meets the budget.
        SpecError: components do not fit together.
        ResourceError: the run, or pricing itself, needs more memory or work than it may use.
    """
    request = Request.of(**fields) if request is None else attrs.evolve(request, **fields)
    if request.sealed and request.on_invalid == "refuse":
        raise SpecError("a sealed run maps every record into the domain: project", "on_invalid")
    groups = _groups(request)
    part = part_domain(request.domain, request.adjacency, request.holdout)
    resources = require_room(request, part)
    read, bounded = _bounded(request, groups)
    kind = publication(itertools.chain(*bounded), request.look)
    gamma = failure_over_coins(
        ask for scheduled in itertools.chain(*bounded) for ask in scheduled.asks.values()
    )
    _check_over_coins(gamma, request, read)
    accountant = _accountant(request)
    resources = with_queries(resources, itertools.chain(*bounded), request)
    schedule = _calibrated(request, bounded, accountant, request.budget.left_beside(gamma))
    return Plan(
        schedule=schedule,
        guarantee=statement(schedule, kind, accountant, gamma),
        coins=None if gamma else read or request.coins or PublicCoins.draw(),
        resources=resources,
    )


def _groups(request: Request) -> list[Sequence[Release]]:
    """The releases, in groups that are calibrated each by itself.

    Raises:
        SpecError: two have one name, or the groups cannot be equal.
    """
    releases, separate = request.releases, request.separate
    names = [release.name for release in releases]
    if len({*names, RELEASE}) < len(names) + 1:
        wrong = next(i for i, name in enumerate(names) if name in (RELEASE, *names[:i]))
        raise SpecError(
            f"releases need different names, none of them {RELEASE!r}, got {', '.join(names)}",
            f"releases.{wrong}.name",
        )
    if separate < 1 or len(releases) % separate:
        raise SpecError(f"{len(releases)} releases cannot form {separate} equal groups")
    size = len(releases) // separate
    return [releases[start : start + size] for start in range(0, len(releases), size)]


def _bounded(
    request: Request, groups: Iterable[Sequence[Release]]
) -> tuple[PublicCoins | None, list[list[Scheduled]]]:
    """The coins if a bound had to read them, and uncalibrated releases by group."""
    mu = request.budget.mu

    def evaluate(at: PublicCoins) -> list[list[Scheduled]]:
        found: list[list[Scheduled]] = []
        number = itertools.count()
        for group in groups:
            total = math.fsum(release.share for release in group)
            hints = [None if mu is None else mu * math.sqrt(r.share / total) for r in group]
            found.append([])
            for release, hint in zip(group, hints, strict=True):
                with below("releases", next(number)):
                    own = seen(request, release)
                    bounds = Bounds(own.part, own.adjacency, request.registry, request.reproduce)
                    found[-1].append(bounds.release(release, hint, at))
        return found

    try:
        return None, evaluate(_WITHHELD)
    except CoinsWithheldError:
        drawn = request.coins or PublicCoins.draw()
        return drawn, evaluate(drawn)


def _check_over_coins(gamma: float, request: Request, read: PublicCoins | None) -> None:
    """Refuse pinned or read coins where a bound holds with a probability over them."""
    if not gamma:
        return
    if request.coins is not None:
        raise SpecError(
            "a bound holds with a probability over the public coins: do not pin them",
            "coins.public",
        )
    if read is not None:
        raise SpecError("a bound that is a probability over the public coins may not read them")
    if gamma >= request.budget.delta:
        raise NoClaimError(
            f"the bounds' failure probability {gamma!r} uses up delta={request.budget.delta!r}",
            "budget.delta",
        )


def _accountant(request: Request) -> Accountant:
    """The accountant asked for, or the core's own.

    Raises:
        SpecError: it is about another relation.
    """
    given = request.accountant
    accountant = AutoAccountant(request.adjacency) if given is None else given
    if accountant.adjacency != request.adjacency:
        raise SpecError(
            f"the accountant is about {accountant.adjacency}, the run about {request.adjacency}",
            "accountant",
        )
    return accountant


def _calibrated(
    request: Request, groups: Iterable[Sequence[Scheduled]], accountant: Accountant, delta: float
) -> Schedule:
    """Every group with noise that meets the budget together with its private look."""
    goal = accountant if request.budget.rho is None else ZcdpAccountant(request.adjacency)
    releases: list[Scheduled] = []
    looks: list[Ask] = []
    groups, number = [*groups], itertools.count()
    numbered = [
        [(n, ask) for one, n in zip(group, number, strict=False) for ask in _weighed(one)]
        for group in groups
    ]
    require_quick(request, numbered)
    for group, own in zip(groups, numbered, strict=True):
        look = _look(request, group)
        asks = [ask for _, ask in own]
        try:
            placed = iter(calibrate([*asks, *look], goal, request.budget.epsilon, delta))
        except NoClaimError as error:
            given = {n: [*one.asks.values()] for n, one in enumerate(group, start=len(releases))}
            error.steps = at_fault(request, given, look, goal)
            raise
        for scheduled in group:
            found = {name: next(placed) for name in scheduled.asks}
            require_drawable(len(releases), [*found.values()])
            releases.append(attrs.evolve(scheduled, asks=found))
        looks += look
    return Schedule(request=request, releases=tuple(releases), look=tuple(looks))


def _weighed(scheduled: Scheduled) -> list[Ask]:
    """Its asks, each with its share of everything."""
    weight = scheduled.release.share
    return [attrs.evolve(ask, share=ask.share * weight) for ask in scheduled.asks.values()]


def _look(request: Request, group: Sequence[Scheduled]) -> tuple[Ask, ...]:
    """What is asked of the hold-out about a group."""
    if request.look is None:
        return ()
    names = tuple(scheduled.name for scheduled in group if scheduled.learner.predicts)
    return request.look.asks(names, request.domain, request.adjacency, request.holdout)
