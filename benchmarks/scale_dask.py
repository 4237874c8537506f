"""An ask on Dask: of 100 blocks against 10, and against dask.dataframe doing the same sum.

    python benchmarks/scale_dask.py --records 400000 --workers 2 --folder /somewhere

The same records in a folder of many small Parquet files and in one of few, on worker processes of
this machine. The sum is of every column and of the label; dask.dataframe has its frames in the
workers' memory. Medians over the asks, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scale import Made, domain, source_of

from dpcore.engines.base import Task
from dpcore.engines.dask_cluster import DaskCluster
from dpcore.exact import Exact

_COLUMNS = 10


def written(folder: Path, records: int, files: int) -> str:
    """The records in a folder of so many files."""
    import pyarrow
    from pyarrow import parquet

    path = folder / f"scale-dask-{records}-{files}"
    if not path.exists():
        path.mkdir()
        batches = [pyarrow.table(dict(batch)) for batch in Made(records, _COLUMNS, 1).batches()]
        whole, each = pyarrow.concat_tables(batches), -(-records // files)
        for number in range(files):
            parquet.write_table(whole.slice(number * each, each), path / f"{number:03}.parquet")
    return f"{path}/"


def task() -> Task:
    """Every column's sum in steps of 2^-30; made here, so that it is pickled by value."""
    unit = -30

    def part(block: Any) -> tuple[Exact]:
        import numpy

        from dpcore.exact import Exact

        whole = numpy.rint(block.features * 2.0**-unit).astype(numpy.int64)
        return (Exact.of(whole.sum(axis=0), unit),)

    return Task(part=part, zero=(Exact.zeros((_COLUMNS + 1,), unit),))


def median(work: Callable[[], Any], asks: int) -> float:
    """Milliseconds of the middle of so many calls, after one that does not count."""
    work()
    spent = []
    for _ in range(asks):
        began = time.perf_counter()
        work()
        spent.append(1e3 * (time.perf_counter() - began))
    return round(statistics.median(spent), 1)


def main() -> None:
    """Load and ask, for each number of files; then the peer."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--records", type=float, default=4e5)
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("--asks", type=int, default=15)
    reader.add_argument("--folder", type=Path, required=True)
    given = reader.parse_args()
    records, found = int(given.records), {}
    encode = domain(records, _COLUMNS).project
    shape = encode(next(Made(10, _COLUMNS, 1).batches())).features.shape[1]
    for files in (10, 100):
        path = written(given.folder, records, files)
        with DaskCluster(workers=given.workers).opened(given.folder) as engine:
            began = time.perf_counter()
            parts = source_of(path, records, _COLUMNS).parts()
            engine.load(parts, encode)
            found[f"{len(parts)} parts: load, s"] = round(time.perf_counter() - began, 2)
            asked = Task(part=task().part, zero=(Exact.zeros((shape,), -30),))
            found[f"{len(parts)} parts: an ask, ms"] = median(
                lambda engine=engine, asked=asked: engine.total(asked), given.asks
            )
            if files == 100:
                found["dask.dataframe, kept: the same sum, ms"] = peer(
                    engine.client, path, given.asks
                )
    print(json.dumps(found, indent=2))


def peer(client: Any, path: str, asks: int) -> float | str:
    """The same sum by dask.dataframe, whose frames are kept in the workers' memory."""
    try:
        import dask.dataframe as frames
    except ImportError:
        return "dask.dataframe is not installed"
    with client.as_current():
        kept = frames.read_parquet(path).persist()
        return median(lambda: kept.sum().compute(), asks)


if __name__ == "__main__":
    main()
