"""Folders of killed runs: the next run removes those that published nothing, and no other one."""

import os
import signal
import subprocess
import sys

import pytest

from dpcore.published.files import locked_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it kills")

LIVES = """
import sys, time
from pathlib import Path
from dpcore.published.files import locked_folder
with locked_folder(Path(sys.argv[1]), "s") as folder:
    for entry in sys.argv[2:]:
        (folder / entry).mkdir()
    print(folder.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def living(tmp_path):
    """Start a run that lives in a folder with such entries; all end with the test."""
    runs = []

    def start(*entries):
        run = subprocess.Popen(
            [sys.executable, "-c", LIVES, str(tmp_path), *entries],
            stdout=subprocess.PIPE,
            text=True,
        )
        runs.append(run)
        return run, run.stdout.readline().strip()

    yield start
    for run in runs:
        run.kill()
        run.communicate()


def killed(run):
    os.kill(run.pid, signal.SIGKILL)
    run.wait()


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_killed_run_leaves_nothing_behind_and_a_living_one_stays(living, tmp_path):
    dead, first = living()
    writing, second = living(".public.partial")
    alive, third = living()
    killed(dead)
    killed(writing)
    assert names(tmp_path) == [first, second, third] == ["s-0001", "s-0002", "s-0003"]
    with locked_folder(tmp_path, "s") as folder:
        assert names(tmp_path) == [folder.name, third]
    killed(alive)
    with locked_folder(tmp_path, "s") as folder:
        assert names(tmp_path) == [folder.name]


def test_what_published_or_is_not_a_run_of_this_spec_stays(living, tmp_path):
    published, first = living("public")
    looked, second = living("operator", ".public.partial")
    killed(published)
    killed(looked)
    for name in ("t-0001", "s-1", "s-0009-mine", "s-0010x"):
        (tmp_path / name).mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s-0011").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "s-0012").write_text("a file")
    before = names(tmp_path)
    assert {first, second} <= {*before}
    with locked_folder(tmp_path, "s") as folder:
        assert names(tmp_path) == sorted([*before, folder.name])


def test_runs_that_begin_at_once_remove_none_of_each_other(living, tmp_path):
    folders = [living()[1] for _ in range(4)]
    assert names(tmp_path) == sorted(folders)


def test_places_that_cannot_be_locked_are_served(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked_folder(tmp_path / "runs", "s") as folder:
        assert folder.name == "s-0001"
    with locked_folder(tmp_path / "runs", "s") as folder:
        assert folder.name == "s-0002"
