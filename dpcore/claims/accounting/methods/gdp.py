r"""Exact Gaussian-DP composition: the mu of Gaussian events add in squares, nothing is lost."""

import math
from fractions import Fraction

import attrs

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.errors import NoClaimError, need
from dpcore.event import Event, label_of
from dpcore.interval import Interval
from dpcore.rounding import gamma


@attrs.frozen
class GdpAccountant(Accountant):
    r"""Gaussian events compose to one Gaussian with :math:`\mu=\sqrt{\sum_i n_i\mu_i^2}`.

    Exact, and valid for adaptively chosen statistics as long as the events themselves are fixed.
    Both ends come from the same curve; the sum of squares is exact.

    Source: Dong, Roth & Su (2022), Corollary 3.3; Balle & Wang (2018), Theorem 8.
    """

    adjacency: Adjacency
    mu_squared: Fraction = attrs.field(default=Fraction(0), converter=Fraction)
    additions: int = 0

    def compose(self, event: Event, count: int = 1) -> "GdpAccountant":
        """Add count * mu^2.

        Raises:
            UnsupportedEventError: the event is not exactly Gaussian.
        """
        self.accept(event, count)
        if (mu := event.claims.mu) is None:
            raise UnsupportedEventError(f"gdp adds up Gaussian events, {label_of(event)} is none")
        # In rational numbers, so that the square of a tiny mu is not lost next to a large one.
        return attrs.evolve(
            self,
            mu_squared=self.mu_squared + int(count) * Fraction(mu) ** 2,
            additions=self.additions + (count > 0),
        )

    def _mu(self, sign: int) -> float:
        """Return sqrt(mu_squared), an exact sum, shifted by more than the root's rounding error."""
        return _root(self.mu_squared) * (1 + sign * gamma(4 + 2 * self.additions))

    def epsilon(self, delta: float) -> Interval:
        """Invert the exact curve.

        Raises:
            NoClaimError: at delta = 0 a Gaussian has no finite epsilon.
        """
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if self.mu_squared == 0:
            return Interval(0.0, 0.0)
        need(delta != 0, NoClaimError, "a Gaussian release has no finite epsilon at delta = 0")
        return Interval(
            gaussian_epsilon(delta, self._mu(-1), lower=True), gaussian_epsilon(delta, self._mu(+1))
        )

    def explain(self, delta: float) -> str:
        """Return a clause with the composed mu, to six digits."""
        return f"exact Gaussian composition, mu = {self._mu(+1):.6g}"


def _root(square: Fraction) -> float:
    """Return the root of a square to within 2 u, whatever the size of the square."""
    if square == 0:
        return 0.0
    halves = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    scaled = square / Fraction(4) ** halves  # in [1/8, 8]
    return math.ldexp(math.sqrt(scaled), halves)
