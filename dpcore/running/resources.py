"""Resources: what a run needs of the machine, from public facts alone."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import attrs

from dpcore.domain.domain import Domain

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


@attrs.frozen
class Resources:
    """An estimate, to within a small factor.

    Args:
        memory: Bytes at the peak.
        work: Multiplications of numbers.
    """

    memory: int = 0
    work: int = 0

    def __add__(self, other: Self) -> Resources:
        """Both, one after the other, nothing given back."""
        return Resources(self.memory + other.memory, self.work + other.work)

    def largest(self, other: Self) -> Resources:
        """One after the other, the memory given back in between."""
        return Resources(max(self.memory, other.memory), self.work + other.work)

    def describe(self) -> str:
        """One clause."""
        return f"about {in_bytes(self.memory)} of memory, {in_powers(self.work)} multiplications"


@runtime_checkable
class StatesResources(Protocol):
    """A component that says what it needs."""

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Bytes and multiplications of one fit; `domain.at_most`, if known, bounds the records."""


def stated(component: Any, domain: Domain) -> Resources:
    """What a component says, nothing if it says nothing."""
    if not isinstance(component, StatesResources):
        return Resources()
    return Resources(*component.resources(domain))


def in_bytes(count: int) -> str:
    """`1.5 GB`."""
    size, unit = float(min(count, 10**300)), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def in_powers(count: int) -> str:
    """`2e+09`, of a number of any size."""
    digits = str(count)
    if len(digits) > 300:
        return f"1e+{len(digits) - 1}"
    return f"{float(count):.1g}"
