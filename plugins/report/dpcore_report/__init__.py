"""One page that shows a published run, a function of `public/` alone; plots; costs of events."""

from collections.abc import Mapping
from typing import Any

from dpcore import hookimpl
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_commands() -> Mapping[str, Any]:
    """State what events cost, export a model, and write the page of a run or of a ledger."""
    return LazyMapping(
        {
            "account": ("dpcore_report.account_command", "account"),
            "export": ("dpcore_report.export_command", "export"),
            "report": ("dpcore_report.command", "report"),
        }
    )
