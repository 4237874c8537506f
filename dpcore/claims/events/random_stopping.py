r"""The best of a random number of runs (random stopping): choosing hyperparameters privately.

A release is run K times on the same records and only the best run is published, K drawn before from
a public law, all runs from one release `event`.

* K truncated negative binomial of shape eta > -1 and gamma in (0, 1), :math:`w(c)=
  (\gamma/(\gamma+(1-\gamma)c))^{1+\eta}`; K Poisson of mean m, w(c) = e^{-mc}: f'(1-c) = E[K] w(c),
  f the law's generating function.

An answer y that a share c of single runs beats on one side, c' on the other (any number between two
shares, where runs tie), is published with density :math:`f'(1-c)\,q(y)`, and
:math:`f'(1-c')\,q'(y)`. Whatever the scores, c' is at most :math:`g(c)=\inf_\epsilon
e^\epsilon c+\delta_{rev}(\epsilon)`, delta the curve of `event`. With l = q/q' and
:math:`h(r)=\max_c\,(w(c)\,r-w(g(c)))_+`, a = e^epsilon >= 1, what is published costs at most

.. math:: E[K]\,\int a\,h(l/a)\,dq' = E[K]\int H(as)\,d\nu(s) ,\qquad h(r)=\int(r-s)_+\,d\nu(s) ,

H(e^epsilon) = delta(epsilon). h is convex, 0 up to the least w(g(c))/w(c), nowhere steeper than 1,
and below its chords: nu is a few weights. A score that ranks the most saying answers just below a
share c of the least saying ones comes near it. As for all events, the bound holds in composition.

Divergences: for every order lambda and every order lambda' > 1 at which `event` is bounded,

.. math:: r'(\lambda) \le r(\lambda) + (1+\eta)\Big(1-\tfrac1{\lambda'}\Big) r(\lambda')
          + \frac{(1+\eta)\log(1/\gamma)}{\lambda'} + \frac{\log E[K]}{\lambda-1} ;

K Poisson of mean m: if `event` is (epsilon, delta)-DP with :math:`e^{\epsilon}\le1+1/(\lambda-1)`,

.. math:: r'(\lambda) \le r(\lambda) + m\,\delta + \frac{\log m}{\lambda-1} .

Source: Papernot & Steinke (2022), arXiv:2110.03620v2, Theorems 2 and 6 (divergences); Koskela,
Redberg & Wang (2024), arXiv:2402.06137 (curves, sharpened as above).
"""

import functools
import math
from functools import partial
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import need_field, positive
from dpcore.errors import NoClaimError, need
from dpcore.event import (
    Claims,
    CompoundEvent,
    Direction,
    Divergences,
    VectorCurve,
    extended_curve,
    label_of,
)
from dpcore.rounding import down, up

_ORDERS = 1 + np.geomspace(1e-2, 1e4, 121)
_POISSON = math.inf
_FRACTIONS = 1 << 16  # c
_HINGES = 64  # weights of nu
_STEEP = 3.0  # log of r: chords of h end here
_LEAST, _STEEPEST = 1e-9, 300.0  # log(1/gamma)
_LIMIT = 600.0
_LOSSES = np.concatenate([-np.geomspace(_LIMIT, 1e-7, 900), [0.0], np.geomspace(1e-7, _LIMIT, 900)])


@attrs.frozen(kw_only=True)
class RandomStoppingEvent(CompoundEvent, VectorCurve):
    """The best of K runs of `event`.

    Args:
        event: One run, its own score included.
        mean: E[K]; > 1, or > 0 for a Poisson K.
        shape: eta > -1: 1 is a geometric K, 0 a logarithmic one; infinite for a Poisson K.
    """

    attained: ClassVar[bool] = False  # an upper bound

    mean: float = attrs.field(validator=positive)
    shape: float = attrs.field(default=_POISSON)

    def __attrs_post_init__(self) -> None:
        need_field(self.shape > -1, self, "shape", "a shape > -1 (infinite: Poisson)")
        need_field(self.shape >= _POISSON or self.mean > 1, self, "mean", "a mean > 1")

    def _log_inverse_gamma(self) -> float:
        """Return log(1/gamma) of the law with this mean, rounded up."""
        eta = self.shape or 1e-13  # the limit is reached to far less than is rounded up

        def excess(log_inverse: float) -> float:
            """Return log E[K] minus the log of the target mean; it rises with `log_inverse`."""
            ratio = eta * math.expm1(-log_inverse) / math.expm1(-eta * log_inverse)
            return math.log(ratio) + log_inverse - math.log(self.mean)

        need(
            excess(_STEEPEST) >= 0,
            NoClaimError,
            f"{label_of(self)}: no law of shape {self.shape!r} has so large a mean",
        )
        # rounded up, since a larger log(1/gamma) only raises the divergences
        if excess(_LEAST) >= 0:
            return _LEAST
        root = scipy.optimize.brentq(excess, _LEAST, _STEEPEST, xtol=1e-14, rtol=1e-13)
        return up(root * (1 + 1e-9), roundings=10)

    def falls(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return -log w at fractions c in [0, 1]."""
        if self.shape == _POISSON:
            return self.mean * fraction
        top = self._log_inverse_gamma()
        gamma = math.exp(-top)
        return (1 + self.shape) * (top + np.log(gamma + (1 - gamma) * fraction))

    @property
    def claims(self) -> Claims:
        """The divergences above; None where one run has none."""
        run = self.event.claims.renyi
        return Claims(renyi=None if run is None else partial(self._renyi, run))

    def _renyi(self, run: Divergences, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bounds above, at the best order lambda' of a net."""
        base, net = run(orders), run(_ORDERS)
        # each branch is one theorem: Poisson is Theorem 6, negative binomial Theorem 2
        excess = orders - 1
        if self.shape == _POISSON:
            value = base + self.mean * self._delta_at_orders(orders)
            value = value + max(0.0, math.log(self.mean)) / excess
            # where the mean is below 1 its logarithm would help: it is left out
        else:
            # lambda' is free, and its terms do not depend on lambda: one minimum serves all orders
            surcharges = (1 - 1 / _ORDERS) * net + self._log_inverse_gamma() / _ORDERS
            value = base + (1 + self.shape) * np.min(surcharges) + math.log(self.mean) / excess
        return np.asarray(up(value, roundings=200))

    def _delta_at_orders(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return delta at epsilon = log(1 + 1/(lambda - 1)), both directions."""
        # a smaller epsilon has a larger delta, so it is rounded down
        epsilons = down(np.log1p(1 / (orders - 1)), roundings=10)
        # the curve is asked at increasing epsilons, and put back in the order of `orders`
        ranks = np.argsort(epsilons)
        value = np.empty_like(epsilons)
        value[ranks] = np.max(
            [self.event.curve.upper(epsilons[ranks], way) for way in Direction], axis=0
        )
        return value

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the bound above at an array of epsilons >= 0, shape (k,)."""
        shifts, weights = _hinges(self, direction)
        # a curve falls: moved to the left, sums that are rounded err upwards
        at = epsilons + shifts[:, None] - 1e-15 * (1 + epsilons + abs(shifts[:, None]))
        # one call for all hinges: a curve takes sorted epsilons
        points, places = np.unique(at, return_inverse=True)
        heights = extended_curve(self.event, points, direction, lower=False)
        # added in order: the last bits of a product of matrices differ between machines
        heights = (weights[:, None] * heights[places].reshape(at.shape)).sum(axis=0)
        return np.asarray(np.minimum(up(self.mean * heights, roundings=1000), 1.0))


@functools.lru_cache(maxsize=64)  # a pure function, asked at many epsilons
def _hinges(
    event: RandomStoppingEvent, direction: Direction
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log s and nu(s), the latter rounded up, of chords above h."""
    a = np.exp(_LOSSES)
    heights = extended_curve(event.event, _LOSSES, direction.reverse, lower=False)
    # where the lines a c + height of neighbours cross, so that g takes the lower one of them
    crossings = np.maximum.accumulate(((heights[:-1] - heights[1:]) / np.diff(a))[::-1])

    def most(fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        line = len(a) - 1 - np.searchsorted(crossings, fraction)
        return np.asarray(np.minimum(up(a[line] * fraction + heights[line], roundings=10), 1.0))

    # shares so near to each other that w and w(g) fall by small parts
    fraction = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, _FRACTIONS)])
    # between two shares w is at most that of the first, w(g) at least that of the second
    fall, later = event.falls(fraction[:-1]), event.falls(most(fraction[1:]))
    # gamma is known to a part in 2e-9 of its logarithm
    errs = 1e-12 + (0.0 if event.shape == _POISSON else (1 + event.shape) * 1e-8 * (1 + fall[-1]))
    slope, offset = errs - fall, fall - later - errs - 1e-15 * later
    first = float(np.min(offset)) - 1e-9
    need(first > -_LIMIT, NoClaimError, f"{label_of(event)}: so many runs say all")
    # nearer to each other where h begins to rise, which ends a curve
    logs = first + (_STEEP - first) * np.linspace(0.0, 1.0, _HINGES) ** 2
    r, slope, offset = np.exp(logs), np.exp(np.minimum(slope, 0.0)), np.exp(offset)
    # where a weight vanished in rounding, this is more
    h = np.array([np.max(slope * np.maximum(up(at, roundings=16) - offset, 0.0)) for at in r])
    h = np.concatenate([[0.0], up(h[1:] + 1e-290, roundings=16)])
    bends = np.diff(np.concatenate([[0.0], np.diff(h) / np.diff(r), [1.0]]))
    return logs, bends
