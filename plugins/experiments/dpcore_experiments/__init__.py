"""A paper's tables and figures as specs: run as printed, and compared cell by cell."""

from collections.abc import Mapping
from typing import Any

from dpcore import hookimpl
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_commands() -> Mapping[str, Any]:
    """Run what a paper prints, and compute what it states."""
    return LazyMapping(
        {
            "reproduce": ("dpcore_experiments.commands.reproduce", "reproduce"),
            "theory": ("dpcore_experiments.commands.theory", "theory"),
        }
    )
