r"""T14: how far one replaced record moves stochastic gradient descent on squared loss.

Steps :math:`w_+=(1-\eta\lambda)w-\frac\eta b\sum_i g_i` on gradients
:math:`g=(\phi\cdot w-y)\phi` of norm clipped at L (or free), projected on a ball of radius R (or
not), from zero, with :math:`\|\phi\|\le\kappa` and :math:`|y|\le c`. One use of the record at
step t moves what is released by at most

.. math:: v_t=\tfrac\eta b\,\min\{2L, D^*(W_t)\}\,a_t,

with W_t how long the iterate before step t can be, D* the diameter of the set of gradients there,
and a_t the proportion of later iterates in the release, each contracted by ridge. Uses add up.

Source: T14 in docs/theorems-sums.md, after Wang & Guo (2024), Theorem 2.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import non_negative, positive, positive_integer
from dpcore.rounding import gamma, up

_STEPS = 1 << 22  # roundings, far above those of the recursion below
_ROUGH = 256  # intervals of steps, where a bound is taken over each
_MANY = 2000  # passes that are looked at one by one


def gradient_diameter(
    kappa: float, label_bound: float, norms: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return D*(W), the largest distance of two gradients at one point of norm W.

    .. math:: \max_x\;2\sqrt{1-x^2}\,(\kappa^2Wx+\kappa c),\qquad
              x=\frac{-\kappa c+\sqrt{\kappa^2c^2+8\kappa^4W^2}}{4\kappa^2W}

    at most :math:`\kappa^2W+2\kappa c`, increasing in W, and attained in two dimensions.

    Args:
        norms: W >= 0, any shape.
    """
    # x is the cosine at which the gradients' distance is largest; D* is its value there.
    pull, push = kappa * kappa * norms, kappa * label_bound
    # the root, written without a difference
    root = 2 * pull / (push + np.sqrt(push * push + 8 * pull * pull))
    return up(2 * np.sqrt(1 - root * root) * (pull * root + push), roundings=_STEPS)


def _near_one(ratio: float) -> float:
    """Round a ratio of at most 1 up by more than the error of subtracting from 1; keep 1."""
    return min(1.0, ratio + gamma(2))


def _geometric(ratio: float, terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum so many terms of 1 + ratio + ratio^2 + ..., for a ratio in [0, 1]."""
    if ratio == 1.0:
        return terms
    return np.asarray(np.expm1(terms * math.log(ratio)) / (ratio - 1))


@attrs.frozen(kw_only=True, eq=False)
class StepDiameter:
    """What one use of a record at a step can do to the release.

    Args:
        rate: eta. kappa: Feature norm. label_bound: c. steps: T, of `batch` rows each.
        ridge: lam. clip: L or infinite. radius: R or infinite.
        averaged: How many of the last iterates are averaged; 1: the last is released.
    """

    rate: float = attrs.field(validator=positive)
    kappa: float = attrs.field(validator=positive)
    label_bound: float = attrs.field(validator=positive)
    steps: int = attrs.field(validator=positive_integer)
    batch: int = attrs.field(default=1, validator=positive_integer)
    ridge: float = attrs.field(default=0.0, validator=non_negative)
    clip: float = math.inf
    radius: float = math.inf
    averaged: int = attrs.field(default=1, validator=positive_integer)

    @property
    def refusal(self) -> str:
        """The reason why a step may expand distances; empty if eta (kappa^2 + 2 lam) < 2."""
        curvature = self.rate * (self.kappa**2 + 2 * self.ridge)
        if curvature < 2 * (1 - 1e-9):
            return ""
        return f"rate * (kappa^2 + 2 ridge) = {curvature:.6g} must be below 2: lower the rate"

    @property
    def _decay(self) -> float:
        return 1 - self.rate * self.ridge

    # The whole schedule is bounded before any record is read: it depends on public numbers only.
    def norms(self, steps: NDArray[np.intp]) -> NDArray[np.float64]:
        r"""Return W_t at steps t = 1, ..., T + 1: the longest iterate before step t.

        .. math:: W_{t+1}^2=A^2W_t^2+\max_{|s|\le\kappa W_t}2\eta As(c-s)+\eta^2\kappa^2(c-s)^2,
                  \qquad A=1-\eta\lambda

        and at most R. The best margin is :math:`s^*=c(A-\eta\kappa^2)/(2A-\eta\kappa^2)`. Until it
        is in reach, :math:`W_{t+1}=|A-\eta\kappa^2|W_t+\eta\kappa c`; from then on W^2 follows the
        recursion with s*. Both are geometric sums, so that no step needs a loop. Clipping a
        gradient never makes an iterate longer than the longer of the free step and no step.
        """
        eta, k, c, decay = self.rate, self.kappa, self.label_bound, self._decay
        margin = c * (decay - eta * k * k) / (2 * decay - eta * k * k)
        # Rounded up: a slope a little too large makes iterates longer, never shorter.
        slope, rise = _near_one(abs(decay - eta * k * k)), eta * k * c

        def early_norms(step: NDArray[np.float64]) -> NDArray[np.float64]:
            return rise * _geometric(slope, step - 1)

        first_late = self._find_step(abs(margin) / k, rise, slope)
        gain = 2 * eta * decay * margin * (c - margin) + (eta * k * (c - margin)) ** 2
        times = np.asarray(steps, dtype=np.float64)
        # Before `first_late` the linear recursion holds, from then on the one of squares; both are
        # evaluated for all steps, and the right one is taken by entry.
        late_steps = np.maximum(times - first_late, 0)
        square_start = early_norms(np.array([first_late]))[0] ** 2
        shrink = _near_one(decay * decay)
        square = shrink**late_steps * square_start + gain * _geometric(shrink, late_steps)
        lengths = np.where(
            late_steps > 0, np.sqrt(square), early_norms(np.minimum(times, first_late))
        )
        return np.asarray(np.minimum(up(lengths, roundings=_STEPS), self.radius))

    def _find_step(self, norm: float, rise: float, slope: float) -> float:
        """Return the first step whose iterate can be as long as `norm`, on the early recursion."""
        if norm <= 0:
            return 1.0
        # No contraction at all: the early recursion is a sum of equal terms.
        if slope == 1.0:
            return 1.0 + math.ceil(norm / rise)
        gap = 1 - norm * (1 - slope) / rise
        # The geometric sum converges below `norm`, so that the margin never comes into reach.
        if gap <= 0:
            return float(self.steps + 2)  # never
        return 1.0 + math.ceil(math.log(gap) / math.log(slope))

    def share(self, steps: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return a_t: the weight of iterates from step t on in the release, contracted by ridge."""
        window = min(self.averaged, self.steps)
        first = self.steps - window + 1
        iterates = self.steps - np.maximum(steps, first) + 1
        contraction = self._contraction
        if contraction == 1.0:
            return np.asarray(iterates / window)
        # All averaged iterates from step t on carry its movement, each by one more contraction.
        weight = _geometric(contraction, iterates.astype(np.float64)) / window
        return np.asarray(
            up(weight, roundings=_STEPS) * contraction ** np.maximum(first - steps, 0)
        )

    @property
    def _contraction(self) -> float:
        """A bound on the factor by which a step contracts the distance of two iterates."""
        if self.ridge == 0.0:
            return 1.0
        # The Jacobian of a step, clipped or not, lies
        # between 1 - eta (lam + kappa^2) and 1 - eta lam.
        end = abs(1 - self.rate * (self.ridge + self.kappa**2))
        return _near_one(max(abs(self._decay), end))

    def over(self, first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.float64]:
        """Bound v_t for t from `first` to `last`; exact if they are equal.

        D* grows with t; a_t rises up to the first averaged iterate and falls from there.
        """
        diameter = gradient_diameter(self.kappa, self.label_bound, self.norms(last))
        # `share` is largest at the first averaged iterate,
        # or at the end of the interval nearest to it.
        peak = np.clip(max(1, self.steps - self.averaged + 1), first, last)
        movement = np.minimum(2 * self.clip, diameter) * (self.rate / self.batch)
        return np.asarray(up(movement * self.share(peak), roundings=5000))

    def rows(self, first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.float64]:
        """Bound v_t for rows, counted from 0: row r is used at step r // batch + 1."""
        return self.over(first // self.batch + 1, last // self.batch + 1)

    def along(self, rows: NDArray[np.intp], changed: int) -> float:
        """Sum over the uses of row `changed` in one order of rows."""
        # T14 adds up over uses: between two of them, steps
        # bring the neighbouring iterates no farther apart.
        hits = np.flatnonzero(rows == changed)
        return up(math.fsum(self.rows(hits, hits).tolist()), roundings=3)

    def passes(self, records: int) -> list[tuple[NDArray[np.float64], NDArray[np.intp]]]:
        """Return bounds over intervals, and their lengths, for every pass over `records` rows.

        Intervals stand at the same places in every pass; the last pass may be cut short.
        """
        total = self.steps * self.batch
        count = -(-total // records)
        longest = min(records, total)
        # Fewer, longer intervals where passes are many: the bound gets looser and stays sound.
        pieces = min(longest, max(16, min(4 * _ROUGH, 256 * _ROUGH // count)))
        edges = np.unique(np.linspace(0, longest, pieces + 1).astype(np.intp))
        bounds_by_pass = []
        for number in range(count):
            ends = np.minimum(edges + number * records, total)
            lengths = np.diff(ends)
            lengths_left = lengths[lengths > 0]
            first = ends[:-1][lengths > 0]
            bounds_by_pass.append((self.rows(first, first + lengths_left - 1), lengths_left))
        return bounds_by_pass

    def worst_order(self) -> float:
        """Return the order that uses the record at every step: what no order exceeds."""
        bounds, lengths = self.intervals()
        return up(float(bounds @ lengths), roundings=5000)

    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return bounds over intervals of all rows, and the intervals' lengths."""
        total = self.steps * self.batch
        edges = np.unique(np.linspace(0, total, min(total, _ROUGH) + 1).astype(np.intp))
        return self.rows(edges[:-1], edges[1:] - 1), np.diff(edges)

    def worst_shuffled(self, records: int) -> float:
        """Return the worst place in every pass, whatever it was in the others."""
        if self.steps * self.batch > _MANY * records:  # in an interval: once per pass it touches
            bounds, lengths = self.intervals()
            return up(float(bounds @ ((lengths - 1) // records + 2)), roundings=5000)
        return up(math.fsum(float(bounds.max()) for bounds, _ in self.passes(records)), roundings=3)

    def worst_cyclic(self, records: int) -> float:
        """Return the worst place, the same in every pass."""
        if self.steps * self.batch > _MANY * records:
            return self.worst_shuffled(records)
        total = np.zeros(0)
        for bounds, _ in self.passes(records):
            # The last pass may be shorter than the others:
            # places that it does not reach add nothing.
            sums = np.zeros(max(total.size, bounds.size))
            sums[: total.size] += total
            sums[: bounds.size] += bounds
            total = sums
        return up(float(total.max()), roundings=5000)
