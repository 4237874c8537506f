r"""Event: the privacy curve of one release, and the representations an accountant may use.

The least an event offers is its hockey-stick curve

.. math:: \delta_d(\epsilon) = \sup_E\; P(E) - e^{\epsilon} Q(E)

for the two directions d of a worst neighbouring pair. Everything else is optional and must
dominate the truth: an event never looks less lossy through one method than it is.
"""

from __future__ import annotations

import enum
import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.errors import ContractError, NoClaimError, need
from dpcore.rounding import down
from dpcore.shown import Shown

Divergences = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Rényi divergences, in nats, at an array of orders > 1, shape (k,)."""


class Direction(enum.Enum):
    """Which neighbour stands first in the hockey-stick divergence.

    Under add/remove: `REMOVE` compares the larger dataset against the smaller, `ADD` the smaller
    against the larger. Under a replacement relation the names only tell the two orders apart.
    """

    REMOVE = "remove"
    ADD = "add"

    @property
    def reverse(self) -> Direction:
        """The direction in which the two neighbours are exchanged."""
        return Direction.ADD if self is Direction.REMOVE else Direction.REMOVE


@functools.lru_cache(maxsize=256)
def _label(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removesuffix("Event")).lower()


def label_of(event: Event) -> str:
    """What messages call an event: `poisson_sampled` where the class is `PoissonSampledEvent`."""
    return _label(type(event).__name__)


def bisect(fits: Callable[[float], bool], below: float, above: float) -> tuple[float, float]:
    """Halve an interval to its last bit: of the two ends that are left, only the upper one fits.

    An end that never moves is not asked whether it fits.
    """
    while below < (middle := 0.5 * (below + above)) < above:
        below, above = (below, middle) if fits(middle) else (middle, above)
    return below, above


def larger(first: float | None, second: float | None) -> float | None:
    """The larger of two claims; None where one of them is not made."""
    return None if first is None or second is None else max(first, second)


@attrs.frozen(kw_only=True)
class Claims:
    """What is known of a release beside its curve, in both directions; None where nothing is.

    Args:
        pure: The epsilon at which both curves reach 0.
        mu: The shift, where the event *is* that Gaussian (exact Gaussian DP).
        rho: The least rho known for which the event is rho-zCDP.
        approximate: An (epsilon, delta) that the event is known by; (pure, 0) by default.
        renyi: Upper bounds on the Rényi divergences at an array of orders > 1; `orders * rho` by
            default (Bun & Steinke 2016, Definition 1.1).
    """

    pure: float | None = None
    mu: float | None = None
    rho: float | None = None
    approximate: tuple[float, float] | None = attrs.field(
        default=attrs.Factory(
            lambda claims: None if claims.pure is None else (claims.pure, 0.0), takes_self=True
        )
    )
    renyi: Divergences | None = attrs.field(
        default=attrs.Factory(
            lambda claims: (
                None if claims.rho is None else functools.partial(np.multiply, claims.rho)
            ),
            takes_self=True,
        )
    )


_FORMER = {
    *("pure_epsilon", "approximate_claim", "gaussian_mu", "zcdp_rho", "renyi"),
    "epsilon_end",
}
"""Members of events before they had `claims`."""


class Event(Shown, ABC):
    """One application of a mechanism, for one adjacency. Immutable; equal events are `==`."""

    adjacency: Adjacency

    inverses: ClassVar[Mapping[str, str]] = {}
    """Fields whose inverse a file may give, by the inverse's name (`noise_multiplier`: a shift)."""

    is_costly: ClassVar[bool] = False
    """Whether values of its curve cost so much that interpolation looks for a crossing."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse members that `claims` took the place of.

        They would be passed over, and a class between that has `claims` could state less loss.

        Raises:
            ContractError: the class defines one of them.
        """
        super().__init_subclass__(**options)
        former = sorted(_FORMER & cls.__dict__.keys())
        need(
            not former,
            ContractError,
            f"{cls.__name__} defines {', '.join(former)}, which nothing reads: state it in the "
            "property `claims`, a dpcore.event.Claims",
        )

    @property
    def atoms(self) -> int:
        """How many curves one value of its curve takes, 1 unless it is a mixture; for estimates."""
        return 1

    @abstractmethod
    def delta(self, epsilon: float, direction: Direction) -> float:
        """Upper end of the curve at `epsilon` >= 0 (nats), in [0, 1]; nonincreasing in epsilon."""

    @property
    def delta_error(self) -> float:
        """How far `delta` may lie above the truth (absolute); 0 up to a few ulps by default."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same curve, so that one of them need not be computed."""
        return False

    @property
    def attained(self) -> bool:
        """Whether one neighbouring pair attains the whole curve, both directions at once.

        Only then is a composition of the curves a *lower* bound too. False where the curve is
        implied by another claim (zCDP, Rényi) or is the envelope of several pairs.
        """
        return True

    def delta_lower(self, epsilon: float, direction: Direction) -> float:
        """Lower end of the curve: `delta - delta_error`, rounded down; 0 where none is proved.

        None is proved where the curve is not `attained`: `delta` is an upper bound then.
        """
        if not self.attained:
            return 0.0
        # a generous allowance for rounding: a lower end may be too small, never too large
        return max(0.0, down(self.delta(epsilon, direction) - self.delta_error, roundings=5000))

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """`delta` at an array of epsilons >= 0, shape (k,). Override for speed."""
        return np.array([self.delta(float(epsilon), direction) for epsilon in epsilons])

    def curve_lower(
        self, epsilons: NDArray[np.float64], direction: Direction
    ) -> NDArray[np.float64]:
        """`delta_lower` at an array of epsilons >= 0, shape (k,). Override for speed."""
        return np.array([self.delta_lower(float(epsilon), direction) for epsilon in epsilons])

    def anchor(self, direction: Direction) -> float | None:
        """A privacy loss that has positive probability and above which no finite loss lies.

        A grid that contains it wastes nothing there. Defaults to the epsilon that the event is
        known by, which is the pure one where there is one; it steers tightness only, never
        soundness.
        """
        claim = self.claims.approximate
        return None if claim is None else claim[0]

    def infinite_mass(self, direction: Direction) -> float:
        """A lower bound on the limit of the curve, the probability of an infinite loss."""
        return 0.0

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """The events this one is composed of, with counts; an accountant composes these."""
        return ((self, 1),)

    @property
    def claims(self) -> Claims:
        """What is known of the release beside its curve; nothing by default."""
        return Claims()


class VectorEvent(Event):
    """An event whose curve is computed for many epsilons at once."""

    @abstractmethod
    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The curve at an array of epsilons >= 0, shape (k,)."""

    def delta(self, epsilon: float, direction: Direction) -> float:
        """The curve at one epsilon >= 0 (nats), computed by `curve`."""
        return float(self.curve(np.array([epsilon]), direction)[0])


@attrs.frozen(kw_only=True)
class CompoundEvent(VectorEvent):
    """An event made of another one, `event`, and for the same relation."""

    event: Event

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        """The relation of `event`, which holds for the compound too."""
        return self.event.adjacency


class TwoEnds(VectorEvent):
    """An event whose curve is computed from above and from below in the same way."""

    @abstractmethod
    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Upper, or lower, ends of the curve at an array of epsilons >= 0, shape (k,)."""

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Upper ends of the curve at an array of epsilons >= 0, shape (k,)."""
        return self.ends(epsilons, direction, lower=False)

    def curve_lower(
        self, epsilons: NDArray[np.float64], direction: Direction
    ) -> NDArray[np.float64]:
        """Lower ends of the curve at an array of epsilons >= 0, shape (k,)."""
        return self.ends(epsilons, direction, lower=True)

    def delta_lower(self, epsilon: float, direction: Direction) -> float:
        """The lower end at one epsilon >= 0 (nats), computed by `curve_lower`."""
        return float(self.curve_lower(np.array([epsilon]), direction)[0])


def extended_curve(
    event: Event, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
) -> NDArray[np.float64]:
    """The curve (upper or lower end) at sorted real epsilons, in [0, 1]; shape (k,)."""
    method = event.curve_lower if lower else event.curve
    split = int(np.searchsorted(epsilons, 0.0))
    values = np.empty(len(epsilons))
    if split:
        # H(a) = 1 - a + a H_rev(1/a), for a < 1.
        below = epsilons[:split]
        values[:split] = (
            -np.expm1(below) + np.exp(below) * method(-below[::-1], direction.reverse)[::-1]
        )
    if split < len(epsilons):
        values[split:] = method(epsilons[split:], direction)
    need(
        np.all(np.isfinite(values)),
        NoClaimError,
        f"{label_of(event)}: the curve is not a number somewhere",
    )
    return np.clip(values, 0.0, 1.0)
