r"""Curves from above, as laws of losses at multiples of a step.

A curve is convex in :math:`a=e^x`, so that it lies below its chords
:math:`F(a)=F(\infty)+\sum_jp_j(1-ae^{-x_j})_+`, :math:`p_j=a_j(\text{slope}_{j+1}-\text{slope}_j)`.
A claim that is not convex is replaced by its lower hull, which no convex curve below it exceeds.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from flint import arb, fmpq, fmpz

from dpcore_verify.balls import mass, spend
from dpcore_verify.laws import Event, Law

_MARGIN = 2.0**-46
_LARGEST = 1024


def distribution_of(values: Sequence[arb], step: fmpq, low: int) -> Law:
    """Return the law whose curve is the lower hull of values at e^(step * (low + j)) and of 1 at 0.

    Any subset of the knots gives an upper end of a convex curve, so that a knot may go in doubt.
    """
    spend(4 * len(values))
    knots, masses = [(arb(0), arb(1), arb("-inf"), -1)], [fmpz(0)] * len(values)
    for j, ball in enumerate(values):
        a, value, slope = arb(step * (low + j)).exp(), ball.upper().min(arb(1)), arb("-inf")
        while not slope > knots[-1][2]:
            # the first knot is never taken back: its slope is below all
            spend(1)
            if slope.is_finite():
                knots.pop()
            slope = (value - knots[-1][1]) / (a - knots[-1][0])
        knots.append((a, value, slope, j))
    ends = [*(slope for _, _, slope, _ in knots[2:]), arb(0)]
    for (a, _, slope, j), end in zip(knots[1:], ends, strict=True):
        masses[j] = fmpz(mass(a * (end - slope)))
    return Law(step, step * low, masses, mass(knots[-1][1]), 1 << 200).trimmed()


def discretised(event: Event, backwards: bool, step: fmpq, knots: int) -> Law:
    """Return an event's law on multiples of a step, from -knots to knots."""
    points = [arb(step * j) for j in range(knots + 1)]
    ahead = [event.delta_at(x, backwards) for x in points]
    behind = ahead if event.back is None else [event.delta_at(x, not backwards) for x in points]
    mirrored = [1 - (-x).exp() + (-x).exp() * v for x, v in zip(points, behind, strict=True)]
    return distribution_of([*mirrored[:0:-1], *ahead], step, -knots)


def loss_bound(event: Event) -> fmpq:
    """Return a loss beyond which neither curve falls by much."""
    x, turns = fmpq(_LARGEST), (False, True)
    factor, floor = 1 + arb(2) ** -20, arb(2) ** -70
    ends = [event.delta_at(arb(2 * x), turn) * factor + floor for turn in turns]
    while x > fmpq(1, 2**40) and all(
        event.delta_at(arb(x / 2), turn) < end for turn, end in zip(turns, ends, strict=True)
    ):
        x /= 2
    return event.largest or x


def choice_distribution(choices: Mapping[fmpq, int]) -> Law | None:
    r"""Return the law of choices of bounded range, each made after seeing all answers before.

    .. math:: TH(a)=\max_tp_tH(ae^{-t})+(1-p_t)H(ae^{\epsilon_0-t}),\quad
              p_t=\frac{e^{\epsilon_0}-e^t}{e^{\epsilon_0}-1}

    over t in [0, epsilon_0], once a choice; kinds in every order, by a table. Each epsilon_0 is
    rounded up to the grid. None where that is too much work. In floats, with a margin a step.
    Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830.
    """
    counts, cells = tuple(choices.values()), math.prod(n + 1 for n in choices.values())

    def spans(n: int) -> list[int]:
        return [int((epsilon * n / min(choices)).ceil()) for epsilon in choices]

    def span(n: int) -> int:
        return sum(m * count for m, count in zip(spans(n), counts, strict=True))

    def work(n: int) -> int:
        return cells * sum(spans(n)) * span(n)

    n = next((n for n in (64, 48, 32, 24, 16, 12, 8) if work(n) < 1_600_000), 0)
    if n == 0 or max(choices) > 4:
        return None
    # of several kinds, a step to which little is rounded up
    n = min(range(n // 2, n + 1), key=lambda n: span(n) / n + 1 / n**2)
    spend(work(n) // 2)
    step, distance = min(choices) / n, span(n)
    h, table = float(arb(step)), dict[tuple[int, ...], list[float]]()
    for index in itertools.product(*(range(count + 1) for count in counts)):
        curves = [
            _chosen(table[(*index[:k], i - 1, *index[k + 1 :])], h, m)
            for k, (i, m) in enumerate(zip(index, spans(n), strict=True))
            if i
        ] or [[max(0.0, -math.expm1(h * j)) for j in range(-distance, distance + 1)]]
        table[index] = [max(values) for values in zip(*curves, strict=True)]
    return distribution_of([arb(value) for value in table[counts]], step, -distance)


def _chosen(values: list[float], h: float, m: int) -> list[float]:
    """Return T of a curve on multiples of h, epsilon_0 = m h.

    Between two knots of u = e^t the sum is c_0 + c_1 u + c_2/u with c_1, c_2 <= 0: concave, so at
    most twice its middle less its smaller end.
    """
    distance, length, top = len(values) // 2, len(values), math.expm1(m * h)
    padded = [-math.expm1(h * (j - distance - m)) for j in range(m)] + values + [0.0] * m
    fraction = 1 / (2 + math.expm1(h))
    halves = [fraction * b + (1 - fraction) * a for a, b in itertools.pairwise(padded)]

    def mixed(row: list[float], t: int, u: float) -> list[float]:
        p, starts = (top - u) / top, (m - t, 2 * m - t)
        pair = (row[start : start + length] for start in starts)
        return [p * a + (1 - p) * b for a, b in zip(*pair, strict=True)]

    knot = best = mixed(padded, 0, 0.0)
    for t in range(1, m + 1):
        ends = math.expm1((t - 1) * h), math.expm1(t * h)
        before, middle, knot = knot, mixed(halves, t, sum(ends) / 2), mixed(padded, t, ends[1])
        rows = zip(best, before, middle, knot, strict=True)
        best = [max(b, y, z, 2 * y - min(x, y, z)) for b, x, y, z in rows]
    return [min(1.0, value + _MARGIN) for value in best]
