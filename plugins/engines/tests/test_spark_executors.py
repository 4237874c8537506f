"""Spark on executors of their own, one of which is killed in the middle of a query.

`local-cluster` starts a master and two workers, and each of these an executor: a process of Java
with its own storage and its own workers of Python, as on a cluster of machines.
"""

import os
import secrets
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest

from dpcore.encoding.tables import project_table
from dpcore.exact import Exact
from dpcore.private.engines.base import Task
from dpcore.private.engines.local import LocalEngine
from dpcore.source import Part
from dpcore_engines.spark import ENCRYPTION, Spark

from doubles import domain, table

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="no Java"),
    # Spark 4.3 warns of any pandas from 3 on that lies next to it.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
BUNDLES = (40,) * 10
ZERO = (Exact.zeros((2,), 0),)
SETTINGS = {
    ENCRYPTION: "true",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}


@attrs.frozen(eq=False)
class Rows(Part):
    """Some rows of a table, which notes in a file that it was read."""

    columns: dict
    reads: Path

    def batches(self):
        with self.reads.open("a") as file:
            file.write("x")
        yield self.columns


@pytest.fixture
def session(tmp_path, monkeypatch):
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    # Workers cannot import this module: what it defines travels by value.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    settings = {
        **SETTINGS,
        "spark.local.dir": str(tmp_path),
        "spark.authenticate.secret": secrets.token_hex(16),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings)
    session = builder.getOrCreate()
    application = session.sparkContext.applicationId
    try:
        yield session
    finally:
        session.stop()
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


def summed(block):
    return (Exact.of([len(block), int(np.rint(block.labels * 2**20).sum())], 0),)


def parent_of(process):
    """Of a process, by its number."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_executor_killed_in_the_middle_of_an_ask_changes_no_bit(session, tmp_path):
    reads, tries, killed = (tmp_path / name for name in ("reads", "tries", "killed"))

    def part(block):
        with tries.open("a") as file:
            file.write("x")
        # When five of ten bundles were begun, one task kills the executor that it runs on.
        if tries.stat().st_size >= 5 and not killed.exists():
            executor = parent_of(os.getppid())
            killed.write_text(str(executor))
            os.kill(executor, signal.SIGKILL)
        return summed(block)

    columns, ends = table(400), np.cumsum(BUNDLES)
    parts = [
        Rows({name: cells[end - 40 : end] for name, cells in columns.items()}, reads)
        for end in ends
    ]
    task = Task(part=summed, zero=ZERO)
    with Spark(session) as engine, LocalEngine(threads=1) as local:
        counts = local.load(parts, partial(project_table, domain()))
        expected = local.total(task)
        reads.unlink()
        engine.ready()
        assert engine.load(parts, partial(project_table, domain())) == counts == BUNDLES
        assert reads.read_text() == "x" * 10
        assert engine.total(Task(part=part, zero=ZERO)) == expected
        executor = int(killed.read_text())
        assert executor != os.getpid()
        assert not is_alive(executor)
        # What the executor kept is gone with it, and was read again.
        assert len(reads.read_text()) > 10
        assert len(tries.read_text()) > 10
        assert engine.total(task) == expected
