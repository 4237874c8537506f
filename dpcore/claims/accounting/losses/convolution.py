r"""Composition of measures on a common step, by one tilted Fourier transform, both ends certified.

With :math:`K(\theta)=\sum_i n_i\log\sum_k p_{ik}e^{\theta x_k}` the tilted masses
:math:`\tilde p_{ik}=p_{ik}e^{\theta x_k-K_i}` are convolved; then

.. math:: \delta(\epsilon) = p_\infty + e^{K-\theta\epsilon}
          \sum_{x>\epsilon}\tilde p(x)\,e^{-\theta(x-\epsilon)}(1-e^{-(x-\epsilon)}) .

With theta near the saddle point of epsilon the tilted masses are of the order of their maximum
where it matters, so that the transform's error, which is the same in every cell, is relatively
small however small delta is. Every error is bounded and added (or, for a lower end, subtracted):

* each output of a transform is a linear form computed along log2(N) butterflies, so its error is at
  most `_BUTTERFLY log2(N) ulp` times the sum of absolute inputs (Higham 2002, Theorem 24.2, the
  componentwise form); a factor |phi| <= 1 to the power n multiplies it by n |phi|^(n-1);
* tilted mass outside the window of N cells is at most 2 e^{-_TAIL} by Chernoff's bound with the
  exact log moment generating function; outside, above, it adds to delta, and wrapped into the
  window it changes the sum above by at most itself;
* relative errors of masses, of tilting and of the sums multiply up to (1 + c)^n.
"""

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.claims.accounting.losses.masses import Masses
from dpcore.rounding import UNIT, down, gamma, up

_BUTTERFLY = 8.0
_TAIL = 22.0
_OUTSIDE = 2 * math.exp(-_TAIL)
_CUTOFF = 300.0  # exponents are cut off here: what lies beyond is far from the answer
_TERMS = 2**20  # exponentials held at once
_HALF_WIDTH = math.sqrt(2 * _TAIL)
Array = NDArray[np.float64]
Spectrum = NDArray[np.complex128]


def _log_moment_table(measures: Sequence[Masses], orders: Array) -> Array:
    r"""Return :math:`\log\sum_k p_k e^{\theta x_k}` of measures at each theta in `orders`.

    The measures have equally many losses; shape (measures, orders).
    """
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([measure.mass for measure in measures]))
    indices = np.arange(float(logs.shape[1]))
    moments = np.empty((len(measures), len(orders)))
    step = np.array([measure.step for measure in measures])
    first = np.array([measure.first for measure in measures])
    batch_size = max(1, _TERMS // (logs.shape[1] * len(measures)))
    for start in range(0, len(orders), batch_size):
        part = slice(start, start + batch_size)
        tilts = orders[part] * step[:, None]
        exponents = tilts[:, :, None] * indices + logs[:, None, :]
        peak = np.max(exponents, axis=2)
        # Without its peak no exponential overflows, and one of them is 1.
        exponents -= peak[:, :, None]
        total = np.log(np.sum(np.exp(exponents, out=exponents), axis=2))
        moments[:, part] = peak + total + orders[part] * first[:, None]
    return moments


@attrs.frozen(eq=False)
class Group:
    """`count` independent copies of one measure."""

    masses: Masses
    count: int


@attrs.frozen
class Saddle:
    """Where the tilted sum lies: its tilt, log moment, and a window with tails e^{-_TAIL}.

    `below` and `above` bound the tilted mass on either side of the window: 0 where it reaches to
    the end of the support.
    """

    tilt: float
    log_moment: float
    low: float
    high: float
    below: float
    above: float

    @classmethod
    def of(cls, groups: Sequence[Group], tilt: float, shifts: tuple[float, float]) -> "Saddle":
        """Return the window of Chernoff's bound at two neighbouring tilts, cut to the support.

        Args:
            groups: What is composed.
            tilt: theta > 0.
            shifts: How far below and above the tilt the bounds are taken; any > 0 are sound.
        """
        support_low = math.fsum(g.count * g.masses.first for g in groups)
        support_high = math.fsum(g.count * g.masses.last for g in groups)
        moments = total_moments(groups, np.array([tilt - shifts[0], tilt, tilt + shifts[1]]))
        scale = float(np.max(np.abs(moments)))
        # Chernoff for the tilted law: P(X > high) <= e^{K(t+s) - K(t) - s high} = e^{-slack}.
        slack = _TAIL + gamma(128) * (scale + abs(tilt) * (abs(support_low) + abs(support_high)))
        high = (moments[2] - moments[1] + slack) / shifts[1]
        low = (moments[1] - moments[0] - slack) / shifts[0]
        low, high = float(low), float(high)
        # Nothing lies beyond the support, so that a side cut there has no mass outside.
        return cls(
            tilt=tilt,
            log_moment=float(moments[1]),
            low=max(low, support_low),
            high=min(high, support_high),
            below=_OUTSIDE if low > support_low else 0.0,
            above=_OUTSIDE if high < support_high else 0.0,
        )


def total_moments(groups: Sequence[Group], orders: Array) -> Array:
    """Return the log moments of all copies together, shape (k,)."""
    total = np.zeros_like(orders)
    for members in _groups_by_length(groups):
        counts = np.array([float(group.count) for group in members])
        total += counts @ _log_moment_table([group.masses for group in members], orders)
    return total


def _groups_by_length(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Yield groups with equally many losses, at most 64 at a time."""
    by_length: dict[int, list[Group]] = {}
    for group in groups:
        by_length.setdefault(len(group.masses.mass), []).append(group)
    for members in by_length.values():
        yield from (members[start : start + 64] for start in range(0, len(members), 64))


def best_shifts(groups: Sequence[Group], tilt: float) -> tuple[float, float]:
    """Return shifts that make the window of these groups about as narrow as possible."""
    # Any shifts are sound: they decide how wide the window is, and so how long it takes.
    deviation = math.sqrt(max(variance(groups, tilt), 0.0))
    width = math.fsum(g.count * (g.masses.last - g.masses.first) for g in groups)
    shifts = _HALF_WIDTH / max(deviation, width * 1e-9) * 2.0 ** np.arange(-6.0, 1.5, 0.5)
    base = float(total_moments(groups, np.array([tilt]))[0])
    above = (total_moments(groups, tilt + shifts) - base + _TAIL) / shifts
    below = (base - total_moments(groups, tilt - shifts) - _TAIL) / shifts
    return float(shifts[int(np.argmax(below))]), float(shifts[int(np.argmin(above))])


def variance(groups: Sequence[Group], tilt: float) -> float:
    """Return the variance of the tilted sum."""
    total = 0.0
    for group in groups:
        x = group.masses.step * np.arange(len(group.masses.mass))
        exponent = tilt * (x - x[-1])
        with np.errstate(divide="ignore"):
            exponent = exponent + np.log(group.masses.mass)
        weight = np.exp(exponent - np.max(exponent))
        weight /= np.sum(weight)
        mean = float(weight @ x)
        total += group.count * float(weight @ (x - mean) ** 2)
    return total


@attrs.frozen(eq=False)
class Composed:
    """The composed measure around its saddle point, tilted, with what is not certain about it.

    Args:
        losses: Cells of the window, nats, increasing, shape (k,).
        tilted: Tilted masses in them, shape (k,).
        cell_error: Absolute error of each tilted mass.
        saddle: Tilt and log moment.
        infinite: Probability of an infinite loss.
        relative: log of the largest relative error of the whole.
        slack: How far any loss may be from its cell by rounding, nats.
    """

    losses: Array
    tilted: Array
    cell_error: float
    saddle: Saddle
    infinite: float
    relative: float
    slack: float

    def epsilon_above(self, delta: float) -> float:
        """Return an epsilon whose delta is certainly at most `delta`; infinite if there is none."""
        # Mass above the window counts as delta in full, untilted at the window's upper edge.
        tail = self.saddle.log_moment - self.saddle.tilt * self.saddle.high + self.relative
        outside = self.saddle.above * math.exp(min(tail, 700.0))
        target = delta - up(self.infinite, roundings=5000) - outside
        return self._crossing(np.maximum(self.tilted, 0.0) + self.cell_error, target, +1)

    def epsilon_below(self, delta: float) -> float:
        """Return an epsilon whose delta is certainly at least `delta`; 0 where none is known."""
        # Infinite losses only reach delta, so that no epsilon is large enough.
        if (target := delta - down(self.infinite, roundings=5000)) <= 0:
            return math.inf
        return self._crossing(np.maximum(self.tilted - self.cell_error, 0.0), target, -1)

    def curve_above(self) -> tuple[Array, Array]:
        """Return increasing epsilons, and upper ends of the curve there, if they are informative.

        The sum of the class's module at each loss, every error added as in `epsilon_above`.
        """
        tilt, step = self.saddle.tilt, len(self.losses)
        middle = float(self.losses[int(np.argmax(self.tilted))])
        x = self.losses - middle
        tilted = np.maximum(self.tilted, 0.0) + self.cell_error
        error = _sum_error(step)
        weights = tilted * np.exp(np.clip(-tilt * x, -_CUTOFF, _CUTOFF))
        first = np.cumsum(weights[::-1])[::-1] * (1 + error)
        # The second sum is subtracted and errs downwards, so that the difference errs upwards.
        weights = tilted * _subtrahends(-(tilt + 1) * x)
        second = np.cumsum(weights[::-1])[::-1] * (1 - error)
        is_resolved = np.abs((tilt + 1) * x) < _CUTOFF  # elsewhere weights were cut off
        is_resolved[-1] = False
        cells = np.nonzero(is_resolved)[0]
        excess = (
            first[cells + 1] - np.exp(x[cells]) * second[cells + 1] + gamma(8) * first[cells + 1]
        )
        scale = self.saddle.log_moment - tilt * middle + self.relative
        outside = self.saddle.log_moment - tilt * self.saddle.high + self.relative
        heights = np.maximum(excess, 0.0) * (math.exp(min(scale, 700.0)) * (1 + gamma(64)))
        heights += self.saddle.above * math.exp(min(outside, 700.0)) * (1 + gamma(64))
        heights += up(self.infinite, roundings=5000)
        slack = self.slack + gamma(128) * (1 + abs(middle) + np.abs(self.losses[cells]))
        return self.losses[cells] + slack, np.minimum(heights, 1.0)

    def _crossing(self, tilted: Array, target: float, sign: int) -> float:
        """Find where the curve of `tilted`, erring to one side, equals `target`; 0 at least.

        Between two losses x_j < epsilon <= x_{j+1} the curve is
        C (S - e^{epsilon - r} R) with S, R sums over the losses above and C = e^{K - theta r}.
        """
        # `sign` is +1 for an upper end and -1 for a lower one; every error below moves with it.
        if target <= 0:
            return math.inf
        tilt = self.saddle.tilt
        # a reference at which e^{K - theta r} is the target: weights of order 1 where it matters
        reference = (self.saddle.log_moment - math.log(target)) / tilt
        middle = min(max(reference, float(self.losses[0])), float(self.losses[-1]))
        x = self.losses - middle
        weights = tilted * np.exp(np.clip(-tilt * x, -_CUTOFF, _CUTOFF))
        error = sign * _sum_error(len(x))
        first = np.cumsum(weights[::-1])[::-1] * (1 + error)
        exponents = -(tilt + 1) * x
        weights = tilted * (
            _subtrahends(exponents) if sign > 0 else np.exp(np.clip(exponents, -_CUTOFF, _CUTOFF))
        )
        second = np.cumsum(weights[::-1])[::-1] * (1 - error)
        log_scale = self.saddle.log_moment - tilt * middle + sign * self.relative
        goal = np.full_like(x, math.exp(min(_CUTOFF, math.log(target) - log_scale)))
        if sign < 0:  # mass wrapped into the sum
            wrapped = self.saddle.below + self.saddle.above
            goal += 2 * wrapped * np.exp(np.clip(-tilt * x, -_CUTOFF, _CUTOFF))
        with np.errstate(under="ignore"):  # what an upper end subtracts may vanish, not grow
            factor = np.exp(np.clip(x[:-1], -math.inf if sign > 0 else -_CUTOFF, _CUTOFF))
        excess = np.zeros_like(x)  # at each loss, from those above it
        excess[:-1] = first[1:] - factor * second[1:]
        is_above = excess > goal
        if sign < 0:  # cells whose weights were cut off certify nothing
            is_above &= np.abs((tilt + 1) * x) < _CUTOFF
        # The curve falls: the answer lies above the last loss at which it exceeds the target.
        if len(candidates := np.nonzero(is_above)[0]) == 0:
            return max(0.0, float(self.losses[0]) + self.slack) if sign > 0 else 0.0
        cell = int(candidates[-1])
        if cell == len(x) - 1:
            return math.inf
        # There the curve is C (S - e^x R), so that it equals the target at e^x = (S - goal) / R.
        surplus, weight = float(first[cell + 1]) - float(goal[cell]), float(second[cell + 1])
        if surplus > 0 and weight > 0:
            crossing = min(
                max(math.log(surplus) - math.log(weight), float(x[cell])), float(x[cell + 1])
            )
        else:
            crossing = float(x[cell + 1] if sign > 0 else x[cell])
        # Losses and logarithms are rounded: the answer moves outwards by that much.
        allowance = self.slack + gamma(128) * (1 + abs(middle) + abs(crossing))
        return max(0.0, (middle + crossing) + sign * allowance)


def _sum_error(cells: int) -> float:
    """Bound the relative error of a sum of exponentials.

    It covers each exponent, up to `_CUTOFF`, and the sum.
    """
    return gamma(max(2 * cells + 16, cells + 2 * _CUTOFF + 32))


def _subtrahends(exponents: Array) -> Array:
    """Return exponentials to subtract from an upper end: 0 if they would be cut off below."""
    with np.errstate(under="ignore"):
        exponentials = np.exp(np.minimum(exponents, _CUTOFF))
    return np.asarray(np.where(exponents > -_CUTOFF, exponentials, 0.0))


def compose(groups: Sequence[Group], saddle: Saddle, step: float) -> Composed:
    """Convolve all copies of all groups, which share `step`."""
    cells = scipy.fft.next_fast_len(math.ceil((saddle.high - saddle.low) / step) + 3, real=True)
    tilt = saddle.tilt
    origin = math.fsum(g.count * g.masses.first for g in groups)
    start = math.floor((saddle.low - origin) / step) - 1
    # Groups with equal counts are multiplied first, so that one power serves all of them.
    transforms: dict[int, Spectrum] = {}
    for group in groups:
        transform = scipy.fft.rfft(_wrap(_tilt_masses(group.masses, tilt), cells))
        if group.count in transforms:
            transforms[group.count] *= transform
        else:
            transforms[group.count] = transform
    product = _multiply_powers(transforms)
    copies = sum(g.count for g in groups)
    butterflies = gamma(2 * _BUTTERFLY * math.log2(cells))
    # a transform's inputs sum to 1; its products round by a few ulps each
    unit_error = butterflies + gamma(16)
    # (1 + e)^n - 1 <= n e e^{n e}: what n products make of one relative error.
    crude_error = copies * unit_error * math.exp(min(copies * unit_error, 700.0))
    size = np.abs(product)
    mean_size = (
        2 * math.fsum(size.tolist()) / cells if cells < 64 else 2 * float(np.sum(size)) / cells
    )
    error = 0.0
    cutoff = np.minimum(size + 2 * crude_error, 1.0)
    # The error of one copy meets the product of all other factors. Each is at most 1, so that this
    # is at most the whole product to the power 1 - 1/n; a smaller n only raises it.
    for floor, members in _count_by_size(groups).items():
        power_sum = float(np.sum(cutoff ** (1 - 1 / floor))) if floor > 1 else float(len(cutoff))
        error += members * unit_error * 2 * power_sum / cells
    error = (
        error * math.exp(min(copies * unit_error, 700.0)) + (butterflies + gamma(16)) * mean_size
    )
    tilted = np.roll(scipy.fft.irfft(product, cells), -(start % cells))
    losses = np.asarray(origin + step * (start + np.arange(cells)), float)
    scale = math.fsum(
        g.count * abs(tilt * x) for g in groups for x in (g.masses.first, g.masses.last)
    )
    # The logarithm of a relative error: errors multiply in the composition, so these add up.
    relative = gamma(128) * (abs(saddle.log_moment) + scale) + math.fsum(
        g.count * (g.masses.rounding + _tilt_rounding(g.masses, tilt)) for g in groups
    )
    log_finite = math.fsum(g.count * math.log1p(-min(g.masses.infinite, 1 - UNIT)) for g in groups)
    return Composed(
        losses=losses,
        tilted=tilted,
        cell_error=error,
        saddle=saddle,
        infinite=-math.expm1(log_finite),
        relative=relative,
        slack=gamma(32)
        * math.fsum(g.count * (abs(g.masses.first) + abs(g.masses.last)) for g in groups),
    )


def _tilt_masses(masses: Masses, tilt: float) -> Array:
    """Multiply masses by e^{tilt x}, normalised by the measure's own log moment."""
    x = masses.step * np.arange(len(masses.mass))
    # Normalised, the masses sum to 1, as the transform's error bound takes for granted.
    moment = float(_log_moment_table([masses], np.array([tilt]))[0, 0]) - tilt * masses.first
    exponent = tilt * x - moment
    with np.errstate(divide="ignore"):
        logs = np.log(masses.mass)
    return np.asarray(np.exp(exponent + logs))


def _tilt_rounding(masses: Masses, tilt: float) -> float:
    """Bound the rounding of `_tilt_masses`: an ulp of each exponent, twice, and of the moment."""
    cutoff = abs(tilt) * (masses.last - masses.first)
    return gamma(64 + 16 * cutoff + 16 * abs(tilt * masses.first) + 16 * 745)


def _wrap(values: Array, cells: int) -> Array:
    """Sum values over indices equal modulo `cells`."""
    if len(values) <= cells:
        return values if len(values) == cells else np.pad(values, (0, cells - len(values)))
    rows = -(-len(values) // cells)
    padded = np.pad(values, (0, rows * cells - len(values)))
    return np.asarray(padded.reshape(rows, cells).sum(axis=0))


def _multiply_powers(transforms: dict[int, Spectrum]) -> Spectrum:
    """Multiply all transforms, each to the power of its count, by one chain of squarings."""
    top = max(transforms).bit_length()
    result: Spectrum | None = None
    for bit in range(top - 1, -1, -1):
        if result is not None:
            result = result * result
        for count, transform in transforms.items():
            if count >> bit & 1:
                result = transform if result is None else result * transform
    assert result is not None
    return result


def _count_by_size(groups: Sequence[Group]) -> dict[int, int]:
    """Count copies by a lower end of their group's count, so that few powers are taken."""
    sizes: dict[int, int] = {}
    for group in groups:
        floor = next(edge for edge in (64, 8, 2, 1) if group.count >= edge)
        sizes[floor] = sizes.get(floor, 0) + group.count
    return sizes
