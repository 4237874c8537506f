"""What an accountant promises, checked on events it may meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, pairwise

from dpcore import REPLACE_LABEL, REPLACE_ONE, Accountant, Event
from dpcore.accountant import UnsupportedEventError
from dpcore.claims.accounting.conversions import event_epsilon
from dpcore.claims.accounting.methods.basic import BasicAccountant
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_epsilon
from dpcore.errors import AdjacencyError, NoClaimError
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    fail_if,
    judge_all,
    raises,
)

COUNTING = Law("accountant.counting", "Composing count times equals composing one at a time.")
ORDER = Law("accountant.order-irrelevant", "The order of events does not matter.")
NOISE = Law("accountant.noise-never-costs", "More noise never costs more epsilon.")
GROWS = Law("accountant.grows", "One event more never costs less, and a smaller delta neither.")
REFUSES = Law(
    "accountant.refusal-changes-nothing",
    "An event of another adjacency is refused, and a refused event changes nothing.",
)
TRUTH = Law(
    "accountant.never-below-truth",
    "The upper end is never below the least epsilon that is certain: of one event its own curve, "
    "of Gaussians their exact composition.",
)
CONSISTENT = Law(
    "accountant.consistent", "No method's upper end lies below another's certified lower end."
)

LAWS = (COUNTING, ORDER, NOISE, GROWS, REFUSES, TRUTH, CONSISTENT)

_DELTAS = (1e-2, 1e-5, 1e-9)
_MIDDLE = _DELTAS[1:2]
_ROOM = 1e-9  # relative, for sums taken in another order


def accountant_verdicts(
    make: type[Accountant], events: Sequence[Sequence[Event]] = ()
) -> list[Verdict]:
    """Return all laws of one accountant.

    Args:
        make: Called with the adjacency, as a spec does.
        events: Ladders of events with ever more noise, for replace-one; a ladder of Gaussians is
            always tried.
    """
    # Every accountant must support Gaussians, so that at least one ladder always applies.
    ladders: list[Sequence[Event]] = [
        [GaussianEvent(mu=mu, adjacency=REPLACE_ONE) for mu in (2.0, 1.0, 0.3)],
        *events,
    ]
    checks: dict[Law, Callable[[_Ladder], str]] = {
        COUNTING: _counting,
        ORDER: _order,
        NOISE: _noise,
        GROWS: _grows,
        REFUSES: _refuses,
        TRUTH: _truth,
        CONSISTENT: _consistent,
    }
    verdicts: list[Verdict] = []
    for ladder in ladders:
        subject = f"{make.__name__}, {type(ladder[0]).__name__}"
        # One trial for all laws: they ask for the same compositions, which are the slow part.
        verdicts += judge_all(checks, subject, _Ladder(make, ladder))
    return verdicts


class _Ladder:
    """An accountant with events of ever more noise."""

    def __init__(self, make: type[Accountant], events: Sequence[Event]) -> None:
        self.make, self.events = make, events
        self._upper_ends: dict[tuple[int, int, float], float] = {}

    @property
    def deltas(self) -> Sequence[float]:
        """Where compositions are compared: several, or one if some event has no short name.

        Where an event is neither a Gaussian nor known by an (epsilon, delta), one composition
        searches its curve many times over, and laws compare dozens of compositions.
        """
        closed_forms = (
            event.claims.mu is not None or event.claims.approximate is not None
            for event in self.events
        )
        return _DELTAS if all(closed_forms) else _MIDDLE

    @cached_property
    def empty(self) -> Accountant:
        """The accountant without events, one for all laws: composing leaves it as it is."""
        return self.make(REPLACE_ONE)  # type: ignore[call-arg]  # the adjacency

    def after(self, *charges: tuple[Event, int]) -> Accountant:
        """Return the accountant after it composed these events, each with its count.

        Raises:
            NotApplicableError: the accountant does not support them.
        """
        accountant = self.empty
        try:
            for event, count in charges:
                accountant = accountant.compose(event, count)
        except UnsupportedEventError as reason:
            raise NotApplicableError(str(reason)) from None
        return accountant

    def costs(
        self, event: Event, count: int, deltas: Sequence[float] | None = None
    ) -> dict[float, float]:
        """Upper ends after one of the events, so many times; several laws ask for the same.

        Raises:
            NotApplicableError: the accountant does not support it.
        """
        levels = self.deltas if deltas is None else deltas
        # Equal events share an index, and so a cost that was computed before.
        key = self.events.index(event), count
        if new_levels := [delta for delta in levels if (*key, delta) not in self._upper_ends]:
            upper_ends = self.uppers(self.after((event, count)), new_levels)
            self._upper_ends.update({(*key, delta): upper for delta, upper in upper_ends.items()})
        return {delta: self._upper_ends[*key, delta] for delta in levels}

    def uppers(
        self, accountant: Accountant, deltas: Sequence[float] | None = None
    ) -> dict[float, float]:
        """Upper ends by delta, at `deltas` of its own if None; inf where nothing can be said."""
        upper_ends = {}
        for delta in self.deltas if deltas is None else deltas:
            try:
                upper_ends[delta] = accountant.epsilon(delta).upper
            # Infinity is the honest upper end where nothing is claimed: it can never be too small.
            except NoClaimError:
                upper_ends[delta] = math.inf
        return upper_ends


def _require_equal(
    first_ends: Mapping[float, float], second_ends: Mapping[float, float], comparison: str
) -> None:
    for delta, first in first_ends.items():
        second = second_ends[delta]
        # Two infinities are equal; the first test keeps their difference, nan, out of the second.
        fail_if(
            first != second and not abs(first - second) <= _ROOM * max(1.0, abs(first)),
            f"at delta={delta:g}: {comparison}: {first!r} and {second!r}",
        )


def _require_at_least(
    upper_ends: Mapping[float, float], lower_bounds: Mapping[float, float], violation: str
) -> None:
    for delta, upper in upper_ends.items():
        lower = lower_bounds[delta]
        # Strict beyond rounding only: an upper end that is too low understates the privacy loss.
        fail_if(
            upper < lower * (1 - _ROOM), f"at delta={delta:g}: {violation}: {upper!r} < {lower!r}"
        )


def _counting(ladder: _Ladder) -> str:
    event = ladder.events[1]
    counted = ladder.uppers(ladder.after((event, 7)))
    _require_equal(
        counted, ladder.uppers(ladder.after(*[(event, 1)] * 7)), "7 times, and 7 times once"
    )
    _require_equal(
        ladder.uppers(ladder.after((event, 7), (event, 0))), counted, "a count of 0 and without it"
    )
    return f"epsilon({_MIDDLE[0]:g})={counted[_MIDDLE[0]]:.4g}"


def _order(ladder: _Ladder) -> str:
    charges = [(event, count) for count, event in enumerate(ladder.events, start=1)]
    forward, backward = ladder.after(*charges), ladder.after(*charges[::-1])
    _require_equal(ladder.uppers(forward), ladder.uppers(backward), "forwards and backwards")
    return ""


def _noise(ladder: _Ladder) -> str:
    # Events are sorted from little noise to much, so that costs may only fall along the ladder.
    for count in (1, 20):
        costs = [ladder.costs(event, count) for event in ladder.events]
        for quieter_costs, noisier_costs in pairwise(costs):
            _require_at_least(quieter_costs, noisier_costs, "the noisier event costs more")
    return ""


def _grows(ladder: _Ladder) -> str:
    event = ladder.events[1]
    costs = [ladder.costs(event, count, _DELTAS) for count in (1, 2, 10)]
    for fewer_costs, more_costs in pairwise(costs):
        _require_at_least(more_costs, fewer_costs, "more events cost less")
    for larger, smaller in chain.from_iterable(pairwise(cost.values()) for cost in costs):
        fail_if(
            smaller < larger * (1 - _ROOM), f"a smaller delta costs less: {smaller!r} < {larger!r}"
        )
    return ""


def _refuses(ladder: _Ladder) -> str:
    event = ladder.events[1]
    accountant = ladder.after((event, 2))
    before = ladder.uppers(accountant)
    # A guarantee about labels by itself says nothing of a replaced record: to add them would be
    # wrong.
    foreign = GaussianEvent(mu=1.0, adjacency=REPLACE_LABEL)
    try:
        accountant.compose(foreign)
    except AdjacencyError:
        pass
    except UnsupportedEventError:
        raise NotApplicableError("it does not support the Gaussian event of the test") from None
    else:
        raise BrokenLawError("an event that only protects labels was accepted for replace-one")
    for count in (-1, 1.5):
        refused = raises(ValueError, accountant.compose, event, count)
        fail_if(not refused, f"count={count!r} was accepted")
    # A refusal that changed the state would charge, or free, budget without a release.
    _require_equal(before, ladder.uppers(accountant), "before and after a refusal")
    return ""


def _truth(ladder: _Ladder) -> str:
    for event in ladder.events:
        # The event's certified lower end: whatever quotes less than it is certainly wrong.
        lower_ends = {delta: _lower(event, delta) for delta in _DELTAS}
        single_costs = ladder.costs(event, 1, _DELTAS)
        _require_at_least(single_costs, lower_ends, "one event is cheaper than its curve")
        mu = event.claims.mu
        if mu is None:
            continue
        # Gaussians compose exactly to one of mu * sqrt(count) (Dong, Roth & Su 2022).
        for count in (2, 50):
            exact = {d: gaussian_epsilon(d, mu * count**0.5, lower=True) for d in _DELTAS}
            upper = ladder.costs(event, count, _DELTAS)
            _require_at_least(upper, exact, f"{count} Gaussians are cheaper than exactly composed")
    return ""


def _lower(event: Event, delta: float) -> float:
    """Return the event's own lower end; 0 where its curve never falls to `delta`."""
    try:
        return event_epsilon(event, delta).lower
    except NoClaimError:
        return 0.0


def _consistent(ladder: _Ladder) -> str:
    compared = 0
    for number, event in enumerate(ladder.events):
        if event in ladder.events[:number]:
            continue
        interval_of = cache(ladder.after((event, 5)).epsilon)
        for method in (BasicAccountant(REPLACE_ONE), GdpAccountant(REPLACE_ONE)):
            try:
                reference = method.compose(event, 5)
            except UnsupportedEventError:
                continue
            for delta in ladder.deltas:
                try:
                    first, second = interval_of(delta), reference.epsilon(delta)
                except NoClaimError:
                    continue
                compared += 1
                name = type(method).__name__
                # Both intervals must hold the same true epsilon, so that they must overlap.
                fail_if(
                    first.upper < second.lower * (1 - _ROOM),
                    f"upper end {first.upper!r} < {second.lower!r} of {name}",
                )
                fail_if(
                    second.upper < first.lower * (1 - _ROOM),
                    f"lower end {first.lower!r} > {second.upper!r} of {name}",
                )
    return f"{compared} comparisons"
