"""One page that shows a published run, a function of `public/` alone; and all plots."""

from collections.abc import Callable, Mapping
from typing import Any

from dpcore import hookimpl
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_commands() -> Mapping[str, Callable[..., Any]]:
    """Write the page of a run or of a ledger."""
    return LazyMapping({"report": ("dpcore_report.command", "report")})
