r"""An audit of one run with many canaries: what right guesses refute of a claim.

Of m canaries each is in the records or not, by a fair coin of its own that nothing else depends on;
they are neighbours by the claim's relation. After one run r of them are guessed, r fixed before the
run, and v guesses are right.

* (epsilon, delta): with B binomial of r trials and :math:`q=1/(1+e^{-\epsilon})`,

  .. math:: \Pr[\text{v right}]\le\Pr[B\ge v]+2m\delta\max_{1\le i\le v}\Pr[v-i\le B<v]/i .

* Gaussian of mu, by :math:`b(x)=\Phi(\Phi^{-1}(x)-\mu)`: start with :math:`R=av/m`,
  :math:`H=a(r-v)/m` for an error rate a; for i = v-1, ..., 0 let :math:`H'=\max(H,b(R))`,
  add :math:`\frac i{r-i}(H'-H)` to R and put H' in the place of H. The claim is refuted if
  :math:`R+H>r/m`. This refutes claims to be Gaussian alone.

Source: Steinke, Nasr & Jagielski (2023), arXiv:2305.08846; Mahloujifar, Melis & Chaudhuri (2024),
arXiv:2410.22235. Both are compared with the numbers of another library.
"""

import math
from collections.abc import Callable

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import positive_integer
from dpcore.errors import need
from dpcore.events.base import bisect

_LARGEST = 64.0  # epsilon and mu are sought below it


@attrs.frozen(kw_only=True)
class OneRun:
    """What was guessed of one run.

    Args:
        canaries: m.
        guesses: r <= m.
        right: v <= r.
    """

    canaries: int = attrs.field(validator=positive_integer)
    guesses: int = attrs.field(validator=positive_integer)
    right: int

    def __attrs_post_init__(self) -> None:
        fits = 0 <= self.right <= self.guesses <= self.canaries
        need(fits, "OneRun", "right <= guesses <= canaries", "right", self.right)

    @classmethod
    def of_scores(
        cls, scores: NDArray[np.float64], is_in: NDArray[np.bool_], guesses: int
    ) -> "OneRun":
        """The guesses that the largest scores in size make: in where a score is positive.

        Args:
            scores: One for each canary, shape (m,). is_in: What the coins said, shape (m,).
        """
        places = np.argsort(-np.abs(scores), kind="stable")[:guesses]
        right = int(((scores[places] > 0) == is_in[places]).sum())
        return cls(canaries=len(scores), guesses=guesses, right=right)

    def chance(self, epsilon: float, delta: float) -> float:
        """How likely so many right guesses are at most, if (epsilon, delta) holds."""
        share = 1 / (1 + math.exp(-epsilon))
        binomial = scipy.stats.binom(self.guesses, share)
        # P[v - i <= B < v] for i = 1, ..., v.
        below = binomial.cdf(self.right - 1) - binomial.cdf(np.arange(self.right)[::-1] - 1)
        spill = np.max(below / np.arange(1, self.right + 1), initial=0.0)
        return float(binomial.sf(self.right - 1) + 2 * self.canaries * delta * spill)

    def epsilon(self, delta: float, error: float) -> float:
        """The largest epsilon that is refuted at `delta`, with this chance of a false alarm; 0
        where none is."""
        return _largest(lambda epsilon: self.chance(epsilon, delta) < error)

    def mu(self, error: float) -> float:
        """The largest mu of a Gaussian claim that is refuted; 0 where none is."""
        return _largest(lambda mu: self._refutes_gaussian(mu, error))

    def _refutes_gaussian(self, mu: float, error: float) -> bool:
        m, r, v = self.canaries, self.guesses, self.right
        large, small = error * v / m, error * (r - v) / m
        for number in range(v - 1, -1, -1):
            raised = max(small, float(scipy.special.ndtr(scipy.special.ndtri(large) - mu)))
            # Once H stands still, so does R.
            if raised == small:
                break
            large += number / (r - number) * (raised - small)
            small = raised
        return large + small > r / m


def _largest(refutes: Callable[[float], bool]) -> float:
    """The largest number, up to 64, that is refuted; smaller ones are then too."""
    if not refutes(0.0):
        return 0.0
    return bisect(lambda number: not refutes(number), 0.0, _LARGEST)[0]
