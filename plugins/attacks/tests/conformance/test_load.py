"""The same seed gives the same verdicts on an idle machine and on a busy one."""

import json
import os
import subprocess
import sys

import pytest

BUSY = "while True: pass"
WORKERS = 4
ALLOWED = 1800  # seconds, after which the machine is too slow for this test


def verdicts(folder):
    command = [sys.executable, "-c", "from dpcore.console import main; main()"]
    command += ["test", "random-features", "--effort", "0.01", "--seed", "5", "--json"]
    command += ["--save", str(folder / "pairs")]
    env = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    found = subprocess.run(command, capture_output=True, text=True, timeout=ALLOWED, env=env)
    return found.returncode, json.loads(found.stdout)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report_beside_four_busy_processes(tmp_path):
    single = verdicts(tmp_path / "alone")
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(WORKERS)]
    try:
        among = verdicts(tmp_path / "among")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert single == among
    assert single[0] == 0
