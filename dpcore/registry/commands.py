"""The commands of the core, by name, and the order in which help lists all commands."""

from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": (
        "check:check",
        "State the guarantee of a spec, and lock the public randomness. --data by itself opens "
        "the data.",
    ),
    "run": (
        "run:run",
        "Open the data, publish the release in a new run folder, and state its guarantee.",
    ),
    "replay": (
        "replay:replay",
        "Rebuild a run's public folder from its answers only, and compare every byte.",
    ),
    "verify": (
        "verify:verify",
        "Check from the public folder only whether the stated guarantee follows.",
    ),
    "schema": (
        "schema:schema",
        "Write the JSON Schema of a spec to standard output, for editors and validators.",
    ),
    "plugins": ("plugins:plugins", "List, look at, admit and disable plugins."),
    "ledger": (
        "ledger:ledger",
        "Create, look at and check ledgers: budgets that several runs share.",
    ),
}
"""Where each is defined below `dpcore.console`, and the first line of its own help."""

ORDER = (
    "init", "check", "run", "replay", "verify", "report", "export", "reproduce", "examples",
    "theory", "schema", "describe", "test", "falsify", "audit", "attack", "account", "plugins",
    "ledger",
)  # fmt: skip
"""As help lists them; what other plugins bring comes after these."""
