"""Files of a run on disk: all of a folder or none of it, and what is private closed to others;
and what a run that stops says of its budget, and of what is there already.

A folder is written next to its place, put on disk, and renamed, so that a crash at any moment
leaves the whole folder or none. What is private is open to its owner only, whatever the umask.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dpcore.errors import DpcoreError, NotPublishedError, OperatorFileError, ReleaseError

if TYPE_CHECKING:
    from dpcore.ledger.book import Reservation

_UNPUBLISHED = re.compile(r"\..+\.partial|workers-.+")  # of files on their way, and of engines
_PRIVATE_FOLDER, _PRIVATE_FILE, _FILE = 0o700, 0o600, 0o644


def new_folder(parent: Path, stem: str) -> Path:
    """Create `parent/STEM-0001`, counting up; never reuse an existing one.

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


@contextlib.contextmanager
def locked_folder(parent: Path, stem: str) -> Iterator[Path]:
    """Create a folder locked while its run lives; first remove empty ones of killed runs.

    It is removed again where the run fails before it wrote anything.

    A folder whose lock is free belongs to no run that lives. It is removed if it holds nothing, or
    nothing but what its run had not published yet, and partial files are removed from it. Where
    folders cannot be locked none is.

    Raises:
        DpcoreError: it cannot be made.
    """
    handles: list[int] = []
    try:
        with contextlib.suppress(OSError, ImportError):  # no such place yet, or no such locks
            # Between making a folder and locking it, no other run may take it for a dead one.
            handles.append(_lock(parent, wait=True))
            _remove_dead(parent, stem)
        folder = new_folder(parent, stem)
        with contextlib.suppress(OSError, ImportError):
            handles.append(_lock(folder, wait=False))
        if len(handles) > 1:
            os.close(handles.pop(0))
        try:
            yield folder
        except BaseException:
            with contextlib.suppress(OSError):  # what was written stays for the operator to look at
                folder.rmdir()
            raise
    finally:
        for handle in handles:
            os.close(handle)


def _lock(folder: Path, *, wait: bool) -> int:
    """Lock a folder until the handle is closed, or its process ends.

    Raises:
        OSError: somebody has locked it, or it cannot be locked.
        ImportError: this platform has no such locks.
    """
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _remove_dead(parent: Path, stem: str) -> None:
    """Remove the folders of runs that were killed before they published anything."""
    name = re.compile(re.escape(stem) + r"-[0-9]{4,}")
    for folder in parent.iterdir():
        if not name.fullmatch(folder.name) or folder.is_symlink():
            continue
        with contextlib.suppress(OSError):  # a run that lives, or a file
            handle = _lock(folder, wait=False)
            try:
                if all(_UNPUBLISHED.fullmatch(entry.name) for entry in folder.iterdir()):
                    shutil.rmtree(folder)
                # What was published stays; what its run was killed over goes.
                for path in (*folder.glob(".*.partial"), *folder.glob("operator/.*.partial*")):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(handle)


def write_files(folder: Path, files: Mapping[str, bytes], *, private: bool = False) -> None:
    """Write all files or none; they are on disk, with the folders above, at the return.

    Args:
        private: Whether the folder and its files are for their owner only.

    Raises:
        OSError: nothing was written.
    """
    # Written next to, put on disk, then renamed: the name appears with everything in it.
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
    with contextlib.suppress(OSError):  # it is, even if a folder above cannot be put on disk
        for ancestor in (folder.parent, folder.parent.parent, folder.parent.parent.parent):
            put_on_disk(ancestor)


def private_folder(folder: Path) -> Path:
    """Return a folder for its owner only, made where it is missing."""
    folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    folder.chmod(_PRIVATE_FOLDER)
    return folder


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Give the file new content, or leave it as it was.

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
    # O_EXCL: nothing that is there already, a link among others, is written through.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        # The umask may have taken the owner's own bits: they are given back before it is written.
        if mode == _PRIVATE_FILE:
            path.chmod(mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def reported_failures(place: Path, sealed: bool) -> Iterator[list[Reservation]]:
    """Report, to anyone who stops the run, what is spent and what is published in `place`.

    It yields a list for the run's reservation, once there is one.
    """
    spent: list[Reservation] = []
    try:
        yield spent
    except KeyboardInterrupt as interrupt:
        if interrupt.args or not (spent or place.exists()):
            raise
        message = f"published in {place}" if place.exists() else "spent, not published"
        raise KeyboardInterrupt(message) from None
    # Whatever stops a run that is charged, its message must say so; a sealed one has said its one
    # sentence.
    except Exception as error:
        if not spent or place.exists() or (sealed and isinstance(error, ReleaseError)):
            raise
        why = getattr(error, "message", f"internal error: {type(error).__name__}")
        why = "it needs more memory than it may use" if isinstance(error, MemoryError) else why
        raise NotPublishedError(f"spent, not published: {why}") from None


@contextlib.contextmanager
def after_publication(place: Path) -> Iterator[None]:
    """Keep the release published even if something fails after it."""
    message = f"published in {place}; the operator's file is missing"
    try:
        yield
    except OSError as error:
        raise OperatorFileError(f"{message}: it cannot be written ({error.strerror})") from None
    except DpcoreError as error:
        raise OperatorFileError(f"{message}: {error.message}") from None
    except MemoryError:
        raise OperatorFileError(f"{message}: the evaluation needs more memory") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(message) from None


def put_on_disk(folder: Path) -> None:
    """Put a folder's entries on disk, where the system lets a folder be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
