r"""What events cost together, at one epsilon: an upper end of delta, and a lower one.

Gaussians are one Gaussian: squares of mu add, and never go on a grid. Finite laws convolve on their
own lattices, exactly; other curves as laws on a grid, from above; choices come last. Then

.. math:: \delta(x)\le\sum_kp_kG(x-l_k;\mu)+p_\infty .

Composition is linear and increasing in each factor, so that replacing one factor at a time by
something larger only raises the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from flint import arb, ctx, fmpq

from dpcore_verify import curves
from dpcore_verify.balls import gaussian, spend, unscaled
from dpcore_verify.chords import choice_law, discretised, reach
from dpcore_verify.laws import Event, Law

_ATOMS = 20_000
_PRECISION = 144
FINENESS = (7, 9, 11)
"""Losses of an event span 2^k steps: about 1/16, 1/64 and 1/256 of a standard deviation."""

Counted = Sequence[tuple[Event, int]]


@dataclass(frozen=True)
class _Sum:
    """One Gaussian, or cells of one, beside finite laws."""

    gaussians: Sequence[tuple[arb, arb]]
    laws: Sequence[Law]
    infinite: arb

    def delta(self, x: arb) -> arb:
        """Return the sum above at any real x."""
        atoms, sums = [(x, arb(1))], []
        for law in self.laws:
            pairs = law.atoms()
            sums.append(unscaled(int(sum(law.masses))))
            spend(2 * len(atoms) * len(pairs))
            atoms = [(y - loss, p * w) for y, p in atoms for loss, w in pairs]
        finite = math.prod(sums, start=arb(1))
        whole = math.prod(
            (s + unscaled(law.infinite) for s, law in zip(sums, self.laws, strict=True)),
            start=arb(1),
        )
        total = arb(0)
        with ctx.workprec(_PRECISION):
            for weight, squared in self.gaussians:
                mu = squared.sqrt()
                total += weight * sum((p * gaussian(y, mu) for y, p in atoms), arb(0))
        return total + whole - finite + self.infinite


def _size(laws: Sequence[Law]) -> int:
    return math.prod(len(law.masses) for law in laws)


def _lattices(events: Counted) -> list[Law]:
    """Laws of one step convolve on their own lattice; the smallest laws come first."""
    laws: dict[fmpq, Law] = {}
    for event, count in events:
        if event.law is not None and not event.squared:
            power = event.law.power(count)
            known = laws.get(power.step)
            laws[power.step] = power if known is None else known.composed(power)
    return sorted(laws.values(), key=lambda law: len(law.masses))


@dataclass(frozen=True)
class Composition:
    """Events with counts, of adaptive releases on the same records."""

    events: Counted
    _known: dict[tuple[bool, int], tuple[_Sum, bool]] = field(default_factory=dict)

    @property
    def largest(self) -> fmpq | None:
        """The largest loss of all together, where there is one."""
        parts = [None if e.largest is None else e.largest * n for e, n in self.events]
        return None if None in parts else sum((p for p in parts if p is not None), fmpq(0))

    def upper(self, x: arb, enough: arb) -> arb:
        """Return an upper end of delta at x >= 0; refined until it is at most `enough`."""
        best = self._concentrated(x)
        if len(self.events) == self.events[0][1] == 1:
            event = self.events[0][0]
            return best.min(event.at(x).max(event.at(x, backwards=True)).upper())
        turns = (False, True) if any(e.back for e, _ in self.events) else (False,)
        for fineness in FINENESS:
            if best <= enough:
                break
            for turn in turns:
                if (turn, fineness) not in self._known:
                    self._known[turn, fineness] = self._above(turn, fineness)
            parts = [self._known[turn, fineness] for turn in turns]
            best = best.min(max(part.delta(x).upper() for part, _ in parts))
            if not any(is_rough for _, is_rough in parts):
                break
        return best

    def _concentrated(self, x: arb) -> arb:
        """The conversion of the sum of all rho: Bun & Steinke (2016), arXiv:1605.02065."""
        parts = [None if e.rho is None else e.rho * n for e, n in self.events]
        rho = sum((p for p in parts if p is not None), fmpq(0))
        return arb(1) if None in parts or not rho else curves.zcdp(rho).at(x).upper()

    def _above(self, backwards: bool, fineness: int) -> tuple[_Sum, bool]:
        """The sum in one direction, and whether a finer grid makes it smaller."""
        events = self.events
        squared = arb(sum((e.squared * n for e, n in events), fmpq(0)))
        choices = {e.choice: 0 for e, _ in events if e.choice is not None}
        for event, count in events:
            if event.choice is not None:
                choices[event.choice] += count
        chosen = choice_law(choices) if choices else None
        rho = sum(
            (
                e.rho * n
                for e, n in events
                if e.rho is not None and (e.concentrated or (e.choice and chosen is None))
            ),
            fmpq(0),
        )
        gridded = [
            (e, n)
            for e, n in events
            if not (e.squared or e.law or e.concentrated or e.choice or e.sampling or e.orders)
        ]
        if rho:
            gridded.append((curves.zcdp(rho), 1))
        gridded += [(event, 1) for event in _by_orders(events)]
        laws = _lattices(events)
        is_rough = bool(gridded) or _size(laws) > _ATOMS
        grid = self._grid(gridded, laws, chosen, backwards, fineness)
        if grid is not None:
            while _size([grid, *laws]) > _ATOMS and laws:
                grid = grid.composed(laws.pop().on(grid.step))
            laws = [grid, *laws]
        gaussians, infinite = [(arb(1), squared)], arb(0)
        samplings = [(e.sampling[0], e.sampling[1] * n) for e, n in events if e.sampling]
        if samplings:
            # with the largest theta for all, the chi squares add
            cells = min(4 << fineness, max(16, _ATOMS * 2 // max(1, _size(laws))))
            theta, degrees = max(t for t, _ in samplings), sum(k for _, k in samplings)
            *inner, (infinite, _) = curves.chi_cells(theta, degrees, cells)
            gaussians = [(p, squared + m) for p, m in inner]
            is_rough = True
        return _Sum(gaussians, laws, infinite), is_rough

    def _grid(
        self, gridded: Counted, laws: list[Law], chosen: Law | None, backwards: bool, fineness: int
    ) -> Law | None:
        """What is on the grid, composed; None where nothing is."""
        spans = [reach(event) for event, _ in gridded]
        if not spans and _size(laws) > _ATOMS:
            spans = [abs(law.offset) + law.step * len(law.masses) for law in laws]
        if not spans:
            return chosen
        step = max(min(spans) / 2**fineness, max(spans) / 2**13)
        if chosen is not None:
            step = chosen.step / int((chosen.step / step).ceil())
        parts = [
            discretised(event, backwards, step, int((span / step).ceil())).power(count)
            for (event, count), span in zip(gridded, spans, strict=False)
        ]
        parts += [chosen.on(step)] if chosen is not None else []
        grid = parts[0] if parts else laws.pop().on(step)
        for part in parts[1:]:
            grid = grid.composed(part)
        return grid

    def lower(self, x: arb) -> arb:
        """Return a lower end of delta at x >= 0 for the worst events with these claims.

        Over finite laws alone; a Gaussian of sqrt(2 rho) for zCDP, a randomized response of
        epsilon_0/2 for a choice, nothing for what is left; or one event by itself.
        """
        squared, kept = fmpq(0), []
        for event, count in self.events:
            squared += event.squared * count if event.is_exact else 0
            if event.concentrated and event.rho is not None:
                squared += 2 * event.rho * count
            kept.append((curves.response(event.choice / 2) if event.choice else event, count))
        laws = _lattices(kept)
        while _size(laws) > _ATOMS:
            laws.pop()
        moved = unscaled(sum(law.moved for law in laws)) + arb(2) ** -50
        best = (_Sum([(arb(1), arb(squared))], laws, arb(0)).delta(x) - moved).lower()
        for event, _ in self.events:
            if event.is_exact:
                best = best.max(event.at(x).lower()).max(event.at(x, backwards=True).lower())
        return best


def _by_orders(events: Counted) -> list[Event]:
    """Rényi divergences at the same orders add up, copies among them."""
    sums: dict[tuple[fmpq, ...], list[fmpq]] = {}
    for event, count in events:
        if event.orders:
            known = sums.setdefault(tuple(event.orders), [fmpq(0)] * len(event.orders))
            added = [r * count for r in event.orders.values()]
            sums[tuple(event.orders)] = [a + b for a, b in zip(known, added, strict=True)]
    return [curves.renyi(list(orders), values) for orders, values in sums.items()]
