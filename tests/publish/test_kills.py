"""Whole runs that are killed: nothing spent is lost or doubled, nothing is half-published.

Every child does what `dpcore run` does, with a ledger, and is killed at a random moment.
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
from publish.test_operation import SPEC

from dpcore import REPLACE_ONE, Ledger
from dpcore.ledger.book import COMMITTED, RESERVED
from dpcore.publish import whole_run
from dpcore.publish.folder import GUARANTEE_JSON

from doubles import table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks and kills"),
]
KILLS = int(os.environ.get("DPCORE_KILLS", "1000"))
SPARED = 50  # every so many runs, one comes to its end
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


def started(home, monkeypatch):
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
        read = whole_run.load_table

        def opened(*given, **options):
            with (home / "opened").open("a") as marks:
                marks.write(f"{os.getpid()}\n")
            return read(*given, **options)

        whole_run.load_table = opened
        whole_run.run(home / "s.yaml", runs=home / "runs")
        code = 0
    except whole_run.DpcoreError as error:
        code = error.exit_code
    finally:
        os._exit(code)


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
    opened = (home / "opened").read_text().split() if (home / "opened").exists() else []
    assert len(opened) + 1 <= len(reserved)  # the first run left no mark
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


def test_1000_runs_killed_anywhere(home, monkeypatch):
    chosen = random.Random(5)
    began = time.monotonic()
    assert os.waitpid(started(home, monkeypatch), 0)[1] == 0
    longest, ended = 2 * (time.monotonic() - began), {}  # so that some come to their end
    for number in range(KILLS):
        child = started(home, monkeypatch)
        if number % SPARED:
            time.sleep(chosen.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ended[code] = ended.get(code, 0) + 1
    figures = require_all_accounted_for(home)
    print(ended, figures)
    assert {*ended} <= {-signal.SIGKILL, 0}
    assert figures[0] >= figures[1] >= figures[2] >= KILLS // SPARED  # whatever the machine's load
    published = sorted(p.parent for p in home.glob("runs/*/public"))
    for folder in published[:: max(1, len(published) // 10)]:
        whole_run.replay(folder)
    whole_run.run(home / "s.yaml", runs=home / "runs")  # and the next run goes on


def test_32_processes_at_once(home, monkeypatch):
    """Half of them are killed on the way."""
    chosen = random.Random(6)
    before = len([*home.glob("runs/*/public")])
    children = [started(home, monkeypatch) for _ in range(PROCESSES)]
    for child in children[::2]:
        time.sleep(chosen.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert {*codes} <= {0, -signal.SIGKILL}
    assert codes[1::2] == [0] * (PROCESSES // 2)
    _, _, published = require_all_accounted_for(home)
    assert published >= before + PROCESSES // 2
    shutil.rmtree(home / "runs")
