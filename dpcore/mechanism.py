"""Mechanism: the only door between the records and the public."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.distance import Distance
from dpcore.errors import ContractError
from dpcore.events.base import Event
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.sensitivity import Sensitivity

_FREE = "dpcore_free"


def free(*, validator: Callable[[Any, Any, Any], None]) -> Any:
    """The one field of a mechanism that a spec may leave out, so that it is calibrated."""
    return attrs.field(
        default=None, validator=attrs.validators.optional(validator), metadata={_FREE: True}
    )


def free_field(mechanism: type[Mechanism]) -> str:
    """Name of the mechanism's free field.

    Raises:
        ContractError: there is not exactly one.
    """
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast(Any, mechanism))
    names = [field.name for field in fields if _FREE in field.metadata]
    if len(names) != 1:
        raise ContractError(
            f"{mechanism.__name__} must declare exactly one free field, has {names}"
        )
    return names[0]


class Mechanism(ABC):
    """Adds noise of its own to one statistic, and says what an accountant may know of it.

    Concrete mechanisms are frozen, keyword-only, validated on creation, not subclassed.
    """

    distance: ClassVar[Distance]
    """The norm in which a sensitivity must be stated."""

    arithmetic: ClassVar[Literal["exact", "real"]]
    """`exact`: the claim holds for the sampler as computed; `real`: for real-valued arithmetic."""

    source: ClassVar[str]
    """Theorem behind `event`."""

    @property
    def calibrated(self) -> bool:
        """Whether the free field has a value."""
        return getattr(self, free_field(type(self))) is not None

    @abstractmethod
    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> Self:
        """Set the free field so that one ask costs about mu = 1/scale; loss falls in scale."""

    @abstractmethod
    def event(self, query: Query, sensitivity: Sensitivity) -> Event:
        """What one ask may cost, for the sensitivity's adjacency."""

    @abstractmethod
    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """The noisy value, of the query's shape.

        Args:
            value: Finite, of the query's shape and dtype.
            noise: This ask's own stream; the result depends on no other randomness.
        """


def to_real(value: NDArray[Any]) -> NDArray[np.float64]:
    """All real coordinates of a statistic, flat: a complex entry is two of them (isometric)."""
    flat = np.ascontiguousarray(value).reshape(-1)
    return flat.view(np.float64) if np.iscomplexobj(flat) else flat.astype(np.float64)


def from_real(coordinates: NDArray[np.float64], query: Query) -> NDArray[Any]:
    """The inverse of `to_real`, in the query's shape."""
    flat = np.ascontiguousarray(coordinates, dtype=np.float64)
    return flat.view(query.dtype).reshape(query.shape)
