"""Evidence: what attacks found out about a plan, reported by anyone who keeps it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Evidence(ABC):
    """What is known of attacks on a priced plan. No guarantee rests on it; `dpcore check` says it.

    Each method raises a `DpcoreError` where what it keeps cannot be read: that is a note.
    """

    @abstractmethod
    def of_bounds(self, plan: Any, registry: Any) -> Iterable[str]:
        """Return a line for each release of a `Plan`: how its bound was attacked at these
        versions.
        """

    def broken(self, plan: Any, registry: Any, spec: Path, lock: Any) -> Iterable[str]:
        """Return the bounds of a `Plan` that an attack broke, and the plan if an audit refuted
        it.
        """
        return ()

    def untested(self, plan: Any, registry: Any) -> Iterable[str]:
        """Return the names of the bounds of a `Plan` that no one attacked at these versions."""
        return ()

    @abstractmethod
    def of_runs(self, spec: Path, lock: Any) -> Iterable[str]:
        """Lines on audits of runs of exactly the plan of a `Lock` next to a spec's file."""
