"""Processes that spend from one PostgreSQL ledger and die, and a server that is killed."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from postgresql_server import tcp_server

from dpcore import REPLACE_ONE, Ledger
from dpcore.ledger.book import RESERVED

from oracles import accounting as oracles
from sources.people import configure

SCRIPT = Path(__file__).with_name("ledger_kills.py")
PROCESSES = int(os.environ.get("DPCORE_LEDGER_PROCESSES", "8"))
RESTARTS = 2
pytestmark = pytest.mark.slow


def test_nothing_is_lost_doubled_or_overspent_when_processes_and_the_server_are_killed(
    tmp_path, monkeypatch
):
    """Half of the processes are killed at random moments, and the server twice."""
    randomness = random.Random(PROCESSES)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with tcp_server() as server:
        configure(monkeypatch, tmp_path, f'study: {{postgresql: "{server.address()}"}}\n')
        ledger = Ledger.create("study@postgresql", epsilon=2.0, delta=1e-5, adjacency=REPLACE_ONE)
        command = [sys.executable, str(SCRIPT), str(tmp_path)]
        children = [subprocess.Popen([*command, str(n)]) for n in range(PROCESSES)]
        killed = children[::2]
        try:
            for stage in range(RESTARTS + 1):
                wait_for_rows(server, 10 * (stage + 1))
                for child in killed[stage :: RESTARTS + 1]:
                    time.sleep(randomness.uniform(0, 0.3))
                    child.kill()
                if stage < RESTARTS:
                    time.sleep(randomness.uniform(0, 0.3))
                    server.kill()
                    server.start()
            codes = [child.wait(timeout=900) for child in children]
        finally:
            for child in children:
                child.kill()
        assert [code for code in codes if code not in (0, -9)] == []
        assert codes[1::2] == [0] * (PROCESSES // 2)
        assert [*tmp_path.glob("fault-*")] == []
        # Nothing is lost or doubled: each confirmed reservation is one row.
        assert ledger.faults() == []
        digests = [row.digest for row in ledger.rows() if row.kind == RESERVED]
        notes = [d for path in tmp_path.glob("spent-*") for d in path.read_text().split("\n")[:-1]]
        assert len(notes) == len({*notes})
        assert {*notes} <= {*digests}
        # What is spent and was not confirmed was on its way when somebody was killed.
        assert len(digests) - len(notes) <= len(killed) + RESTARTS * PROCESSES
        # All of it was spent, and no more.
        assert oracles.gaussian_epsilon(1e-5, 2.0**-5 * len(digests) ** 0.5) <= 2.0
        print(f"{len(digests)} charges, {len(notes)} confirmed, {codes.count(-9)} killed")
        assert codes.count(-9) >= 1


def wait_for_rows(server, count):
    """Wait until so many charges were made; the budget has room for many more."""
    for _ in range(2000):
        if server.execute('SELECT count(*) FROM "dpcore_study".journal')[0][0] > count:
            return
        time.sleep(0.05)
    pytest.fail("no one spends")
