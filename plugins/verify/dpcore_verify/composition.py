r"""What events cost together, at one epsilon: an upper end of delta, and a lower one.

Gaussians are one Gaussian: squares of mu add, and never go on a grid. Finite laws convolve on their
own lattices, exactly; other curves as laws on a grid, from above; choices come last. Then

.. math:: \delta(x)\le\sum_kp_kG(x-l_k;\mu)+p_\infty .

Composition is linear and increasing in each factor, so that replacing one factor at a time by
something larger only raises the whole.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from flint import arb, ctx, fmpq

from dpcore_verify import curves
from dpcore_verify.balls import gaussian, spend, unscaled
from dpcore_verify.chords import choice_distribution, discretised, loss_bound
from dpcore_verify.laws import Event, Law

_ATOMS, _PRECISION = 20_000, 144
FINENESS = (7, 9, 11)
"""Losses of an event span 2^k steps: about 1/16, 1/64 and 1/256 of a standard deviation."""

Counted = Sequence[tuple[Event, int]]


@dataclass(frozen=True)
class _Sum:
    """One Gaussian, or cells of one, next to finite laws; `is_rough` where a finer grid helps."""

    gaussians: Sequence[tuple[arb, arb]]
    laws: Sequence[Law]
    infinite: arb
    is_rough: bool = False

    def delta(self, x: arb) -> arb:
        atoms, total = [(x, arb(1))], self.infinite
        for law in self.laws:
            spend(2 * len(atoms) * len(law.masses))
            pairs = law.atoms()
            atoms = [(y - loss, p * w) for y, p in atoms for loss, w in pairs]
        finite = [unscaled(int(sum(law.masses))) for law in self.laws]
        lost = (p + unscaled(law.infinite) for p, law in zip(finite, self.laws, strict=True))
        with ctx.workprec(_PRECISION):
            for weight, squared in self.gaussians:
                mu = squared.sqrt()
                total += weight * sum((p * gaussian(y, mu) for y, p in atoms), arb(0))
        return total + math.prod(lost, start=arb(1)) - math.prod(finite, start=arb(1))


def _size(laws: Sequence[Law]) -> int:
    return math.prod(len(law.masses) for law in laws)


def _lattices(events: Counted) -> list[Law]:
    """Return laws of different steps, the smallest first; those of one step convolve."""
    laws: dict[fmpq, Law] = {}
    for event, count in events:
        if event.law is not None:
            power, step = event.law.power(count), event.law.step
            laws[step] = laws[step].composed(power) if step in laws else power
    return sorted(laws.values(), key=lambda law: len(law.masses))


@dataclass(frozen=True)
class Composition:
    """Events with counts, of adaptive releases on the same records."""

    events: Counted
    _sums: dict[tuple[bool, int], _Sum] = field(default_factory=dict)

    @property
    def largest(self) -> fmpq | None:
        """The largest loss of all together, where there is one."""
        losses = [event.largest * n for event, n in self.events if event.largest is not None]
        return sum(losses, fmpq(0)) if len(losses) == len(self.events) else None

    def upper(self, x: arb, enough: arb) -> arb:
        """Return an upper end of delta at x >= 0; refined until it is at most `enough`."""
        turns, best = [False, True], self._concentrated(x)
        if len(self.events) == self.events[0][1] == 1:
            return best.min(max(self.events[0][0].delta_at(x, turn).upper() for turn in turns))
        if not any(event.back for event, _ in self.events):
            turns = [False]
        for fineness in FINENESS:
            # once a step is fine enough, a finer one costs time only
            if best <= enough:
                break
            sums = [self._above(turn, fineness) for turn in turns]
            best = best.min(max(part.delta(x).upper() for part in sums))
            if not any(part.is_rough for part in sums):
                break
        return best

    def _concentrated(self, x: arb) -> arb:
        """Return the conversion of the sum of all rho: Bun & Steinke (2016), arXiv:1605.02065."""
        parts = [event.rho * n for event, n in self.events if event.rho is not None]
        is_whole = len(parts) == len(self.events)
        return curves.zcdp(sum(parts, fmpq(0))).delta_at(x).upper() if is_whole else arb(1)

    def _above(self, backwards: bool, fineness: int) -> _Sum:
        """Return the sum in one direction, on a grid of one fineness."""
        if (backwards, fineness) in self._sums:
            return self._sums[backwards, fineness]
        choices: dict[fmpq, int] = {}
        for event, count in self.events:
            if event.choice is not None:
                choices[event.choice] = choices.get(event.choice, 0) + count
        choice = choice_distribution(choices) if choices else None
        # what the table of choices is too small for is as concentrated as it is
        rho = sum(
            (
                (event.rho or fmpq(0)) * n
                for event, n in self.events
                if event.concentrated or (event.choice and choice is None)
            ),
            fmpq(0),
        )
        gridded = [
            (event, n)
            for event, n in self.events
            if not (event.squared or event.law or event.concentrated)
            and not (event.choice or event.sampling or event.orders)
        ]
        gridded += [(curves.zcdp(rho), 1)] if rho else []
        gridded += [(event, 1) for event in _by_orders(self.events)]
        laws = _lattices(self.events)
        is_rough = bool(gridded) or _size(laws) > _ATOMS
        grid = self._grid(gridded, laws, choice, backwards, fineness)
        while grid is not None and laws and _size([grid, *laws]) > _ATOMS:
            grid = grid.composed(laws.pop().on(grid.step))
        laws += [] if grid is None else [grid]
        squared = arb(sum((event.squared * n for event, n in self.events), fmpq(0)))
        gaussians, infinite = [(arb(1), squared)], arb(0)
        samples = [(e.sampling[0], e.sampling[1] * n) for e, n in self.events if e.sampling]
        if samples:
            # with the largest theta for all, the chi squares add
            cells = min(4 << fineness, max(16, 2 * _ATOMS // max(1, _size(laws))))
            theta, degrees = max(t for t, _ in samples), sum(k for _, k in samples)
            *inner, (infinite, _) = curves.chi_cells(theta, degrees, cells)
            gaussians = [(p, squared + m) for p, m in inner]
        part = _Sum(gaussians, laws, infinite, is_rough or bool(samples))
        self._sums[backwards, fineness] = part
        return part

    def _grid(
        self, gridded: Counted, laws: list[Law], choice: Law | None, backwards: bool, fineness: int
    ) -> Law | None:
        """Return what is on the grid, composed; None where nothing is."""
        spans = [loss_bound(event) for event, _ in gridded]
        if not spans and _size(laws) > _ATOMS:
            spans = [abs(law.offset) + law.step * len(law.masses) for law in laws]
        if not spans:
            return choice
        step = max(min(spans) / 2**fineness, max(spans) / 2**13)
        # choices lie on the grid as they are, others are computed on it
        if choice is not None:
            step = choice.step / int((choice.step / step).ceil())
        parts = [
            discretised(event, backwards, step, int((span / step).ceil())).power(count)
            for (event, count), span in zip(gridded, spans, strict=False)
        ]
        parts += [choice.on(step)] if choice is not None else []
        grid = parts.pop() if parts else laws.pop().on(step)
        for part in parts:
            grid = grid.composed(part)
        return grid

    def lower(self, x: arb) -> arb:
        """Return a lower end of delta at x >= 0 for the worst events with these claims.

        Over finite laws only; a Gaussian of sqrt(2 rho) for zCDP, a randomized response of
        epsilon_0/2 for a choice, nothing for what is not exact; or one event by itself.
        """
        squared = fmpq(0)
        for event, count in self.events:
            squared += event.squared * count if event.is_exact else 0
            squared += 2 * (event.rho or 0) * count if event.concentrated else 0
        laws = _lattices(
            [(curves.response(e.choice / 2) if e.choice else e, n) for e, n in self.events]
        )
        while _size(laws) > _ATOMS:
            laws.pop()
        error = unscaled(sum(law.excess for law in laws)) + arb(2) ** -50
        best = (_Sum([(arb(1), arb(squared))], laws, arb(0)).delta(x) - error).lower()
        exact = [event for event, _ in self.events if event.is_exact]
        ends = [event.delta_at(x, turn) - error for event in exact for turn in (False, True)]
        return max([best, *(end.lower() for end in ends)])


def _by_orders(events: Counted) -> list[Event]:
    """Add Rényi divergences at the same orders, copies among them."""
    sums: dict[tuple[fmpq, ...], list[fmpq]] = {}
    for event, count in events:
        if event.orders:
            orders = tuple(event.orders)
            sums[orders] = [
                a + r * count
                for a, r in zip(
                    sums.get(orders, [fmpq(0)] * len(orders)), event.orders.values(), strict=True
                )
            ]
    return [curves.renyi(list(orders), values) for orders, values in sums.items()]
