r"""Events, and finite laws of the privacy loss on a lattice of rational losses.

A law states :math:`H(a)=q+\sum_i p_i(1-ae^{-l_i})_+` at losses :math:`l_i=o+is`, masses that are
integers times 2^-200: an upper end of a curve, or that curve where masses are exact. Laws of one
step compose by convolution.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from flint import arb, fmpq, fmpz, fmpz_poly

from dpcore_verify.balls import SCALE, mass, need, positive, spend, unscaled

_CUT = 1 << (SCALE - 80)


@dataclass(frozen=True)
class Law:
    """A law of losses.

    Args:
        step: s > 0.
        offset: o, the least loss.
        masses: p_i times 2^200, rounded up.
        infinite: q, of an infinite loss, times 2^200.
        excess: How much mass was moved to larger losses, times 2^200: a lower end allows for it.
    """

    step: fmpq
    offset: fmpq
    masses: Sequence[fmpz]
    infinite: int = 0
    excess: int = 0

    def atoms(self) -> list[tuple[fmpq, arb]]:
        """Return all losses with their masses."""
        return [(self.offset + self.step * i, unscaled(p)) for i, p in enumerate(self.masses) if p]

    def curve(self, x: arb) -> arb:
        """Return the curve at x: the definition."""
        spend(len(self.masses))
        parts = (w * positive(1 - (x - loss).exp()) for loss, w in self.atoms() if not x > loss)
        return sum(parts, unscaled(self.infinite))

    def trimmed(self) -> "Law":
        """Join ends below 2^-80: on the left to their neighbour, on the right to infinity."""
        first, last, low, high = 0, len(self.masses), 0, 0
        while first < last - 1 and low + int(self.masses[first]) < _CUT:
            low, first = low + int(self.masses[first]), first + 1
        while last > first + 1 and high + int(self.masses[last - 1]) < _CUT:
            high, last = high + int(self.masses[last - 1]), last - 1
        masses = (self.masses[first] + low, *self.masses[first + 1 : last])
        offset = self.offset + self.step * first
        return Law(self.step, offset, masses, self.infinite + high, self.excess + low + high)

    def composed(self, law: "Law") -> "Law":
        """Convolve with a law of the same step; every mass is rounded up again."""
        spend((len(self.masses) + len(law.masses)) * 2)
        product = fmpz_poly(list(self.masses)) * fmpz_poly(list(law.masses))
        masses = [-(-p >> SCALE) for p in product] or [fmpz(0)]
        ours, theirs = (int(sum(part.masses)) for part in (self, law))
        infinite = self.infinite * (theirs + law.infinite) + law.infinite * ours
        excess = 2 * (self.excess + law.excess) + len(masses)
        offset = self.offset + law.offset
        return Law(self.step, offset, masses, -(-infinite >> SCALE), excess).trimmed()

    def power(self, copies: int) -> "Law":
        """Compose with itself by repeated squaring."""
        if copies == 1:
            return self
        half = self.power(copies // 2)
        square = half.composed(half)
        return square.composed(self) if copies % 2 else square

    def on(self, step: fmpq) -> "Law":
        r"""Move every atom to multiples of another step, so that the curve only rises.

        An atom at l between a and b becomes w at a and 1 - w at b with
        :math:`we^{-a}+(1-w)e^{-b}=e^{-l}`: a chord of a convex function of :math:`e^x`.
        """
        largest = self.offset + self.step * (len(self.masses) - 1)
        low, high = (int((end / step).floor()) for end in (self.offset, largest))
        spend(high - low + 3 * len(self.masses))
        masses, width = [fmpz(0)] * (high + 2 - low), 1 - (-arb(step)).exp()
        for loss, weight in self.atoms():
            index = int((loss / step).floor())
            fraction = (1 - (-arb(loss - step * index)).exp()) / width
            masses[index - low + 1] += mass(weight * fraction)
            masses[index - low] += mass(weight * positive(1 - fraction))
        return Law(step, step * low, masses, self.infinite, 1 << SCALE).trimmed()


def of_atoms(step: fmpq, offset: fmpq, weights: Sequence[arb], infinite: arb) -> "Law":
    """Return the law of balls of masses."""
    spend(len(weights) * 2)
    masses = [fmpz(mass(w)) for w in weights]
    return Law(step, offset, masses, mass(infinite), 8 * len(masses))


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

    def delta_at(self, x: arb, backwards: bool = False) -> arb:
        """Return delta at any real x; below 0 by H(a) = 1 - a + a H_reverse(1/a)."""
        if x < 0:
            return (1 - x.exp() + x.exp() * self.delta_at(-x, not backwards)).min(arb(1))
        value = (self.back if backwards and self.back is not None else self.curve)(x)
        need(bool(value.is_finite()), "an event that has no value")
        return value.min(arb(1))
