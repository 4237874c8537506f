"""A ledger survives its writers: nothing spent is lost or doubled, whenever they die."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpcore import REPLACE_ONE, Ledger
from dpcore.ledger.book import RESERVED
from dpcore.ledger.recomputing import COMMITTED

from oracles import accounting as oracles

SCRIPT = Path(__file__).with_name("ledger_crash.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it forks and kills")


def script(*arguments):
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def mu_squared(row):
    return sum(float.fromhex(e["mu"]) ** 2 * e["count"] for e in row.body["events"])


def require_all_accounted_for(folder, ledger):
    """Every opened record was paid for, every published guarantee is entered, the total holds."""
    assert ledger.faults() == []
    rows = ledger.rows()
    reserved = {row.digest: row for row in rows if row.kind == RESERVED}
    report = [row.body for row in rows if row.kind == COMMITTED]
    committed = {body["reservation"]: body["guarantee"] for body in report}
    assert len(report) == len(committed)
    opened = (folder / "opened").read_text().split()
    assert len(opened) == len({*opened})
    assert {*opened} <= {*reserved}
    published = [json.loads(p.read_text()) for p in folder.glob("runs/*/public/guarantee.json")]
    for guarantee in published:
        assert committed[guarantee["ledger"]["digest"]] == guarantee
    spent = sum(mu_squared(row) for row in reserved.values())
    assert oracles.gaussian_epsilon(1e-5, spent**0.5) <= ledger.total.epsilon
    return len(reserved), len(committed), len(published)


def kill(folder, runs, seed, epsilon):
    path = folder / "spent.ledger"
    Ledger.create(path, epsilon=epsilon, delta=1e-5, adjacency=REPLACE_ONE)
    ended = json.loads(script("kill", folder, runs, seed))
    return ended, require_all_accounted_for(folder, Ledger.open(path))


def test_a_run_that_is_killed_stays_spent(tmp_path):
    ended, (reserved, committed, published) = kill(tmp_path, 10, 1, 10.0)
    assert {*ended} <= {"killed", "0"}
    assert reserved >= committed >= published >= 1


@pytest.mark.slow
def test_500_runs_killed_anywhere_lose_nothing(tmp_path):
    """The total admits about half of them."""
    ended, (reserved, committed, published) = kill(tmp_path, 500, 2, 1.6)
    assert {*ended} == {"killed", "0", "4"}
    assert reserved > committed > 10
    assert reserved > 100
    assert committed >= published > 10


def test_eight_processes_share_one_total(tmp_path):
    """mu = 0.06 fits (1, 1e-5) 19 times; 8 x 3 ask for it."""
    path = tmp_path / "spent.ledger"
    Ledger.create(path, epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    script("spend", tmp_path, 8, 3)
    lines = [line for part in tmp_path.glob("spent-*") for line in part.read_text().split()]
    assert len(lines) == 24
    entries = [line for line in lines if line != "refused"]
    ledger = Ledger.open(path)
    assert ledger.faults() == []
    assert sorted(entries) == sorted(r.digest for r in ledger.rows() if r.kind == RESERVED)
    assert oracles.gaussian_epsilon(1e-5, 0.06 * len(entries) ** 0.5) <= 1.0
    assert oracles.gaussian_epsilon(1e-5, 0.06 * (len(entries) + 1) ** 0.5) > 1.0


def test_a_full_disk_stops_a_run_before_its_records_are_opened(tmp_path):
    """A limit on the size of files represents the disk; SIGXFSZ comes with it, and is ignored."""
    path = tmp_path / "spent.ledger"
    Ledger.create(path, epsilon=100.0, delta=1e-5, adjacency=REPLACE_ONE)
    report = script("full", tmp_path, 24576)
    assert "the ledger cannot be used" in report
    assert "disk" in report
    require_all_accounted_for(tmp_path, Ledger.open(path))
    assert path.stat().st_size <= 24576
