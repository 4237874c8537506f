"""Wheels in clean environments, without an index: each documented subset does its work only.

`make test-wheels` builds the wheels and sets DPCORE_WHEELS to the folders that hold all of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = os.environ.get("DPCORE_WHEELS", "").split(os.pathsep)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDERS == [""], reason="run by make test-wheels"),
]
EVERYTHING = sorted(f"dpcore-{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml"))
COMMANDS = [
    "account",
    "attack",
    "audit",
    "check",
    "examples",
    "export",
    "falsify",
    "ledger",
    "plugins",
    "replay",
    "report",
    "reproduce",
    "run",
    "schema",
    "test",
    "theory",
]
OF_TOOLS = {
    "account": "report",
    "attack": "attacks",
    "audit": "attacks",
    "export": "report",
    "falsify": "attacks",
    "test": "attacks",
    "report": "report",
    "reproduce": "experiments",
    "theory": "experiments",
}
SPEC = """\
dpcore: 1
data:
  source: sklearn:wine
  domain: {records: private, columns: {alcohol: [10, 16]}}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
ledger: ./people.ledger
release: {learner: statistics.count, mechanism: discrete_gaussian}
"""
EVENTS = '{"compose": [{"event": "gaussian", "noise_multiplier": 2.0, "count": 3}]}'


class Environment:
    """A virtual environment, and what runs in it."""

    def __init__(self, folder, *distributions):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.pip("install", "--no-index", *self.found, *distributions)

    @property
    def found(self):
        return [word for folder in FOLDERS for word in ("--find-links", folder)]

    def pip(self, *words):
        python = self.folder / "bin" / "python"
        command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
        subprocess.run(command, check=True)

    def run(self, *words, folder):
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONSAFEPATH": "1",  # the wheel is tested, not the tree
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
        }
        program = self.folder / "bin" / words[0]
        return subprocess.run(
            [program, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def dpcore(self, *words, folder, code=0):
        done = self.run("dpcore", *words, folder=folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All distributions."""
    return Environment(tmp_path_factory.mktemp("everything"), "dpcore", *EVERYTHING)


def test_the_core_alone_passes_its_own_tests(tmp_path):
    core = Environment(tmp_path / "core", "dpcore[test,arrow,sklearn]")
    done = core.run(
        "python", "-m", "pytest", "-q", "-m", "not slow", "-n", "2", "-p", "no:cacheprovider",
        str(ROOT / "tests"), folder=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "tests/whole is left out" in done.stdout + done.stderr
    for command, plugin in OF_TOOLS.items():
        report = core.dpcore(command, "x", folder=tmp_path, code=2)
        assert report.splitlines() == [
            f"dpcore {command} is brought by dpcore-{plugin}, which is not installed: "
            "pip install . ./plugins/* in a clone"
        ]
    listed = core.dpcore("--help", folder=tmp_path)
    assert not any(f"  {command} " in listed for command in OF_TOOLS)


def test_the_core_with_statistics_runs_a_month(tmp_path):
    numbers = Environment(tmp_path / "numbers", "dpcore[sklearn]", "dpcore-statistics")
    (tmp_path / "count.yaml").write_text(SPEC)
    (tmp_path / "events.json").write_text(EVENTS)
    numbers.dpcore(
        "ledger", "create", "./people.ledger", "--epsilon", "3", "--delta", "1e-5",
        "--adjacency", "add_remove", folder=tmp_path,
    )  # fmt: skip
    assert "differentially private" in numbers.dpcore("check", "count.yaml", folder=tmp_path)
    numbers.dpcore("run", "count.yaml", folder=tmp_path)
    assert "replay to identical bytes" in numbers.dpcore(
        "replay", "runs/count-0001", folder=tmp_path
    )
    numbers.dpcore("ledger", "verify", "./people.ledger", folder=tmp_path)
    shown = numbers.dpcore("ledger", "show", "./people.ledger", "--json", folder=tmp_path)
    assert json.loads(shown)


def test_everything_installed_has_every_command(everything, tmp_path):
    listed = everything.dpcore("--help", folder=tmp_path)
    for command in COMMANDS:
        assert f"  {command} " in listed
        everything.dpcore(command, "--help", folder=tmp_path)
    output = everything.dpcore("plugins", "list", "--json", folder=tmp_path)
    assert {plugin["status"] for plugin in json.loads(output)} == {"admitted"}


@pytest.mark.parametrize(
    "plugin", ["attacks", "experiments", "report", "bridges", "engines", "verify"]
)
def test_uninstalling_a_tool_breaks_nothing_else(everything, tmp_path, plugin):
    everything.pip("uninstall", "--yes", f"dpcore-{plugin}")
    try:
        (tmp_path / "count.yaml").write_text(SPEC.replace("ledger: ./people.ledger\n", ""))
        everything.dpcore("check", "count.yaml", folder=tmp_path)
        everything.dpcore("run", "count.yaml", folder=tmp_path)
        everything.dpcore("replay", "runs/count-0001", folder=tmp_path)
        for command in {*COMMANDS} - {c for c, owner in OF_TOOLS.items() if owner == plugin}:
            everything.dpcore(command, "--help", folder=tmp_path)
    finally:
        everything.pip("install", "--no-index", *everything.found, f"dpcore-{plugin}")
