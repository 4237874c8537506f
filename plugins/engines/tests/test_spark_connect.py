"""Spark Connect: the engine on a session that reaches its server by gRPC only.

PySpark allows one kind of session in a process, so that the engine runs in a child process. The
server is one of this machine, which the session starts.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="no Java"),
]
CHILD = """
import json
import sys
import warnings

warnings.simplefilter("ignore")  # of settings that only the server's start takes

import attrs
import numpy as np
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from doubles import domain, table
from dpcore.exact import Exact
from dpcore.private.engines.base import BlockError, Task
from dpcore.private.engines.local import LocalEngine
from dpcore.errors import RequestError
from dpcore.source import Part
from dpcore_engines.spark import ENCRYPTION, Spark

cloudpickle.register_pickle_by_value(sys.modules["__main__"])


@attrs.frozen(eq=False)
class Rows(Part):
    columns: dict

    def batches(self):
        yield self.columns


def summed(block):
    return (Exact.of([len(block), int(np.rint(block.labels * 2**20).sum())], 0),)


def fails(block):
    raise KeyError("a cell")


settings = {
    ENCRYPTION: "true",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.local.dir": sys.argv[1],
}
session = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "16")
columns, facts = table(400), domain()
ends = range(40, 401, 40)
parts = [Rows({name: cells[end - 40 : end] for name, cells in columns.items()}) for end in ends]
task = Task(part=summed, zero=(Exact.zeros((2,), 0),))
results = {"session": type(session).__module__}
with Spark(session) as engine, LocalEngine(threads=1) as local:
    counts = local.load(parts, facts.project)
    expected = local.total(task)
    engine.ready()
    results["counts"] = engine.load(parts, facts.project) == counts
    results["totals"] = engine.total(task) == expected
    try:
        engine.total(Task(part=fails, zero=task.zero))
    except BlockError as error:
        results["failure"] = str(error)
    engine._held[0].unpersist(blocking=True)
    results["read again"] = engine.total(task) == expected
session.stop()
print(json.dumps(results))
"""


def test_the_engine_adds_the_same_integers_through_spark_connect(tmp_path):
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    result = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "counts": True,
        "totals": True,
        "failure": "a block's part of a total failed (KeyError)",
        "read again": True,
    }
