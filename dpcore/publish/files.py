"""Files of a run on disk: all of a folder or none of it, and what is private closed to others.

A folder is written beside its place, put on disk, and renamed, so that a crash at any moment leaves
the whole folder or none. What is private is open to its owner alone, whatever the umask.
"""

import contextlib
import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from dpcore.errors import DpcoreError
from dpcore.ledger.disk import put_on_disk

_PRIVATE_FOLDER, _PRIVATE_FILE, _FILE = 0o700, 0o600, 0o644


def new_folder(parent: Path, stem: str) -> Path:
    """`parent/STEM-0001`, counting up; never an existing one.

    Raises:
        DpcoreError: it cannot be made.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        # `mkdir` decides between two runs at once: the second one takes the next number.
        for number in itertools.count(1):
            folder = parent / f"{stem}-{number:04d}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise DpcoreError(f"{parent}: cannot make a run folder ({error.strerror})") from None
    raise AssertionError("unreachable")


def write_files(folder: Path, files: Mapping[str, bytes], *, private: bool = False) -> None:
    """All files or none, on disk when this returns, with the folders above.

    Args:
        private: Whether the folder and its files are for their owner alone.

    Raises:
        OSError: nothing was written.
    """
    # Written beside, put on disk, then renamed: the name appears with everything in it.
    partial_folder = folder.with_name(f".{folder.name}.partial")
    partial_folder.mkdir(parents=True)
    try:
        if private:
            partial_folder.chmod(_PRIVATE_FOLDER)  # before it holds anything
        for name, content in files.items():
            _write(partial_folder / name, content, _PRIVATE_FILE if private else _FILE)
        put_on_disk(partial_folder)
        partial_folder.rename(folder)
    except BaseException:
        shutil.rmtree(partial_folder, ignore_errors=True)
        raise
    with contextlib.suppress(OSError):  # it stands, even if a folder above cannot be put on disk
        for ancestor in (folder.parent, folder.parent.parent, folder.parent.parent.parent):
            put_on_disk(ancestor)


def private_folder(folder: Path) -> Path:
    """A folder for its owner alone, made where it is missing."""
    folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    folder.chmod(_PRIVATE_FOLDER)
    return folder


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """The file with new content, or as it was.

    Raises:
        OSError: it is as it was.
    """
    temporary = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        _write(temporary, content, _PRIVATE_FILE if private else _FILE)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):
        put_on_disk(path.parent)


def _write(path: Path, content: bytes, mode: int) -> None:
    # O_EXCL: nothing that stands there already, a link among others, is written through.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        # The umask may have taken the owner's own bits: they are given back before it is written.
        if mode == _PRIVATE_FILE:
            path.chmod(mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
