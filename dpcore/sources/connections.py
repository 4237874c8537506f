"""Connections: databases by name, in the operator's own file and nowhere else.

A spec, a lock and a run folder hold the name only. The file is
`$XDG_CONFIG_HOME/dpcore/connections.yaml`, and no one but its owner may read it:

    people: {sqlite: /srv/people.db}
    clinic: {postgresql: "postgresql://reader@db.example/clinic"}
"""

import os
import stat
from pathlib import Path

import msgspec

from dpcore.errors import SourceError, SpecError, nearest, need
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import read, require_regular


class Sqlite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An SQLite database.

    Args:
        sqlite: Path of its file.
    """

    sqlite: str


class Postgresql(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A PostgreSQL server.

    Args:
        postgresql: Its address, as libpq reads it.
    """

    postgresql: str


Connection = Sqlite | Postgresql


def connections_file() -> Path:
    """Locate the operator's connections: `$XDG_CONFIG_HOME/dpcore/connections.yaml`."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "dpcore" / "connections.yaml"


def connection(name: str) -> Connection:
    """Return the database that the operator calls so. No message shows an address.

    Raises:
        SourceError: there is no such file or name, or others may read it.
    """
    path = connections_file()
    try:
        # The file may hold passwords: nothing is read while others could read it too.
        foreign_permissions = stat.S_IMODE(path.stat().st_mode) & 0o077
        require_regular(path)
    except OSError as error:
        reason = "" if isinstance(error, FileNotFoundError) else f" ({error.strerror})"
        raise SourceError(
            f"connection {name!r} is not configured{reason}: write {name}: {{sqlite: PATH}} or "
            f"{name}: {{postgresql: ADDRESS}} into {path}"
        ) from None
    need(not foreign_permissions, SourceError, f"{path}: others may read it: chmod 600 {path}")
    try:
        if not isinstance(entries := read(path).value, dict):
            raise SourceError(f"{path}: needs a mapping from names to connections")
        # The suggestion is a connection's name, never an address.
        if name not in entries:
            raise SourceError(f"{path}: no connection {name!r}{nearest(name, entries)}")
        entry = entries[name]
        if not isinstance(entry.value, dict):
            raise SourceError(f"{path}: connection {name!r} needs {{sqlite: PATH}} or the like")
        return convert(entry, Postgresql) if "postgresql" in entry.value else convert(entry, Sqlite)
    except SpecError:  # its message may show an address
        raise SourceError(
            f"{path}: connection {name!r} needs {{sqlite: PATH}} or {{postgresql: ADDRESS}}"
        ) from None
