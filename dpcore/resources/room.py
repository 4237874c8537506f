"""Room: the memory that a run may use, and the disk that a spool or a run folder needs."""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from dpcore.errors import ResourceError, need
from dpcore.shown import in_bytes

_CGROUP, _MOUNTS = Path("/sys/fs/cgroup/memory.max"), Path("/proc/mounts")
_IN_MEMORY = ("tmpfs", "ramfs")  # file systems whose files are pages of memory


def machine_memory() -> int | None:
    """Bytes that this process may use at most, as far as the system says."""
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
        size: Bytes, by public facts only.
        memory: Bytes that the run needs also, which count where files are memory themselves.
        limit: Bytes of memory that it may need; the machine's if None.

    Raises:
        ResourceError: the file system has less, or is memory, and there is less of that.
    """
    place = (Path(tempfile.gettempdir()) if folder is None else folder).absolute()
    # What is free is a fact of the machine, anyone who fills it: no record of this run is open.
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
    """Return whether files of a folder are pages of memory, as Linux says of its mounts."""
    kinds: dict[Path, str] = {}
    with contextlib.suppress(OSError):  # another system
        for line in _MOUNTS.read_text().splitlines():
            _, point, kind, *_ = line.split(" ")
            # A space, a tab, a line feed and a backslash stand there as octal numbers.
            kinds[Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), point))] = kind
    return next((kinds[p] for p in (folder, *folder.parents) if p in kinds), "") in _IN_MEMORY
