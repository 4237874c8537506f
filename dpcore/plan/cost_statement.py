"""Resources: what a run needs of the machine, from public facts alone."""

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
        passes: How often all records are gone through, their reading included.
        disk: Bytes of the spool, where records are held in blocks.
    """

    memory: int = 0
    work: int = 0
    passes: int = 0
    disk: int = 0

    def __add__(self, other: Self) -> "Resources":
        """Both, one after the other, nothing given back."""
        return self._with(other, self.memory + other.memory)

    def largest(self, other: Self) -> "Resources":
        """One after the other, the memory given back in between."""
        return self._with(other, max(self.memory, other.memory))

    # Work and passes always add up. The spool is shared, so that its largest size counts.
    def _with(self, addend: Self, memory: int) -> "Resources":
        return Resources(
            memory,
            self.work + addend.work,
            self.passes + addend.passes,
            max(self.disk, addend.disk),
        )

    def describe(self) -> str:
        """The estimate in one clause: memory, disk, multiplications and passes."""
        passes = f", {self.passes} {'passes' if self.passes > 1 else 'pass'} over the records"
        disk = f", {in_bytes(self.disk)} of disk" if self.disk else ""
        work = f"{in_powers(self.work)} multiplications{passes if self.passes else ''}"
        return f"about {in_bytes(self.memory)} of memory{disk}, {work}"


@runtime_checkable
class StatesResources(Protocol):
    """A component that says what it needs."""

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Bytes and multiplications of one fit; `domain.at_most`, if known, bounds the records."""


def stated(component: Any, domain: Domain) -> Resources:
    """What a component says that it needs; zeros where it says nothing."""
    return Resources(
        *(component.resources(domain) if isinstance(component, StatesResources) else ())
    )


def in_bytes(count: int) -> str:
    """A number of bytes to three digits, in powers of 1000: `1.5 GB`."""
    # Counts are integers of any size, larger than any float among others.
    size, unit = float(min(count, 10**300)), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def in_powers(count: int) -> str:
    """A number of any size to one digit: `2e+09`."""
    digits = str(count)
    return f"1e+{len(digits) - 1}" if len(digits) > 300 else f"{float(count):.1g}"
