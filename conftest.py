"""Property tests draw the same examples in every run; HYPOTHESIS_PROFILE=explore draws new ones.

Next to the core only, tests of the whole tree and of plugins that are not installed are left out,
and the end of the run says so.

`tests/long.txt` names the cases that are slow next to quicker ones of the same test: they are
marked `slow` here, so that a test keeps its cases together and the default tests keep to their
budget.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from dpcore.private import run
from dpcore.runs import session
from dpcore.transcript.replay_process import Here

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

ROOT = Path(__file__).parent
LONG = ROOT / "tests" / "long.txt"
ABSENT = [path for path in sorted(ROOT.glob("plugins/*/dpcore_*")) if not find_spec(path.name)]


def pytest_ignore_collect(collection_path):
    """Leave out what cannot be imported."""
    absent = {path.parent for path in ABSENT} | ({ROOT / "tests" / "whole"} if ABSENT else set())
    return True if absent & {collection_path, *collection_path.parents} else None


def pytest_terminal_summary(terminalreporter):
    """Say what was left out."""
    if ABSENT:
        names = ", ".join(path.parent.name for path in ABSENT)
        terminalreporter.write_line(f"tests/whole is left out: not installed are {names}")


@pytest.fixture
def as_shipped():
    """Plans and sessions of this test replay in a process of their own, as users' do."""


@pytest.fixture(autouse=True)
def replay_here(request, monkeypatch):
    """Start no process for every plan and session of the tests: one costs half a second."""
    if "as_shipped" not in request.fixturenames:
        for release_through in (run, session):
            monkeypatch.setattr(release_through, "CleanProcess", Here)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what the list names."""
    long = set(LONG.read_text().splitlines())
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)
