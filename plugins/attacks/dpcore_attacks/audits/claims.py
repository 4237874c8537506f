r"""Claims that an audit can test, each measured by what an event's two probabilities refute.

An event E has probability at least p under one neighbour and at most q under the other. That
refutes

* :math:`(\epsilon,\delta)` for every :math:`\epsilon<\log\frac{p-\delta}{q}`;
* Gaussian DP of every :math:`\mu<\Phi^{-1}(p)-\Phi^{-1}(q)` (Dong, Roth & Su 2022, Theorem 2.7);
* a curve of pairs :math:`(\epsilon_i,\delta_i)` where
  :math:`p>\min_i\min\{\delta_i+e^{\epsilon_i}q,\;1-e^{-\epsilon_i}(1-q-\delta_i)\}`, the largest p
  that every pair allows, the second term by the complement of E with the neighbours exchanged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.accountant import Accountant
from dpcore.checks import fraction, non_negative, positive, probability
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.errors import NoClaimError, need
from dpcore.event import Direction, Event
from dpcore.rounding import up

_DELTAS = np.geomspace(1e-9, 0.5, 40)
_EPSILONS = np.concatenate([[0.0], np.geomspace(0.02, 12.0, 39)])
_FAINTEST = 1e-12  # represents delta = 0 where a Gaussian's epsilon is asked for


class Claim(ABC):
    """One claim. Its strength is a number; a larger one than `claimed` refutes it."""

    @property
    @abstractmethod
    def claimed(self) -> float:
        """The strength that is claimed."""

    @abstractmethod
    def strength(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least strength that is not refuted by P(E) >= p and Q(E) <= q; -inf if any
        is.
        """

    @abstractmethod
    def as_epsilon(self, strength: float) -> float:
        """Epsilon of this kind of claim at that strength and the claim's delta, at least 0."""

    @abstractmethod
    def describe(self) -> str:
        """Return the claim in one phrase."""

    @abstractmethod
    def finding(self, strength: float) -> str:
        """Return what that strength says, in one phrase."""


@attrs.frozen(kw_only=True)
class ApproximateDP(Claim):
    """(epsilon, delta): strength is epsilon. Pure if delta is 0."""

    epsilon: float = attrs.field(validator=non_negative)
    delta: float = attrs.field(default=0.0, validator=probability)

    @property
    def claimed(self) -> float:
        """The claimed epsilon, in nats."""
        return self.epsilon

    def strength(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """log((p - delta)/q): the least epsilon that the event does not refute, in nats."""
        return likelihood_epsilon(p, q, self.delta)

    def as_epsilon(self, strength: float) -> float:
        """Return the strength itself, in nats, and never below 0."""
        return max(0.0, strength)

    def describe(self) -> str:
        """Return the claim as a phrase, such as `(1, 1e-05)-DP`."""
        return f"({self.epsilon:.6g}, {self.delta:.6g})-DP"

    def finding(self, strength: float) -> str:
        """Return the bound as a phrase, such as `epsilon >= 0.6 at delta = 1e-05`."""
        return f"epsilon >= {_down(self.as_epsilon(strength))} at delta = {self.delta:.6g}"


@attrs.frozen(kw_only=True)
class GaussianDP(Claim):
    """Gaussian DP of mu, quoted as epsilon at `delta`: strength is mu."""

    mu: float = attrs.field(validator=positive)
    delta: float = attrs.field(validator=fraction)

    @property
    def claimed(self) -> float:
        """The claimed mu, the distance of two unit Gaussians."""
        return self.mu

    def strength(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance of two unit Gaussians that a threshold distinguishes as well."""
        return gaussian_distance(p, q)

    def as_epsilon(self, strength: float) -> float:
        """Epsilon of a Gaussian of that mu at `delta`, rounded down; in nats."""
        return gaussian_epsilon(self.delta, strength, lower=True) if strength > 0 else 0.0

    def describe(self) -> str:
        """Return the claim as a phrase, such as `0.268-Gaussian DP`."""
        return f"{self.mu:.6g}-Gaussian DP"

    def finding(self, strength: float) -> str:
        """`mu >= 0.25, for a Gaussian epsilon >= 0.91 of 1 at delta = 1e-05`."""
        claimed, epsilon = self.as_epsilon(self.mu), self.as_epsilon(strength)
        return (
            f"mu >= {_down(max(0.0, strength))}, for a Gaussian epsilon >= {_down(epsilon)} of "
            f"{claimed:.4g} at delta = {self.delta:.6g}"
        )


@attrs.frozen(kw_only=True, eq=False)
class Curve(Claim):
    """Every pair of a curve at once: strength is the distance by which p exceeds what they allow.

    Args:
        epsilons, deltas: Pairs that hold together, in both directions, shape (k,).
        delta: At which epsilon is quoted.
    """

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]
    delta: float = attrs.field(validator=probability)

    @classmethod
    def of_event(cls, event: Event, delta: float) -> Curve:
        """Return the curve of one event, the worse direction at each epsilon."""
        # a claim holds in both directions, and neither neighbour comes first
        curves = [event.curve.upper(_EPSILONS, direction) for direction in Direction]
        return cls(epsilons=_EPSILONS, deltas=np.maximum(*curves), delta=delta)

    @classmethod
    def of_accountant(cls, accountant: Accountant, delta: float) -> Curve:
        """Upper ends at a grid of deltas and at `delta`; deltas without one are left out.

        Raises:
            NoClaimError: there is none at all.
        """
        pairs = []
        # upper ends only: what is tested is what is claimed, and not the truth below it
        for grid_delta in sorted({*_DELTAS.tolist(), delta}):
            try:
                pairs.append((accountant.epsilon(grid_delta).upper, grid_delta))
            except NoClaimError:
                continue
        need(pairs, NoClaimError, "the accountant states no epsilon at any delta")
        epsilons, deltas = np.array(pairs).T
        return cls(epsilons=epsilons, deltas=deltas, delta=delta)

    @property
    def claimed(self) -> float:
        """0: nothing exceeds what is allowed."""
        return 0.0

    def allowed(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest probability that every pair allows an event of probability q, shape of
        q.
        """
        q = np.asarray(q, dtype=np.float64)[..., None]
        # each pair bounds E, and by the complement of E with the neighbours exchanged once more
        grown = self.deltas + np.exp(self.epsilons) * q
        shrunk = 1 - np.exp(-self.epsilons) * (1 - q - self.deltas)
        return np.asarray(np.minimum(1.0, np.minimum(grown, shrunk).min(axis=-1)))

    def strength(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far p lies above what is allowed, in standard deviations of a unit
        Gaussian.
        """
        return gaussian_distance(p, self.allowed(q))

    def as_epsilon(self, strength: float) -> float:
        """Return what the curve itself says at `delta`: a distance from a curve has no epsilon."""
        # the least epsilon whose delta is within the quoted one; infinity if there is none
        epsilons = self.epsilons[self.deltas <= self.delta]
        return float(epsilons.min(initial=math.inf))

    def describe(self) -> str:
        """Return the claim as a phrase, with the number of its pairs."""
        return f"a curve of {len(self.epsilons)} pairs"

    def finding(self, strength: float) -> str:
        """Return how far beyond the curve, or on its allowed side, the event lies."""
        if strength > 0:
            return f"an event is {_down(strength)} standard deviations beyond what it allows"
        return "no event was seen beyond what it allows"


def _down(value: float) -> str:
    """Four digits, rounded down: a lower bound is never stated larger than it is."""
    if not math.isfinite(value) or value == 0:
        return f"{value:.4g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return f"{math.floor(value / step) * step:.4g}"


def likelihood_epsilon(
    p: NDArray[np.float64], q: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    """log((p - delta)/q); -inf where p <= delta, +inf where q = 0 and it is not."""
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > delta, np.log(np.maximum(p - delta, 0.0)) - np.log(q), -np.inf)


def gaussian_distance(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """ndtri(p) - ndtri(q), -inf where p = 0 or q = 1."""
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    # an event that may never happen, or may always, refutes no mu
    nothing = (p <= 0) | (q >= 1)
    with np.errstate(invalid="ignore"):
        return np.where(nothing, -np.inf, scipy.special.ndtri(p) - scipy.special.ndtri(q))


def gaussian_claim(events: Iterable[tuple[Event, int]], delta: float) -> GaussianDP | None:
    """Return the Gaussian that these events (with counts) compose to, or None if any is no
    Gaussian.
    """
    squared = 0.0
    for event, count in events:
        for part, times in event.parts():
            mu = part.claims.mu
            if mu is None:
                return None
            # Gaussians compose to one: their squared mu add up
            squared += count * times * mu * mu
    if squared == 0.0:
        return None
    # rounded up: nothing tighter is tested than what is claimed
    return GaussianDP(mu=up(math.sqrt(squared), roundings=20), delta=max(delta, _FAINTEST))


def claims_of(
    events: Sequence[tuple[Event, int]], accountant: Accountant, epsilon: float, delta: float
) -> tuple[Claim, ...]:
    """Return what is claimed of a composition: the quoted pair, and its whole curve.

    Where the composition is one Gaussian the curve is tested as that.

    Args:
        accountant: With the events composed already.
    """
    quoted = ApproximateDP(epsilon=epsilon, delta=delta)
    gaussian = gaussian_claim(events, delta)
    return quoted, Curve.of_accountant(accountant, delta) if gaussian is None else gaussian
