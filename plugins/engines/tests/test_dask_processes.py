"""Dask with real worker processes: killed ones, tasks that run twice, and the command line."""

import os
import signal
import threading
import urllib.error
import urllib.request
from functools import partial

import numpy as np
import pytest

import dpcore
from dpcore.encoding.tables import project_table
from dpcore.errors import ReleaseError
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import Task
from dpcore.private.engines.local import LocalEngine
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_engines.dask import Dask
from dpcore_engines.dask_cluster import DaskCluster
from dpcore_engines.dask_workers import answers
from dpcore_linear import ClippedGradient

from builders import price_learner
from doubles import domain, table

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
RECORDS, FILES = 4000, 8


@pytest.fixture
def source(tmp_path):
    """A folder of Parquet files, a part each."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = {name: np.asarray(column, float) for name, column in table(RECORDS).items()}
    whole, each = pyarrow.table(rows), RECORDS // FILES
    (tmp_path / "files").mkdir()
    for number in range(FILES):
        path = tmp_path / "files" / f"{number}.parquet"
        parquet.write_table(whole.slice(number * each, each), path)
    found = open_source(f"{tmp_path}/files/", None, Csv(), domain(RECORDS))
    assert len(found.parts()) == FILES
    return found


def slow_sum(seconds):
    """A sum whose every block takes a while; made here, so that it is pickled by value."""

    def part(block):
        import time

        import numpy

        from dpcore.exact import Exact

        time.sleep(seconds)
        return (Exact.of([len(block), int(numpy.rint(block.labels * 2**20).sum())], 0),)

    return Task(part=part, zero=(Exact.zeros((2,), 0),))


def processes(client):
    return answers(client, os.getpid)


def test_a_worker_killed_in_the_middle_of_an_ask_changes_no_bit(source, tmp_path):
    with LocalEngine(threads=1) as engine:
        engine.load(source.parts(), partial(project_table, domain()))
        expected = engine.total(slow_sum(0))
    with (
        DaskCluster(workers=2).opened(tmp_path) as engine,
    ):
        assert sum(engine.load(source.parts(), partial(project_table, domain()))) == RECORDS
        assert engine.total(slow_sum(0)) == expected
        first, second = processes(engine.client).values()
        timer = threading.Timer(1.0, os.kill, (first, signal.SIGKILL))
        timer.start()
        assert engine.total(slow_sum(3)) == expected
        timer.join()
        assert first not in processes(engine.client).values()  # it died, another was started
        assert second in processes(engine.client).values()
        assert engine.total(slow_sum(0)) == expected


def test_a_worker_killed_between_the_asks_of_a_run_changes_no_bit(source, tmp_path):
    made = price_learner(
        ClippedGradient(features=Identity(), clip=0.3, steps=6),
        domain=domain(RECORDS),
        randomness=dpcore.PublicRandomness(7),
        blocks=True,
    )
    secret = dpcore.SecretRandomness.rehearsal
    expected = made.run(source, secret=secret(5)).answers["release"]
    with DaskCluster(workers=2).opened(tmp_path) as engine:
        asked, workers = [], [*processes(engine.client).values()]

        def kill():
            asked.append(len(asked))
            if len(asked) == 2:
                os.kill(workers[0], signal.SIGKILL)

        found = made.run(source, secret=secret(5), engine=engine, progress=kill)
    assert len(asked) > 2
    again = found.answers["release"]
    assert [a.value.tobytes() for a in again] == [a.value.tobytes() for a in expected]


def test_the_only_worker_killed_ends_the_wait_and_the_run_does_not_hang(
    source, tmp_path, monkeypatch
):
    """Dask leaves its task lying when another worker comes."""
    monkeypatch.setattr("dpcore_engines.dask_workers.WAIT", 2.0)
    with DaskCluster(workers=1).opened(tmp_path) as engine:
        engine.load(source.parts(), partial(project_table, domain()))
        (only,) = processes(engine.client).values()
        timer = threading.Timer(1.0, os.kill, (only, signal.SIGKILL))
        timer.start()
        with pytest.raises(ReleaseError, match="after records were opened"):
            engine.total(slow_sum(1))
        timer.join()


def test_a_cluster_that_ends_is_said_in_one_line(source, tmp_path, monkeypatch):
    monkeypatch.setattr("dpcore_engines.dask_workers.WAIT", 0.3)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        Dask(client) as engine,
    ):
        engine.load(source.parts(), partial(project_table, domain()))
        cluster.scale(0)
        with pytest.raises(ReleaseError, match=r"after records were opened \(no worker is"):
            engine.total(slow_sum(0))


def test_two_clusters_of_one_machine_stand_side_by_side_and_serve_no_page(tmp_path):
    """Dask has an HTTP port even without a dashboard, and without TLS."""

    def own(dask_scheduler):
        return dask_scheduler.http_server.port

    def of_worker(dask_worker):
        return dask_worker.http_server.port

    with (
        DaskCluster(workers=1).opened(tmp_path) as one,
        DaskCluster(workers=1).opened(tmp_path) as other,
    ):
        ports = [engine.client.run_on_scheduler(own) for engine in (one, other)]
        ports += one.client.run(of_worker).values()
        assert len({*ports}) == 3
        for port in ports:
            for page in ("", "info/main/workers.html", "json/counts.json", "metrics", "health"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)
