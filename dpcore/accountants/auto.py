"""The default accountant: every valid method of the core, the tightest upper end quoted."""

from collections.abc import Mapping

import attrs

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.accountants.basic import BasicAccountant
from dpcore.accountants.gdp import GdpAccountant
from dpcore.adjacency import Adjacency
from dpcore.errors import ContractError, NoClaimError
from dpcore.events.base import Event
from dpcore.interval import Interval

_METHODS: Mapping[str, type[BasicAccountant] | type[GdpAccountant]] = {
    "gdp": GdpAccountant,
    "basic": BasicAccountant,
}


def _all_methods(auto: "AutoAccountant") -> dict[str, Accountant]:
    return {name: method(auto.adjacency) for name, method in _METHODS.items()}


@attrs.frozen
class AutoAccountant(Accountant):
    """Composes with every method that supports all events, and quotes the least upper end.

    If one method's upper end lies below another's certified lower end, one of them is wrong:
    that is an error naming both, never the smaller number.
    """

    adjacency: Adjacency
    methods: Mapping[str, Accountant] = attrs.field(
        default=attrs.Factory(_all_methods, takes_self=True)
    )

    def compose(self, event: Event, count: int = 1) -> "AutoAccountant":
        """Compose in every method; a method that lacks support is dropped."""
        self.accept(event, count)
        methods: dict[str, Accountant] = {}
        for name, method in self.methods.items():
            try:
                methods[name] = method.compose(event, count)
            except UnsupportedEventError:
                continue
        return attrs.evolve(self, methods=methods)

    def _ends(self, delta: float) -> dict[str, Interval]:
        """Every method's interval, where it has one.

        Raises:
            NoClaimError: no method has one.
        """
        ends: dict[str, Interval] = {}
        refusals: list[str] = []
        for name, method in self.methods.items():
            try:
                ends[name] = method.epsilon(delta)
            except NoClaimError as refusal:
                refusals.append(f"{name}: {refusal}")
        if not ends:
            raise NoClaimError("no accountant can state an epsilon: " + "; ".join(refusals))
        return ends

    def epsilon(self, delta: float) -> Interval:
        """The intersection of all methods' intervals.

        Raises:
            ContractError: two methods contradict each other.
        """
        ends = self._ends(delta)
        highest = max(ends, key=lambda name: ends[name].lower)
        least = min(ends, key=lambda name: ends[name].upper)
        if ends[least].upper < ends[highest].lower:
            raise ContractError(
                f"accountants contradict each other at delta={delta!r}: {least} claims epsilon <= "
                f"{ends[least].upper!r}, {highest} certifies >= {ends[highest].lower!r}"
            )
        return Interval(ends[highest].lower, ends[least].upper)

    def explain(self, delta: float) -> str:
        """The winner and what it beat."""
        ends = self._ends(delta)
        order = sorted(ends, key=lambda name: ends[name].upper)
        others = ", ".join(f"{name} {ends[name].upper:.6g}" for name in order[1:])
        won = self.methods[order[0]].explain(delta)
        return f"{won}; tightest of the valid methods" + (f" ({others})" if others else "")
