"""Folders: where a user's own files are kept."""

import os
from pathlib import Path


def data_folder() -> Path:
    """`$XDG_DATA_HOME/dpcore`, or `~/.local/share/dpcore`."""
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "dpcore"
