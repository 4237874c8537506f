r"""Total: what a ledger promises about everything it ever lets through, and the sums that keep it.

Events arrive one list after another, each chosen from earlier answers. Every accepted history is of
one of these types:

* *pure*: every event has a pure epsilon, and they add up to at most epsilon. Along such a history
  the likelihood ratio never exceeds :math:`e^\epsilon`: it costs no delta.
* *composed*: the events pass one filter, the ledger's `notion`, at (epsilon, delta - failures).
* *alone*: the first list passes neither way but is (epsilon, delta)-DP by itself, by the core's
  accountants. Nothing may follow. It is chosen before any answer: no history is of two types.

Any list is charged as an (epsilon_0, delta_0) claim where nothing else serves it, and first of all
where the notion is `basic` (`dpcore.ledger.gaussian_cover`). An event that is known by an
(epsilon_0, delta_0) claim only is, but for a leak of probability delta_0, an epsilon_0-DP event
(Murtagh & Vadhan 2016, Lemma 3.2): it is charged as that, and delta_0 to `failures`, as is what a
bound fails with over public randomness.

Together they are (epsilon, delta)-DP. Let S be any set of complete histories, w the probability of
no leak along one, P and Q the laws without leaks. The excess :math:`\Pr[S]-e^\epsilon\Pr'[S]` is
at most :math:`\int_S w\,(dP-e^\epsilon dQ)` plus the probability of a leak. The latter is at most
`failures`. The integrand is not positive on pure histories; on the others it adds up to at most the
excess of the mechanism that stops where the composed filter would, which is delta - failures.

A charge that `dpcore.ledger.gaussian_cover` made one Gaussian represents a list that lies below it
only together with what may follow, but for its leak. Then the excess of the others, by induction
over what is left (`dpcore.ledger.marginal_cost`), is at most that of the filter's Gaussian and
the leaks along a history; those are counted among the failures, too. A tilted leak adds at most its
size to that excess, whatever happens before and after it (`dpcore.ledger.tilted_leak`), and is
counted by itself. Histories that stop being composed add nothing to it afterwards.

Two filters that both cost delta may *not* be joined like this at full delta each: which one ends up
binding depends on answers. That is why `notion` is fixed at the start.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

import attrs

from dpcore.accountant import UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.checks import one_of, positive, probability, unboxed
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.events.relation_text import (
    EventTextError,
    read_adjacency,
    read_number,
    write_adjacency,
    write_number,
)
from dpcore.errors import NoClaimError, need
from dpcore.event import Claims, Event, label_of
from dpcore.ledger import dyadic as exact
from dpcore.ledger.charge import Charge
from dpcore.ledger.dyadic import Dyadic, dyadic
from dpcore.ledger.filters import (
    BasicFilter,
    BudgetExceededError,
    Filter,
    GaussianFilter,
    RenyiFilter,
    order_for,
    within,
)
from dpcore.ledger.remaining_budget import RemainingBudget
from dpcore.ledger.tilted_leak import Tilt, slope_for

Notion = Literal["gaussian", "renyi", "basic"]
F = TypeVar("F", bound=Filter)


@attrs.frozen(kw_only=True)
class Total:
    """What all releases of a ledger may cost together.

    Args:
        epsilon: In nats, > 0.
        delta: In [0, 1); at 0 the notion is `basic`.
        adjacency: Which datasets are to be indistinguishable.
        notion: Which filter composes what is not pure: `gaussian` (exact; Gaussian and pure
            events), `renyi` (at one order; every event with Rényi divergences) or `basic` (none:
            epsilons and deltas add up, of any events).
        failures: The part of delta that is kept for failure probabilities; all of it for `basic`.
        order: Of `renyi`; by default the one that admits the most Gaussian releases.
        tilted: The part of delta that is kept for tilted leaks; of `gaussian` only.
        slope: Of those, an integer >= 1; 0 without them.
    """

    epsilon: float = attrs.field(converter=unboxed, validator=positive)
    delta: float = attrs.field(converter=unboxed, validator=probability)
    adjacency: Adjacency
    notion: Notion = attrs.field(default="gaussian", validator=one_of("gaussian", "renyi", "basic"))
    failures: float = attrs.field(validator=probability)
    order: float | None = attrs.field()
    tilted: float = attrs.field(default=0.0, validator=probability)
    slope: int = attrs.field()

    @failures.default
    def _failures(self) -> float:
        return self.delta if self.notion == "basic" else 0.0

    @order.default
    def _order(self) -> float | None:
        # None for a budget out of range, which `__attrs_post_init__` refuses in words.
        has_order = self.notion == "renyi" and 0 <= self.failures < self.delta < 1
        return order_for(self.epsilon, self.delta - self.failures) if has_order else None

    @slope.default
    def _slope(self) -> int:
        has_slope = self.tilted > 0 and self.failures + self.tilted < self.delta < 1
        return slope_for(self.epsilon, self.composed_delta) if has_slope else 0

    def __attrs_post_init__(self) -> None:
        # Each notion splits delta in its own way. A split that the proof above does not have is
        # refused before anything can be spent from it.
        need(self.delta < 1, "ledger", "a delta in [0, 1)", "delta", self.delta)
        need(
            self.notion != "basic" or self.failures == self.delta,
            "a basic ledger",
            "failures equal to delta, or left out",
            "failures",
            self.failures,
        )
        need(
            self.notion == "basic" or self.failures < self.delta,
            f"a {self.notion} ledger",
            "failures < delta (with delta = 0 it is basic)",
            "failures",
            self.failures,
        )
        need(
            (self.order is None) != (self.notion == "renyi"),
            f"a {self.notion} ledger",
            "no order",
            "order",
            self.order,
        )
        leaks = self.notion == "gaussian" and self.failures + self.tilted < self.delta
        need(
            self.tilted <= 0 or (leaks and 1 <= self.slope <= 1000),
            "a ledger with tilted leaks",
            "the notion gaussian, failures + tilted < delta and a slope from 1 on",
            "tilted",
            self.tilted,
        )
        self.start()  # a budget that no filter can have is refused here

    @property
    def composed_delta(self) -> float:
        """What is left of delta for the filter that composes, rounded down."""
        # Rounded down twice: the filter never gets what the leaks may need.
        return _subtract_down(_subtract_down(self.delta, self.failures), self.tilted)

    @property
    def tilt(self) -> Tilt | None:
        """What the ledger's tilted leaks have in common; None where it has none."""
        return _tilt(self.slope, self.epsilon, self.composed_delta) if self.tilted > 0 else None

    def start(self) -> "Spent":
        """Return the sums of a ledger from which nothing has been spent yet."""
        return Spent(
            total=self,
            pure=BasicFilter(adjacency=self.adjacency, epsilon=self.epsilon),
            composed=_FILTERS[self.notion](self),
        )

    def lowered(self, event: Event) -> tuple[Event, float]:
        """What filters add up in place of an event, and the leak, in [0, 1], that this costs.

        Events with a pure epsilon, or that the notion adds up, stay as they are, without a leak.
        """
        # Only an event that the filter cannot add up is replaced by a pure one and a leak.
        claims = event.claims
        is_native = claims.pure is not None or _NATIVE[self.notion](claims)
        claim = None if is_native else claims.approximate
        lowered = event if claim is None else PureEvent(epsilon=claim[0], adjacency=event.adjacency)
        return lowered, 0.0 if claim is None else claim[1]

    def alone(self, charge: Charge) -> bool:
        """Whether `charge` and nothing else is within the total, by the core's accountants."""
        if charge.failures > self.delta:
            return False
        # One list fixed before any answer: accountants may compose it as tightly as they can.
        accountant = AutoAccountant(self.adjacency)
        try:
            for event, count in charge.events:
                accountant = accountant.compose(event, count)
            return (
                accountant.epsilon(_subtract_down(self.delta, charge.failures)).upper
                <= self.epsilon
            )
        except NoClaimError:
            return False

    def written(self) -> dict[str, Any]:
        """Return the total as JSON-ready data, to the last bit."""
        return {
            "epsilon": write_number(self.epsilon),
            "delta": write_number(self.delta),
            "adjacency": write_adjacency(self.adjacency),
            "notion": self.notion,
            "failures": write_number(self.failures),
            "order": None if self.order is None else write_number(self.order),
            # Tilted leaks have fields only where there are some, as in ledgers older than those.
            **(
                {"tilted": write_number(self.tilted), "slope": self.slope}
                if self.tilted > 0
                else {}
            ),
        }

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Total":
        """Read the total that `written` wrote.

        Raises:
            EventTextError, KeyError, ParameterError: it is damaged.
        """
        order = body["order"]
        return cls(
            epsilon=read_number(body["epsilon"]),
            delta=read_number(body["delta"]),
            adjacency=read_adjacency(body["adjacency"]),
            notion=body["notion"],
            failures=read_number(body["failures"]),
            order=None if order is None else read_number(order),
            tilted=read_number(body["tilted"]) if "tilted" in body else 0.0,
            slope=int(body.get("slope", 0)),
        )

    def claims(self) -> dict[str, float | str]:
        """Return the promise as plain data: epsilon in nats, delta, and the adjacency's name."""
        return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": str(self.adjacency)}


_tilt = functools.lru_cache(maxsize=64)(Tilt.of)


def _gaussian(total: Total) -> GaussianFilter:
    return GaussianFilter(
        adjacency=total.adjacency, epsilon=total.epsilon, delta=total.composed_delta
    )


def _renyi(total: Total) -> RenyiFilter:
    assert total.order is not None, "checked on creation"
    return RenyiFilter(
        adjacency=total.adjacency,
        epsilon=total.epsilon,
        delta=_subtract_down(total.delta, total.failures),
        order=total.order,
    )


_FILTERS: Mapping[Notion, Callable[[Total], Filter | None]] = {
    "gaussian": _gaussian,
    "renyi": _renyi,
    "basic": lambda total: None,
}

_NATIVE: Mapping[Notion, Callable[[Claims], bool]] = {
    "gaussian": lambda claims: claims.mu is not None,
    "renyi": lambda claims: claims.renyi is not None,
    "basic": lambda claims: False,
}


def _subtract_down(amount: float, part: float) -> float:
    """amount - part, rounded down."""
    # One step towards 0 covers what a difference of two doubles may be rounded up by.
    return amount if part == 0 else math.nextafter(amount - part, 0.0)


@attrs.frozen(kw_only=True)
class Spent:
    """A total and what was let through. Immutable.

    Args:
        pure: None once the history is not pure, or exceeds epsilon that way.
        composed: None for `basic`, and once the history exceeds the filter.
        failures: Failure probabilities so far.
        charges: How many lists were let through.
        tilted: Tilted leaks so far.
    """

    total: Total
    pure: BasicFilter | None
    composed: Filter | None
    failures: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)
    charges: int = 0
    tilted: Dyadic = attrs.field(default=Dyadic(0), converter=dyadic)

    def spend(self, charge: Charge) -> "Spent":
        """Return what is spent after `charge`: all of it or nothing.

        Raises:
            BudgetExceededError: it does not fit, or is of a kind that the notion does not add up.
            AdjacencyError: an event's claim does not cover the ledger's adjacency.
        """
        # A claim about fewer neighbours than the ledger's would leave some of them unprotected.
        for event, _ in charge.events:
            self.total.adjacency.require_covered_by(event.adjacency, label_of(event))
        # Leaks are added whichever filter lets the list through: one part of delta pays for all.
        failures = self.failures + dyadic(charge.failures) if charge.failures else self.failures
        tilted = self.tilted + dyadic(charge.tilted) if charge.tilted else self.tilted
        events = []
        for raw_event, count in charge.events:
            event, failure = self.total.lowered(raw_event)
            if failure:
                failures += dyadic(failure) * count
            events.append((event, count))
        # A path must let the whole list through. One that refuses it is closed for good: the list
        # went through another way, so that its sum no longer bounds this history.
        pure, pure_refusal = _spend_all(self.pure, events)
        composed, composed_refusal = _spend_all(self.composed, events)
        # `within` forgives what the parts of delta were rounded up by, and no more.
        fits = not failures.units or failures <= within(self.total.failures)
        fits = fits and (not tilted.units or tilted <= within(self.total.tilted))
        if fits and (pure is not None or composed is not None):
            return Spent(
                total=self.total,
                pure=pure,
                composed=composed,
                failures=failures,
                charges=self.charges + 1,
                tilted=tilted,
            )
        # The first list is chosen before any answer, so that no history can reach both types.
        if self.charges == 0 and not charge.tilted and self.total.alone(charge):
            return attrs.evolve(self, pure=None, composed=None, charges=1)
        reasons = dict.fromkeys([pure_refusal, composed_refusal])
        if not any(reasons):  # both paths were closed before
            reasons = {"an earlier list was let through only, so that nothing may follow it": None}
        if not fits:
            reasons = {
                f"failure probabilities would need {exact.rounded_up(failures):.6g} of delta in "
                f"all, {self.total.failures:.6g} is kept for them": None
            }
        raise BudgetExceededError(
            f"{'; '.join(reason for reason in reasons if reason)}. Left: {self.left().describe()}"
        )

    def left(self) -> RemainingBudget:
        """Return what would still be let through."""
        mu = 0.0
        if isinstance(self.composed, GaussianFilter):
            mu = self.composed.mu_left()
        elif isinstance(self.composed, RenyiFilter):
            # The divergence of a Gaussian at order alpha is alpha mu^2 / 2: this is its largest mu.
            mu = math.sqrt(max(0.0, 2 * self.composed.left() / self.composed.order))
        epsilon = self.total.epsilon
        pure = 0.0 if self.pure is None else float(dyadic(epsilon) - self.pure.spent_epsilon)
        pure = pure if pure > 1e-12 * epsilon else 0.0  # what rounding left over
        failures = max(0.0, float(dyadic(self.total.failures) - self.failures))
        return RemainingBudget(
            epsilon=pure, mu=mu, failures=failures, delta=self.total.delta,
            takes_claims=self.composed is None and min(pure, failures) > 0,
        )  # fmt: skip

    def covered_by(self, stored: "Spent") -> bool:
        """Return whether `stored` is at least as much, but for what its numbers were rounded by."""
        return (
            _at_most(_amount(self.pure), _amount(stored.pure))
            and _at_most(_amount(self.composed), _amount(stored.composed))
            and _at_most(float(self.failures), float(stored.failures))
            and _at_most(float(self.tilted), float(stored.tilted))
            and self.charges == stored.charges
        )

    def state(self) -> dict[str, Any]:
        """Return the sums as JSON-ready data, to the last bit."""
        return {
            "pure": _write_filter(self.pure),
            "composed": _write_filter(self.composed),
            "failures": exact.write(self.failures),
            "charges": self.charges,
            **({"tilted": exact.write(self.tilted)} if self.total.tilted > 0 else {}),
        }

    def at(self, state: dict[str, Any]) -> "Spent":
        """Return the same total with the sums that `state` wrote.

        Raises:
            EventTextError: they are damaged.
        """
        # Budgets come from the first row: another row says only what was let through.
        start = self.total.start()
        try:
            return Spent(
                total=self.total,
                pure=_read_filter(start.pure, state["pure"]),
                composed=_read_filter(start.composed, state["composed"]),
                failures=exact.read(state["failures"]),
                charges=int(state["charges"]),
                tilted=exact.read(state["tilted"]) if self.total.tilted > 0 else Dyadic(0),
            )
        except (KeyError, TypeError, ValueError):
            raise EventTextError(f"sums of a {self.total.notion} ledger are needed") from None


def _write_filter(path: Filter | None) -> dict[str, Any] | None:
    if path is None:
        return None
    fields = {name: getattr(path, name) for name in path.sums}
    return {n: v if isinstance(v, int) else exact.write(v) for n, v in fields.items()}


def _read_filter(start: F | None, data: dict[str, Any] | None) -> F | None:
    if data is None:
        return None
    if start is None or data.keys() != {*start.sums}:
        raise KeyError
    sums: dict[str, Any] = {n: v if isinstance(v, int) else exact.read(v) for n, v in data.items()}
    return cast(F, attrs.evolve(cast(Any, start), **sums))


def _amount(path: Filter | None) -> float:
    """Return what a filter let through; infinite where it is closed."""
    # The first of a filter's sums by itself decides what is left of it.
    return math.inf if path is None else float(getattr(path, path.sums[0]))


def _at_most(amount: float, limit: float) -> bool:
    return amount <= limit * (1 + 1e-12)


def _spend_all(path: F | None, events: Sequence[tuple[Event, int]]) -> tuple[F | None, str]:
    """Return the filter after all events, or None and why."""
    if path is None:
        return None, ""
    try:
        for event, count in events:
            path = path.spend(event, count)
    except (BudgetExceededError, UnsupportedEventError) as refusal:
        return None, str(refusal)
    return path, ""
