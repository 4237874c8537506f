"""Whole runs that are killed: nothing spent is lost or doubled, nothing is half-published.

Every child does what `dpcore run` does, with a ledger, and is killed at a random moment of a
phase.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import attrs
import pytest
import yaml

from dpcore import Ledger
from dpcore.claims.plan.plan import Plan
from dpcore.ledger.book import RESERVED, Reservation
from dpcore.ledger.recomputing import COMMITTED
from dpcore.private import run as private_run
from dpcore.private.engines.choice import EngineChoice
from dpcore.private.engines.local import LocalEngine
from dpcore.published.folder import GUARANTEE_JSON
from dpcore.published.replay import replay
from dpcore.runs import run_spec
from dpcore.specs.spec import load_spec

from doubles import table
from whole.publish.test_operation import SPEC

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks and kills"),
]
KILLS = int(os.environ.get("DPCORE_KILLS", "1000"))
FEWER = 10  # other kinds of runs are killed so many times less often
SEED = int(os.environ.get("DPCORE_SEED", "5"))
SPARED = 50  # one run for so many that are killed comes to its end
PROCESSES = 32


class InSmallBlocks(EngineChoice):
    """Records on disk in blocks of seven, so that a small file is spooled in many."""

    @contextlib.contextmanager
    def opened(self, spool):
        with LocalEngine(spool=spool, rows=7) as engine:
            yield engine


STATISTICS = [
    {"name": "count", "learner": "statistics.count", "mechanism": "discrete_gaussian"},
    {
        "name": "mean",
        "learner": {"name": "statistics.mean", "column": "a"},
        "mechanism": "gaussian",
    },
]
PRIVATE_COUNT = {
    "source": "people.csv",
    "domain": {"records": {"at_most": 60}, "columns": {"a": [-1, 1], "b": [-1, 1]}},
}
MODEL = {
    "name": "linear.sufficient_statistics",
    "features": {"name": "linear.affine", "features": "identity"},
}
RUNS = {
    "a paid hold-out": (
        {**SPEC, "evaluate": {"holdout": 0.2, "metrics": ["mae"], "private": {"epsilon": 0.002}}},
        None,
    ),
    "persons": (
        {
            "dpcore": 1,
            "data": {
                **PRIVATE_COUNT,
                "domain": {
                    **PRIVATE_COUNT["domain"],
                    "people": {"column": "person", "records": 3},
                },
            },
            "adjacency": "add_remove",
            "releases": STATISTICS,
            "accept_useless": ["count", "mean"],  # epsilon is small, so that many runs are paid
        },
        None,
    ),
    "a spool": (
        {
            **SPEC,
            "release": {"learner": MODEL, "mechanism": "gaussian"},
            "evaluate": {"holdout": 0.2, "metrics": ["rmse"]},
        },
        InSmallBlocks(),
    ),
    "sealed": (
        {
            "dpcore": 1,
            "data": PRIVATE_COUNT,
            "adjacency": "add_remove",
            "releases": STATISTICS,
            "accept_useless": ["count", "mean"],  # epsilon is small, so that many runs are paid
            "on_invalid": "project",
            "sealed": True,
        },
        None,
    ),
}
"""Further kinds of runs: what differs from `SPEC`, and the engine."""


@attrs.frozen
class Home:
    """Where runs of one kind are made, and with which engine."""

    folder: Path
    engine: EngineChoice | None = None

    def run(self):
        """What `dpcore run` does there."""
        return run_spec.run(self.folder / "s.yaml", runs=self.folder / "runs", engine=self.engine)


def settle(folder, monkeypatch, spec, engine=None):
    """A folder with records, a spec and a ledger, in which one run has been."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    columns = table()
    rows = [[*(columns[n][i] for n in "aby"), f"p{i // 2}"] for i in range(40)]
    lines = [",".join(map(str, row)) for row in rows]
    (folder / "people.csv").write_text("\n".join(["a,b,y,person", *lines]) + "\n")
    budget = {"epsilon": 0.01, "delta": 1e-7}
    text = yaml.safe_dump({**spec, "ledger": "people", "budget": budget})
    (folder / "s.yaml").write_text(text)
    adjacency = load_spec(folder / "s.yaml").request.adjacency
    Ledger.create("people", epsilon=20.0, delta=1e-2, adjacency=adjacency)
    home = Home(folder, engine)
    home.run()  # what follows is imported
    return home


@pytest.fixture
def home(tmp_path, monkeypatch):
    return settle(tmp_path, monkeypatch, SPEC)


PHASES = {
    "pricing": (run_spec, "locked"),
    "reserving": (Plan, "reserve"),
    "reading and answering": (private_run, "open_records"),
    "committing": (Reservation, "commit"),
    "replayed, not written": (run_spec, "public_files"),
    "publishing": (run_spec, "write_files"),
    "published, the operator's file": (run_spec, "_operator"),
}
"""What a run calls first in each, in order."""
OPENED = "reading and answering"


def marking(home):
    """Every phase that this process enters is written down, with the time, before it begins."""

    def marked(phase, real):
        def call(*given, **options):
            with (home.folder / f"marks-{os.getpid()}").open("a") as marks:
                marks.write(f"{time.monotonic()} {phase}\n")
            return real(*given, **options)

        return call

    for phase, (owner, name) in PHASES.items():
        setattr(owner, name, marked(phase, getattr(owner, name)))


def marks(home, child):
    """Times and phases that a child entered, whole lines only."""
    path = home.folder / f"marks-{child}"
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
        home.run()
        code = 0
    except run_spec.DpcoreError as error:
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
    report = [row.body for row in rows if row.kind == COMMITTED]
    committed = {body["reservation"]: body["guarantee"] for body in report}
    assert len(committed) == len(report)
    assert {*committed} <= reserved
    entered = [{name for _, name in marks(home, p.name[6:])} for p in home.folder.glob("marks-*")]
    opened = sum(OPENED in phases for phases in entered)
    assert opened + 1 <= len(reserved)  # the first run left no mark
    seen = set()
    for folder in home.folder.glob("runs/*"):
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


def require_nothing_lost(home, kills):
    """Aim as many kills at each phase, at a random moment of it; most land there."""
    chosen = random.Random(SEED)
    whole = started(home)
    assert os.waitpid(whole, 0)[1] == 0
    begun = marks(home, whole)
    phases = [name for _, name in begun]
    # A sealed run has no operator's file; all other phases are in every run.
    assert phases in ([*PHASES], [*PHASES][:-1])
    ends = [float(at) for at, _ in begun[1:]] + [float(begun[-1][0]) + 0.005]
    lasting = {name: end - float(at) for (at, name), end in zip(begun, ends, strict=True)}
    landed, finished = dict.fromkeys(phases, 0), 1
    for number in range(kills):
        phase = phases[number % len(phases)]
        found = killed_in(home, started(home), phase, chosen.uniform(0, lasting[phase]))
        if found is None:
            finished += 1
        else:
            landed[found] += 1
    unhurt = max(1, kills // SPARED)
    for _ in range(unhurt):
        assert os.waitpid(started(home), 0)[1] == 0
    figures = require_all_accounted_for(home)
    print(landed, finished, figures)
    assert kills < 100 or all(landed.values())
    reserved, committed, published = figures
    assert reserved >= committed >= published >= finished + unhurt
    folders = sorted(p.parent for p in home.folder.glob("runs/*/public"))
    for folder in folders[:: max(1, len(folders) // 10)]:
        replay(folder)
    home.run()  # and the next run goes on, and removes what killed ones left
    assert all((folder / "public").exists() for folder in home.folder.glob("runs/*"))


def test_1000_runs_killed_in_every_phase(home):
    require_nothing_lost(home, KILLS)


@pytest.mark.parametrize("kind", RUNS)
def test_runs_of_every_kind_killed_in_every_phase(kind, tmp_path, monkeypatch):
    spec, engine = RUNS[kind]
    require_nothing_lost(settle(tmp_path, monkeypatch, spec, engine), KILLS // FEWER)


def test_32_processes_at_once(home):
    """Half of them are killed on the way."""
    chosen = random.Random(6)
    before = len([*home.folder.glob("runs/*/public")])
    children = [started(home) for _ in range(PROCESSES)]
    for child in children[::2]:
        time.sleep(chosen.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert {*codes} <= {0, -signal.SIGKILL}
    assert codes[1::2] == [0] * (PROCESSES // 2)
    _, _, published = require_all_accounted_for(home)
    assert published >= before + PROCESSES // 2
    shutil.rmtree(home.folder / "runs")
