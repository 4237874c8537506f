"""Whole runs that are killed: nothing spent is lost or doubled, nothing is half-published.

Every child does what `dpcore run` does, with a ledger, and is killed at a random moment of a
phase.
"""

import json
import os
import random
import shutil
import signal
import sys
import time

import pytest
import yaml

from dpcore import REPLACE_ONE, Ledger
from dpcore.ledger.book import COMMITTED, RESERVED, Reservation
from dpcore.publish import whole_run
from dpcore.publish.folder import GUARANTEE_JSON
from dpcore.running.plan import Plan

from doubles import table
from whole.publish.test_operation import SPEC

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks and kills"),
]
KILLS = int(os.environ.get("DPCORE_KILLS", "1000"))
SEED = int(os.environ.get("DPCORE_SEED", "5"))
SPARED = 50  # one run for so many that are killed comes to its end
PROCESSES = 32


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    columns = table()
    rows = "\n".join(",".join(str(columns[n][i]) for n in "aby") for i in range(40))
    (tmp_path / "people.csv").write_text("a,b,y\n" + rows + "\n")
    spec = {**SPEC, "ledger": "people", "budget": {"epsilon": 0.01, "delta": 1e-7}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec))
    Ledger.create("people", epsilon=20.0, delta=1e-2, adjacency=REPLACE_ONE)
    whole_run.run(tmp_path / "s.yaml", runs=tmp_path / "runs")  # what follows is imported
    return tmp_path


PHASES = {
    "pricing": (whole_run, "locked"),
    "reserving": (Plan, "reserve"),
    "reading and answering": (whole_run, "open_source"),
    "committing": (Reservation, "commit"),
    "replayed, not written": (whole_run, "public_files"),
    "publishing": (whole_run, "write_files"),
    "published, the operator's file": (whole_run, "_operator"),
}
"""What a run calls first in each, in order."""
OPENED = "reading and answering"


def marking(home):
    """Every phase that this process enters is written down, with the time, before it begins."""

    def marked(phase, real):
        def call(*given, **options):
            with (home / f"marks-{os.getpid()}").open("a") as marks:
                marks.write(f"{time.monotonic()} {phase}\n")
            return real(*given, **options)

        return call

    for phase, (owner, name) in PHASES.items():
        setattr(owner, name, marked(phase, getattr(owner, name)))


def marks(home, child):
    """Times and phases that a child entered, whole lines alone."""
    path = home / f"marks-{child}"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [line.rstrip().split(" ", 1) for line in lines if line.endswith("\n")]


def started(home):
    """A child on its way, in a group of its own with whatever it starts."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        marking(home)
        whole_run.run(home / "s.yaml", runs=home / "runs")
        code = 0
    except whole_run.DpcoreError as error:
        code = error.exit_code
    finally:
        os._exit(code)


def killed_in(home, child, phase, wait):
    """Kill a child `wait` seconds after it entered a phase; the phase that it was in.

    None if it had come to its end.
    """
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return None
        if phase in [name for _, name in marks(home, child)]:
            break
        time.sleep(0.001)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return marks(home, child)[-1][1] if code else None


def require_all_accounted_for(home):
    """(reserved, committed, published), all of which agree."""
    ledger = Ledger.open("people")
    assert ledger.faults() == []
    rows = ledger.rows()
    reserved = {row.digest for row in rows if row.kind == RESERVED}
    told = [row.body for row in rows if row.kind == COMMITTED]
    committed = {body["reservation"]: body["guarantee"] for body in told}
    assert len(committed) == len(told)
    assert {*committed} <= reserved
    entered = [{name for _, name in marks(home, p.name[6:])} for p in home.glob("marks-*")]
    opened = sum(OPENED in phases for phases in entered)
    assert opened + 1 <= len(reserved)  # the first run left no mark
    seen = set()
    for folder in home.glob("runs/*"):
        assert {path.name for path in folder.iterdir()} <= {
            "public",
            "operator",
            ".public.partial",  # what a killed run was writing, never public
        }
        public = folder / "public"
        if public.exists():
            guarantee = json.loads((public / GUARANTEE_JSON).read_text())
            digest = guarantee["ledger"]["digest"]
            assert digest not in seen
            seen.add(digest)
            assert committed[digest] == guarantee
    assert len(seen) <= len(committed)
    return len(reserved), len(committed), len(seen)


def test_1000_runs_killed_in_every_phase(home):
    """As many kills are aimed at each phase, at a random moment of it; most land there."""
    chosen = random.Random(SEED)
    whole = started(home)
    assert os.waitpid(whole, 0)[1] == 0
    begun = marks(home, whole)
    assert [name for _, name in begun] == [*PHASES]
    ends = [float(at) for at, _ in begun[1:]] + [float(begun[-1][0]) + 0.005]
    lasting = {name: end - float(at) for (at, name), end in zip(begun, ends, strict=True)}
    landed, finished = dict.fromkeys(PHASES, 0), 1
    for number in range(KILLS):
        phase = [*PHASES][number % len(PHASES)]
        found = killed_in(home, started(home), phase, chosen.uniform(0, lasting[phase]))
        if found is None:
            finished += 1
        else:
            landed[found] += 1
    for _ in range(KILLS // SPARED):
        assert os.waitpid(started(home), 0)[1] == 0
    figures = require_all_accounted_for(home)
    print(landed, finished, figures)
    assert KILLS < 100 or all(landed.values())
    reserved, committed, published = figures
    assert reserved >= committed >= published >= finished + KILLS // SPARED
    folders = sorted(p.parent for p in home.glob("runs/*/public"))
    for folder in folders[:: max(1, len(folders) // 10)]:
        whole_run.replay(folder)
    whole_run.run(home / "s.yaml", runs=home / "runs")  # and the next run goes on


def test_32_processes_at_once(home):
    """Half of them are killed on the way."""
    chosen = random.Random(6)
    before = len([*home.glob("runs/*/public")])
    children = [started(home) for _ in range(PROCESSES)]
    for child in children[::2]:
        time.sleep(chosen.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert {*codes} <= {0, -signal.SIGKILL}
    assert codes[1::2] == [0] * (PROCESSES // 2)
    _, _, published = require_all_accounted_for(home)
    assert published >= before + PROCESSES // 2
    shutil.rmtree(home / "runs")
