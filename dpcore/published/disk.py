"""Folders whose entries are on disk, not in a cache: what a crash must not undo."""

import os
from pathlib import Path


def put_on_disk(folder: Path) -> None:
    """Put a folder's entries on disk, where the system lets a folder be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
