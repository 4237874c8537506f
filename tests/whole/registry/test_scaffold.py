"""A new plugin is complete: it installs, is admitted and passes the conformance suite."""

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
from click.testing import CliRunner

import dpcore_attacks
import dpcore_report
from dpcore import REPLACE_ONE, Learner, Ledger, Query, Registry, hookimpl
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.console.app import app
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.errors import ParameterError, SpecError
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine

from doubles import LabelMean, LabelMeanBound, table


def imported(folder, monkeypatch):
    """The package of a new plugin, from its folder."""
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module(f"dpcore_{folder.name.replace('-', '_')}")


@pytest.mark.parametrize("kind", list(PluginKind))
def test_every_kind_of_new_plugin_passes_the_kit(kind, tmp_path, monkeypatch):
    module = imported(write_plugin(f"new-{kind}", kind, tmp_path), monkeypatch)
    report = examine(module.__name__, Registry.of(module), Effort(pairs=1000, samples=2000))
    assert [v for v in report.verdicts if v.failed] == []
    assert report.verdicts


def test_nothing_of_a_template_is_left_over(tmp_path):
    for kind in PluginKind:
        folder = write_plugin(f"new-{kind}", kind, tmp_path)
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {"pyproject.toml", "README.md", "__init__.py"} <= {path.name for path in files}
        assert not any("$" in path.read_text("utf-8") for path in files)


@pytest.mark.parametrize("name", ["Upper", "under_score", "-x", "x-", "../x", "", "1st"])
def test_a_name_that_is_no_plugin_name_is_refused(name, tmp_path):
    with pytest.raises(ParameterError, match="joined by hyphens"):
        write_plugin(name, PluginKind.LEARNER, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(SpecError, match="exists already"):
        write_plugin("mine", PluginKind.LEARNER, tmp_path)
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_command_says_what_to_do_next(tmp_path):
    run = CliRunner().invoke(
        app, ["plugins", "new", "my-noise", "--kind", "mechanism", "--path", str(tmp_path)]
    )
    assert run.exit_code == 0
    assert "dpcore plugins enable --editable my-noise" in run.output
    taken = CliRunner().invoke(
        app, ["plugins", "new", "random-features", "--kind", "learner", "--path", str(tmp_path)]
    )
    assert taken.exit_code == 2


@attrs.frozen(kw_only=True)
class Mean(LabelMean):
    """Total: clipped labels have a mean."""

    bounds: ClassVar[tuple[str, ...]] = ("own.mean",)

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l1"),)


@attrs.frozen(kw_only=True)
class MeanBound(LabelMeanBound):
    learner: ClassVar[type[Learner]] = Mean

    def sensitivity(self, query, learner, public, adjacency):
        found = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(found, distance="l1", value=found.value * (1 + 1e-12))


OWN = types.ModuleType("own")
OWN.dpcore_learners = hookimpl(specname="dpcore_learners")(lambda: {"own.mean": Mean})
OWN.dpcore_bounds = hookimpl(specname="dpcore_bounds")(lambda: {"own.mean": MeanBound})

SPEC = """
dpcore: 1
data:
  source: records.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 0.5, delta: 0}
ledger: people
release: {learner: own.mean, mechanism: new_mechanism.double_exponential}
"""


def invoke(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.output


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A folder with a spec whose mechanism is a new plugin's, and a ledger; and the plugin."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    module = imported(write_plugin("new-mechanism", PluginKind.MECHANISM, tmp_path), monkeypatch)
    monkeypatch.setattr(
        Registry, "default", lambda: Registry.of(OWN, module, dpcore_attacks, dpcore_report)
    )
    (tmp_path / "spec.yaml").write_text(SPEC, "utf-8")
    rows = zip(*table().values(), strict=True)
    lines = [",".join(table()), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "records.csv").write_text("\n".join(lines), "utf-8")
    code, output = invoke(
        "ledger", "create", "people", "--epsilon", 1, "--delta", 0, "--adjacency", "replace_one"
    )
    assert code == 0, output
    return module


def test_a_strangers_mechanism_is_charged_to_a_ledger(stranger):
    code, output = invoke("check", "spec.yaml", "--explain")
    assert code == 0, output
    assert "after this run pure releases of epsilon = 0.5" in output
    code, output = invoke("run", "spec.yaml")
    assert code == 0, output
    code, output = invoke("ledger", "show", "people")
    assert code == 0
    assert "1 x new_mechanism.pure" in output
    assert "(0.5, 0), proved" in output
    assert invoke("ledger", "verify", "people", "--run", "runs/spec-0001")[0] == 0
    (charged,) = [row for row in Ledger.open("people").rows() if row.kind == "reserved"]
    (stored,) = charged.body["events"]
    assert float.fromhex(stored["loss"]) == pytest.approx(0.5)
    Path("events.yaml").write_text(
        "adjacency: replace_one\nevents: [{event: new_mechanism.pure, loss: 0.25, count: 2}]\n"
    )
    code, output = invoke("account", "events.yaml", "--delta", 0)
    assert code == 0, output
    assert "epsilon = 0.5" in output


def test_a_strangers_mechanism_is_falsified_and_audited(stranger):
    code, output = invoke("falsify", "spec.yaml", "--effort", 0.05)
    assert code == 0, output
    assert "own.mean" in output or "MeanBound" in output
    code, output = invoke("audit", "spec.yaml", "--effort", 0.01)
    assert code == 0, output


def test_a_ledger_outlives_the_plugin_that_charged_it(stranger, monkeypatch):
    assert invoke("run", "spec.yaml")[0] == 0
    with_it = Ledger.open("people").left()
    monkeypatch.setattr(Registry, "default", lambda: Registry.of())
    single = Ledger.open("people")
    assert single.left() == with_it
    code, output = invoke("ledger", "show", "people")
    assert code == 0
    assert "1 x new_mechanism.pure" in output
    assert single.spend(Charge.of(PureEvent(epsilon=0.25, adjacency=REPLACE_ONE))).epsilon < 0.2501
    code, output = invoke("ledger", "verify", "people")
    assert code == 4
    assert (
        "row 2 cannot be recomputed: no admitted plugin provides event 'new_mechanism.pure'"
        in output
    )
    with pytest.raises(BudgetExceededError):
        single.spend(Charge.of(PureEvent(epsilon=0.26, adjacency=REPLACE_ONE)))


def test_an_event_without_its_hook_is_refused_and_charges_nothing(stranger, monkeypatch):
    monkeypatch.delitem(stranger.provides, "events")
    for command in ("check", "run"):
        code, output = invoke(command, "spec.yaml")
        assert code == 1
        assert "dpcore_events" in output
        assert "PureEvent" in output
    assert [row.kind for row in Ledger.open("people").rows()] == ["created"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(PluginKind))
def test_a_new_plugin_installs_and_is_admitted(kind, tmp_path):
    folder = write_plugin(f"new-{kind}", kind, tmp_path)
    site = tmp_path / "site"
    home = {"XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_DATA_HOME": str(tmp_path / "d")}
    environment = {**os.environ, **home, "PYTHONPATH": str(site)}

    def run(*words):
        found = subprocess.run(
            [sys.executable, *words],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stdout + found.stderr

    quiet = ["-q", "--no-index", "--no-deps", "--no-build-isolation"]
    run("-m", "pip", "install", *quiet, "--target", str(site), str(folder))
    dpcore = "from dpcore.console import main; main()"
    run("-c", dpcore, "plugins", "enable", folder.name, "--yes")
    run("-c", dpcore, "test", folder.name, "--effort", "0.1")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider")
