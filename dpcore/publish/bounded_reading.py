"""Reading a published folder that a stranger may have made: plain files of bounded size alone."""

import io
import itertools
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ReplayError, need

LARGEST_TEXT = 1 << 24  # bytes of a lock or a guarantee
MOST_FILES = 10_000
_OVERHEAD = 1 << 12  # bytes that an archive may take for one array beside its numbers

_DAMAGES = (ValueError, EOFError, KeyError, MemoryError, NotImplementedError, zipfile.BadZipFile)


def read_bytes(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """A regular file's content: no link, pipe or device is followed or waited for.

    Raises:
        ReplayError: it is something else, or longer than `most`.
        OSError: it cannot be read.
    """
    # Not every system can refuse links by a flag; and a pipe must not make the open wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    need(not path.is_symlink(), ReplayError, f"{path.name}: a link is not followed")
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        need(stat.S_ISREG(status.st_mode), ReplayError, f"{path.name}: not a regular file")
        # One byte more is asked for, so that a file that grows meanwhile is noticed.
        content = b"" if status.st_size > most else file.read(most + 1)
        need(
            status.st_size <= most and len(content) <= most,
            ReplayError,
            f"{path.name}: longer than the {most} bytes that it may have",
        )
    return content


def read_arrays(path: Path, numbers: int, arrays: int) -> dict[str, NDArray[Any]]:
    """The arrays of an uncompressed archive, of at most so many numbers and arrays together.

    Raises:
        ReplayError: it is compressed, damaged, or holds more.
        OSError: it cannot be read.
    """
    content = read_bytes(path, 8 * numbers + _OVERHEAD * (arrays + 1))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            need(
                len(members) <= arrays,
                ReplayError,
                f"{path.name}: {len(members)} arrays, {arrays} may be published",
            )
            values = {}
            for member in members:
                # A compressed array could unpack to any size; a stored one cannot.
                need(
                    member.compress_type == zipfile.ZIP_STORED and not (member.flag_bits & 1),
                    ReplayError,
                    f"{path.name}: a compressed or encrypted array is not read",
                )
                with io.BytesIO(archive.read(member)) as file:
                    name = member.filename.removesuffix(".npy")
                    # No pickles: to load a stranger's would run their code.
                    values[name] = np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGES as error:
        raise ReplayError(f"{path.name}: damaged ({type(error).__name__})") from None
    return values


def names_in(folder: Path) -> set[str]:
    """The names of all entries of a folder.

    Raises:
        ReplayError: it holds more than 10,000 entries.
    """
    with os.scandir(folder) as entries:
        names = {entry.name for entry in itertools.islice(entries, MOST_FILES + 1)}
    need(len(names) <= MOST_FILES, ReplayError, f"{folder}: more than {MOST_FILES} files")
    return names
