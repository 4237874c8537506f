"""`remaining_budget`: state what a ledger would still let through, rounded down."""

import attrs

from dpcore.checks import is_finite
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.errors import ParameterError, need
from dpcore.shown import in_digits

ON_DISK = 6
"""Digits of what is left, in a published guarantee and as JSON: format 3 has as many."""


@attrs.frozen(kw_only=True)
class RemainingBudget:
    """What a ledger would still let through; each figure by itself, and about.

    Args:
        epsilon: Of further pure releases, while all have been pure; else 0.
        mu: Of one further Gaussian release.
        failures: Of further failure probabilities.
        delta: The ledger's.
        takes_claims: Whether any further release may be charged as an (epsilon, delta) claim, of
            which the epsilons add up to `epsilon` and the deltas to `failures`.
    """

    epsilon: float
    mu: float
    failures: float
    delta: float
    takes_claims: bool = False

    @property
    def largest(self) -> float:
        """About the epsilon, at the ledger's delta, of the largest single release that fits."""
        has_gaussian = self.mu > 1e-9 and self.delta > 0
        return max(self.epsilon, gaussian_epsilon(self.delta, self.mu) if has_gaussian else 0.0)

    def of_one_release(self, delta: float) -> float:
        """Return the epsilon at a delta of one further release that fits; of pure ones if mu is 0.

        Rounded down: what is said to be left must be let through when it is asked for.
        """
        fits = is_finite(delta) and 0 <= delta < 1
        need(fits, ParameterError, "what is left", "a delta in [0, 1)", "delta", delta)
        if not self.mu > 0:
            return self.epsilon
        return gaussian_epsilon(delta, self.mu, lower=True) if delta > 0 else 0.0

    @property
    def way(self) -> str:
        """The key of a spec that asks for about as much as is left, as a clause."""
        return f"`epsilon: {shown_down(self.largest)}` is about what is left"

    def minimum(self, other: "RemainingBudget") -> "RemainingBudget":
        """Return the smaller of both figures, each at this delta."""
        names = ("epsilon", "mu", "failures", "takes_claims")
        smaller = {name: min(getattr(self, name), getattr(other, name)) for name in names}
        return attrs.evolve(self, **smaller)

    def figures(self) -> dict[str, float]:
        """Return the numbers, by name: epsilon in nats, mu, failures and the ledger's delta."""
        names = ("epsilon", "mu", "failures", "delta")
        return {name: getattr(self, name) for name in names}

    def most_taken_by(self, after: "RemainingBudget") -> str:
        """Return a warning where one charge takes most of what is left; empty where it does not."""
        if not after.largest < self.largest / 2:
            return ""
        return (
            f"this run takes most of what is left: the largest release afterwards has epsilon = "
            f"{shown_down(after.largest, ON_DISK)}, before it "
            f"{shown_down(self.largest, ON_DISK)}, at delta = {self.delta!r}"
        )

    def brief(self) -> str:
        """Return the largest single release that is left, in a few words."""
        return f"epsilon {shown_down(self.largest)} at delta {shown_down(self.delta)}"

    def describe(self, digits: int = 4) -> str:
        """Return what is left in one clause: mu, epsilon and failures, or `nothing`."""
        # The two exclude each other: each is what would fit if the other were not asked for.
        parts = []
        if self.mu > 0:
            parts.append(f"Gaussian releases of mu = {shown_down(self.mu, digits)}")
        if self.epsilon > 0:
            parts.append(f"pure releases of epsilon = {shown_down(self.epsilon, digits)}")
        if not parts:
            return "nothing"
        failures, largest = (shown_down(x, digits) for x in (self.failures, self.largest))
        if self.takes_claims:
            epsilon = shown_down(self.epsilon, digits)
            return f"releases whose (epsilon, delta) claims add up to ({epsilon}, {failures})"
        failures_clause = f", and {failures} of delta for failures" if self.failures > 0 else ""
        largest_clause = f"; the largest has epsilon = {largest} at delta = {self.delta!r}"
        return " or ".join(parts) + failures_clause + (largest_clause if self.delta > 0 else "")


def shown_down(value: float, digits: int = 4) -> str:
    """Return a number >= 0 as text with so many significant digits, never larger than the
    number.
    """
    return in_digits(value, digits, direction=-1)
