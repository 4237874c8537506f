"""PrivacyBudget: the target that a spec asks for."""

import math

import attrs

from dpcore.checks import is_finite, need_field, need_positive, unboxed
from dpcore.claims.accounting.conversions import zcdp_to_epsilon
from dpcore.claims.events.gaussian import gaussian_epsilon, gaussian_mu
from dpcore.errors import need

_LEAST_DELTA, _LEAST_EPSILON, _LARGEST_EPSILON = 1e-300, 1e-150, 1e150


@attrs.frozen(kw_only=True)
class PrivacyBudget:
    """(epsilon, delta): epsilon in nats, in [1e-150, 1e150]; delta 0 or in [1e-300, 1).

    delta = 0 asks for pure differential privacy, which a Gaussian mechanism cannot give.

    Args:
        rho: If given, noise is calibrated to rho-zCDP, and (epsilon, delta) is what that implies.
    """

    epsilon: float = attrs.field(converter=unboxed)
    delta: float = attrs.field(default=0.0, converter=unboxed)
    rho: float | None = attrs.field(default=None, converter=unboxed)

    def __attrs_post_init__(self) -> None:
        # Noise in floats meets none that is tiny or huge: sums and squares of it are not finite.
        is_positive = is_finite(self.epsilon) and self.epsilon > 0
        limits = f"{_LEAST_EPSILON} and {_LARGEST_EPSILON}"
        need_field(
            is_positive and _LEAST_EPSILON <= self.epsilon <= _LARGEST_EPSILON,
            self,
            "epsilon",
            f"an epsilon between {limits}" if is_positive else "a finite epsilon > 0",
            owner="budget",
        )
        # No curve is computed below: a smaller delta would only be an expensive 0.
        need_field(
            is_finite(self.delta) and (self.delta == 0 or _LEAST_DELTA <= self.delta < 1),
            self,
            "delta",
            f"a delta that is 0 or in [{_LEAST_DELTA}, 1)",
            owner="budget",
        )
        need_field(
            self.rho is None or (is_finite(self.rho) and self.rho > 0),
            self,
            "rho",
            "a finite rho > 0, or none",
            owner="budget",
        )

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "PrivacyBudget":
        """Return the (epsilon, delta) that mu-Gaussian-DP implies (Dong, Roth & Su 2022, Cor.
        2.13).
        """
        need_positive("budget", mu=mu)
        need(0 < delta < 1, "budget", "a delta in (0, 1) next to mu", "delta", delta)
        epsilon = gaussian_epsilon(delta, mu)
        # So small a mu already is (0, delta)-DP: no epsilon > 0 is what it implies at delta.
        need(epsilon != 0, "budget", "a mu that is not below delta altogether", "mu", mu)
        return cls(epsilon=epsilon, delta=delta)

    @classmethod
    def from_rho(cls, rho: float, delta: float) -> "PrivacyBudget":
        """Create a budget of rho-zCDP, with the (epsilon, delta) that it implies.

        Source: Canonne, Kamath & Steinke (2020).
        """
        need_positive("budget", rho=rho)
        need(0 < delta < 1, "budget", "a delta in (0, 1) next to rho", "delta", delta)
        epsilon = zcdp_to_epsilon(rho, delta)
        need(epsilon != 0, "budget", "a rho that is not below delta altogether", "rho", rho)
        return cls(epsilon=epsilon, delta=delta, rho=rho)

    def delta_with(self, gamma: float) -> float:
        """Return delta less a failure probability, rounded down: the two never exceed `delta`.

        `delta` itself if gamma is 0.

        Args:
            gamma: In [0, delta), itself a sum of floats whose rounding is one unit at most.
        """
        if gamma == 0.0:
            return self.delta
        # gamma is rounded up and the difference down, so that the exact sum is at most delta.
        return max(0.0, math.nextafter(self.delta - math.nextafter(gamma, 1.0), 0.0))

    @property
    def mu(self) -> float | None:
        """The Gaussian-DP parameter that meets the target exactly; None if pure."""
        if self.rho is not None:
            # A Gaussian of shift mu has rho = mu^2/2, no more and no less.
            return math.sqrt(2 * self.rho)
        return gaussian_mu(self.epsilon, self.delta) if self.delta > 0 else None
