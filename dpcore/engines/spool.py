"""Spool: a file without a name that holds records while a run lasts.

It is made in a folder of the operator's and has no name there, so that nobody can open it, and the
system removes it when the process ends, however it ends. Where a system has no such files it has a
name that only its owner can open, and is removed when it is closed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SourceError, SpoolError

_PAGE = mmap.ALLOCATIONGRANULARITY
_DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)  # of a file's pages: nothing is lost


def _bytes(array: NDArray[Any]) -> memoryview:
    kept: Any = np.ascontiguousarray(array)  # a buffer, which numpy's types do not say
    return memoryview(kept).cast("B")


class Spool:
    """PRIVATE: pieces of bytes, each at a place of its own. Any threads may share it.

    Args:
        folder: Where; the system's own for such files if None.

    Raises:
        SpoolError: no file can be made there.
    """

    def __init__(self, folder: Path | None) -> None:
        self._lock, self._end = threading.Lock(), 0
        self._map: mmap.mmap | None = None
        self._own = threading.local()
        self._told = "the system's folder for temporary files" if folder is None else str(folder)
        try:
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed(error) from None

    def put(self, arrays: Sequence[NDArray[Any]]) -> int:
        """Keep arrays, one behind the other; where they begin.

        Raises:
            SpoolError: the disk is full, or fails.
        """
        pieces = [_bytes(array) for array in arrays if array.size]
        with self._lock:
            place = self._end
            size = sum(piece.nbytes for piece in pieces)
            self._end += -(-size // _PAGE) * _PAGE
        at = place
        try:
            for piece in pieces:
                while piece.nbytes:
                    written = os.pwrite(self._file.fileno(), piece, at)
                    piece, at = piece[written:], at + written
        except OSError as error:
            raise self._failed(error) from None
        return place

    def read(self, place: int, size: int) -> memoryview:
        """So many bytes, in a buffer of this thread's: they hold until its next read.

        One buffer for all blocks stays in the processor's cache, and its memory is not cleared anew
        by the system for each of them.

        Raises:
            SourceError: the file is shorter than it was.
        """
        buffer: bytearray | None = getattr(self._own, "buffer", None)
        if buffer is None or len(buffer) < size:
            self._own.buffer = buffer = bytearray(size)
        found = memoryview(buffer)[:size]
        if os.preadv(self._file.fileno(), [found], place) != size:
            raise SourceError(f"the spool in {self._told} is shorter than it was")
        return found

    def mapped(self, place: int, size: int) -> memoryview:
        """So many bytes, read when they are looked at, read-only.

        One mapping of the file serves all of them: making one for each block costs more than a
        pass over it. Whoever is done with bytes calls `left`, so that memory does not grow.

        Raises:
            SourceError: the file is shorter than it was.
        """
        if not size:
            return memoryview(b"")
        with self._lock:
            if self._map is None or place + size > len(self._map):
                self._map = self._whole(place + size)
            return memoryview(self._map)[place : place + size]

    def left(self, place: int, size: int) -> None:
        """These bytes are not looked at for a while: the system may take their memory back."""
        whole = self._map
        if whole is not None and size and _DROP is not None:
            whole.madvise(_DROP, place, min(size, len(whole) - place))

    def _whole(self, needed: int) -> mmap.mmap:
        try:
            found = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            found = None
        if found is None or len(found) < needed:
            raise SourceError(f"the spool in {self._told} is shorter than it was")
        return found

    def close(self) -> None:
        """Remove it. May be called again."""
        self._map = None  # closed with the last view of it
        self._file.close()

    def _failed(self, error: OSError) -> SpoolError:
        return SpoolError(
            f"records cannot be spooled to {self._told} ({error.strerror}); name another folder"
        )
