r"""Additive integer noise by its law: how it is drawn, and the probability of every integer.

With weights w(k), proportional to the probabilities of the noise, and a statistic that moves by an
integer s, the curve is

.. math:: \delta_s(\epsilon) = \frac{\sum_k (w(k) - e^\epsilon w(k-s))_+}{\sum_k w(k)} ,

and the largest of all s with |s| at most the sensitivity is claimed. Where
:math:`w(k+T)=e^{-c}w(k)` beyond `start` (and so on the other side), the pairs
:math:`(w(k),w(k-s))` with :math:`|k|\ge start+|s|` repeat with the same factor, so that one period
represents the whole tail and all sums are finite and exact up to rounding. Where weights are only
known to fall at least so fast, the tail's mass is counted as an infinite loss.

Several coordinates, together moved by at most S in l1: the largest loss of a shift s of one
coordinate, L(s), is subadditive in s, so that the release is pure with
:math:`\epsilon=\min(S\,L(1),\,d\,\max_{s\le S}L(s))`. Without a largest loss it is the composition
of d coordinates that all move by S.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.claims.events.composition import repeated
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.events.renyi_curve import CurveEvent
from dpcore.claims.mechanisms.noise.grid import Grid
from dpcore.claims.mechanisms.noise.release import (
    Integers,
    LaplaceNoise,
    OnGrid,
    OnIntegers,
    drawable,
)
from dpcore.errors import ContractError, need
from dpcore.event import Event
from dpcore.interval import TabulatedDistribution
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import gamma, up
from dpcore.sensitivity import AnySensitivity, Sensitivity

_ERROR = 2.0**-48  # of a log weight, and of 1 more
_KNOTS = 257
_DIGITS = 9  # of the losses that become knots: any knot is a sound one
_LARGEST = 1 << 22  # entries of a table, and pairs of a curve
_LEAST = 2.0**-1000  # of a delta below the largest loss: no small weight is rounded to 0
_CUTOFF = (1, 2, 5, 64)  # periods beyond the table at which its repetition is tried


@attrs.frozen(kw_only=True)
class IntegerDistribution:
    """The distribution of noise on the integers.

    Args:
        draw: So many independent draws from a stream, int64, shape (count,): exact, by randomness.
        log_weight: Natural logarithm of the probability of each integer, up to one constant for
            all; -inf where it is 0. Shape of its argument. It may err by 2^-48 (1 + |value|).
        period: T above, an integer >= 1.
        decay: c above, > 0: log_weight(k + T) is log_weight(k) - c for k >= start, and
            log_weight(k - T) is that for k <= -start.
        start: From which distance on the weights repeat, an integer >= 0.
        thin: Whether weights beyond `start` are at most what `decay` says, which bounds their sum
            but no loss: then no pure epsilon is claimed.

    Raises:
        ContractError: by its methods, where `log_weight` does not do what the others say.
    """

    draw: Integers
    log_weight: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    period: int
    decay: float
    start: int = 0
    thin: bool = False

    def __attrs_post_init__(self) -> None:
        need(
            self.period >= 1 and self.start >= 0 and 0 < self.decay < math.inf,
            ContractError,
            "an IntegerDistribution needs a period >= 1, a finite decay > 0 and a start >= 0, got "
            f"period={self.period!r}, decay={self.decay!r}, start={self.start!r}",
        )

    def sample(self, count: int, stream: Stream) -> NDArray[np.int64]:
        """Draw by `draw`, and check that it gives one integer for each coordinate."""
        values = self.draw(count, stream)
        need(
            values.shape == (count,) and values.dtype == np.int64,
            ContractError,
            f"`draw` must return int64 of shape ({count},), returned {values.dtype} of shape "
            f"{values.shape}",
        )
        return values

    def event(self, shift: int, dimension: int, adjacency: Adjacency) -> Event:
        """Return the claim for `dimension` coordinates that move by `shift` at most, in l1.

        Raises:
            ParameterError: the tables would be too large.
        """
        if dimension == 1:
            return self._curve(shift, adjacency)
        step, largest = self._largest_loss(1), self._largest_loss(shift)
        if math.isinf(largest):
            return repeated(self._curve(shift, adjacency), dimension)
        epsilon = up(min(shift * step, dimension * largest), roundings=3)
        return PureEvent(epsilon=epsilon, adjacency=adjacency)

    def noise_distribution(self, step: float, rounding: float) -> TabulatedDistribution:
        """Return the distribution of the noise on one number, in steps of that size."""
        # 0 has one sign, and what repeats it two
        start = max(1, self.start)
        cutoff = start + self.period
        logs, error = self._log_weights(cutoff)
        # masses of |noise| = 0, 1, ..., reach - 1; the last period represents all that follow
        weights = np.exp(logs - logs.max())[1:-1]
        masses = weights[cutoff - 1 :].copy()
        masses[1:] += weights[: cutoff - 1][::-1]
        ratio, gap = math.exp(-self.decay), -math.expm1(-self.decay)
        places, last = np.arange(cutoff, dtype=np.float64), masses[start:]
        tail = last.sum() / gap
        total = masses[:start].sum() + (0.0 if self.thin else tail)
        beyond = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0) + ratio * tail
        # sum over n >= 0 of ratio^n (j + n T)^2, for each place j of the last period
        moments = places[start:] ** 2 / gap
        moments += 2 * places[start:] * self.period * ratio / gap**2
        moments += self.period**2 * ratio * (1 + ratio) / gap**3
        second = masses[:start] @ places[:start] ** 2 + last @ moments
        return TabulatedDistribution(
            step=step,
            beyond=np.minimum(beyond / total * (1 + 4 * error), 1.0),
            period=self.period,
            decay=float(self.decay),
            deviation=math.sqrt(second / total) * (1 + 4 * error),
            rounding=rounding,
        )

    def _log_weights(self, cutoff: int) -> tuple[NDArray[np.float64], float]:
        """Return log weights of -cutoff, ..., cutoff, and a relative error of weights and sums."""
        need(
            cutoff <= _LARGEST,
            "additive noise",
            f"a table of the noise within {_LARGEST} steps (take laplace, or more budget)",
            "reach",
            cutoff,
        )
        places = np.arange(-cutoff, cutoff + 1)
        logs = np.asarray(self.log_weight(places), dtype=np.float64)
        need(
            logs.shape == places.shape and bool((logs < math.inf).all()) and logs.max() > -math.inf,
            ContractError,
            "`log_weight` must return a number below infinity for every integer, not all -inf",
        )
        # what represents the tails must be what they are: the period after `start`, and far away
        first = self.start + np.arange(self.period)
        for side in (1, -1):
            near = np.asarray(self.log_weight(side * first), dtype=np.float64)
            for count in _CUTOFF:
                distance = np.asarray(self.log_weight(side * (first + count * self.period)))
                expected = near - count * self.decay
                allowed = 4 * _ERROR * (1 + np.abs(expected))
                with np.errstate(invalid="ignore"):
                    agree = (distance <= expected + allowed) & (
                        self.thin | (distance >= expected - allowed)
                    )
                need(
                    bool((agree | (distance == expected)).all()),
                    ContractError,
                    f"`log_weight` does not fall by decay={float(self.decay)!r} in "
                    f"{self.period} steps from {side * self.start} on",
                )
        size = np.abs(logs[np.isfinite(logs)]).max()
        return logs, 4 * _ERROR * (1 + float(size)) + gamma(4 * logs.size)

    def _largest_loss(self, shift: int) -> float:
        """Return L above, the largest of all shifts up to `shift`; infinite if there is none."""
        cutoff = self.start + shift + self.period
        logs, error = self._log_weights(cutoff + shift)
        if self.thin or bool(np.isneginf(logs).any()):
            return math.inf
        # the least log weight within `shift` of each place, on either side
        lowest = scipy.ndimage.minimum_filter1d(logs, 2 * shift + 1)
        return float((logs - lowest)[shift : logs.size - shift].max()) + error

    def _curve(self, shift: int, adjacency: Adjacency) -> CurveEvent:
        """Return the largest of the curves of all shifts up to `shift`, at knots."""
        cutoff = self.start + shift + self.period
        logs, error = self._log_weights(cutoff + shift)
        places = np.arange(-cutoff, cutoff + 1)
        # the outermost period represents the whole tail; what it repeats ends before `cutoff`
        tails = (np.abs(places) >= self.start + shift) & (np.abs(places) < cutoff)
        factors = np.where(np.abs(places) < self.start + shift, 1.0, 0.0)
        factors[tails] = -1 / math.expm1(-self.decay)
        weights = np.exp(logs - logs.max())
        inner = slice(shift, logs.size - shift)
        first = weights[inner] * factors
        # of thin tails only the mass is known: it is lost, and divided by no more than the total
        lost = 0.0
        if self.thin:
            lost, factors = float(first[tails].sum()), np.where(tails, 0.0, factors)
            first = weights[inner] * factors
        mirrored = np.array_equal(logs, logs[::-1])
        shifts = [s for s in range(-shift, shift + 1) if s > 0 or (s < 0 and not mirrored)]
        need(
            len(shifts) * places.size <= _LARGEST,
            "additive noise",
            f"at most {_LARGEST} pairs of steps and shifts (take laplace, or more budget)",
            "pairs",
            len(shifts) * places.size,
        )

        def pairs(s: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            """Return losses, raised by their error, and the weights of the shifted noise."""
            moved = slice(shift - s, logs.size - shift - s)
            with np.errstate(invalid="ignore"):
                losses = logs[inner] - logs[moved] + 2 * error
            return np.where(first > 0, losses, -math.inf), weights[moved] * factors

        knots = self._knots([pairs(s)[0] for s in (shift, shifts[0])])
        top = max(float(np.max(pairs(s)[0], initial=0.0, where=first > 0)) for s in shifts)
        deltas = np.zeros(knots.size)
        for s in shifts:
            losses, second = pairs(s)
            order = np.argsort(-losses)
            p = np.concatenate([[0.0], np.cumsum(first[order])])
            q = np.concatenate([[0.0], np.cumsum(second[order])])
            count = np.searchsorted(-losses[order], -knots)  # how many are above each knot
            value = (1 + error) * p[count] - np.exp(np.minimum(knots, 700)) * (1 - error) * q[count]
            deltas = np.maximum(deltas, value)
        total = float(first.sum()) * (1 - error)
        deltas = np.minimum(up(deltas + lost * (1 + error), roundings=20) / total + _LEAST, 1.0)
        # at the largest loss the curve is 0, if there is one
        if math.isfinite(top) and not self.thin:
            below = knots < top
            knots, deltas = np.append(knots[below], top), np.append(deltas[below], 0.0)
        # a curve never rises: where roundings made it, the larger value counts
        deltas = np.maximum.accumulate(deltas[::-1])[::-1]
        return CurveEvent(epsilons=knots, deltas=deltas, adjacency=adjacency)

    @staticmethod
    def _knots(losses: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return 0 and the positive losses to some digits; evenly spaced ones if these are many."""
        finite = np.concatenate(losses)
        finite = np.unique(np.round(finite[np.isfinite(finite) & (finite > 0)], _DIGITS))
        knots = np.union1d([0.0], finite)
        if knots.size > _KNOTS or knots.size < 2:
            knots = np.linspace(0.0, max(1.0, float(knots[-1])), _KNOTS)
        return knots


@attrs.frozen(kw_only=True)
class AdditiveNoise(LaplaceNoise):
    """Integer noise on every real coordinate, by its law only: the rest is derived from it.

    Statistics that are integers stay integers. Others are rounded to a public grid, whose step is
    at most 1/(50 d) of the sensitivity, so that the l1 sensitivity grows by d steps. The event, the
    intervals and the release follow from the law. Exact arithmetic.

    Args:
        noise_scale: In the units of the statistic; calibrated if left out.
    """

    arithmetic: ClassVar[Arithmetic] = "exact"

    @abstractmethod
    def distribution(self, shift: int, scale: Fraction) -> IntegerDistribution:
        """Return the distribution of the noise on each coordinate. No loss may rise with the scale.

        Args:
            shift: By how many steps a statistic moves at most, >= 1, in l1.
            scale: `noise_scale` in steps, exactly.
        """

    def grid(self, query: Query, sensitivity: AnySensitivity) -> Grid:
        """Return a coarser grid than others have, so that the law's tables are small."""
        return Grid.for_release(sensitivity.smallest, query.real_size, sensitivity.distance, 50)

    def distribution_of(
        self, query: Query, sensitivity: Sensitivity
    ) -> tuple[IntegerDistribution, int]:
        """Return the law for a query, and by how many steps its statistic moves at most.

        Raises:
            ParameterError: the sensitivity is too far from 1 for a grid.
            ReleaseError: the noise is wider than 2^53 steps.
        """
        scale = Fraction(self.noise_scale)
        steps = Fraction(sensitivity.unit)
        if query.values != "integers":
            steps = self.grid(query, sensitivity).sensitivity(sensitivity.unit)
            scale = scale / Fraction(sensitivity.unit) * steps
        # vectors of integers are an integer apart in l1
        shift = max(1, math.floor(steps))
        return self.distribution(shift, drawable(scale)), shift

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the claim of the law, for so many coordinates and steps.

        Raises:
            ParameterError: its tables would be too large, or no grid fits.
        """
        distribution, shift = self.distribution_of(query, sensitivity)
        return distribution.event(shift, query.real_size, sensitivity.adjacency)

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> TabulatedDistribution:
        """Return the law itself; on the grid, half a step of rounding is added."""
        distribution, _ = self.distribution_of(query, sensitivity)
        step = 1.0 if query.values == "integers" else self.grid(query, sensitivity).step
        return distribution.noise_distribution(
            step, 0.0 if query.values == "integers" else step / 2
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the law, which the plan determines."""
        distribution, _ = self.distribution_of(query, sensitivity)
        if query.values == "integers":
            return OnIntegers(distribution.sample)
        return OnGrid(self.grid(query, sensitivity), distribution.sample)
