"""The board: published bugs of other libraries, found again by `dpcore.attack` at pinned versions.

    python benchmarks/board/run.py --environments FOLDER [--make] [--only NAME] [--write]

Each entry is a file in `entries/`: what it releases, what is claimed, the pair, and a control that
must not be refuted. It answers in an environment of its own, FOLDER/LIBRARY, which `--make` builds
from its pins; the verdict is found here. `--write` keeps all results in `results.json` and writes
docs/records/board.md. Draws are counted; seconds are of the processor, with those of the library.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore_attacks.black_box.attack import attack
from dpcore_attacks.black_box.claims import claim_of
from dpcore_attacks.black_box.elsewhere import Elsewhere

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "records" / "board.md"
ERROR = 1e-4  # a line


def seconds() -> float:
    """Processor seconds so far, of children that have ended too."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


def entries(only: list[str]) -> dict[str, ModuleType]:
    """Return all entries by name, or those that are asked for."""
    sys.path.insert(0, str(HERE / "entries"))
    names = sorted(path.stem for path in (HERE / "entries").glob("*.py"))
    return {name: importlib.import_module(name) for name in names if not only or name in only}


def interpreter(name: str, pins: list[str], folder: Path, make: bool) -> Path:
    """Return the Python of an environment, built from its pins where it is missing and may be."""
    python = folder / name / "bin" / "python"
    if make and not python.exists():
        venv.create(python.parents[1], with_pip=True)
        # One by one: a later pin must not move an earlier one's dependencies out of its way.
        for pin in pins:
            subprocess.run([python, "-m", "pip", "install", "-q", *pin.split()], check=True)
    return python


def judged(name: str, entry: ModuleType, python: Path, function: str) -> dict[str, Any]:
    """Return what an attack on one function of an entry says."""
    relation = {"add_remove": ADD_REMOVE, "replace_one": REPLACE_ONE}[entry.RELATION]
    if hasattr(entry, "PERSON"):
        relation = relation.of_persons(entry.PERSON)
    began = seconds()
    with Elsewhere(python, f"{HERE / 'entries' / name}.py:{function}") as release:
        report = attack(
            release,
            claim_of(**entry.CLAIM),
            neighbours=[entry.PAIR],
            relation=relation,
            draws=entry.DRAWS,
            error=ERROR,
            subject=f"{name}.{function}",
        )
    print(report.describe(), flush=True)
    audit = report.audit
    return {
        "verdict": report.verdict,
        "epsilon": round(report.epsilon - 5e-3, 2) if audit and report.epsilon else 0.0,
        "event": report.to_dict()["event"],
        "reason": report.reason,
        "draws": report.draws,
        "seconds": round(seconds() - began, 1),
    }


def result_of(name: str, entry: ModuleType, folder: Path, make: bool) -> dict[str, Any]:
    """Return an entry's line: the library's version and claim, the attack, and the control's."""
    python = interpreter(getattr(entry, "ENVIRONMENT", entry.LIBRARY), entry.PINS, folder, make)
    control = "control" if hasattr(entry, "control") else "release"
    quiet = python
    if control == "release":
        # The version in which it was fixed, on the same pair.
        quiet = interpreter(entry.FIXED_ENVIRONMENT, entry.FIXED_PINS, folder, make)
    version = subprocess.run(
        [
            python,
            "-c",
            f"from importlib.metadata import version; print(version('{entry.LIBRARY}'))",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if version != entry.VERSION:
        raise SystemExit(f"{name} needs {entry.LIBRARY} {entry.VERSION}, has {version}")
    if hasattr(entry, "claimed"):
        # The library's own word for the claim: the entry must not claim less for it.
        with Elsewhere(python, f"{HERE / 'entries' / name}.py:claimed") as claimed:
            epsilon = claimed(None)
        if epsilon > entry.CLAIM["epsilon"] * (1 + 1e-9):
            raise SystemExit(f"{name}: the library claims {epsilon}, not {entry.CLAIM['epsilon']}")
    person = f" ({entry.PERSON} of a person)" if hasattr(entry, "PERSON") else ""
    return {
        "library": entry.LIBRARY,
        "version": version,
        "bug": (entry.__doc__ or "").strip(),
        "claim": claim_of(**entry.CLAIM).describe(),
        "relation": entry.RELATION + person,
        "reference": entry.REFERENCE,
        "fixed": entry.FIXED,
        "control": {"is": entry.CONTROL, **judged(name, entry, quiet, control)},
        **judged(name, entry, python, "release"),
    }


def page(results: dict[str, dict[str, Any]]) -> str:
    """docs/records/board.md, from results only."""
    refuted = [name for name, entry in results.items() if entry["control"]["verdict"] == "refuted"]
    if refuted:
        raise SystemExit(f"a control was refuted: {', '.join(refuted)}")
    bugs = [
        f"| {entry['library']} {entry['version']} | {entry['bug']} | {entry['claim']}, "
        f"{entry['relation']} | {entry['epsilon']:.2f} | {entry['draws']} | {entry['seconds']:g} | "
        f"[public]({entry['reference']}), {entry['fixed']} |"
        for entry in results.values()
        if entry["verdict"] == "refuted"
    ]
    quiet = [
        f"* `{name}`: {entry['verdict']}, at least {entry['epsilon']:.2f} of {entry['claim']} by "
        f"{entry['draws']} draws."
        for name, entry in results.items()
        if entry["verdict"] != "refuted"
    ]
    controls = [
        f"| `{name}` | {entry['control']['is']} | {entry['control']['verdict']} |"
        for name, entry in results.items()
    ]
    text = (HERE / "page.md").read_text("utf-8").replace("ERROR", f"{ERROR:g}")
    text = text.replace("QUIET", "\n".join(quiet or ["Every entry was."]))
    return text.replace("BUGS", "\n".join(bugs)).replace("CONTROLS", "\n".join(controls))


def main() -> None:
    """Attack the entries, print reports, and write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name, entry in entries(options.only).items():
        results[name] = result_of(name, entry, options.environments, options.make)
        if options.write:
            # After every entry, so that one that fails costs none before it.
            results = dict(sorted(results.items()))
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            PAGE.write_text(page(results), "utf-8")


if __name__ == "__main__":
    main()
