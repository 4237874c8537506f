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
    """Which neighbour is first in the hockey-stick divergence.

    Under add/remove: `REMOVE` compares the larger dataset against the smaller, `ADD` the smaller
    against the larger. Under a replacement relation the names only distinguish the two orders .
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
    """Return the name of an event in messages: `poisson_sampled` for `PoissonSampledEvent`."""
    return _label(type(event).__name__)


def bisect(fits: Callable[[float], bool], below: float, above: float) -> tuple[float, float]:
    """Halve an interval down to the last bit; of the two ends returned, only the upper one fits.

    An end that never moves is not asked whether it fits.
    """
    while below < (middle := 0.5 * (below + above)) < above:
        below, above = (below, middle) if fits(middle) else (middle, above)
    return below, above


def larger(first: float | None, second: float | None) -> float | None:
    """Return the larger of two claims; None where one of them is not made."""
    return None if first is None or second is None else max(first, second)


@attrs.frozen(kw_only=True)
class Claims:
    """What is known of a release next to its curve, in both directions; None where nothing is.

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
    *("epsilon_end", "delta_lower", "delta_error", "curve_lower", "anchor"),
}
"""Members of events before they had `claims` and a `PrivacyCurve`."""

_METHODS = {"delta", "curve"}
"""Former methods, whose names a field or a property may have."""

_OF_CURVES = {"symmetric", "attained", "infinite_mass", "atoms", "is_costly"}
"""Members that only a `PrivacyCurve` may have: of an event that is none nothing reads them."""


class PrivacyCurve(ABC):
    """A hockey-stick curve in both directions: from above, and from below where that is proved.

    Anyone who writes one states `upper_at`, or `upper` in a `VectorCurve`. All else has a default
    that claims nothing.
    """

    is_costly: ClassVar[bool] = False
    """Whether values cost so much that interpolation looks for a crossing."""

    @abstractmethod
    def upper_at(self, epsilon: float, direction: Direction) -> float:
        """Return the upper end at `epsilon` >= 0 (nats), in [0, 1]; nonincreasing in epsilon."""

    def lower_at(self, epsilon: float, direction: Direction) -> float:
        """Return the lower end, `upper_at - error` rounded down; 0 if none is proved.

        None is proved where the curve is not `attained`: the upper end is a bound only then.
        """
        if not self.attained:
            return 0.0
        # a generous allowance for rounding: a lower end may be too small, never too large
        return max(0.0, down(self.upper_at(epsilon, direction) - self.error, roundings=5000))

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return `upper_at` at an array of epsilons >= 0, shape (k,). Override for speed."""
        return np.array([self.upper_at(float(epsilon), direction) for epsilon in epsilons])

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return `lower_at` at an array of epsilons >= 0, shape (k,). Override for speed."""
        return np.array([self.lower_at(float(epsilon), direction) for epsilon in epsilons])

    @property
    def error(self) -> float:
        """How far the upper end may lie above the truth (absolute); 0 up to a few ulps."""
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

    @property
    def atoms(self) -> int:
        """How many curves one value takes, 1 unless it is a mixture; for estimates."""
        return 1

    def largest_loss(self, direction: Direction) -> float | None:
        """Return a loss of positive probability above which no finite loss lies; None if unknown.

        A grid that contains it wastes nothing there. It steers tightness only, never soundness.
        Anyone who does not override it leaves it to the event's claims (`largest_loss`).
        """
        return None

    def infinite_mass(self, direction: Direction) -> float:
        """Return a lower bound on the limit of the curve, the probability of an infinite loss."""
        return 0.0


class VectorCurve(PrivacyCurve):
    """A curve that is computed for many epsilons at once."""

    @abstractmethod
    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return upper ends at an array of epsilons >= 0, shape (k,)."""

    def upper_at(self, epsilon: float, direction: Direction) -> float:
        """Return the upper end at one epsilon >= 0 (nats), computed by `upper`."""
        return float(self.upper(np.array([epsilon]), direction)[0])


class TwoEnds(VectorCurve):
    """A curve that is computed from above and from below in the same way."""

    @abstractmethod
    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Return upper, or lower, ends of the curve at an array of epsilons >= 0, shape (k,)."""

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return upper ends of the curve at an array of epsilons >= 0, shape (k,)."""
        return self.ends(epsilons, direction, lower=False)

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return lower ends of the curve at an array of epsilons >= 0, shape (k,)."""
        return self.ends(epsilons, direction, lower=True)

    def lower_at(self, epsilon: float, direction: Direction) -> float:
        """Return the lower end at one epsilon >= 0 (nats), computed by `lower`."""
        return float(self.lower(np.array([epsilon]), direction)[0])


class Event(Shown, ABC):
    """One application of a mechanism, for one adjacency. Immutable; equal events are `==`."""

    adjacency: Adjacency

    inverses: ClassVar[Mapping[str, str]] = {}
    """Fields whose inverse a file may give, by the inverse's name (`noise_multiplier`: a shift)."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse members that `claims` and `curve` took the place of.

        They would be passed over, and a class between that has the new ones could state less loss.

        Raises:
            ContractError: the class defines one of them.
        """
        super().__init_subclass__(**options)
        is_curve = issubclass(cls, PrivacyCurve)
        refused = _FORMER if is_curve else _FORMER | _OF_CURVES
        # what a class next to an event brings along is passed over as well
        adjacent = [base for base in cls.__mro__ if not issubclass(base, Event | PrivacyCurve)]
        members = {name: value for base in (*adjacent, cls) for name, value in vars(base).items()}
        former = sorted(refused & members.keys())
        former += sorted(f"{name}()" for name in _METHODS if callable(members.get(name)))
        need(
            not former,
            ContractError,
            f"{cls.__name__} defines {', '.join(former)}, which nothing reads: state it in the "
            "property `claims`, a dpcore.event.Claims, or in `curve`, a dpcore.event.PrivacyCurve",
        )

    @property
    def curve(self) -> PrivacyCurve:
        """Its privacy curve: the event itself, where it is a `PrivacyCurve` as well.

        Raises:
            ContractError: it is none, and states none.
        """
        if not isinstance(self, PrivacyCurve):
            raise ContractError(
                f"{type(self).__name__} states no curve: define the property `curve`, or extend "
                "dpcore.event.PrivacyCurve as well"
            )
        return self

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the events that compose this one, with counts; an accountant composes these."""
        return ((self, 1),)

    @property
    def claims(self) -> Claims:
        """What is known of the release next to its curve; nothing by default."""
        return Claims()

    @property
    def formula(self) -> Mapping[str, Any] | None:
        """Its curve as a formula that `dpcore-verify` evaluates (`dpcore_verify.formula`).

        None where it has none: points of the curve are published where the kind is not known.
        """
        return None


@attrs.frozen(kw_only=True)
class CompoundEvent(Event):
    """An event made of another one, `event`, and for the same relation."""

    event: Event

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        """The relation of `event`, which holds for the compound too."""
        return self.event.adjacency


def largest_loss(event: Event, direction: Direction) -> float | None:
    """Return the largest loss that an event's curve states; by default the epsilon of its claim."""
    curve, claim = event.curve, event.claims.approximate
    if type(curve).largest_loss is not PrivacyCurve.largest_loss:
        return curve.largest_loss(direction)
    return None if claim is None else claim[0]


def extended_curve(
    event: Event, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
) -> NDArray[np.float64]:
    """Return the curve (upper or lower end) at sorted real epsilons, in [0, 1]; shape (k,)."""
    method = event.curve.lower if lower else event.curve.upper
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
