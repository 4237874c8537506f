"""Folders: where a user's own files are kept."""

import os
from pathlib import Path


def data_folder() -> Path:
    """The folder of the user's data: `$XDG_DATA_HOME/dpcore`, or `~/.local/share/dpcore`."""
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "dpcore"


def user_file() -> Path:
    """The user's own index: `$XDG_CONFIG_HOME/dpcore/registry.yaml`."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "dpcore" / "registry.yaml"
