"""The default accountant: every valid method of the core, the tightest upper end quoted."""

from collections.abc import Mapping

import attrs

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.methods.basic import BasicAccountant
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.accounting.methods.homogeneous import HomogeneousAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant, ZcdpAccountant
from dpcore.errors import ContractError, NoClaimError, need
from dpcore.event import Event
from dpcore.interval import Interval

_EXACT, _NUMERICAL, _ADDED, _RENYI = "gdp", "pld", "basic", "renyi"
_FEW = 16  # kinds of events whose own curves are inverted one by one


def all_methods(adjacency: Adjacency) -> dict[str, Accountant]:
    """Make an empty accountant of each of the core's methods, by name, the cheap ones first."""
    return {
        _EXACT: GdpAccountant(adjacency),
        "basic": BasicAccountant(adjacency),
        "homogeneous": HomogeneousAccountant(adjacency),
        "zcdp": ZcdpAccountant(adjacency),
        "renyi": RenyiAccountant(adjacency),
        _NUMERICAL: PldAccountant(adjacency),
    }


@attrs.frozen
class AutoAccountant(Accountant):
    """Composes with every method that supports all events, and quotes the least upper end.

    Where all events are Gaussian the exact method is asked by itself, and of one event its own
    curve is asked, which numerical composition would only round. Otherwise the quick methods and
    numerical composition are; the others where they can matter: numerical composition refuses or is
    wide, or an event is known by a claim that its curve does not say all of. If one method's upper
    end lies below another's certified lower end, one of them is wrong: that is an error naming
    both, never the smaller number.
    """

    adjacency: Adjacency
    methods: Mapping[str, Accountant] = attrs.field(
        default=attrs.Factory(lambda self: all_methods(self.adjacency), takes_self=True)
    )
    applications: int = 0

    def compose(self, event: Event, count: int = 1) -> "AutoAccountant":
        """Compose in every method; a method that lacks support is dropped."""
        self.accept(event, count)
        methods: dict[str, Accountant] = {}
        applied = count * sum(times for _, times in event.parts())
        for name, method in self.methods.items():
            try:
                # All parts or none: a method that does not support one of them is dropped.
                parts = ((part, times * count) for part, times in event.parts())
                methods[name] = method.compose_all(parts)
            except UnsupportedEventError:
                continue
        return attrs.evolve(self, methods=methods, applications=self.applications + applied)

    def intervals(self, delta: float) -> tuple[dict[str, Interval], dict[str, str]]:
        """Return each method's interval, and for methods without one the reason."""
        ends: dict[str, Interval] = {}
        refusals: dict[str, str] = {}
        for name, method in self.methods.items():
            try:
                ends[name] = method.epsilon(delta)
            except NoClaimError as refusal:
                refusals[name] = str(refusal)
        return ends, refusals

    def _ends(self, delta: float) -> dict[str, Interval]:
        """Return the intervals that matter.

        Raises:
            NoClaimError: no method has one.
        """
        # Nothing is tighter than the exact curve, so that nothing else is asked.
        if _EXACT in self.methods and 0 < delta < 1:
            return {_EXACT: self.methods[_EXACT].epsilon(delta)}
        if self.applications == 1:
            # Of one event its own curve is inverted; numerical composition would only add a grid.
            closed_forms = self._select(*(name for name in self.methods if name != _NUMERICAL))
            ends, _ = closed_forms.intervals(delta)
            if ends:
                return ends
        # The slow methods come last, since the numerical answer says whether they can win.
        quick_names = [name for name in self.methods if name not in (_ADDED, _RENYI)]
        ends, refusals = self._select(*quick_names).intervals(delta)
        slow = self._select(*self._slow_methods(delta, ends.get(_NUMERICAL)))
        slow_ends, slow_refusals = slow.intervals(delta)
        ends |= slow_ends
        refusals |= slow_refusals
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        need(ends, NoClaimError, "no accountant can state an epsilon: " + reasons)
        return ends

    def _select(self, *names: str) -> "AutoAccountant":
        """Return the same accountant with these methods only."""
        return attrs.evolve(
            self, methods={name: self.methods[name] for name in names if name in self.methods}
        )

    def _slow_methods(self, delta: float, numerical: Interval | None) -> tuple[str, ...]:
        """Return the slow methods that may improve on the numerical one's answer.

        Numerical composition of all curves is as tight as its grid: adding up epsilons uses less of
        the same curves, and where one pair attains them, so do Rényi divergences.
        """
        method = self.methods.get(_NUMERICAL)
        if numerical is None or not isinstance(method, PldAccountant):
            return _ADDED, _RENYI
        from dpcore.claims.accounting.methods.pld_search import wanted_width

        is_attained = all(event.curve.attained for event in method.spent)
        is_narrow = not method.below or numerical.width <= 2 * wanted_width(
            method.width, numerical.upper
        )
        if is_attained and is_narrow:
            return ()
        return (_ADDED, _RENYI) if len(method.spent) <= _FEW else (_RENYI,)

    def epsilon(self, delta: float) -> Interval:
        """Return the intersection of all methods' intervals.

        Raises:
            ContractError: two methods contradict each other.
            NoClaimError: no method can state an epsilon.
        """
        return intersection(self._ends(delta), delta)

    def explain(self, delta: float) -> str:
        """Name in one clause the method that won, and the upper ends of those it beat."""
        ends = self._ends(delta)
        order = sorted(ends, key=lambda name: ends[name].upper)
        runners_up = ", ".join(f"{name} {ends[name].upper:.6g}" for name in order[1:])
        winner = self.methods[order[0]].explain(delta)
        return f"{winner}; tightest of the valid methods" + (
            f" ({runners_up})" if runners_up else ""
        )


def intersection(ends: Mapping[str, Interval], delta: float) -> Interval:
    """Intersect the intervals of all methods.

    Raises:
        ContractError: one method's upper end lies below another's lower end.
    """
    highest = max(ends, key=lambda name: ends[name].lower)
    tightest = min(ends, key=lambda name: ends[name].upper)
    # A certified lower end above a claimed upper end proves a defect: no number is safe to quote.
    if ends[tightest].upper < ends[highest].lower:
        raise ContractError(
            f"accountants contradict each other at delta={delta!r}: {tightest} claims epsilon <= "
            f"{ends[tightest].upper!r}, {highest} certifies >= {ends[highest].lower!r}"
        )
    return Interval(ends[highest].lower, ends[tightest].upper)
