"""Where ledgers live: one file for each name, in the user's data folder."""

from __future__ import annotations

import re
from pathlib import Path

from dpcore.errors import ParameterError
from dpcore.registry.user_folder import data_folder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SUFFIX = ".ledger"


def ledgers_folder() -> Path:
    """Where ledgers live that go by a name: `ledgers` in the user's data folder."""
    return data_folder() / "ledgers"


def ledger_names() -> list[str]:
    """Every ledger of this user, sorted."""
    return sorted(path.stem for path in ledgers_folder().glob(f"[!.]*{_SUFFIX}"))


def path_of(place: str | Path) -> Path:
    """The file of a name; a path is one already.

    Raises:
        ParameterError: the name may not be a file's.
    """
    if isinstance(place, Path):
        return place
    if not _NAME.fullmatch(place):
        raise ParameterError(
            "a ledger", "a name of letters, digits, - and _ (a Path for a file)", "name", place
        )
    return ledgers_folder() / f"{place}{_SUFFIX}"
