"""`dpcore attack TARGET`: try to refute the claim of any Python function by its answers."""

import importlib
import json as json_module
import sys
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from dpcore.adjacency import ADD_REMOVE, RELATIONS, REPLACE_ONE
from dpcore.console.console import fail, guarded, show_json
from dpcore.console.parameters import PATH, argument, command
from dpcore.errors import SpecError, need
from dpcore_attacks.black_box.attack import ERROR, attack
from dpcore_attacks.black_box.claims import claim_of, read_claim
from dpcore_attacks.black_box.elsewhere import Elsewhere
from dpcore_attacks.black_box.report import sarif_of, sarif_result
from dpcore_attacks.commands.child_process import apart

_SECONDS = 900  # of processor time
_PLACE = "MODULE:NAME or FILE.py:NAME"


@command()
@argument("target", "The function, as MODULE:NAME or FILE.py:NAME.")
@click.option(
    "--claim",
    required=True,
    help="Such as epsilon=1,delta=1e-5 or mu=0.5; or MODULE:NAME of an object of OpenDP, Opacus, "
    "diffprivlib or dp-accounting, which states it.",
)
@click.option(
    "--neighbours",
    required=True,
    help="A list of pairs: MODULE:NAME, FILE.py:NAME, or a JSON file.",
)
@click.option(
    "--relation",
    required=True,
    type=click.Choice([str(ADD_REMOVE), str(REPLACE_ONE)]),
    help="What the pairs are neighbours under.",
)
@click.option(
    "--draws", type=click.IntRange(1), default=10_000, help="Answers of either neighbour."
)
@click.option(
    "--error",
    type=click.FloatRange(1e-12, 0.5),
    default=ERROR,
    help="Chance, at most, that a true claim is refuted.",
)
@click.option("--seed", default=0, help="Of the order of calls, and of a seeded function.")
@click.option("--seeded", is_flag=True, help="The function takes a NumPy generator too.")
@click.option("--distance", type=float, help="Of neighbours, in an OpenDP measurement's metric.")
@click.option(
    "--delta", default=1e-6, help="Where the object that states the claim leaves it open."
)
@click.option("--digits", type=click.IntRange(1, 17), help="Decimal digits that are compared.")
@click.option("--python", type=PATH, help="Call it in the environment of this interpreter.")
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option("--sarif", type=PATH, help="Write the result to this file as SARIF.")
def attack_function(
    target: str,
    claim: str,
    neighbours: str,
    relation: str,
    draws: int,
    error: float,
    seed: int,
    seeded: bool,
    distance: float | None,
    delta: float,
    digits: int | None,
    python: Path | None,
    json: bool,
    sarif: Path | None,
) -> None:
    """Try to refute the claim of any function: exit code 0 if it is not refuted, 1 if it is.

    Exit code 2 says that nothing was judged. The function runs in a process of its own, on the
    neighbours only. Not refuted is no proof of privacy.
    """

    def subject(place: str, wants_claim: bool = False) -> Any:
        if python is None:
            return _loaded(place)
        return Elsewhere(python, place, wants_claim=wants_claim)

    def work() -> int:
        try:
            with guarded():
                # A generator cannot be sent to another environment.
                fits = python is None or not seeded
                need(fits, SpecError, "--seeded needs a function of this environment")
                report = attack(
                    subject(target),
                    _claim(claim)
                    if "=" in claim
                    else read_claim(
                        subject(claim, wants_claim=True), RELATIONS[relation], distance, delta
                    ),
                    neighbours=_pairs(neighbours),
                    relation=RELATIONS[relation],
                    draws=draws,
                    error=error,
                    seed=seed,
                    seeded=seeded,
                    digits=digits,
                    subject=target,
                )
                if sarif is not None:
                    document = sarif_of([sarif_result(report)])
                    sarif.write_text(json_module.dumps(document, indent=2), "utf-8")
                if json:
                    show_json(report.to_dict())
                else:
                    print(report.describe())
                return report.exit_code
        except Exit as end:
            return end.exit_code

    # What the target prints, changes or breaks stays in a process of its own.
    outcome = apart(work, _SECONDS)
    click.echo(outcome.output, nl=False)
    click.echo(outcome.errors, nl=False, err=True)
    if outcome.code is None or outcome.reason:
        raise fail(f"{target} is not judged: {outcome.reason}", 2)
    if outcome.code:
        raise Exit(outcome.code)


def _claim(text: str) -> Any:
    """A claim as `epsilon=1,delta=1e-5` or `mu=0.5`."""
    parts = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    form = "epsilon=NUMBER[,delta=NUMBER] or mu=NUMBER"
    need({*parts} <= {"epsilon", "mu", "delta"}, "attack", form, "--claim", text)
    try:
        numbers = {name: float(value) for name, value in parts.items()}
    except ValueError:
        raise SpecError(f"--claim needs {form}, got {text}") from None
    return claim_of(**numbers)


def _pairs(text: str) -> list[tuple[Any, Any]]:
    """Pairs from a name in a module, or from a JSON file of lists of two."""
    if not text.endswith(".json"):
        return [*_loaded(text)]
    try:
        pairs = json_module.loads(Path(text).read_text("utf-8"))
    except ValueError:
        raise SpecError(f"{text} needs to be JSON: a list of pairs of records") from None
    fits = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
    need(fits, SpecError, f"{text} needs a list of pairs of records")
    return [(before, after) for before, after in pairs]


def _loaded(place: str) -> Any:
    """An object by its module or file, and its name there.

    Raises:
        SpecError: there is none, or its module cannot be imported.
    """
    source, _, name = place.rpartition(":")
    need(source and name, SpecError, f"{place} needs to be {_PLACE}")
    try:
        sys.path.insert(0, "")
        if source.endswith(".py"):
            sys.path.insert(0, str(Path(source).parent))
        module = importlib.import_module(Path(source).stem if source.endswith(".py") else source)
    except Exception as error:
        raise SpecError(f"{source} cannot be imported: {type(error).__name__}") from None
    need(hasattr(module, name), SpecError, f"{source} has nothing called {name}")
    return getattr(module, name)
