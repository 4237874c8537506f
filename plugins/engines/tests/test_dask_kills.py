"""Runs on a cluster that are killed: nothing spent is lost or doubled, and workers go on."""

import os
import subprocess
import sys

import pytest

from dpcore_engines.dask_cluster import DaskCluster

from whole.publish.test_kills import MODEL, require_nothing_lost, settle
from whole.publish.test_operation import SPEC

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("DPCORE_KILLS", "1000")) // 20

CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def address():
    """Of a cluster in processes of its own, which ends with this test."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as cluster:
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()


def test_runs_on_a_cluster_killed_in_every_phase(address, tmp_path, monkeypatch):
    spec = {**SPEC, "release": {"learner": MODEL, "mechanism": "gaussian"}}
    home = settle(tmp_path, monkeypatch, spec, DaskCluster(scheduler=address))
    require_nothing_lost(home, KILLS)
