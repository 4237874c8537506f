"""DuckDB against the local engine: the clinic's sums over Parquet, in processor seconds.

    python benchmarks/sql.py FOLDER [RECORDS]

Each engine runs in a process of its own, on one thread: it loads, and adds every sum once. The law
`sql.same-integer` is timed apart, as its cost does not grow with the records. Both must end with
the same integers.
"""

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from dpcore import Categories, Domain, Public, Range
from dpcore.domain.columns import Dates
from dpcore.encoding.blocks import Encoding
from dpcore.learners.sums import SumPart
from dpcore.private.engines.base import Workload
from dpcore.private.engines.local import LocalEngine
from dpcore.private.engines.records import EngineRecords
from dpcore.randomness import PublicRandomness
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_engines.sql.engine import Sql
from dpcore_statistics.count import Count
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.tables import Table
from dpcore_statistics.variance import Variance

WARDS = ("cardiology", "emergency", "general", "maternity", "surgery")
FILE_ROWS = 1_000_000
AGES = {"age": (0, 18, 40, 65, 80, 110)}


def clinic():
    """The declared columns of the clinic's patients."""
    return Domain(
        columns={
            "visited": Dates.between("2023-01-01", "2024-12-31"),
            "age": Range(0, 110),
            "sex": Categories(("F", "M")),
            "ward": Categories(WARDS),
            "systolic": Range(60, 240, missing=True),
            "smoker": Categories(("yes", "no", "unknown"), default="unknown"),
            "cost": Range(0, 20000),
        },
        limit=10**9,
    )


def write(folder, records):
    """Parquet files of so many synthetic patients."""
    import pyarrow
    from pyarrow import parquet

    for number, first in enumerate(range(0, records, FILE_ROWS)):
        rng, count = np.random.default_rng(number), min(FILE_ROWS, records - first)
        days = (19_358 + rng.integers(731, size=count)).astype("datetime64[D]")
        pressure = rng.normal(130, 20, count)
        pressure[rng.random(count) < 0.01] = np.nan
        columns = {
            "visited": days,
            "age": rng.integers(0, 100, size=count),
            "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
            "ward": np.array(WARDS)[rng.integers(5, size=count)],
            "systolic": pyarrow.array(pressure, mask=rng.random(count) < 0.02, from_pandas=False),
            "smoker": np.array(["yes", "no", "?"])[rng.integers(3, size=count)],
            "cost": rng.gamma(2, 800, count),
        }
        parquet.write_table(pyarrow.table(columns), folder / f"{number:04}.parquet")


def workload(folder):
    """The clinic's statistics that are sums."""
    domain = clinic()
    marginals = {"smokers": ("smoker",), "by_age": ("smoker", "age")}
    learners = {
        "patients": Count(),
        "pressure": Variance(column="systolic"),
        "wards": GroupBy(by=("ward", "sex"), column="age"),
        "smoking": Table(marginals=marginals, edges=AGES),
    }
    sums = []
    for name, learner in learners.items():
        public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
        (query,) = learner.queries(public)
        sums.append((name, SumPart(learner=learner, query=query, public=public)))
    return Workload(
        source=open_source(f"{folder}/", None, Csv(), domain),
        domain=domain,
        encode=Encoding(domain=domain, refuse=False),
        refuse=False,
        holdout=0.0,
        sums=tuple(sums),
        others=False,
        sealed=False,
    )


def measure(name, folder):
    """One engine's seconds and memory, and a digest of its integers."""
    asked = workload(folder)
    with LocalEngine(spool=folder, threads=1) if name == "local" else Sql() as engine:
        start = time.process_time()
        engine.accept(lambda: asked)
        if name == "sql":
            engine._session.server.connection.execute("SET threads = 1")
        distribution, start = time.process_time() - start, time.process_time()
        count = sum(engine.load(asked.source.parts(), asked.encode))
        load = time.process_time() - start
        records = EngineRecords(engine=engine, places=count, count=count)
        integers = [
            part.learner.total_of(part.query, records, part.public).integers()
            for _, part in asked.sums
        ]
        total = time.process_time() - start
    # Of this process only: what the system adds up of it holds its parent's before it began.
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    memory = int(status["VmHWM"].split()[0]) / 1e3
    digest = hashlib.sha256(repr(integers).encode()).hexdigest()
    return {
        "law": distribution,
        "load": load,
        "total": total,
        "megabytes": memory,
        "digest": digest,
    }


def main():
    """Both engines one after the other, and the ratio."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 3:
        print(json.dumps(measure(sys.argv[3], folder)))
        return
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 10**7
    if not any(folder.glob("*.parquet")):
        write(folder, records)
    results = {}
    for name in ("local", "sql"):
        command = [sys.executable, __file__, str(folder), str(records), name]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        results[name] = json.loads(output)
        print(name, results[name])
    assert results["local"]["digest"] == results["sql"]["digest"], "other integers"
    print("ratio", results["local"]["total"] / results["sql"]["total"])


if __name__ == "__main__":
    main()
