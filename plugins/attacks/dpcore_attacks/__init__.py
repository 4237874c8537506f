"""The promises of each interface, as checks that any plugin can run; and a search for broken ones.

Nothing here opens a user's records: every dataset is made up inside a declared domain.
"""

import importlib
from typing import TYPE_CHECKING, Any

# Type checkers and editors read these names; at run time `__getattr__` finds their modules.
if TYPE_CHECKING:
    from dpcore_attacks.audits.claims import (
        ApproximateDP as ApproximateDP,
        GaussianDP as GaussianDP,
    )
    from dpcore_attacks.black_box.attack import attack as attack
    from dpcore_attacks.black_box.claims import claims as claims, read_claim as read_claim
    from dpcore_attacks.black_box.equal_noise import (
        attack_with_equal_noise as attack_with_equal_noise,
    )
    from dpcore_attacks.black_box.noise_calls import NoiseCall as NoiseCall
    from dpcore_attacks.black_box.one_run import attack_one_run as attack_one_run
    from dpcore_attacks.black_box.report import BlackBoxReport as BlackBoxReport

_PUBLIC = {
    "ApproximateDP": "dpcore_attacks.audits.claims",
    "BlackBoxReport": "dpcore_attacks.black_box.report",
    "GaussianDP": "dpcore_attacks.audits.claims",
    "NoiseCall": "dpcore_attacks.black_box.noise_calls",
    "attack": "dpcore_attacks.black_box.attack",
    "attack_one_run": "dpcore_attacks.black_box.one_run",
    "attack_with_equal_noise": "dpcore_attacks.black_box.equal_noise",
    "claims": "dpcore_attacks.black_box.claims",
    "read_claim": "dpcore_attacks.black_box.claims",
}


provides = {
    # Attack a plugin, the bounds of a spec, and whole runs of it; describe a component.
    "commands": {
        "attack": "dpcore_attacks.commands.attack:attack_function",
        "audit": "dpcore_attacks.commands.audit:audit_spec",
        "describe": "dpcore_attacks.commands.describe:describe_component",
        "falsify": "dpcore_attacks.commands.falsify:falsify_spec",
        "test": "dpcore_attacks.commands.test:examine_plugin",
    },
    "evidence": {"attacks": "dpcore_attacks.evidence:KnownAttacks"},
}


def __getattr__(name: str) -> Any:
    """Return what tests of other libraries import, from where it is defined."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
