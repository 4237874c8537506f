r"""`l2_gamma`: noise of density exp(-xi ||b||_2): pure differential privacy from an l2 sensitivity.

In d >= 2 coordinates, with epsilon_0 = xi times the l2 sensitivity, the release is epsilon_0-DP
and, the worst shift being the longest (on every line along it the noise is log-concave),

.. math:: \delta(\epsilon)=E(1-e^{\epsilon-L})_+,\qquad
          L=\sqrt{r^2-2r\epsilon_0s+\epsilon_0^2}-r,

r ~ Gamma(d, 1), s = 2B - 1, B ~ Beta((d-1)/2, (d-1)/2), independent. L decreases in r and in s,
so that its values at the lower (upper) corners of cells certify the upper (lower) end. For every
tau in (0, 1)

.. math:: D_\alpha\le\tfrac1l\log\Big(e^{l\epsilon_0^2/(2\tau d)+l^2\epsilon_0^2/(2d)}
          +\Pr[r<\tau d]\,e^{l\epsilon_0}\Big),\quad l=\alpha-1,

by :math:`\sqrt{r^2+x}\le r+x/(2r)` where r >= tau d, :math:`Ee^{ts}\le e^{t^2/(2d)}`, and L <=
epsilon_0.

Source: Hardt & Talwar (2010), arXiv:0907.3754 (the mechanism); the curve and the Rényi bound as
above.
"""

import math
from functools import lru_cache
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import is_integer, need_field, positive
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.noise.continuous import direction, gamma
from dpcore.claims.mechanisms.noise.release import Executed, InFloats
from dpcore.event import Claims, Direction, Event, TwoEnds
from dpcore.mechanism import Arithmetic, Needs, Prepared, free
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import half_square, up
from dpcore.sensitivity import Distance, Sensitivity

_CUTOFF = 9.0  # cells reach this many standard deviations
_RADII, _ANGLES = 96, 2048
_LARGEST = 700.0  # nats: e^epsilon is a float up to here
_PAD = 1e-9  # relative, granted to the ends of cells
_ROUNDING = 1e-10  # relative, granted to sums of at most _RADII * _ANGLES terms
Array = NDArray[np.float64]


@lru_cache(maxsize=8)  # a calibration looks at one dimension at many epsilons
def _corners(d: int) -> tuple[Array, Array, Array, Array]:
    """Return the normal law's cells, shapes (97,) and (2049,), and r and s at their ends."""
    # r and s are cut into cells at quantiles of the normal distribution, from the smaller tail
    radii = np.linspace(-_CUTOFF, _CUTOFF, _RADII + 1)
    angles = np.linspace(-_CUTOFF, _CUTOFF, _ANGLES + 1)
    r = np.where(
        radii < 0,
        scipy.special.gammaincinv(d, scipy.special.ndtr(np.minimum(radii, 0.0))),
        scipy.special.gammainccinv(d, scipy.special.ndtr(-np.maximum(radii, 0.0))),
    )
    half = (d - 1) / 2
    beta = scipy.special.betaincinv(half, half, scipy.special.ndtr(-np.abs(angles)))
    s = np.where(angles < 0, 2 * beta - 1, 1 - 2 * beta)
    return radii, angles, r, s


@lru_cache(maxsize=32)  # of 2 MB each: a search for the noise asks ever other events
def _sums(epsilon_0: float, d: int, *, lower: bool) -> tuple[Array, Array, Array]:
    """Return sorted losses above 0 at corners, with sums of weight and weight e^{-L} above each."""
    radii, angles, r, s = _corners(d)
    # L decreases in r and s: upper corners give a lower end. Corners are padded outwards.
    sign = 1 if lower else -1
    r = r * (1 + sign * _PAD)
    s = np.clip(s + sign * _PAD * (np.abs(s) + 1 / math.sqrt(d)), -1.0, 1.0)
    r, s = (
        (np.append(r[1:-1], np.inf), np.append(s[1:-1], 1.0))
        if lower
        else (np.append(0.0, r[1:-1]), np.append(-1.0, s[1:-1]))
    )
    weights = np.outer(_normal_cells(radii), _normal_cells(angles)).ravel()
    losses = _loss(r[:, None], s[None, :], epsilon_0).ravel()
    # epsilon is not negative, so that only losses above 0 are ever summed; what is no number stays
    counts = ~(losses <= 0)
    losses, weights = losses[counts] * (1 - sign * 1e-14), weights[counts]
    # sums from each loss upwards, so that one look-up gives the curve at any epsilon
    order = np.argsort(losses)
    losses, weights = losses[order], weights[order]
    first, second = np.cumsum(weights[::-1]), np.cumsum((weights * np.exp(-losses))[::-1])
    return losses, np.append(first[::-1], 0.0), np.append(second[::-1], 0.0)


@attrs.frozen(kw_only=True)
class L2GammaEvent(Event, TwoEnds):
    """A vector moved by at most epsilon_0 / xi in l2.

    Args:
        epsilon: epsilon_0 = xi * l2_sensitivity, > 0.
        dimension: Number d of real coordinates, in [2, 10^9] (one coordinate: Laplace).
        adjacency: The relation under which the sensitivity holds.
    """

    symmetric: ClassVar[bool] = True

    epsilon_0: float = attrs.field(validator=positive, alias="epsilon")
    dimension: int = attrs.field()
    adjacency: Adjacency

    @dimension.validator
    def _several(self, attribute: object, value: object) -> None:
        is_valid = is_integer(value, 2) and self.dimension <= 10**9
        need_field(is_valid, self, "dimension", "a dimension in [2, 10^9]")

    def ends(self, epsilons: Array, direction: Direction, *, lower: bool) -> Array:
        """Sum over cells whose loss is above epsilon; the result is equal in both directions."""
        losses, first, second = _sums(self.epsilon_0, self.dimension, lower=lower)
        inside = np.minimum(
            epsilons, _LARGEST
        )  # the curve falls, so an upper end there serves beyond
        index = np.searchsorted(losses, inside, side="right")
        sign = -1 if lower else 1
        growth = np.exp(inside) * second[index]
        value = first[index] * (1 + sign * _ROUNDING) - growth * (1 - sign * _ROUNDING)
        value = np.clip(value, 0.0, 1.0)
        if lower:
            return np.where(epsilons > _LARGEST, 0.0, value)
        # the curve of any epsilon_0-DP release holds as well, and the lesser counts
        pure = -np.expm1(np.minimum(epsilons - self.epsilon_0, 0.0))
        pure = np.minimum(up(pure / (1 + math.exp(-self.epsilon_0)), roundings=20), 1.0)
        return np.minimum(value, pure)

    @property
    def claims(self) -> Claims:
        """epsilon_0, the largest loss; epsilon_0^2/2: Bun & Steinke (2016), Proposition 1.4."""
        return Claims(pure=self.epsilon_0, rho=half_square(self.epsilon_0), renyi=self._renyi)

    def largest_loss(self, direction: Direction) -> float | None:
        """Return None: the largest loss has probability 0."""
        return None

    def _renyi(self, orders: Array) -> Array:
        """Return the bound above over a net of tau; at most min(epsilon_0, alpha epsilon_0^2/2)."""
        best = np.minimum(self.epsilon_0, orders * half_square(self.epsilon_0))
        d, excess = self.dimension, orders - 1
        square = self.epsilon_0 * self.epsilon_0
        # every tau gives a valid bound; the net tries r down to 12 deviations below its mean
        for deviations in np.linspace(0.5, 12.0, 24):
            if (tau := 1 - deviations / math.sqrt(d)) <= 0:
                continue
            tail = float(scipy.special.gammainc(d, tau * d)) * (1 + _ROUNDING) + 1e-300
            inner = excess * square / (2 * tau * d) + excess * excess * (square / (2 * d))
            value = np.logaddexp(inner, math.log(tail) + excess * self.epsilon_0) / excess
            best = np.minimum(best, value * (1 + 1e-12) + 1e-15 / excess)
        return best


def _normal_cells(ends: Array) -> Array:
    """Return normal probabilities between ends.

    The outer cells include the tails, so that all sum to 1.
    """
    lower, upper = scipy.special.ndtr(ends), scipy.special.ndtr(-ends)
    cells = np.where(ends[:-1] < 0, np.diff(lower), -np.diff(upper))
    cells[0] += lower[0]
    cells[-1] += upper[-1]
    return np.asarray(cells)


def _loss(r: Array, s: Array, epsilon: float) -> Array:
    """Return sqrt(r^2 - 2 r e s + e^2) - r, without cancellation, also at r = inf."""
    finite = np.where(np.isfinite(r), r, 1.0)
    root = np.sqrt((finite - epsilon * s) ** 2 + epsilon * epsilon * (1 - s) * (1 + s))
    value = epsilon * (epsilon - 2 * finite * s) / (root + finite)
    return np.asarray(np.where(np.isfinite(r), value, -epsilon * s))


@attrs.frozen(kw_only=True)
class L2Gamma(Executed):
    r"""A vector of uniform direction and length Gamma(d) * noise_scale, d real coordinates.

    Its density is proportional to :math:`e^{-\|b\|_2/\text{noise\_scale}}`, so that the release is
    epsilon-DP for :math:`\epsilon=\Delta/\text{noise\_scale}`, exactly; at delta > 0 it costs about
    what a Gaussian of :math:`\mu=\epsilon/\sqrt d` does (T8). A complex entry is two real
    coordinates. With one coordinate it is the Laplace mechanism. Real arithmetic: float noise can
    leak through its low bits (Mironov 2012).

    Args:
        noise_scale: 1/xi of T8, in the units of the statistic; calibrated if left out.

    Source: Hardt & Talwar (2010), arXiv:0907.3754; theorem T8.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, additive=True, persons=True)
    arithmetic: ClassVar[Arithmetic] = "real"
    source: ClassVar[str] = "Hardt & Talwar (2010), arXiv:0907.3754; curve T8"
    rule: ClassVar[tuple[str, ...]] = ("l2_gamma", "noise_scale")

    noise_scale: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "L2Gamma":
        """Set epsilon = sqrt(d)/scale, which costs about mu = 1/scale at delta > 0."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit / math.sqrt(query.real_size))

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the curve of the longest shift; a Laplace event for one coordinate."""
        epsilon = up(sensitivity.unit / self.noise_scale, roundings=3)
        if query.real_size == 1:
            return LaplaceEvent(shift=epsilon, adjacency=sensitivity.adjacency)
        return L2GammaEvent(
            epsilon=epsilon, dimension=query.real_size, adjacency=sensitivity.adjacency
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare draws of noise_scale r u, r ~ Gamma(d), u uniform on the sphere."""
        scale = self.noise_scale

        def draw(count: int, noise: Stream) -> NDArray[np.float64]:
            length = scale * float(gamma(np.array([float(count)]), noise)[0])
            return length * direction(count, noise)

        return InFloats(draw)
