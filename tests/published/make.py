"""Make the archive of published things, through the installed command `dpcore` only.

`python tests/published/make.py` writes it anew; `python tests/published/make.py runs` adds runs of
the present format next to those of earlier ones. Runs are made once for each format: what is in
`archive/` was published by an earlier version, and is read for as long as its format is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ARCHIVE = Path(__file__).parent / "archive"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
COMMANDS = {
    "account": (),
    "audit": (),
    "check": (),
    "examples": ("copy", "list", "show"),
    "export": (),
    "falsify": (),
    "init": (),
    "ledger": ("create", "export", "limit", "list", "plan", "show", "verify"),
    "plugins": ("disable", "enable", "list", "new", "show"),
    "replay": (),
    "report": (),
    "reproduce": (),
    "run": (),
    "schema": (),
    "test": (),
    "theory": (),
    "verify": (),
}
CONSOLES = (
    "kernel_ridge.huber_ridge",
    "linear.sufficient_statistics",
    "quickstart",
    "random_features.ridge",
    "statistics.basics",
    "statistics.persons",
)
OF_EACH_FORMAT = (
    "best-of",
    "kernel_ridge.huber_ridge",
    "kernel_ridge.per_query",
    "linear.sufficient_statistics",
    "random_features.ridge",
    "statistics.basics",
    "statistics.persons",
    "statistics.tables",
)
SINCE_CLAIMS = (  # samples, bands, laws, formulas, errors and choices, from format 4 on
    "objective_perturbation.classes",
    "sgd.banded",
    "sgd.regression",
    "statistics.keys",
    "statistics.quantiles",
)
SECRET_SEED = "7"  # of the rehearsals whose consoles are kept
PUBLIC_SEED = 20  # a spec's `coins: {public: INT}`


def dpcore(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with no user's files but those in it."""
    environment = os.environ | {
        "COLUMNS": "100",
        "OPENBLAS_NUM_THREADS": "1",
        "TERM": "dumb",
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    command = [str(Path(sys.executable).parent / "dpcore"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def make_visits(folder: Path) -> None:
    """The synthetic files that examples about visits name."""
    command = [sys.executable, "-m", "dpcore_statistics.synthetic_visits", "."]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def copy_examples(folder: Path) -> list[str]:
    """Every shipped example as NAME.yaml in a folder, with the files that it names; the names."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        shutil.copy(path, folder)
    apart = folder / "apart"
    names = [path.stem for path in sorted(EXAMPLES.glob("*.yaml"))]
    for example in json.loads(dpcore(folder, "examples", "list", "--json").stdout):
        name = example["example"]
        dpcore(folder, "examples", "copy", name, "apart")
        for path in apart.iterdir():
            spec = path.suffix == ".yaml"
            path.replace(folder / (f"{name}.yaml" if spec else path.name))
        names.append(name)
    make_visits(folder / "apart")
    (folder / "apart" / "visits.csv").replace(folder / "visits.csv")
    return names


def source_of(name: str) -> list[str]:
    """The option that says where an example's data are, of those that do not ship."""
    if name == "insurance":
        return ["--source", str(Path(os.environ["DPCORE_DATA"]) / "insurance.csv")]
    return []


def console(folder: Path, name: str) -> str:
    """What `check` and a rehearsal of an example print, at fixed randomness."""
    spec = folder / f"{name}.yaml"
    keyed = folder / "console.yaml"
    keyed.write_text(f"{spec.read_text('utf-8')}coins: {{public: {PUBLIC_SEED}}}\n", "utf-8")
    printed = []
    for arguments in (["check", keyed.name], ["run", keyed.name, "--rehearsal", SECRET_SEED]):
        result = dpcore(folder, *arguments)
        printed.append(f"$ dpcore {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        printed.append(f"exit code {result.returncode}\n")
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return re.sub(r"\d{4}-\d\d-\d\d", "DATE", "".join(printed))


LEDGERS = {  # notion: relation, the example that is charged, delta, further options
    "gaussian": ("replace_one", "linear.sufficient_statistics", "1e-4", ()),
    "basic": ("replace_one", "statistics.replaced", "0", ()),
    "renyi": ("add_remove", "statistics.basics", "1e-4", ("--order", "8")),
    "persons": ("{person: {records: 5, adjacency: add_remove}}", "statistics.persons", "1e-4", ()),
    "analysts": ("replace_one", "linear.sufficient_statistics", "1e-4", ()),
}
LIMITS = {"ann": "7", "ben": "9"}  # epsilons of analysts, in the ledger of that name


def make_ledgers(folder: Path) -> None:
    """A ledger of each notion, one about persons and one with limits, each charged by two runs."""
    for name, (relation, example, delta, options) in LEDGERS.items():
        notion = ("--notion", name) if name in ("gaussian", "basic", "renyi") else ()
        total = ["--epsilon", "10", "--delta", delta, "--adjacency", relation, *notion, *options]
        file = f"./{name}.ledger"
        required(dpcore(folder, "ledger", "create", file, *total))
        spec = folder / "charged.yaml"
        text = (folder / f"{example}.yaml").read_text("utf-8")
        spec.write_text(f"{text}ledger: {file}\n", "utf-8")
        if name == "analysts":
            for analyst, epsilon in LIMITS.items():
                limit = ["--epsilon", epsilon, "--delta", "5e-5"]
                required(dpcore(folder, "ledger", "limit", file, analyst, *limit))
            spec.write_text(f"{text}ledger: {{name: {file}, analyst: ann}}\n", "utf-8")
        for _ in range(2):
            required(dpcore(folder, "run", spec.name))
        shown = required(dpcore(folder, "ledger", "show", file, "--json"))
        write(f"ledgers/{name}.json", shown.stdout)
        shutil.copy(folder / f"{name}.ledger", ARCHIVE / "ledgers")
        (folder / "charged.lock.json").unlink()
        shutil.rmtree(folder / "runs")


def make_consents(folder: Path) -> None:
    """The registry file of a user who enabled a stranger's plugin and disabled one of ours."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", "site",
         str(EXAMPLES / "third-party" / "acme-bins")],
        cwd=folder, check=True,
    )  # fmt: skip
    os.environ["PYTHONPATH"] = str(folder / "site")
    required(dpcore(folder, "plugins", "enable", "acme-bins", "--yes"))
    required(dpcore(folder, "plugins", "disable", "sgd"))
    write("registry.yaml", (folder / "config" / "dpcore" / "registry.yaml").read_text("utf-8"))
    shutil.rmtree(folder / "config")
    del os.environ["PYTHONPATH"]


def required(result: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The result of a command that must succeed."""
    if result.returncode:
        raise SystemExit(f"{result.args}: {result.stdout}{result.stderr}")
    return result


def make() -> None:
    """Runs, locks, ledgers, consents, schema, help, consoles, and public names."""
    shutil.rmtree(ARCHIVE, ignore_errors=True)
    ARCHIVE.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        names = copy_examples(folder)
        make_ledgers(folder)
        make_consents(folder)
        write("schema.json", dpcore(folder, "schema").stdout)
        write("schema-experiment.json", dpcore(folder, "schema", "--experiment").stdout)
        for command, inner in {"": (), **COMMANDS}.items():
            for word in ("", *inner):
                words = [part for part in (command, word) if part]
                file = "help/" + ("-".join(words) or "dpcore") + ".txt"
                write(file, dpcore(folder, *words, "--help").stdout)
        for name in CONSOLES:
            write(f"consoles/{name}.txt", console(folder, name))
        make_runs(folder, names)
    import dpcore as package

    write("names.txt", "".join(f"{name}\n" for name in package.__all__))


def make_runs(folder: Path, names: Iterable[str], end: str = "") -> None:
    """The public folders of runs of examples that were copied; those that fail have none."""
    for name in names:
        if name == "statistics.clinic":  # another plugin ships a patients.csv, too
            make_visits(folder)
        result = dpcore(folder, "run", f"{name}.yaml", *source_of(name))
        print(name, result.returncode, *result.stderr.strip().splitlines()[-1:], flush=True)
        if result.returncode == 0:
            published = folder / "runs" / f"{name}-0001" / "public"
            shutil.copytree(published, ARCHIVE / "runs" / f"{name}{end}" / "public")


def add_runs() -> None:
    """Runs of the present format, one for each kind of arithmetic, unit and release."""
    from dpcore.published.formats import FORMAT

    with tempfile.TemporaryDirectory() as scratch:
        copy_examples(Path(scratch))
        make_runs(Path(scratch), (*OF_EACH_FORMAT, *SINCE_CLAIMS), f".format-{FORMAT}")


def write(name: str, text: str) -> None:
    """A file of the archive."""
    path = ARCHIVE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    add_runs() if sys.argv[1:] == ["runs"] else make()
