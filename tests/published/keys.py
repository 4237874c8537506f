"""The names that stand on disk: of each component's parameters, and of every record in a file.

`python tests/published/keys.py` writes `archive/keys.json` anew: once for each format.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore import Distance, Guarantee, Ledger, Sensitivity, load_run, load_spec
from dpcore.adjacency import REPLACE_ONE, REPLACE_ROW
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.guarantee import Recorded
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.published.formats import FORMAT, FORMATS, bound_dict, format_of
from dpcore.published.lock import describe
from dpcore.registry.kinds import ACCOUNTANT, COMPONENTS
from dpcore.registry.registry import Registry
from dpcore.sensitivity import (
    Conditional,
    HitDistribution,
    OverRandomness,
    Refuted,
    SensitivityDistribution,
    StepSensitivity,
    WorstCase,
)

from builders import with_queries
from published.make import ARCHIVE

PATH = ARCHIVE / "keys.json"
SCHEMES = ("Poisson", "WithoutReplacement", "Order")  # a lock names them next to their queries
STRUCTS = (  # each is written by its fields' names
    "dpcore.published.lock:Lock",
    "dpcore.ledger.file_journal:Mark",
    "dpcore.registry.index:Entry",
    "dpcore.registry.index:Provides",
    "dpcore_attacks.attack_record:Attack",
    "dpcore_attacks.attack_report:AttackReport",
    "dpcore_attacks.attack_report:AttackedAnswers",
    "dpcore_attacks.attack_report:AttackedClaim",
    "dpcore_attacks.audits.audit_file:Audited",
    "dpcore_attacks.audits.audit_file:AuditedClaim",
)
QUERIES = {3: {"ask": "asks"}, 4: {"query": "queries"}}  # what a guarantee calls a query
SPEC = """\
dpcore: 1
data:
  source: none.csv
  target: y
  domain: {records: {at_most: 500}, columns: {a: [-1, 1]}, target: [-1, 1]}
  public: {survey: survey.csv}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-5}
release:
  learner: {name: sgd.banded, steps: 32, groups: 8, bands: 8}
  mechanism: gaussian
  inputs: [survey]
sweep: {grid: {release.learner.steps: [32, 40]}, budget: divided}
"""  # public records, points of a sweep, samples and bands: what a lock writes where there are any


def parameters(kind: type[Any]) -> list[str]:
    """What a spec, a lock or a ledger writes of a component, in the constructor's order."""
    return [field.alias for field in attrs.fields(kind) if field.init] if attrs.has(kind) else []


def written(number: int) -> dict[str, list[str]]:
    """The keys of what is written by a table of its own in a format, in order."""
    # What this version writes of a published run, and not what is there.
    files = load_run(ARCHIVE / "runs" / f"statistics.tables.format-{number}").files
    guarantee, lock = (json.loads(files[name]) for name in ("guarantee.json", "spec.lock.json"))
    tables = next(json.loads(files[name]) for name in files if name.endswith(".table.json"))
    first, plan = next(iter(tables.values())), lock["plan"]
    claims = plan.get("claims")
    added = claims and {"claims": [*claims], "query of the claims": [*claims["queries"][0]]}
    return {
        "guarantee": [*guarantee],
        "guarantee in a lock": [*plan["guarantee"]],
        **{name: [*guarantee[key][0]] for name, key in QUERIES[number].items()},
        "plan": [*plan],
        **(added or {}),
        "table": [*first],
        "interval": [*first["intervals"][0]],
    }


def written_at_times() -> dict[str, list[str]]:
    """The keys of what some runs alone write, next to those that every run writes, in order."""
    guarantee = load_run(ARCHIVE / "runs" / f"statistics.tables.format-{FORMAT}").guarantee
    fields = {field.name: "" for field in attrs.fields(Recorded)}
    recorded = Recorded(**{**fields, "epsilon": 1.0, "delta": 0.0, "assumptions": ()})
    query = attrs.evolve(guarantee.basis.queries[0], premises=("a premise",))
    full = with_queries(guarantee, query).with_provenance(recorded=recorded, voided="a reason")
    two, three, four = (format_of(number).guarantee(full) for number in sorted(FORMATS))
    old_files = load_run(ARCHIVE / "runs" / "statistics.tables").files
    old_tables = next(json.loads(old_files[n]) for n in old_files if n.endswith(".table.json"))
    table = next(iter(old_tables.values()))
    return {
        "format 2, full guarantee": [*two],
        "format 2, arithmetic": [*two["arithmetic"]],
        "format 2, table": [*table],
        "format 2, interval": [*table["intervals"]],
        "format 3, full guarantee": [*three],
        "format 3, full ask": [*three["asks"][0]],
        "format 4, full guarantee": [*four],
        "format 4, full query": [*four["queries"][0]],
        "entry of a ledger": [*three["ledger"]],
        **_bounds(),
    }


def _bounds() -> dict[str, list[str]]:
    """The keys of a lock's bounds: by class, by unit of the relation, and by validity."""
    facts: dict[str, Any] = {"distance": Distance.L2, "adjacency": REPLACE_ONE, "source": ""}
    number = Sensitivity(value=1.0, **facts)
    sensitivities = {
        "bound, Sensitivity": number,
        "bound, SensitivityLaw": SensitivityDistribution(
            distribution=HitDistribution(atoms=[1.0], weights=[0.5]), **facts
        ),
        "bound, StepSensitivity": StepSensitivity(moved=(1.0,), contraction=(1.0,), **facts),
        "bound of persons": attrs.evolve(number, adjacency=REPLACE_ONE.of_persons(2)),
        "bound of rows": attrs.evolve(number, adjacency=REPLACE_ROW),
    }
    validities = {
        "WorstCase": WorstCase(),
        "OverCoins": OverRandomness(0.5),
        "Conditional": Conditional((("name", "text"),)),
        "Refuted": Refuted("reason"),
    }
    return {
        **{
            name: [*bound_dict(sensitivity, format_of(3))]
            for name, sensitivity in sensitivities.items()
        },
        **{
            f"{of}validity, {name}": [
                *bound_dict(attrs.evolve(number, validity=validity), style)["validity"]
            ]
            for of, style in (("", format_of(3)), ("format 4, ", format_of(4)))
            for name, validity in validities.items()
        },
    }


def written_of_spec(folder: Path) -> dict[str, list[str]]:
    """The keys of the lock of `SPEC`, and of the rows of a ledger that paid for it."""
    (folder / "survey.csv").write_text("a,y\n0.5,0.25\n")
    (folder / "spec.yaml").write_text(SPEC)
    spec = load_spec(folder / "spec.yaml")
    plan = spec.price()
    names = {}
    for of, number in (("", 3), ("format 4, ", 4)):
        described = describe(plan, format_of(number)) | {"unknown": "empty"}
        (entry,) = described["releases"]["release-1"]
        names |= {f"{of}full plan": [*described], f"{of}full release": [*entry]}
    return names | _ledger_rows(folder / "paid.ledger", plan.guarantee)


def _ledger_rows(path: Path, guarantee: Guarantee) -> dict[str, list[str]]:
    """The keys of every kind of row of a ledger, where an analyst with a limit pays."""
    options: dict[str, Any] = {"epsilon": 3, "delta": 1e-4, "adjacency": guarantee.adjacency}
    Ledger.create(path, **options).limit("ann", epsilon=2, delta=5e-5)
    ledger = Ledger.open(path, analyst="ann")
    adjacency = guarantee.adjacency
    ledger.reserve(Charge.of(LaplaceEvent(shift=0.5, adjacency=adjacency))).commit(guarantee)
    ledger.spend(Charge.of(LaplaceEvent(shift=0.1, adjacency=adjacency)))
    with contextlib.suppress(BudgetExceededError):
        ledger.spend(Charge.of(LaplaceEvent(shift=9.0, adjacency=adjacency)))
    ledger.note("a note")
    rows = {row.kind: row.body for row in ledger.rows()}
    sums = rows["spent"]["after"]
    return {
        **{f"row, {kind}": [*body] for kind, body in rows.items()},
        "event in a row": [*rows["spent"]["events"][0]],
        "sums in a row": [*sums],
        "filter in sums": [*sums["pure"]],
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
    schemes = importlib.import_module("dpcore.sampling")
    names["sampling"] = {name: parameters(getattr(schemes, name)) for name in SCHEMES}
    names["files"] = {
        f"format {number}, {name}": keys
        for number in QUERIES
        for name, keys in written(number).items()
    }
    names["files"] |= written_at_times()
    with tempfile.TemporaryDirectory() as folder:
        names["files"] |= written_of_spec(Path(folder))
    for path in STRUCTS:
        module, _, name = path.partition(":")
        struct = getattr(importlib.import_module(module), name)
        names["files"][name] = [field.encode_name for field in msgspec.structs.fields(struct)]
    return names


if __name__ == "__main__":
    PATH.write_text(json.dumps(names_on_disk(), indent=1, sort_keys=True) + "\n", "utf-8")
