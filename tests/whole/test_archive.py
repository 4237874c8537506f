"""What earlier versions published is read, replayed and opened for as long as its format is."""

import json
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

import dpcore
from dpcore.published.formats import FORMAT
from dpcore.registry.index import Index
from dpcore.yaml.located import read

from commands import forked
from published import public_names
from published.keys import PATH as KEYS, names_on_disk
from published.make import ARCHIVE, CONSOLES, console, copy_examples, dpcore as run_command

RENAMES = Path(__file__).parents[2] / "tools" / "renames.tsv"
RUNS = sorted(path.name for path in (ARCHIVE / "runs").iterdir())
QUICK = (
    "linear.sufficient_statistics",
    "linear.sufficient_statistics.format-3",
    "statistics.basics",
    "statistics.basics.format-3",
    "statistics.persons",
    "best-of.format-3",
    "kernel_ridge.per_query.format-4",
    "objective_perturbation.classes.format-4",
    "sgd.banded.format-4",
    "statistics.keys.format-4",
    "statistics.persons.format-4",
    "explainable_boosting.cells",
    "synthetic.cells",
)
LEDGERS = sorted(path.stem for path in (ARCHIVE / "ledgers").glob("*.ledger"))
HELP = sorted(path.stem for path in (ARCHIVE / "help").iterdir())


@pytest.mark.parametrize("name", QUICK)
def test_a_published_run_replays_byte_for_byte(name):
    run = dpcore.replay(ARCHIVE / "runs" / name)
    kept = ARCHIVE / "runs" / name / "public"
    assert run.files["guarantee.txt"] == (kept / "guarantee.txt").read_bytes()
    assert (run.guarantee.paragraph().encode() in run.files["guarantee.txt"]) == (
        run.lock.format == FORMAT
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_command_replays_every_published_run(name, tmp_path):
    done = run_command(tmp_path, "replay", str(ARCHIVE / "runs" / name))
    assert done.returncode == 0, done.stderr
    assert "replay to identical bytes" in done.stdout


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_opens_verifies_and_shows_what_it_showed(name, tmp_path):
    shutil.copy(ARCHIVE / "ledgers" / f"{name}.ledger", tmp_path)
    shown = forked(["ledger", "show", f"./{name}.ledger", "--json"], folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    kept = json.loads((ARCHIVE / "ledgers" / f"{name}.json").read_text("utf-8"))
    state = json.loads(shown.stdout)
    # What is left is inverted from a curve: another rounding of it moves the last digits only.
    left = {key: state["left"].pop(key) for key in ("epsilon", "mu", "largest")}
    assert left == pytest.approx({key: kept["left"].pop(key) for key in left}, rel=1e-12)
    assert state == kept
    verified = forked(["ledger", "verify", f"./{name}.ledger"], folder=tmp_path)
    assert verified.returncode == 0, verified.stderr


def test_a_users_consents_are_read():
    index = Index.of(read(ARCHIVE / "registry.yaml"))
    assert {*index.entries} == {"acme-bins"}
    assert index.disabled == {"sgd"}
    assert index.entries["acme-bins"].distribution == "acme-private-bins"


def is_older(name, version):
    """Whether a distribution here prints otherwise than the one that the archive was made with."""
    return Version(metadata.version(name)) < Version(version)


def unordered(schema):
    """A schema without the order of alternatives, which means nothing."""
    if isinstance(schema, dict):
        found = {key: unordered(value) for key, value in schema.items()}
        if "anyOf" in found:
            found["anyOf"] = sorted(found["anyOf"], key=json.dumps)
        return found
    return [unordered(value) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("name", ["schema", "schema --experiment"])
def test_the_schema_is_what_it_was(name, tmp_path):
    message = forked(name.split(), folder=tmp_path, environment={"XDG_CONFIG_HOME": str(tmp_path)})
    kept = (ARCHIVE / f"{name.replace(' --', '-')}.json").read_text("utf-8")
    assert unordered(json.loads(message.stdout)) == unordered(json.loads(kept))
    # An older msgspec lists alternatives in another order.
    assert message.stdout == kept or is_older("msgspec", "0.22")


def without_types(text):
    """What help says but for its columns, its capitals and the types of options.

    An older click may name types otherwise.
    """
    text = re.sub(r"<[][A-Za-z ]*>|\b(FLOAT|INTEGER|PATH|TEXT)( RANGE)?(?=\s)", "", text)
    return re.sub(r"[][{}<>\s]", "", text).casefold()


@pytest.mark.parametrize("name", HELP)
def test_help_says_what_it_said(name, tmp_path):
    words = [] if name == "dpcore" else name.split("-")
    output = forked(
        [*words, "--help"],
        folder=tmp_path,
        environment={"COLUMNS": "100", "TERM": "dumb", "XDG_CONFIG_HOME": str(tmp_path)},
    )
    kept = (ARCHIVE / "help" / f"{name}.txt").read_text("utf-8")
    assert without_types(output.stdout) == without_types(kept)
    assert output.stdout == kept or is_older("click", "8.5")


def test_every_public_name_of_old_is_public():
    listed = {name for names in public_names.public_names().values() for name in names}
    rows = [row.split("\t") for row in RENAMES.read_text("utf-8").splitlines() if row[0] != "#"]
    names = {old.removeprefix("dpcore:"): new.partition(":")[2] for kind, old, new in rows}
    published = (ARCHIVE / "names.txt").read_text("utf-8").split()
    assert {names.get(name, name) for name in published} <= listed


def test_public_names_are_the_frozen_ones_and_take_what_they_took():
    before, now = json.loads(public_names.PATH.read_text("utf-8")), public_names.public_names()
    listed = [{module: [*names] for module, names in all.items()} for all in (now, before)]
    assert listed[0] == listed[1], "run python tests/published/public_names.py"
    for module, names in before.items():
        for name, parameters in names.items():
            assert {*parameters} <= {*now[module][name]}, f"{module}.{name}"


@pytest.mark.slow
def test_consoles_say_what_they_said(tmp_path):
    copy_examples(tmp_path)
    for name in CONSOLES:
        assert console(tmp_path, name) == (ARCHIVE / f"consoles/{name}.txt").read_text("utf-8")


def test_every_name_on_disk_is_what_it_was():
    before = json.loads(KEYS.read_text("utf-8"))
    now = names_on_disk()
    for kind, components in before.items():
        for name, keys in components.items():
            assert now[kind].get(name) == keys, f"{kind} {name}"
