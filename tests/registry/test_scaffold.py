"""A new plugin is complete: it installs, is admitted and passes the kit."""

import importlib
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpcore import Registry
from dpcore.cli.app import app
from dpcore.conformance.effort import Effort
from dpcore.conformance.kit import examine
from dpcore.errors import ParameterError, SpecError
from dpcore.registry.scaffold import PluginKind, write_plugin


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
    assert "dpcore plugins enable my-noise" in run.output
    taken = CliRunner().invoke(
        app, ["plugins", "new", "random-features", "--kind", "learner", "--path", str(tmp_path)]
    )
    assert taken.exit_code == 2


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
    dpcore = "from dpcore.cli import main; main()"
    run("-c", dpcore, "plugins", "enable", folder.name, "--yes")
    run("-c", dpcore, "test", folder.name, "--effort", "0.1")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider")
