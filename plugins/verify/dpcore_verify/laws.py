"""Finite laws of the privacy loss, on a lattice of rational losses, with integer masses.

A law states :math:`H(a)=q+\\sum_i p_i(1-ae^{-l_i})_+` at losses :math:`l_i=o+is`: an upper end of a
curve, or that curve where masses are exact. The composition of two laws is their convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, fmpq, fmpz, fmpz_poly

from dpcore_verify.balls import SCALE, mass, spend, unscaled

_CUT = 1 << (SCALE - 80)


@dataclass(frozen=True)
class Law:
    """A law of losses.

    Args:
        step: s > 0.
        offset: o, the least loss.
        masses: p_i times 2^200, rounded up.
        infinite: q, of an infinite loss, times 2^200.
        moved: How much mass was moved to larger losses, times 2^200: a lower end allows for it.
    """

    step: fmpq
    offset: fmpq
    masses: tuple[fmpz, ...]
    infinite: int = 0
    moved: int = 0

    @property
    def largest(self) -> fmpq:
        """The largest finite loss."""
        return self.offset + self.step * (len(self.masses) - 1)

    def atoms(self) -> list[tuple[fmpq, arb]]:
        """Losses and their masses."""
        return [
            (self.offset + self.step * i, unscaled(p)) for i, p in enumerate(self.masses) if p != 0
        ]

    def curve(self, x: arb) -> arb:
        """Return the curve at x: the definition."""
        spend(len(self.masses))
        total = unscaled(self.infinite)
        for loss, weight in self.atoms():
            if not arb(loss) < x:
                total += weight * (1 - (x - loss).exp()).max(arb(0))
        return total

    def trimmed(self) -> Law:
        """Join ends of less than 2^-80: on the left to their neighbour, on the right to infinity."""
        first, last, low, high = 0, len(self.masses), 0, 0
        while first < last - 1 and low + int(self.masses[first]) < _CUT:
            low += int(self.masses[first])
            first += 1
        while last > first + 1 and high + int(self.masses[last - 1]) < _CUT:
            last -= 1
            high += int(self.masses[last])
        masses = (self.masses[first] + low, *self.masses[first + 1 : last])
        offset = self.offset + self.step * first
        return Law(self.step, offset, masses, self.infinite + high, self.moved + low + high)

    def composed(self, other: Law) -> Law:
        """Convolve with a law of the same step; every mass is rounded up again."""
        one = 1 << SCALE
        spend((len(self.masses) + len(other.masses)) * 2)
        product = fmpz_poly(list(self.masses)) * fmpz_poly(list(other.masses))
        masses = tuple((p + one - 1) >> SCALE for p in product)
        ours, theirs = (int(sum(law.masses)) for law in (self, other))
        infinite = self.infinite * (theirs + other.infinite) + other.infinite * ours
        moved = 2 * (self.moved + other.moved) + len(masses)
        offset = self.offset + other.offset
        return Law(self.step, offset, masses or (fmpz(0),), -(-infinite >> SCALE), moved).trimmed()

    def power(self, copies: int) -> Law:
        """Compose with itself by repeated squaring."""
        if copies == 1:
            return self
        half = self.power(copies // 2)
        square = half.composed(half)
        return square.composed(self) if copies % 2 else square

    def on(self, step: fmpq) -> Law:
        r"""Move every atom to multiples of another step, so that the curve only rises.

        An atom at l between a and b becomes w at a and 1 - w at b with
        :math:`we^{-a}+(1-w)e^{-b}=e^{-l}`: a chord of a convex function of :math:`e^x`.
        """
        low = int((self.offset / step).floor())
        masses = [fmpz(0)] * (int((self.largest / step).floor()) + 2 - low)
        spend(len(masses) + 3 * len(self.masses))
        width = 1 - (-arb(step)).exp()
        for i, p in enumerate(self.masses):
            loss = self.offset + self.step * i
            index = int((loss / step).floor())
            share = (1 - (-arb(loss - step * index)).exp()) / width
            up = mass(unscaled(p) * share)
            masses[index - low + 1] += up
            masses[index - low] += mass(unscaled(p) * (1 - share)) if share > 0 else p
        return Law(step, step * low, tuple(masses), self.infinite, 1 << SCALE).trimmed()


def of_atoms(step: fmpq, offset: fmpq, weights: list[arb], infinite: arb | None = None) -> Law:
    """Return the law of balls of masses."""
    spend(len(weights) * 2)
    masses = tuple(fmpz(mass(w)) for w in weights)
    return Law(step, offset, masses, mass(infinite or arb(0)), 8 * len(masses))
