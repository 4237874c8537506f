"""`locations`: find a ledger by name among the user's own, by path, or on a server."""

import re
from pathlib import Path

from dpcore.errors import SpecError, near, need
from dpcore.ledger.file_journal import FileJournal
from dpcore.ledger.journal import Journal
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import data_folder
from dpcore.siblings import sibling

SUFFIX, SERVER = ".ledger", "postgresql"
# No dot and no slash: a name cannot leave the folder or hide in it.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class UnknownLedgerError(SpecError):
    """No ledger of that name."""


def ledgers_folder() -> Path:
    """Locate ledgers that go by a name: `ledgers` in the user's data folder."""
    return data_folder() / "ledgers"


def ledger_names() -> list[str]:
    """Return every ledger of this user, sorted."""
    # Names with a leading dot are counters, and ledgers that are not complete yet.
    return sorted(path.stem for path in ledgers_folder().glob(f"[!.]*{SUFFIX}"))


def place_of(text: str, folder: Path | None = None) -> str | Path:
    """Return the place that a spec or a command names: a text that ends in `.ledger` is a file's
    path.

    Args:
        folder: What a path is relative to; the working folder if None.
    """
    return (folder or Path()) / text if text.endswith(SUFFIX) else text


def path_of(place: str | Path) -> Path:
    """Return the file of a ledger.

    Raises:
        ParameterError: a string is no name.
    """
    if isinstance(place, Path):
        return place
    need(
        isinstance(place, str) and NAME.fullmatch(place),
        "a ledger",
        "a name of letters, digits, - and _ (a Path for a file)",
        "name",
        place,
    )
    return ledgers_folder() / f"{place}{SUFFIX}"


def journal_at(place: str | Path) -> tuple[str, Journal]:
    """Return a ledger's name, and where its rows are: by its name, its file's path, or
    NAME@postgresql.

    Raises:
        ParameterError: a string is no name, or ledgers are not kept at such a place.
        RegistryError: the plugin that keeps them there is not installed, or disabled.
    """
    name, _, server = place.partition("@") if isinstance(place, str) else ("", "", "")
    if not server:
        path = path_of(place)
        return path.stem, FileJournal(path)
    need(server == SERVER, "a ledger", f"NAME@{SERVER} where it is in no file", "place", place)
    # Through the registry's gate: a plugin that the user disabled keeps no budget.
    Registry.default().load("engines")
    module = sibling("engines", "postgresql_journal", "a ledger on PostgreSQL")
    return path_of(name).stem, module.PostgresqlJournal(name)


def unknown(place: str | Path) -> UnknownLedgerError:
    """Say that there is none, and how to make one."""
    is_file = isinstance(place, Path)
    fault = f"at {place}" if is_file else f"is called {place!r}{near(str(place), ledger_names())}"
    return UnknownLedgerError(
        f"no ledger {fault}; create one with "
        f"`dpcore ledger create {place} --epsilon E --delta D --adjacency A`"
    )
