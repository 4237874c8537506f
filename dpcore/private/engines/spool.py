"""Spool: a file without a name that holds records while a run lasts.

It is made in a folder of the operator's and has no name there, so that no one can open it, and the
system removes it when the process ends, however it ends. Where a system has no such files it has a
name that only its owner can open, and is removed when it is closed.
"""

import mmap
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SourceError, SpoolError, need

_PAGE = mmap.ALLOCATIONGRANULARITY
_DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)  # of a file's pages: nothing is lost


def _bytes(array: NDArray[Any]) -> memoryview:
    contiguous: Any = np.ascontiguousarray(array)  # a buffer, which numpy's types do not say
    return memoryview(contiguous).cast("B")


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
        self._local = threading.local()
        self._folder = "the system's folder for temporary files" if folder is None else str(folder)
        try:
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Without a buffer, so that no copy of records lies in a file object; `pwrite` takes a
            # position, so threads need no common one.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._spool_error(error) from None

    def put(self, arrays: Sequence[NDArray[Any]]) -> int:
        """Keep arrays, one behind the other; where they begin.

        Raises:
            SpoolError: the disk is full, or fails.
        """
        pieces = [_bytes(array) for array in arrays if array.size]
        with self._lock:
            place = self._end
            # Only the room is taken under the lock; threads write side by side. Places begin at
            # pages, so that the system can drop the memory of one block only.
            size = sum(piece.nbytes for piece in pieces)
            self._end += -(-size // _PAGE) * _PAGE
        position = place
        try:
            for piece in pieces:
                while piece.nbytes:
                    # A write may end early without an error, for example when the disk is nearly
                    # full.
                    written = os.pwrite(self._file.fileno(), piece, position)
                    piece, position = piece[written:], position + written
        except OSError as error:
            raise self._spool_error(error) from None
        return place

    def read(self, place: int, size: int) -> memoryview:
        """Read `size` bytes at `place` into a buffer of this thread, valid until its next read.

        One buffer for all blocks stays in the processor's cache, and its memory is not cleared anew
        by the system for each of them.

        Raises:
            SourceError: the file is shorter than it was.
        """
        buffer: bytearray | None = getattr(self._local, "buffer", None)
        if buffer is None or len(buffer) < size:
            self._local.buffer = buffer = bytearray(size)
        view = memoryview(buffer)[:size]
        need(
            os.preadv(self._file.fileno(), [view], place) == size,
            SourceError,
            f"the spool in {self._folder} is shorter than it was",
        )
        return view

    def mapped(self, place: int, size: int) -> memoryview:
        """Map `size` bytes at `place`, read-only; they are loaded from disk on access.

        One mapping of the file serves all of them: making one for each block costs more than a
        pass over it. Anyone who is done with bytes calls `left`, so that memory does not grow.

        Raises:
            SourceError: the file is shorter than it was.
        """
        if not size:
            return memoryview(b"")
        with self._lock:
            # The file has grown since the last mapping; old views keep the old one alive.
            if self._map is None or place + size > len(self._map):
                self._map = self._map_file(place + size)
            return memoryview(self._map)[place : place + size]

    def drop_pages(self, place: int, size: int) -> None:
        """Let the system reclaim the memory of bytes that are not read for a while."""
        mapping = self._map
        if mapping is not None and size and _DROP is not None:
            mapping.madvise(_DROP, place, min(size, len(mapping) - place))

    def _map_file(self, size: int) -> mmap.mmap:
        try:
            mapping = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            mapping = None
        if mapping is None or len(mapping) < size:
            raise SourceError(f"the spool in {self._folder} is shorter than it was")
        return mapping

    def close(self) -> None:
        """Remove it. May be called again."""
        self._map = None  # closed with the last view of it
        self._file.close()

    def _spool_error(self, error: OSError) -> SpoolError:
        return SpoolError(
            f"records cannot be spooled to {self._folder} ({error.strerror}); name another folder"
        )
