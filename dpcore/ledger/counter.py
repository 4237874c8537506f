"""Counter: how far a ledger has come, in a small file beside it, so that an older copy is noticed.

The file `.NAME.ledger.seen` holds the number and the digest of the latest row. It is written
after every transaction, and is on disk before it has its name; so after a crash it may be behind,
which is no fault, and is never empty. A ledger that is behind its counter, or has another row at
that place, was replaced by an older or another copy.

What it is not: whoever restores or changes both files, or removes the counter, is not noticed. The
digests in published guarantees are the stronger witness (`dpcore ledger verify --run`).
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import attrs
import msgspec

from dpcore.strict_yaml.located import open_regular

_LARGEST = 1000  # bytes, far more than a counter has


class Mark(msgspec.Struct, forbid_unknown_fields=True):
    """What a counter's file holds: number and digest of the latest row that was written."""

    number: int
    digest: str


@attrs.frozen
class Counter:
    """The counter of one ledger's file."""

    ledger: Path

    @property
    def path(self) -> Path:
        """Where the counter is kept: `.NAME.ledger.seen` beside the ledger."""
        return self.ledger.with_name(f".{self.ledger.name}.seen")

    def fault(self, digest_of: Callable[[int], str | None]) -> str:
        """What is wrong with the ledger, going by the counter; empty if nothing is.

        Args:
            digest_of: The digest of the row of a number; None where there is no such row.

        Raises:
            PermissionError: the file may not be read.
        """
        try:
            mark = self._load()
        except PermissionError:
            raise
        except (msgspec.DecodeError, UnicodeError, OSError):  # an empty one, or no file, too
            return (
                f"its counter {self.path} is damaged: remove it once `dpcore ledger verify --run` "
                f"finds the runs that were published"
            )
        # No counter is no fault: a user may have removed it, as the messages here advise.
        if mark is None or (digest := digest_of(mark.number)) == mark.digest:
            return ""
        state = "ends before that" if digest is None else "has another one there"
        return (
            f"an older or another copy was put in its place: row {mark.number} was written, and "
            f"this file {state}. Put the latest copy back. If there is none, consider all of it "
            f"spent; to go on nevertheless, remove {self.path}"
        )

    def _load(self) -> Mark | None:
        """What the file holds; None without one."""
        try:
            with open_regular(self.path) as file:
                return msgspec.json.decode(file.read(_LARGEST), type=Mark)
        except FileNotFoundError:
            return None

    def advance(self, number: int, digest: str, mode: int) -> None:
        """Note the latest row, unless a later one is noted.

        Args:
            mode: Of the file, as `os.chmod` takes it.

        Raises:
            OSError: it cannot be written.
        """
        # Row 1 is a new ledger's, whatever counter an older file of that name left behind.
        if number > 1 and (mark := self._load()) is not None and mark.number >= number:
            return  # another process came in between
        # Written beside and renamed, so that nobody reads half a counter.
        temporary = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}")
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(Mark(number=number, digest=digest)))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, mode)
            os.replace(temporary, self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
