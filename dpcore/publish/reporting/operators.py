"""What the operator alone sees in a report: looks at private records that nothing pays for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore.errors import ReplayError
from dpcore.publish.evaluation import UNCOVERED
from dpcore.publish.reading import read_bytes

FILE = Path("operator") / "run.json"


@attrs.frozen(kw_only=True)
class Looked:
    """NOT covered by the guarantee.

    Args:
        warning: What the operator's file begins with.
        evaluation: Errors on records held out: what each is of, and the number in six digits.
        notes: What stood in for what.
    """

    warning: str
    evaluation: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def operators(folder: Path) -> Looked:
    """From the operator's file of a run.

    Raises:
        ReplayError: it is missing or damaged.
    """
    path = folder / FILE
    try:
        told = msgspec.json.decode(read_bytes(path), type=dict[str, Any])
        notes = told.get("stand-ins", {})
        return Looked(
            warning=UNCOVERED.rstrip("."),
            evaluation=tuple(_leaves(told.get("evaluation", {}))),
            notes=tuple(f"{name}: {note}" for name, note in notes.items()),
        )
    except (OSError, ReplayError, RecursionError, msgspec.MsgspecError, AttributeError):
        raise ReplayError(f"{path}: no operator's file of a run that can be read") from None


def _leaves(found: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Every number, with the names that lead to it."""
    for name, value in found.items():
        path = f"{above}, {name}" if above else str(name)
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield path, f"{value:.6g}" if isinstance(value, float) else str(value)
