"""Filters: budgets that stay valid when later events are chosen from earlier answers.

An accountant adds up events that are fixed before any of them happens. A filter is asked before
each event and refuses what would exceed its budget; whatever is chosen in between, all that it
let through together is (epsilon, delta)-DP.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Self

import attrs
import numpy as np

from dpcore.accountant import UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.checks import fraction, is_integer, need_field, positive, probability
from dpcore.claims.accounting.conversions import pure_to_gdp, renyi_to_epsilon
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.events.gaussian import gaussian_epsilon, gaussian_mu
from dpcore.errors import DpcoreError, NoClaimError, need, need_value
from dpcore.event import Event, label_of
from dpcore.ledger import dyadic as exact
from dpcore.ledger.dyadic import Dyadic, dyadic
from dpcore.shown import in_digits

_FORGIVEN = Fraction(1, 2**48)  # relative: what the parts of a budget were rounded up by


class BudgetExceededError(DpcoreError):
    """A filter refuses an event: it would exceed the budget. Nothing is spent."""

    exit_code: ClassVar[int] = 4


class Filter(ABC):
    """A budget for events chosen adaptively. Immutable.

    `adjacency` is what the guarantee is about: an event is accepted when its own claim covers it.
    `sums` names the fields that hold what was let through; the first by itself decides what is
    left.
    """

    sums: ClassVar[tuple[str, ...]]
    adjacency: Adjacency

    @abstractmethod
    def spend(self, event: Event, count: int = 1) -> Self:
        """Return a new filter that has also let through `count` applications of `event`.

        Raises:
            BudgetExceededError: the event does not fit; nothing is spent.
            AdjacencyError: the event's claim does not cover the filter's adjacency.
            UnsupportedEventError: the event lacks what this filter adds up.
            ValueError: `count` is not an integer >= 1.
        """

    def accept(self, event: Event, count: int) -> None:
        """Check what every filter checks."""
        # True is an int in Python, but no count.
        need(is_integer(count), ValueError, f"count must be an integer >= 1, got count={count!r}")
        self.adjacency.require_covered_by(event.adjacency, label_of(event))


@functools.lru_cache(maxsize=256)
def within(budget: float) -> Dyadic:
    """Return the most that events may add up to, each of which may be rounded up itself."""
    return dyadic(Fraction(budget) * (1 + _FORGIVEN))


def _sum(spent: Dyadic, count: int, cost: float) -> Dyadic | None:
    """Return the exact sum; None where an event costs infinitely much."""
    return spent + dyadic(cost) * count if math.isfinite(cost) else None


def order_for(epsilon: float, delta: float) -> float:
    """Return the Rényi order at which an (epsilon, delta) budget admits the largest zCDP rho.

    It maximises B(alpha)/alpha, B as in `RenyiFilter`, on a geometric net of alpha - 1.
    """
    # A filter is sound at every order. The net decides only how much its budget admits.
    orders = 1 + np.geomspace(1e-4, 1e8, 2000)
    offsets = np.array([_offset(float(order), delta) for order in orders])
    return float(orders[int(np.argmax((epsilon - offsets) / orders))])


def _offset(order: float, delta: float) -> float:
    """Return what the conversion adds to the divergence at one order, rounded up."""
    order_excess = order - 1
    terms = (math.log(order_excess / order), (math.log(delta) + math.log(order)) / order_excess)
    # A logarithm errs by an ulp of itself: 1e-13 of the terms is far above that.
    return terms[0] - terms[1] + 1e-13 * (1 + abs(terms[0]) + abs(terms[1]))


@attrs.frozen(kw_only=True)
class RenyiFilter(Filter):
    r"""Divergences at one order alpha add up to at most

    .. math:: B = \epsilon - \log\frac{\alpha-1}{\alpha} + \frac{\log\delta+\log\alpha}{\alpha-1}.

    Covers every event with Rényi divergences, so zCDP and pure ones too, with events and their
    parameters chosen adaptively. The order is fixed at the start.

    Args:
        adjacency: What the guarantee is about.
        epsilon: Budget in nats, > 0.
        delta: Budget, in (0, 1).
        order: alpha > 1; by default the one that admits the most Gaussian releases.

    Source: Feldman & Zrnic (2021), arXiv:2008.11193 (the Rényi filter at one order), with
    the conversion of Canonne, Kamath & Steinke (2020), Proposition 12.
    """

    sums: ClassVar[tuple[str, ...]] = ("spent",)
    adjacency: Adjacency
    epsilon: float = attrs.field(validator=positive)
    delta: float = attrs.field(validator=fraction)
    order: float = attrs.field(
        default=attrs.Factory(lambda self: order_for(self.epsilon, self.delta), takes_self=True)
    )
    spent: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)

    def __attrs_post_init__(self) -> None:
        need_field(
            math.isfinite(self.order) and self.order > 1, self, "order", "a finite order > 1"
        )
        need(
            self.budget > 0,
            NoClaimError,
            f"a RenyiFilter of order {self.order!r} has no budget at epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}",
        )

    @property
    def budget(self) -> float:
        """B above, in nats, rounded down."""
        return self.epsilon - _offset(self.order, self.delta)

    def left(self) -> float:
        """Return how much of the budget is unspent, as a divergence at the order; at least 0."""
        return max(0.0, float(dyadic(self.budget) - self.spent))

    def spend(self, event: Event, count: int = 1) -> RenyiFilter:
        """Add count times the divergence at the order."""
        self.accept(event, count)
        divergence = need_value(
            event.claims.renyi,
            UnsupportedEventError,
            f"{label_of(event)} has no Rényi divergences",
        )(np.array([self.order]))
        total = _sum(self.spent, count, float(divergence[0]))
        # The sum is exact, so that the order of events decides nothing.
        if total is None or total > dyadic(self.budget):
            requirement = math.inf if total is None else exact.rounded_up(total)
            raise BudgetExceededError(
                f"{count} x {label_of(event)} needs a divergence of "
                f"{in_digits(requirement, direction=1)} at order {self.order!r}, the budget is "
                f"{in_digits(self.budget, direction=-1)}"
            )
        return attrs.evolve(self, spent=total)

    def epsilon_spent(self) -> float:
        """Return the epsilon that was let through so far, at the budget's delta.

        Only a report: a valid guarantee before the filter's end is the budget.
        """
        if self.spent.units == 0:
            return 0.0
        spent = exact.rounded_up(self.spent)
        return renyi_to_epsilon(np.array([self.order]), np.array([spent]), self.delta)


@attrs.frozen(kw_only=True)
class GaussianFilter(Filter):
    r"""The mu^2 of Gaussian-DP releases add up to at most that of the budget: nothing is lost.

    The sum is the accountant's own, so that a plan which was calibrated to the whole budget fits
    it to the last bit. Covers exact Gaussians, and pure events by the least mu that dominates them,
    with events and their parameters chosen adaptively.

    Args:
        adjacency: What the guarantee is about.
        epsilon: Budget in nats, > 0.
        delta: Budget, in (0, 1).
        mu_squared, additions: What was let through, as `GdpAccountant` keeps it.

    Source: Smith & Thakurta (2022), arXiv:2210.17520 (Gaussian DP has a filter without loss).
    """

    sums: ClassVar[tuple[str, ...]] = ("mu_squared", "additions")
    adjacency: Adjacency
    epsilon: float = attrs.field(validator=positive)
    delta: float = attrs.field(validator=fraction)
    mu_squared: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)
    additions: int = 0

    def spend(self, event: Event, count: int = 1) -> GaussianFilter:
        """Return a new filter that has also let through `count` times the event's mu^2."""
        self.accept(event, count)
        # A pure event is charged as the least Gaussian that dominates it.
        claims = event.claims
        if (mu := claims.mu) is None:
            refusal = f"{label_of(event)} is neither Gaussian nor known by a pure epsilon"
            mu = pure_to_gdp(need_value(claims.pure, UnsupportedEventError, refusal))
        successor = GaussianFilter(
            adjacency=self.adjacency,
            epsilon=self.epsilon,
            delta=self.delta,
            mu_squared=self.mu_squared + Dyadic.square(mu) * count,
            additions=self.additions + 1,
        )
        # Most events fit by far; then the curve, which is slow to invert, is not asked.
        if successor.mu_squared <= _ample_square(self.epsilon, self.delta):
            return successor
        # The accountant's own upper end decides: the very number that a plan was calibrated to.
        epsilon = successor.epsilon_spent()
        need(
            epsilon <= self.epsilon,
            BudgetExceededError,
            f"{count} x {label_of(event)} needs epsilon={in_digits(epsilon, direction=1)} in all "
            f"at delta={self.delta!r}, the budget is {self.epsilon!r}",
        )
        return successor

    def start(self) -> GaussianFilter:
        """Return the same budget with nothing spent."""
        return attrs.evolve(self, mu_squared=Dyadic(0), additions=0)

    def mu_left(self) -> float:
        """Find about the largest mu of one more release, rounded down."""
        budget_mu = gaussian_mu(self.epsilon, self.delta)
        # 1e-12 is far above the rounding of the inversion and of the square.
        return math.sqrt(
            max(0.0, budget_mu * budget_mu * (1 - 1e-12) - exact.rounded_up(self.mu_squared))
        )

    def epsilon_spent(self) -> float:
        """Return the epsilon that was let through so far, at the budget's delta.

        Only a report: a valid guarantee before the filter's end is the budget.
        """
        accountant = GdpAccountant(self.adjacency, self.mu_squared.fraction(), self.additions)
        return accountant.epsilon(self.delta).upper


@functools.cache
def _ample_square(epsilon: float, delta: float) -> Dyadic:
    """Return a mu^2 below the budget's by far more than rounding: up to it no inversion is
    needed.
    """
    mu = gaussian_mu(epsilon, delta) * (1 - 1e-5)
    is_within = mu > 0 and gaussian_epsilon(delta, mu) <= epsilon
    # -1 lies below every sum: then each event is decided by the inversion.
    return dyadic(mu * mu) if is_within else Dyadic(-1)


@attrs.frozen(kw_only=True)
class BasicFilter(Filter):
    """Epsilons and deltas add up to at most the budget.

    Covers events that are known by an (epsilon, delta) claim: pure, approximate and what has a pure
    epsilon. Valid when they and their parameters are chosen adaptively. Sums are exact. What
    it keeps is the budget to a relative 2^-48: so far may equal parts of it, each of them rounded,
    exceed it together.

    Source: Rogers, Roth, Ullman & Vadhan (2016), arXiv:1605.08294 (basic composition as a filter).
    """

    sums: ClassVar[tuple[str, ...]] = ("spent_epsilon", "spent_delta")
    adjacency: Adjacency
    epsilon: float = attrs.field(validator=positive)
    delta: float = attrs.field(default=0.0, validator=probability)
    spent_epsilon: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)
    spent_delta: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)

    def spend(self, event: Event, count: int = 1) -> BasicFilter:
        """Add count times the claim."""
        self.accept(event, count)
        claim = need_value(
            event.claims.approximate,
            UnsupportedEventError,
            f"{label_of(event)} has no pure epsilon, nor one (epsilon, delta) claim of its own",
        )
        epsilon = _sum(self.spent_epsilon, count, claim[0])
        delta = _sum(self.spent_delta, count, claim[1])
        # Two budgets, and an event must fit both; otherwise neither is touched.
        limits = [within(budget) for budget in (self.epsilon, self.delta)]
        if epsilon is None or delta is None or epsilon > limits[0] or delta > limits[1]:
            requirements = [
                in_digits(math.inf if total is None else exact.rounded_up(total), direction=1)
                for total in (epsilon, delta)
            ]
            raise BudgetExceededError(
                f"{count} x {label_of(event)} needs ({', '.join(requirements)}) in all, the budget "
                f"is ({self.epsilon!r}, {self.delta!r})"
            )
        return attrs.evolve(self, spent_epsilon=epsilon, spent_delta=delta)
