r"""Optimal composition of k copies of one (epsilon_0, delta_0) claim.

The worst case is k-fold randomized response, whose losses are (k - 2j) epsilon_0 with binomial
probabilities, next to infinite losses of probability :math:`1-(1-\delta_0)^k`:

.. math:: \delta(\epsilon) = 1-(1-\delta_0)^k\Big(1-\sum_{j}\tbinom kj
          \frac{(e^{(k-j)\epsilon_0}-e^{\epsilon+j\epsilon_0})_+}{(1+e^{\epsilon_0})^k}\Big).

Source: Kairouz, Oh & Viswanath (2017), arXiv:1311.0776v4, Theorem 3.3, read at any epsilon. Optimal
for the claim only, and it holds for events chosen adaptively among those with that claim.
"""

import math

import attrs
import numpy as np
import scipy

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError, need
from dpcore.event import Event, label_of
from dpcore.interval import Interval
from dpcore.rounding import gamma

_MOST = 2**22  # binomial terms held at once


@attrs.frozen
class HomogeneousAccountant(Accountant):
    """Covers events that all have the same (epsilon, delta) claim, up to 4,194,304 of them."""

    adjacency: Adjacency
    claim: tuple[float, float] | None = None
    copies: int = 0

    def compose(self, event: Event, count: int = 1) -> "HomogeneousAccountant":
        """Count the copies.

        Raises:
            UnsupportedEventError: the event has no such claim, another one, or copies are too many.
        """
        self.accept(event, count)
        claim = event.claims.approximate
        need(
            claim is not None and (self.claim is None or claim == self.claim),
            UnsupportedEventError,
            f"{label_of(event)} does not make the one (epsilon, delta) claim of the others",
        )
        copies = self.copies + int(count)
        need(copies <= _MOST, UnsupportedEventError, f"more than {_MOST} copies")
        if count == 0:
            return self
        return attrs.evolve(self, claim=claim, copies=copies)

    def epsilon(self, delta: float) -> Interval:
        """Return an upper end for every release with the claim; no lower end is claimed.

        Raises:
            NoClaimError: infinite losses are likelier than delta.
        """
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if self.claim is None:
            return Interval(0.0, 0.0)
        epsilon_0, delta_0 = self.claim
        k = self.copies
        pure_sum = k * epsilon_0 * (1 + gamma(8))
        log_finite = k * math.log1p(-delta_0) if delta_0 < 1 else -math.inf
        infinite = -math.expm1(log_finite) * (1 + gamma(16))
        need(
            infinite <= delta,
            NoClaimError,
            f"{k} events of delta={delta_0!r} exceed delta={delta!r}",
        )
        # 1 - (1 - delta_0)^k (1 - x) <= delta  <=>  x <= (delta - infinite) / (1 - infinite)
        target = (delta - infinite) / math.exp(log_finite) * (1 - gamma(16)) if delta > 0 else 0.0
        crossing = self._crossing(epsilon_0, target) if target > 0 else math.inf
        return Interval(0.0, min(pure_sum, crossing))

    def _crossing(self, epsilon_0: float, target: float) -> float:
        """Find where randomized response's curve falls to `target`, rounded up."""
        k = self.copies
        j = np.arange(k + 1.0)
        choose = (
            scipy.special.gammaln(k + 1.0)
            - scipy.special.gammaln(j + 1)
            - scipy.special.gammaln(k - j + 1)
        )
        # log of binom(k, j) e^{-j eps} / (1 + e^{-eps})^k: how likely the loss (k - 2 j) eps is.
        log_p = choose - j * epsilon_0 - k * math.log1p(math.exp(-epsilon_0))
        losses = (k - 2 * j) * epsilon_0
        # rounding of the logarithms, and of sums of k terms
        size = 8 * (float(scipy.special.gammaln(k + 2.0)) + k * (1 + epsilon_0)) + 4 * k + 64
        # Rounding might exceed a thousandth: nothing but the sum of all epsilons is claimed then.
        if gamma(2 * size) > 1e-3:
            return math.inf
        first = np.cumsum(np.exp(log_p)) * (1 + gamma(2 * size))
        is_positive = losses >= 0
        log_p, losses, first = log_p[is_positive], losses[is_positive], first[is_positive]
        # What is subtracted is rounded down.
        second = np.cumsum(np.exp(log_p - losses)) * (1 - gamma(2 * size))
        # at the loss of term i, from the terms above it
        with np.errstate(over="ignore", invalid="ignore"):
            at_loss = first - np.exp(np.minimum(losses, 700.0)) * second
        candidates = np.nonzero((at_loss > target) & (losses < 700.0))[0]
        large_losses = np.nonzero((first > target) & (losses >= 700.0))[0]
        if len(large_losses):  # too large to resolve: at this loss the terms above it are still few
            return float(losses[int(large_losses[0])]) * (1 + gamma(8))
        # Losses fall with j: the crossing lies between this loss and the first that exceeds.
        last = (int(candidates[0]) if len(candidates) else len(losses)) - 1
        numerator = float(first[last]) - target
        if last < 0 or numerator <= 0:
            floor = float(losses[last + 1]) if last + 1 < len(losses) else 0.0
            return max(0.0, floor) * (1 + gamma(8))
        crossing = math.log(numerator) - math.log(float(second[last]))
        return max(0.0, crossing + gamma(32) * (1 + abs(crossing)))

    def explain(self, delta: float) -> str:
        """Return a clause with the common claim and the number of its copies."""
        claim = "nothing" if self.claim is None else f"({self.claim[0]:.6g}, {self.claim[1]:.6g})"
        return f"optimal composition of {self.copies} claims of {claim}"
