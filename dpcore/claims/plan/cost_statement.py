"""`cost_statement`: state what a run needs of the machine, from public facts only."""

from typing import Any, Protocol, Self, runtime_checkable

import attrs

from dpcore.checks import positive_integer
from dpcore.domain.domain import Domain
from dpcore.shown import in_bytes, in_powers

# Seconds at the yardstick, as `benchmarks/rooms.py` measures them on the examples.
_START = 1.9  # two interpreters with their modules, and the pricing of a plan
_PASS = 2e-3  # an ask: its noise, and its replay
_WORK = 5e-10  # a multiplication: of matrices it costs less, step by step more
_READ = 2e-7  # a cell that is read and encoded

YARDSTICK = 1.2
"""Seconds that ten million passes of `s += i` at a module's level take on the processor whose
seconds are stated."""


@attrs.frozen
class Resources:
    """An estimate, to within a small factor.

    Args:
        memory: Bytes of the process that runs, at its peak. The one that replays the answers has
            an interpreter's proportion of its own next to it.
        work: Multiplications of numbers.
        passes: How often all records are gone through, their reading included.
        disk: Bytes of the spool, where records are held in blocks.
        cells: How many cells of a source are read.
        published: Bytes of the run folder.
    """

    memory: int = 0
    work: int = 0
    passes: int = 0
    disk: int = 0
    cells: int = 0
    published: int = 0

    @property
    def seconds(self) -> float:
        """Processor seconds of a whole run, its replay included, at the yardstick."""
        # Counts may be larger than any float.
        counts = (self.passes, self.work, self.cells)
        costs = zip(counts, (_PASS, _WORK, _READ), strict=True)
        return _START + sum(min(count, 10**300) * cost for count, cost in costs)

    def __add__(self, other: Self) -> "Resources":
        """Return both, one after the other, nothing given back."""
        return self._with(other, self.memory + other.memory)

    def largest(self, other: Self) -> "Resources":
        """Combine the needs of two in turn, if the first gives its memory back in between."""
        return self._with(other, max(self.memory, other.memory))

    # Work and passes always add up. The spool is shared, so that its largest size counts.
    def _with(self, addend: Self, memory: int) -> "Resources":
        return Resources(
            memory,
            self.work + addend.work,
            self.passes + addend.passes,
            max(self.disk, addend.disk),
            self.cells + addend.cells,
            self.published + addend.published,
        )

    def describe(self) -> str:
        """Return the estimate in one clause: memory, disk, seconds, multiplications and passes."""
        passes = f", {self.passes} {'passes' if self.passes > 1 else 'pass'} over the records"
        disk = f", {in_bytes(self.disk)} of disk" if self.disk else ""
        work = f"{in_powers(self.work)} multiplications{passes if self.passes else ''}"
        seconds = (
            f"{self.seconds:.2g} s of a processor that adds ten million numbers in {YARDSTICK} s"
        )
        return f"about {in_bytes(self.memory)} of memory in all{disk}, {seconds}: {work}"


@attrs.frozen(kw_only=True)
class Limits:
    """What a run may need of the machine, and what its operator expects.

    Args:
        memory: Bytes that a run may need by public facts; the machine's if None.
        work: Multiplications that it may need; 10^14 if None.
        expected: A public estimate of a private number of records, by anyone who operates the
            machine: memory, disk and work are counted with it where the domain declares no number,
            and nothing else is.
    """

    memory: int | None = None
    work: int | None = None
    expected: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )


@runtime_checkable
class StatesResources(Protocol):
    """A component that says what it needs."""

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return bytes and multiplications of one fit; `domain.at_most` bounds the records."""


def resources_of(component: Any, domain: Domain) -> Resources:
    """Return the needs that a component states; zeros if it states none."""
    return Resources(
        *(component.resources(domain) if isinstance(component, StatesResources) else ())
    )
