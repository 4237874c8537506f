"""Resources: what a run needs of the machine, from public facts alone."""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import attrs

from dpcore.domain.domain import Domain
from dpcore.errors import ResourceError, need

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

# Seconds at the yardstick, as `benchmarks/rooms.py` measures them on the examples.
_START = 1.9  # two interpreters with their modules, and the pricing of a plan
_PASS = 2e-3  # an ask: its noise, and its replay
_WORK = 5e-10  # a multiplication: of matrices it costs less, step by step more
_READ = 2e-7  # a cell that is read and encoded

_CGROUP, _MOUNTS = Path("/sys/fs/cgroup/memory.max"), Path("/proc/mounts")
_IN_MEMORY = ("tmpfs", "ramfs")  # file systems whose files are pages of memory

YARDSTICK = 1.2
"""Seconds that ten million passes of `s += i` at a module's level take on the processor whose
seconds are stated."""


@attrs.frozen
class Resources:
    """An estimate, to within a small factor.

    Args:
        memory: Bytes of the process that runs, at its peak. The one that replays the answers has
            an interpreter's share of its own beside it.
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
            self.cells + addend.cells,
            self.published + addend.published,
        )

    def describe(self) -> str:
        """The estimate in one clause: memory, disk, seconds, multiplications and passes."""
        passes = f", {self.passes} {'passes' if self.passes > 1 else 'pass'} over the records"
        disk = f", {in_bytes(self.disk)} of disk" if self.disk else ""
        work = f"{in_powers(self.work)} multiplications{passes if self.passes else ''}"
        seconds = (
            f"{self.seconds:.2g} s of a processor that adds ten million numbers in {YARDSTICK} s"
        )
        return f"about {in_bytes(self.memory)} of memory in all{disk}, {seconds}: {work}"


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


def machine_memory() -> int | None:
    """Bytes that this process may use at most, as far as the system tells."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):  # no group, or one without a limit
        limits.append(int(_CGROUP.read_text()))
    return min(limits, default=None)


def require_disk(folder: Path | None, size: int, memory: int = 0, limit: int | None = None) -> None:
    """Refuse to write more into a folder, or to the system's for temporary files, than is free.

    Args:
        folder: Where; it need not exist yet.
        size: Bytes, by public facts alone.
        memory: Bytes that the run needs besides, which count where files are memory themselves.
        limit: Bytes of memory that it may need; the machine's if None.

    Raises:
        ResourceError: the file system has less, or is memory, and there is less of that.
    """
    place = (Path(tempfile.gettempdir()) if folder is None else folder).absolute()
    # What is free is a fact of the machine, whoever fills it: no record of this run is open.
    existing = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    need(
        size <= free,
        ResourceError,
        f"needs about {in_bytes(size)} of disk in {place}, {in_bytes(free)} are free; no record "
        "was opened (make room, or name another folder)",
    )
    limit = machine_memory() if limit is None else limit
    if size and limit is not None and memory + size > limit and _is_memory(existing.resolve()):
        raise ResourceError(
            f"needs about {in_bytes(memory + size)} of memory, as {place} lies in memory and takes "
            f"{in_bytes(size)} of it, the limit is {in_bytes(limit)}; no record was opened (name "
            "another folder; --memory sets another limit)"
        )


def _is_memory(folder: Path) -> bool:
    """Whether files of a folder are pages of memory, as Linux tells of its mounts."""
    kinds: dict[Path, str] = {}
    with contextlib.suppress(OSError):  # another system
        for line in _MOUNTS.read_text().splitlines():
            _, point, kind, *_ = line.split(" ")
            # A space, a tab, a line feed and a backslash stand there as octal numbers.
            kinds[Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), point))] = kind
    return next((kinds[p] for p in (folder, *folder.parents) if p in kinds), "") in _IN_MEMORY


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
