r"""The best of a random number of runs (random stopping): choosing hyperparameters privately.

A release is run K times on the same records and only the best run is published, K drawn before from
a public law, all runs from one release `event`.

* K truncated negative binomial of shape eta > -1 and gamma in (0, 1): for every order lambda and
  every order lambda' > 1 at which `event` is bounded,

  .. math:: r'(\lambda) \le r(\lambda) + (1+\eta)\Big(1-\tfrac1{\lambda'}\Big) r(\lambda')
            + \frac{(1+\eta)\log(1/\gamma)}{\lambda'} + \frac{\log E[K]}{\lambda-1} .

* K Poisson of mean m (the limit of the shape): if `event` is (epsilon, delta)-DP with
  :math:`e^{\epsilon}\le1+1/(\lambda-1)`,

  .. math:: r'(\lambda) \le r(\lambda) + m\,\delta + \frac{\log m}{\lambda-1} .

Source: Papernot & Steinke (2022), arXiv:2110.03620v2, Theorem 2 and Theorem 6.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import need_field, positive
from dpcore.errors import NoClaimError, ParameterError, need, need_value
from dpcore.events.base import CompoundEvent, Direction
from dpcore.events.renyi_curve import renyi_to_delta
from dpcore.rounding import down, up

_ORDERS = 1 + np.geomspace(1e-2, 1e4, 121)
_POISSON = math.inf


@attrs.frozen(kw_only=True)
class RandomStoppingEvent(CompoundEvent):
    """The best of K runs of `event`.

    Args:
        event: One run, its own score included; with Rényi divergences.
        mean: E[K]; > 1, or > 0 for a Poisson K.
        shape: eta > -1: 1 is a geometric K, 0 a logarithmic one; infinite for a Poisson K.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # an upper bound

    mean: float = attrs.field(validator=positive)
    shape: float = attrs.field(default=_POISSON)

    def __attrs_post_init__(self) -> None:
        need_field(self.shape > -1, self, "shape", "a shape > -1 (infinite: Poisson)")
        need_field(self.shape >= _POISSON or self.mean > 1, self, "mean", "a mean > 1")
        need_value(
            self.event.renyi(np.array([2.0])),
            ParameterError,
            "RandomStoppingEvent",
            "an event with Rényi divergences",
            "event",
            self.event.label,
        )

    def _log_inverse_gamma(self) -> float:
        """log(1/gamma) of the law with this mean, rounded up."""
        eta, mean = self.shape, self.mean
        # the geometric law has E[K] = 1/gamma
        if eta == 1:
            return up(math.log(mean), roundings=10)

        def excess(log_inverse: float) -> float:
            """log E[K] minus the log of the mean to reach; it rises with `log_inverse`."""
            one_minus_gamma = -math.expm1(-log_inverse)  # 1 - gamma
            if eta == 0:
                log_mean = math.log(one_minus_gamma) + log_inverse - math.log(log_inverse)
            else:
                log_mean = (
                    math.log(eta * one_minus_gamma / -math.expm1(-eta * log_inverse)) + log_inverse
                )
            return log_mean - math.log(mean)

        # a larger log(1/gamma) only raises the bound, so any value above the root may be returned
        above = 1e-9
        while excess(above) < 0:
            above *= 2
            need(
                above <= 300,
                NoClaimError,
                f"{self.label}: no law of shape {eta!r} has so large a mean",
            )
        if above == 1e-9:
            return above
        root = scipy.optimize.brentq(excess, above / 2, above, xtol=1e-14, rtol=1e-13)
        return up(root * (1 + 1e-9), roundings=10)

    def renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bounds above, at the best order lambda' of a net."""
        base = self.event.renyi(orders)
        net = self.event.renyi(_ORDERS)
        assert base is not None
        assert net is not None
        # each branch is one theorem: Poisson is Theorem 6, negative binomial Theorem 2
        excess = orders - 1
        if self.shape == _POISSON:
            value = base + self.mean * self._delta_at_orders(orders)
            value = value + max(0.0, math.log(self.mean)) / excess
            # where the mean is below 1 its logarithm would help: it is left out
        else:
            # lambda' is free, and its terms do not depend on lambda: one minimum serves all orders
            candidates = (1 - 1 / _ORDERS) * net + self._log_inverse_gamma() / _ORDERS
            surcharge = (1 + self.shape) * float(np.min(candidates))
            value = base + surcharge + math.log(self.mean) / excess
        return np.asarray(up(value, roundings=200))

    def _delta_at_orders(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """delta at epsilon = log(1 + 1/(lambda - 1)), both directions."""
        # a smaller epsilon has a larger delta, so it is rounded down
        epsilons = down(np.log1p(1 / (orders - 1)), roundings=10)
        # the curve is asked at increasing epsilons, and put back in the order of `orders`
        ranks = np.argsort(epsilons)
        value = np.empty_like(epsilons)
        value[ranks] = np.max([self.event.curve(epsilons[ranks], way) for way in Direction], axis=0)
        return value

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The delta that the divergences above imply, the same in both directions, shape (k,)."""
        return renyi_to_delta(_ORDERS, self.renyi(_ORDERS), epsilons)
