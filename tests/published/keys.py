"""The names that stand on disk: of each component's parameters, and of every record in a file.

`python tests/published/keys.py` writes `archive/keys.json` anew: once for each format.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import attrs
import msgspec

from dpcore.publish.folder import load_run
from dpcore.publish.formats import FORMAT
from dpcore.registry.kinds import ACCOUNTANT, COMPONENTS
from dpcore.registry.registry import Registry

from published.make import ARCHIVE

PATH = ARCHIVE / "keys.json"
SCHEMES = ("Poisson", "WithoutReplacement", "Order")  # a lock names them beside their queries
STRUCTS = (  # each is written by its fields' names
    "dpcore.publish.lock:Lock",
    "dpcore.ledger.counter:Mark",
    "dpcore.registry.index:Entry",
    "dpcore.registry.index:Provides",
    "dpcore_attacks.attack_record:Attack",
    "dpcore_attacks.attack_report:AttackReport",
    "dpcore_attacks.attack_report:AttackedAnswers",
    "dpcore_attacks.attack_report:AttackedClaim",
    "dpcore_attacks.audits.audit_file:Audited",
    "dpcore_attacks.audits.audit_file:AuditedClaim",
)


def parameters(kind: type[Any]) -> list[str]:
    """What a spec, a lock or a ledger writes of a component, in the constructor's order."""
    return [field.alias for field in attrs.fields(kind) if field.init] if attrs.has(kind) else []


def written() -> dict[str, list[str]]:
    """The keys of what is written by a table of its own, in order."""
    # What this version writes of a published run, and not what stands there.
    files = load_run(ARCHIVE / "runs" / f"statistics.tables.format-{FORMAT}").files
    guarantee, lock = (json.loads(files[name]) for name in ("guarantee.json", "spec.lock.json"))
    tables = next(json.loads(files[name]) for name in files if name.endswith(".table.json"))
    first = next(iter(tables.values()))
    return {
        "guarantee": [*guarantee],
        "guarantee in a lock": [*lock["plan"]["guarantee"]],
        "ask": [*guarantee["asks"][0]],
        "plan": [*lock["plan"]],
        "table": [*first],
        "interval": [*first["intervals"][0]],
    }


def names_on_disk() -> dict[str, dict[str, list[str]]]:
    """Of this version, by what they belong to."""
    registry = Registry.default()
    names = {
        kind.plural: {
            name: parameters(registry.component(kind, name)) for name in registry.names(kind)
        }
        for kind in COMPONENTS
        if kind is not ACCOUNTANT  # a spec names one and gives it nothing
    }
    schemes = importlib.import_module("dpcore.sampling.schemes")
    names["sampling"] = {name: parameters(getattr(schemes, name)) for name in SCHEMES}
    names["files"] = {f"format {FORMAT}, {name}": keys for name, keys in written().items()}
    for path in STRUCTS:
        module, _, name = path.partition(":")
        struct = getattr(importlib.import_module(module), name)
        names["files"][name] = [field.encode_name for field in msgspec.structs.fields(struct)]
    return names


if __name__ == "__main__":
    PATH.write_text(json.dumps(names_on_disk(), indent=1, sort_keys=True) + "\n", "utf-8")
