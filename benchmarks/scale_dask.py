"""A query on Dask: of 100 blocks against 10, and against dask.dataframe doing the same sum.

    python benchmarks/scale_dask.py --records 400000 --workers 2 --folder /somewhere

The same records in a folder of many small Parquet files and in one of few, on worker processes of
this machine. The sum is of every column and of the label; dask.dataframe has its frames in the
workers' memory. Medians over the queries, in milliseconds.

    python benchmarks/scale_dask.py --large 5e7 --workers 2 --folder /somewhere

More records than a worker's memory should hold, of three columns and a label: seconds per 10^6 of
loading and of a whole run of `sufficient_statistics`, the most memory that each worker ever had,
and the plain sum of every column, by dpcore and by dask.dataframe from the same files.

    python benchmarks/scale_dask.py --same 1 2 4 --folder /somewhere

Whether so many workers release the same bits as the local engine, of all learners of `LEARNERS`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scale import Made, domain, source_of

import dpcore
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.exact import Exact
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import Task
from dpcore.transcript.replay_process import HERE
from dpcore_engines.dask import Dask
from dpcore_engines.dask_cluster import DaskCluster
from dpcore_engines.dask_workers import answers
from dpcore_linear import ClippedGradient, SufficientStatistics
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_random_features.ridge import Ridge

_COLUMNS = 10
_FEW = 3  # columns of many records
_FILE = 1_000_000


def written(folder: Path, records: int, files: int) -> str:
    """Return the records in a folder of so many files."""
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
    """Return every column's sum in steps of 2^-30; made here, so that it is pickled by value."""
    unit = -30

    def part(block: Any) -> tuple[Exact]:
        import numpy

        from dpcore.exact import Exact

        whole = numpy.rint(block.features * 2.0**-unit).astype(numpy.int64)
        return (Exact.of(whole.sum(axis=0), unit),)

    return Task(part=part, zero=(Exact.zeros((_COLUMNS + 1,), unit),))


def median(work: Callable[[], Any], query_count: int) -> float:
    """Milliseconds of the middle of so many calls, after one that does not count."""
    work()
    spent = []
    for _ in range(query_count):
        began = time.perf_counter()
        work()
        spent.append(1e3 * (time.perf_counter() - began))
    return round(statistics.median(spent), 1)


def files_of(folder: Path, records: int, columns: int) -> str:
    """Files of at most 10^6 records, written once."""
    import pyarrow
    from pyarrow import parquet

    path = folder / f"scale-dask-large-{records}"
    if not path.exists():
        path.mkdir()
        for number, at in enumerate(range(0, records, _FILE)):
            count = min(_FILE, records - at)
            batches = Made(count, columns, number).batches()
            tables = [pyarrow.table(dict(batch)) for batch in batches]
            whole = pyarrow.concat_tables(tables).combine_chunks()
            parquet.write_table(whole, path / f"{number:03}.parquet", compression="none")
    return f"{path}/"


def peak() -> float:
    """MB that this process ever had in memory."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def large(folder: Path, records: int, workers: int) -> dict[str, Any]:
    """A whole run, and the plain sum by both."""
    path = files_of(folder, records, _FEW)
    plan = priced(SufficientStatistics(features=Identity()), records, _FEW)
    found: dict[str, Any] = {}
    with DaskCluster(workers=workers).opened(folder) as engine:
        assert isinstance(engine, Dask), "its own engine"
        began = time.perf_counter()
        plan.run(source_of(path, records, _FEW), engine=engine, replaying=HERE)
        found["whole run, s per 10^6"] = round(1e6 * (time.perf_counter() - began) / records, 3)
        asked = Task(part=task().part, zero=(Exact.zeros((_FEW,), -30),))
        found["a query, ms per 10^6"] = round(
            1e6 * median(lambda: engine.total(asked), 3) / records, 2
        )
        found["peak MB of each worker"] = sorted(map(round, answers(engine.client, peak).values()))
    with DaskCluster(workers=workers).opened(folder) as engine:
        assert isinstance(engine, Dask), "its own engine"
        found["dask.dataframe from the files, ms per 10^6"] = from_files(
            engine.client, path, records
        )
        found["its peak MB"] = sorted(map(round, answers(engine.client, peak).values()))
    return found


def from_files(client: Any, path: str, records: int) -> dict[str, float] | str:
    """Sums of every column by dask.dataframe, which reads the files for them: plain, and ours."""
    try:
        import dask.dataframe as frames
    except ImportError:
        return "dask.dataframe is not installed"
    found = {}
    with client.as_current():
        read = frames.read_parquet(path)
        rounded(read.partitions[:2]).compute()  # which imports it on the workers
        for name, asked in (("plain", read.sum()), ("the same", rounded(read))):
            began = time.perf_counter()
            asked.compute()
            found[name] = round(1e9 * (time.perf_counter() - began) / records, 2)
    return found


def rounded(frame: Any) -> Any:
    """Return the sum of a dask.dataframe that `task` makes of blocks."""
    return (frame * 2.0**30).round().astype("int64").sum()


def priced(learner: Any, records: int, columns: int) -> Any:
    """Return a plan for an engine, with public randomness that are the same whenever it is made."""
    return dpcore.price(
        domain=domain(records, columns),
        adjacency=dpcore.REPLACE_ONE,
        learner=learner,
        mechanism=Gaussian(),
        budget=dpcore.PrivacyBudget(epsilon=1.0, delta=1e-9),
        randomness=dpcore.PublicRandomness(7),
        blocks=True,
    )


LEARNERS = {
    "sums": SufficientStatistics(features=Identity()),
    "sums, many": ClippedGradient(features=Identity(), clip=0.3, steps=20),
    "folds": Ridge(features=Identity(), regularization=0.5),
    "loops": OutputPerturbation(features=Identity(), total_regularization=50.0, clip=0.2),
}


def same(folder: Path, several: list[int]) -> dict[str, Any]:
    """By learner and number of workers, whether the released bits are those of the local engine."""
    records, found = 20_000, {}
    source = source_of(written(folder, records, 10), records, _COLUMNS)
    plans = {name: priced(learner, records, _COLUMNS) for name, learner in LEARNERS.items()}
    expected = {name: released(plan, source, None) for name, plan in plans.items()}
    for workers in several:
        with DaskCluster(workers=workers).opened(folder) as opened:
            assert isinstance(opened, Dask), "its own engine"
            for name, plan in plans.items():
                with Dask(opened.client, spool=folder) as engine:
                    same_bits = released(plan, source, engine) == expected[name]
                found[f"{name}, {workers} workers"] = same_bits
    return found


def released(plan: Any, source: Any, engine: Any) -> list[bytes]:
    """Return all answers, with known secret randomness."""
    secret = dpcore.SecretRandomness.rehearsal(5)
    outcome = plan.run(source, secret=secret, engine=engine, replaying=HERE)
    return [answer.value.tobytes() for answer in outcome.answers["release"]]


def main() -> None:
    """Load and ask, for each number of files; then the peer. Or what an argument asks for."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--records", type=float, default=4e5)
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("--asks", type=int, default=15)
    reader.add_argument("--large", type=float)
    reader.add_argument("--same", type=int, nargs="+")
    reader.add_argument("--folder", type=Path, required=True)
    given = reader.parse_args()
    if given.large is not None:
        print(json.dumps(large(given.folder, int(given.large), given.workers), indent=2))
    elif given.same is not None:
        print(json.dumps(same(given.folder, given.same), indent=2))
    else:
        print(json.dumps(small(given.folder, int(given.records), given.workers, given.query_count)))


def small(folder: Path, records: int, workers: int, query_count: int) -> dict[str, Any]:
    """Ten files against a hundred, and the peer."""
    found: dict[str, Any] = {}
    encode = partial(project_table, domain(records, _COLUMNS))
    shape = encode(next(Made(10, _COLUMNS, 1).batches())).features.shape[1]
    for files in (10, 100):
        path = written(folder, records, files)
        with DaskCluster(workers=workers).opened(folder) as engine:
            began = time.perf_counter()
            parts = source_of(path, records, _COLUMNS).parts()
            engine.load(parts, encode)
            found[f"{len(parts)} parts: load, s"] = round(time.perf_counter() - began, 2)
            asked = Task(part=task().part, zero=(Exact.zeros((shape,), -30),))
            found[f"{len(parts)} parts: a query, ms"] = median(
                lambda engine=engine, asked=asked: engine.total(asked), query_count
            )
            if files == 100:
                found |= peer(engine.client, path, query_count)
    return found


def peer(client: Any, path: str, query_count: int) -> dict[str, float | str]:
    """Sums by dask.dataframe: as floats come, and rounded to steps of 2^-30 as ours are.

    Frames are kept in the workers' memory, or read from their files at every query.
    """
    try:
        import dask.dataframe as frames
    except ImportError:
        return {"dask.dataframe": "is not installed"}

    found: dict[str, float | str] = {}
    with client.as_current():
        read = frames.read_parquet(path)
        kept = read.persist()
        for name, frame in (("kept", kept), ("from files", read)):
            found[f"dask.dataframe, {name}: a plain sum, ms"] = median(
                lambda frame=frame: frame.sum().compute(), query_count
            )
            found[f"dask.dataframe, {name}: the same sum, ms"] = median(
                lambda frame=frame: rounded(frame).compute(), query_count
            )
    return found


if __name__ == "__main__":
    main()
