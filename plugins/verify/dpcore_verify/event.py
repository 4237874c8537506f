"""What the checker knows of one event: a curve, and whatever makes its composition exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flint import arb, fmpq

from dpcore_verify.laws import Law

Curve = Callable[[arb], arb]
"""delta at x >= 0, as a ball."""


@dataclass(frozen=True)
class Event:
    """One application of a mechanism.

    Args:
        curve: delta(x) = sup P(E) - e^x Q(E) at x >= 0, of the larger dataset against the smaller.
        back: The other direction; None where it is the same.
        squared: mu^2, where the event is a Gaussian and nothing else.
        law: Where the event is a finite law.
        rho: Of zero-concentrated differential privacy; None where none is known.
        concentrated: Whether rho is all that is known.
        orders: Rényi divergences at orders, where they are all that is known.
        choice: epsilon_0 of a choice of bounded range.
        sampling: theta^2 and k of a Gaussian whose mu^2 is theta^2 times a chi square of k degrees.
        largest: The largest loss, where there is one.
        is_exact: Whether some pair of neighbouring outputs has this curve.
        taken: Why the event is a theorem of its own, or empty.
    """

    curve: Curve
    back: Curve | None = None
    squared: fmpq = field(default_factory=fmpq)
    law: Law | None = None
    rho: fmpq | None = None
    concentrated: bool = False
    orders: Mapping[fmpq, fmpq] = field(default_factory=dict)
    choice: fmpq | None = None
    sampling: tuple[fmpq, int] | None = None
    largest: fmpq | None = None
    is_exact: bool = False
    taken: str = ""

    def at(self, x: arb, backwards: bool = False) -> arb:
        """Return delta at any real x; below 0 by H(a) = 1 - a + a H_reverse(1/a)."""
        curve = self.back if backwards and self.back is not None else self.curve
        if not x < 0:
            return curve(x).min(arb(1))
        return (1 - x.exp() + x.exp() * self.at(-x, not backwards)).min(arb(1))
