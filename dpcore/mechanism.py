"""Mechanism: the only release boundary between the records and the public."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, ReleaseError, need
from dpcore.event import Event
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.sensitivity import AnySensitivity, Distance, Sensitivity

Arithmetic = Literal["exact", "real"]

_FREE = "dpcore_free"
_LARGEST_INTEGER = 1 << 53


def free(*, validator: Callable[[Any, Any, Any], None]) -> Any:
    """Declare the one field of a mechanism that a spec may leave out, so that it is calibrated.

    Its annotation is the type that it has once it is calibrated: `noise_scale: float = free(...)`.
    Until then it is None, and the mechanism answers `at` only: whatever computes with
    None ends in a `TypeError`, and no query of such a mechanism has a price (`ContractError`).
    """
    return attrs.field(
        default=None, validator=attrs.validators.optional(validator), metadata={_FREE: True}
    )


def is_free(field: attrs.Attribute[Any]) -> bool:
    """Return whether a mechanism's field is the one that calibration sets."""
    return _FREE in field.metadata


def is_calibrated(mechanism: AnyMechanism) -> bool:
    """Return whether a mechanism's free field has a value."""
    return getattr(mechanism, free_field(type(mechanism))) is not None


def fill_in(mechanism: AnyMechanism, source: Any) -> AnyMechanism:
    """Return a mechanism that takes what it leaves open, but for its noise, from `source`.

    Open is a field that is None. Whatever is of another class, or None, has nothing to give.
    """
    if type(source) is not type(mechanism):
        return mechanism
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast(Any, type(mechanism)))
    names = [field.name for field in fields if field.init and not is_free(field)]
    values = {name: getattr(source, name) for name in names if getattr(mechanism, name) is None}
    return cast(AnyMechanism, attrs.evolve(cast(Any, mechanism), **values))


def free_field(mechanism: type[AnyMechanism]) -> str:
    """Name of the mechanism's free field.

    Raises:
        ContractError: there is not exactly one.
    """
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast(Any, mechanism))
    names = [field.name for field in fields if is_free(field)]
    need(
        len(names) == 1,
        ContractError,
        f"{mechanism.__name__} must declare exactly one free field, has {names}",
    )
    return names[0]


Prepared = Callable[[Any, Query, Stream], NDArray[Any]]
"""`release` at a fixed sensitivity: value, query and noise to the noisy value. It is an array,
or `Exact` where the mechanism takes integers."""


@attrs.frozen(kw_only=True)
class Needs:
    """What a mechanism needs of a query and its bound, and what it can do; a default allows least.

    Args:
        distance: The norm in which a sensitivity must be stated.
        query: The class of queries it answers, matched exactly.
        sensitivities: The classes of sensitivities it prices: with `SensitivityDistribution`, laws
            over orders too.
        integers: Whether `release` takes an exact sum as its integers (`Exact`); others get floats.
        additive: Whether it adds noise to every coordinate, so that a bound in another norm serves
            it too, converted to its own. A choice among scores is none: it takes bounds of scores
            only.
        persons: Whether `event` holds for whatever moves the statistic as far as the sensitivity
            says, so for several records of one person too. What counts on the shape of one record's
            movement says no, and is refused where a person is the unit.
        bands: Whether the noise of several queries together is one Gaussian vector with equal
            variance in every direction, exact or up to what `event` allows: then a query may
            release a weighted sum of several statistics (`SumQuery.bands`), of which a record is in
            one. Others are refused.
        stream: Whether its noise comes from the query's stream only; False where another library
            draws it.
    """

    distance: Distance = attrs.field(converter=Distance)
    query: type[Query] = Query
    sensitivities: tuple[type[AnySensitivity], ...] = (Sensitivity,)
    integers: bool = False
    additive: bool = False
    persons: bool = False
    bands: bool = False
    stream: bool = True


_FORMER = {
    **{"distance": "needs.distance", "answers": "needs.query", "takes": "needs.sensitivities"},
    **{"takes_integers": "needs.integers", "additive": "needs.additive"},
    **{"by_person": "needs.persons", "spherical": "needs.bands"},
    "draws_elsewhere": "needs.stream, and its opposite",
    "event_of_move": "event(query, sensitivity, moved)",
    "spread": "noise_distribution",
    "calibrated": "the function is_calibrated",
    "unable": "refusal",
    "planned": "the query itself, and asks of Interactive",
}
"""Members that mechanisms had before, and what took their place."""


class AnyMechanism(ABC):
    """A mechanism of either kind: one that releases (`Mechanism`), or one that serves a function.

    It adds noise of its own to one statistic, and says what an accountant may know of it. Concrete
    mechanisms are frozen, keyword-only, validated on creation, not subclassed.
    """

    needs: ClassVar[Needs]
    """What it needs of a query and of its bound, and what it can do with them."""

    source: ClassVar[str]
    """Theorem behind `event`."""

    rule: ClassVar[tuple[str, ...]] = ()
    """By which rule `dpcore-verify` derives `event`, and the attributes that the rule takes.

    Empty of a mechanism whose events are taken. It is about one class: a subclass inherits none.
    """

    @property
    def has_rule(self) -> bool:
        """Whether its very class states a rule: a subclass may draw other noise."""
        return bool(vars(type(self)).get("rule"))

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse members that are gone, and an `event` of the two arguments that it had.

        They would be passed over, and what the class above states could allow more, or cost less.

        Raises:
            ContractError: the class has one of them.
        """
        super().__init_subclass__(**options)
        # A class next to this one may have them, too: none of them is inherited from here.
        former = [name for name in _FORMER if hasattr(cls, name)]
        places = ", ".join(f"{name} (now {_FORMER[name]})" for name in former)
        need(
            not former,
            ContractError,
            f"{cls.__name__} has members that nothing reads any more: {places}",
        )
        need(
            "moved" in inspect.signature(cls.event).parameters,
            ContractError,
            f"{cls.__name__}.event must be event(query, sensitivity, moved=None); it may ignore "
            "`moved`",
        )

    @property
    @abstractmethod
    def arithmetic(self) -> Arithmetic:
        """`exact`: the claim holds for the sampler as computed; `real`: for real-valued arithmetic.

        A property where it depends on a field, a plain class attribute where it does not.
        """

    def refusal(self, query: Query) -> str:
        """Explain why the mechanism cannot release every value that a query states; or empty.

        Asked when a plan is priced: what fails must not depend on records.
        """
        return ""

    def noise_distribution(self, query: Query, sensitivity: Any) -> NoiseDistribution | None:
        """Return the law of each coordinate's noise, for confidence intervals; None if unstated."""
        return None

    @abstractmethod
    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> Self:
        """Set the free field so that one query costs about mu = 1/scale; loss falls in scale."""

    @abstractmethod
    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the privacy event of one query, for the sensitivity's adjacency.

        Args:
            moved: How far apart the statistics of the two datasets are at most, where that is less
                than the sensitivity; None is the sensitivity. The noise is the same. Whatever
                ignores it states the cost of the most distant two, which is never too little.
        """


class Mechanism(AnyMechanism):
    """A mechanism that releases one noisy value for every query."""

    @abstractmethod
    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return the noisy value, of the query's shape.

        Args:
            value: Finite, of the query's shape and dtype.
            noise: This query's own stream; the result depends on no other randomness.

        Raises:
            ContractError: `value` is not that; nothing is released.
        """

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: return the centre of releases of `value`, for the operator's comparison only."""
        return value

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the release of every query of one planned query, equal to `release` bit for bit.

        A mechanism overrides it to compute once what the plan by itself determines: a grid, a
        sampler's tables. It holds nothing that depends on a value or on noise.

        Raises:
            ReleaseError: no value could be released at this noise.
        """
        return _Each(self, sensitivity)


@attrs.frozen(eq=False)
class _Each:
    """A mechanism that computes everything anew at each query."""

    mechanism: Mechanism
    sensitivity: Sensitivity

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        return self.mechanism.release(value, query, self.sensitivity, noise)


def coordinates(value: NDArray[Any], query: Query) -> NDArray[np.float64]:
    """Check a statistic as every release begins, and return its real coordinates, flat.

    Accepts any numeric dtype and memory order. No message shows a value.

    Raises:
        ContractError: a wrong shape, a complex value for a real query, no number, NaN or an
            infinity, or an integer that a float cannot hold.
    """
    array = np.asarray(value)
    need(
        array.shape == query.shape,
        ContractError,
        f"the statistic of {query.name!r} must have shape {query.shape}, has {array.shape}",
    )
    # To write a type out takes longer than all of these checks.
    if array.dtype.kind not in ("biuf" if query.field == "real" else "biufc"):
        raise ContractError(
            f"the statistic of {query.name!r} must be {query.field} numbers, is {array.dtype}"
        )
    # Only 64-bit integers can lie beyond 2^53, where doubles are no longer exact.
    need(
        array.dtype.kind not in "iu"
        or array.dtype.itemsize < 8
        or not bool(((array > _LARGEST_INTEGER) | (array < -_LARGEST_INTEGER)).any()),
        ContractError,
        f"the statistic of {query.name!r} holds integers beyond 2^53",
    )
    real = to_real(array.astype(query.dtype))
    need(
        bool(np.isfinite(real).all()),
        ContractError,
        f"the statistic of {query.name!r} is not finite",
    )
    return real


def summed(value: NDArray[Any] | Exact, query: Query) -> NDArray[np.float64] | Exact:
    """Return an exact sum unchanged, of the right shape; `coordinates` of every other value.

    Raises:
        ContractError: as for `coordinates`.
    """
    if isinstance(value, Exact) and value.shape == query.shape and query.field == "real":
        return value
    return coordinates(np.asarray(value), query)


def integers(value: NDArray[Any] | Exact, query: Query) -> NDArray[np.int64]:
    """Check a statistic that claims to be integers, and return its coordinates, flat.

    An exact sum is clamped to 2^53, which moves no two values apart.

    Raises:
        ContractError: as for `coordinates`, or one is not an integer of at most 2^53.
    """
    if isinstance(value, Exact) and value.shape == query.shape:
        # Before `in_units`, which would round fractions away.
        need(
            value.exponent >= 0 or not any(n % (1 << -value.exponent) for n in value.integers()),
            ContractError,
            f"the statistic of {query.name!r} must be integers",
        )
        limited = value.in_units(0).clip(-_LARGEST_INTEGER, _LARGEST_INTEGER)
        return np.asarray(limited, dtype=np.int64)
    exact = coordinates(np.asarray(value), query)
    need(
        bool(((np.abs(exact) <= _LARGEST_INTEGER) & (exact == np.rint(exact))).all()),
        ContractError,
        f"the statistic of {query.name!r} must be integers of up to 2^53",
    )
    return exact.astype(np.int64)


def finite(released: NDArray[np.float64], query: Query) -> NDArray[np.float64]:
    """Return `released` if no float operation on the way overflowed.

    Raises:
        ReleaseError: one did; nothing is released.
    """
    need(
        bool(np.isfinite(released).all()), ReleaseError, f"the release of {query.name!r} overflows"
    )
    return released


def to_real(value: NDArray[Any]) -> NDArray[np.float64]:
    """Return the real coordinates of a statistic, flat; a complex entry gives two (an isometry)."""
    if np.iscomplexobj(flat := np.ascontiguousarray(value).reshape(-1)):
        return flat.astype(np.complex128, copy=False).view(np.float64)
    return flat.astype(np.float64)


def from_real(coordinates: NDArray[np.float64], query: Query) -> NDArray[Any]:
    """Return the inverse of `to_real`, in the query's shape."""
    return (
        np.ascontiguousarray(coordinates, dtype=np.float64).view(query.dtype).reshape(query.shape)
    )
