"""Code under test that exits, crashes or never ends is told in a line; it never passes."""

import os
import sys

import pytest
from typer.testing import CliRunner

from dpcore.cli.app import app
from dpcore.cli.child import apart

PLUGIN = """
import {imports}
from dpcore import hookimpl

@hookimpl
def dpcore_accountants():
    {body}
"""


def leave(code):
    os._exit(code)


def spin():
    while True:
        pass


def test_what_work_prints_and_returns_comes_back():
    def work():
        print("found")
        print("hint", file=sys.stderr)
        return 3

    found = apart(work, 60)
    assert (found.code, found.output, found.errors, found.told) == (3, "found\n", "hint\n", "")


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda: sys.exit(0), "raised SystemExit"),
        (lambda: leave(0), "ended the process with exit code 0"),
        (os.abort, "crashed (SIGABRT)"),
        (spin, "processor time"),
    ],
    ids=["exit", "_exit", "abort", "endless"],
)
def test_work_that_does_not_return_is_told(work, told):
    found = apart(work, 1)
    assert found.code is None
    assert told in found.told


@pytest.mark.parametrize(
    ("imports", "body", "told"),
    [
        ("sys", "sys.exit(0)", "is not tested: its code raised SystemExit"),
        ("os", "os._exit(0)", "is not tested: its code ended the process"),
        ("no_such_module", "return {}", "cannot be imported: ModuleNotFoundError"),
        ("os", "raise ValueError('broken')", "hook dpcore_accountants failed: ValueError"),
        ("os", "return {}", "provides nothing that was tested"),
    ],
)
def test_a_folder_that_cannot_be_tested_never_passes(imports, body, told, tmp_path):
    package = tmp_path / f"made_up_{abs(hash(body))}"
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN.format(imports=imports, body=body))
    found = CliRunner().invoke(app, ["test", str(tmp_path), "--effort", "0.1"])
    assert found.exit_code in (1, 2)
    assert told in " ".join(found.output.split())


def test_a_folder_without_a_hook_or_a_package_is_told_in_one_line(tmp_path):
    found = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert found.exit_code == 2
    assert "needs one entry point" in found.output
    (tmp_path / "hookless").mkdir()
    (tmp_path / "hookless" / "__init__.py").write_text("x = 1\n")
    found = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert found.exit_code == 2
    assert "has no hook" in found.output


def test_an_unknown_name_is_told_with_the_nearest_plugin():
    found = CliRunner().invoke(app, ["test", "random-featurs"])
    assert found.exit_code == 2
    assert "did you mean 'random-features'" in found.output
