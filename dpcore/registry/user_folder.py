"""`user_folder`: find where a user's own files are kept."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder of the user's data: `$XDG_DATA_HOME/dpcore`, or `~/.local/share/dpcore`."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dpcore"


def user_file() -> Path:
    """Return the user's own index: `$XDG_CONFIG_HOME/dpcore/registry.yaml`."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "dpcore" / "registry.yaml"
