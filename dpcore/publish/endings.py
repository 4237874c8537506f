"""Endings: what a run that stops says of its budget, and of what is published already."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpcore.errors import DpcoreError, NotPublishedError, OperatorFileError, ReleaseError

if TYPE_CHECKING:
    from dpcore.ledger.book import Reservation
    from dpcore.publish.folder import Run


@contextlib.contextmanager
def told_where(place: Path) -> Iterator[None]:
    """An interrupt from the rename of what is published on says that it is there."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not place.exists() or str(interrupt).startswith("published"):
            raise
        raise KeyboardInterrupt(f"published in {place}") from None


@contextlib.contextmanager
def after_reservation(reservation: Reservation | None, sealed: bool) -> Iterator[None]:
    """From the reservation to the published folder: whoever stops here has spent it."""
    try:
        yield
    except KeyboardInterrupt:
        if reservation is None:
            raise
        raise KeyboardInterrupt("spent, not published") from None
    # Whatever stops a run from here on, its message must say that the budget is gone; a sealed run
    # has said its one sentence.
    except Exception as error:
        if reservation is None or (sealed and isinstance(error, ReleaseError)):
            raise
        why = getattr(error, "message", f"internal error: {type(error).__name__}")
        why = "it needs more memory than it may use" if isinstance(error, MemoryError) else why
        raise NotPublishedError(f"spent, not published: {why}") from None


@contextlib.contextmanager
def after_publication(result: Run) -> Iterator[None]:
    """After the release is published: nothing that fails here takes it back."""
    message = f"published in {result.kept}; the operator's file is missing"
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
