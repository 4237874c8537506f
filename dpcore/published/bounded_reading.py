"""Reading a published folder that a stranger may have made: plain files of bounded size only."""

import contextlib
import io
import itertools
import json
import math
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ReplayError, near, need
from dpcore.yaml.located import open_regular

LARGEST_TEXT = 1 << 24  # bytes of a lock or a guarantee
MOST_VALUES = 1 << 20  # in its lists and objects: what is decoded takes far more than its text
MOST_FILES = 10_000
_FEW, _HEADER = 100, 128  # releases that need no such check; bytes of the header of one array
_OVERHEAD = 1 << 12  # bytes that an archive may take for one array next to its numbers


def folder_inside(folder: Path, name: str) -> Path:
    """Return a folder below another one, no part of which is a link that leads elsewhere.

    Raises:
        ReplayError: a part is a link, or no folder.
        OSError: it does not exist, or cannot be looked at.
    """
    path = folder
    for part in Path(name).parts:
        path /= part
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        need(is_folder, ReplayError, f"{name}: not a folder; a link is not followed")
    return path


def read_bytes(path: Path, limit: int = LARGEST_TEXT) -> bytes:
    """Return a regular file's content: no link, pipe or device is opened, followed or waited for.

    Raises:
        ReplayError: it is something else, or longer than `limit`.
        OSError: it cannot be read.
    """
    mode = path.lstat().st_mode
    need(not stat.S_ISLNK(mode), ReplayError, f"{path.name}: a link is not followed")
    # To open a device may already do something.
    need(stat.S_ISREG(mode), ReplayError, f"{path.name}: not a regular file")
    with open_regular(path, getattr(os, "O_NOFOLLOW", 0)) as file:
        status = os.fstat(file.fileno())
        # One byte more is asked for, so that a file that grows meanwhile is noticed.
        content = b"" if status.st_size > limit else file.read(limit + 1)
        need(
            status.st_size <= limit and len(content) <= limit,
            ReplayError,
            f"{path.name}: longer than the {limit} bytes that it may have",
        )
    return content


def read_json(path: Path) -> bytes:
    """Return the text of a JSON file whose lists and objects hold a bounded number of values.

    Raises:
        ReplayError: it is no regular file, too long, holds more, or a key twice.
        OSError: it cannot be read.
    """
    content = read_bytes(path)
    # Each value but the first is behind one of these; those inside texts count as well.
    values = sum(map(content.count, (b",", b"[", b"{")))
    need(values < MOST_VALUES, ReplayError, f"{path.name}: more than {MOST_VALUES} values")
    try:
        # Of two values under one key readers differ in which they take. Numbers stay texts here.
        json.loads(
            content, object_pairs_hook=_distinct, parse_int=str, parse_float=str, parse_constant=str
        )
    except ValueError as error:
        raise ReplayError(f"{path.name}: damaged ({type(error).__name__})") from None
    return content


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    need(len({*names}) == len(names), ReplayError, "damaged (a key occurs twice)")


def read_arrays(path: Path, numbers: int, arrays: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an uncompressed archive, of at most so many numbers and arrays together.

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
            # A compressed array could unpack to any size, and members that overlap to the size of
            # the archive each; stored ones that do not overlap cannot.
            need(
                all(
                    member.compress_type == zipfile.ZIP_STORED and not (member.flag_bits & 1)
                    for member in members
                )
                and sum(member.file_size for member in members) <= len(content),
                ReplayError,
                f"{path.name}: a compressed, encrypted or overlapping array is not read",
            )
            return {
                member.filename.removesuffix(".npy"): _decode_array(archive.read(member))
                for member in members
            }
    except ReplayError:
        raise
    except Exception as error:  # whatever zipfile or numpy raises at bytes that no one foresaw
        raise ReplayError(f"{path.name}: damaged ({type(error).__name__})") from None


def _decode_array(content: bytes) -> NDArray[Any]:
    """Return an array of numbers or texts in NumPy's format, no larger than its bytes.

    Raises:
        ValueError: it is damaged, or of objects: to load a stranger's would run their code.
    """
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):  # the only one that short headers are written in
        raise ValueError("a format that no run publishes")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    # What a header announces is compared with what is there before anything is made of it.
    size = math.prod(shape) * dtype.itemsize
    need(
        dtype.kind in "biufcSU" and size == len(content) - file.tell(),
        ValueError,
        "not the numbers that its header announces",
    )
    array = np.frombuffer(content, dtype, math.prod(shape), file.tell())
    return array.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def names_in(folder: Path) -> set[str]:
    """Return the names of all entries of a folder.

    Raises:
        ReplayError: it holds more than 10,000 entries.
    """
    with os.scandir(folder) as entries:
        names = {entry.name for entry in itertools.islice(entries, MOST_FILES + 1)}
    need(len(names) <= MOST_FILES, ReplayError, f"{folder}: more than {MOST_FILES} files")
    return names


def require_answers(releases: object, path: Path) -> None:
    """Refuse at once a lock of more releases than its archive has bytes to answer.

    Raises:
        ReplayError: the archive is too short for them.
        OSError: it cannot be looked at.
    """
    count = len(releases) if isinstance(releases, list) else 1
    need(
        count <= _FEW or count * _HEADER <= path.lstat().st_size,
        ReplayError,
        f"{path.name}: too short for the answers to {count} releases",
    )


def no_run(folder: Path, public: str, error: OSError) -> ReplayError:
    """Report that a path leads to no run folder, and name the nearest one.

    Args:
        public: The name of the folder by which a run is known.
        error: What the system reported.
    """
    # Of a folder that is there only its own entries are listed, and no link is followed: nothing
    # outside a stranger's folder is opened.
    places = (folder,) if os.path.lexists(folder) else (*folder.parents[:2], Path("runs"))
    runs = sorted({run for place in places for run in _runs_in(place, public)})
    hint = near(str(folder), runs) or (f", such as {runs[-1]}" if runs else "")
    return ReplayError(
        f"{folder}: not a run folder ({error.strerror}), which `dpcore run` writes{hint}"
    )


def _runs_in(place: Path, public: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        return [
            entry.path
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and os.path.lexists(Path(entry.path, public))
        ]
    return []
