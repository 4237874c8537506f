"""Code under test that exits, crashes or never ends is reported in a line; it never passes."""

import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from dpcore.console.app import app
from dpcore_attacks.commands import child_process as child
from dpcore_attacks.commands.child_process import Ended, apart

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
    assert (found.code, found.output, found.errors, found.reason) == (3, "found\n", "hint\n", "")


@pytest.mark.parametrize(
    ("work", "report"),
    [
        (lambda: sys.exit(0), "raised SystemExit"),
        (lambda: leave(0), "ended the process with exit code 0"),
        (os.abort, "crashed (SIGABRT)"),
        (spin, "processor time"),
    ],
    ids=["exit", "_exit", "abort", "endless"],
)
def test_work_that_does_not_return_is_told(work, report):
    found = apart(work, 1)
    assert found.code is None
    assert report in found.reason


def doze():
    time.sleep(3600)


def doze_while_another_works():
    with subprocess.Popen([sys.executable, "-c", BUSY]) as worker:
        return worker.wait()


BUSY = "import time\nwhile time.process_time() < 1.5: pass"


def test_only_sleep_is_counted_as_hanging():
    found = apart(doze, 60, patience=2)
    assert found.code is None
    assert "slept for 2 s" in found.reason
    assert apart(doze_while_another_works, 60, patience=1) == Ended(0, "", "")


def test_a_process_that_waits_for_a_processor_is_not_asleep(monkeypatch):
    mine = {7: (1, True, 5.0), 8: (7, False, 3.0), 9: (8, False, 1.0), 10: (1, False, 100.0)}
    monkeypatch.setattr(child, "_processes", lambda: mine)
    assert child._asleep(7) is None  # it is runnable
    assert child._asleep(8) == 4.0  # with what it started
    assert child._asleep(11) is None  # no one knows


def stopped_for_a_while():
    own = os.getpid()
    command = f"import os, signal, time; time.sleep(2.5); os.kill({own}, signal.SIGCONT)"
    subprocess.Popen([sys.executable, "-c", command])
    os.kill(own, signal.SIGSTOP)
    return 0


def test_a_process_that_somebody_stopped_is_not_asleep():
    assert apart(stopped_for_a_while, 60, patience=1).code == 0


@pytest.mark.parametrize(
    ("imports", "body", "output"),
    [
        ("sys", "sys.exit(0)", "is not tested: its code raised SystemExit"),
        ("os", "os._exit(0)", "is not tested: its code ended the process"),
        ("no_such_module", "return {}", "cannot be imported: ModuleNotFoundError"),
        ("os", "raise ValueError('broken')", "hook dpcore_accountants failed: ValueError"),
        ("os", "return {}", "provides nothing that was tested"),
    ],
)
def test_a_folder_that_cannot_be_tested_never_passes(imports, body, output, tmp_path):
    package = tmp_path / f"made_up_{abs(hash(body))}"
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN.format(imports=imports, body=body))
    found = CliRunner().invoke(app, ["test", str(tmp_path), "--effort", "0.1"])
    assert found.exit_code in (1, 2)
    assert output in " ".join(found.output.split())


def test_a_folder_without_a_hook_or_a_package_is_told_in_one_line(tmp_path):
    found = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert found.exit_code == 2
    assert "needs one entry point" in found.output
    (tmp_path / "hookless").mkdir()
    (tmp_path / "hookless" / "__init__.py").write_text("x = 1\n")
    found = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert found.exit_code == 2
    assert "names no component" in found.output


def test_an_unknown_name_is_told_with_the_nearest_plugin():
    found = CliRunner().invoke(app, ["test", "random-featurs"])
    assert found.exit_code == 2
    assert "did you mean 'random-features'" in found.output
