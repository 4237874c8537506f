"""The promises of each interface, as checks that any plugin can run; and a search for broken ones.

Nothing here opens a user's records: every dataset is made up inside a declared domain.
"""

from collections.abc import Mapping
from typing import Any

from dpcore import hookimpl
from dpcore.registry.evidence import Evidence
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_commands() -> Mapping[str, Any]:
    """Attack a plugin, the bounds of a spec, and whole runs of it; describe a component."""
    return LazyMapping(
        {
            "audit": ("dpcore_attacks.commands.audit", "audit_spec"),
            "describe": ("dpcore_attacks.commands.describe", "describe_component"),
            "falsify": ("dpcore_attacks.commands.falsify", "falsify_spec"),
            "test": ("dpcore_attacks.commands.test", "examine_plugin"),
        }
    )


@hookimpl
def dpcore_evidence() -> Mapping[str, type[Evidence]]:
    """What attacks found out about a plan."""
    return LazyMapping({"attacks": ("dpcore_attacks.evidence", "KnownAttacks")})
