"""Data larger than memory: seconds per 10^6 records and pass, and memory, of the local engine.

    python benchmarks/scale.py --records 1e7 --columns 10 --asks 3 --folder /somewhere

A Parquet file of that size is written to the folder once, and read from there. Every question runs
in a process of its own, so that its peak of memory is its own. `ratio` compares every ask of one
thread with a plain numpy pass over the very same spooled blocks, right after it: read, convert to
doubles, score, subtract the labels, clip, multiply back, add. It counts processor seconds, the
least of all asks, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import dpcore
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.engines.base import Task
from dpcore.engines.derived import DerivedBlocks
from dpcore.engines.local import LocalEngine
from dpcore.learning.features.identity import Identity
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.records.records import Folded, Records
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.opening import open_source
from dpcore.spec.grammar import Csv
from dpcore_linear import StagedGradient, SufficientStatistics

_BATCH = 8192
_GROUP = 32  # batches of a row group


@attrs.frozen(eq=False)
class Made(Part):
    """Synthetic records, from a seed."""

    records: int
    columns: int
    seed: int

    def batches(self) -> Iterator[Columns]:
        """Uniform columns, and a label that follows the first two."""
        rng = np.random.default_rng(self.seed)
        for at in range(0, self.records, _BATCH):
            count = min(_BATCH, self.records - at)
            table = {f"c{j}": rng.uniform(-1, 1, count) for j in range(self.columns)}
            table["y"] = 0.5 * table["c0"] - 0.2 * table["c1"] + 0.3 * rng.uniform(-1, 1, count)
            yield table


def domain(records: int, columns: int) -> Domain:
    """Columns and a label in [-1, 1]."""
    names = {f"c{j}": Range(-1, 1) for j in range(columns)}
    return Domain(columns=names, target="y", labels=Range(-1, 1), exact=records)


def written(folder: Path, records: int, columns: int) -> Path:
    """The Parquet file, written a batch at a time if it is missing."""
    import pyarrow
    from pyarrow import parquet

    path = folder / f"scale-{records}-{columns}.parquet"
    if not path.exists():
        partial = path.with_suffix(".partial")
        batches: list[Any] = []
        names = [*(f"c{j}" for j in range(columns)), "y"]
        schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
        with parquet.ParquetWriter(partial, schema) as writer:
            for batch in Made(records, columns, 1).batches():
                batches.append(pyarrow.table(dict(batch)))
                if len(batches) == _GROUP:
                    writer.write_table(pyarrow.concat_tables(batches).combine_chunks())
                    batches = []
            if batches:
                writer.write_table(pyarrow.concat_tables(batches).combine_chunks())
        partial.rename(path)
    return path


@attrs.define(slots=False)
class Timed(LocalEngine):
    """A local engine that notes its seconds, and ends a run after some asks of each shape."""

    asks: int = 3
    seconds: dict[str, list[float]] = attrs.field(factory=dict)
    worked: dict[str, list[tuple[float, float]]] = attrs.field(factory=dict)

    def load(self, parts: Any, encode: Any) -> tuple[int, ...]:
        """As a local engine, timed."""
        began = time.perf_counter()
        found = super().load(parts, encode)
        self.seconds["load"] = [time.perf_counter() - began]
        return found

    def total(self, task: Task) -> Folded:
        """As a local engine, timed; after `asks` of one shape the first total is repeated."""
        name = str(task.zero[0].shape)
        spent = self.seconds.setdefault(name, [])
        if len(spent) > self.asks:
            return task.zero  # the learner's path from here on is of no interest
        began, worked = time.perf_counter(), time.process_time()
        found = super().total(task)
        spent.append(time.perf_counter() - began)
        worked = time.process_time() - worked
        if (plain := plain_pass(self._held[task.split].derived)) is not None:
            self.worked.setdefault(name, []).append((worked, plain))
        return found

    def ratios(self) -> dict[str, float]:
        """The quickest ask over the quickest plain pass, by shape; the first prepares blocks."""
        return {
            name: round(min(a for a, _ in pairs[1:]) / min(b for _, b in pairs[1:]), 2)
            for name, pairs in self.worked.items()
            if len(pairs) > 1
        }


def plain_pass(blocks: DerivedBlocks) -> float | None:
    """Processor seconds of clipped gradients in floats, over what an engine has spooled."""
    spool, total = blocks._spool, 0.0
    if spool is None:
        return None
    weights: Any = None
    began = time.process_time()
    for _, entry in sorted(blocks._entries.items()):
        content, at, arrays = spool.read(entry.place, entry.size), 0, []
        for item in entry.items[:3]:
            count = int(np.prod(item.shape))
            array = np.frombuffer(content, item.kept, count, offset=at).reshape(item.shape)
            arrays.append(array.astype(np.float64))
            at += array.nbytes
        rows, labels, limits = arrays
        if weights is None:
            weights = np.linspace(-1, 1, rows.shape[1])
        total = total + rows.T @ np.clip(rows @ weights - labels, -limits, limits)
    return time.process_time() - began


def source_of(path: Path, records: int, columns: int) -> Source:
    """The file, as a spec would open it."""
    return open_source(str(path), None, Csv(), domain(records, columns))


def run(learner: Any, path: Path, records: int, columns: int, asks: int, threads: int) -> dict:
    """Seconds per 10^6 records of loading and of asks, and the peak of memory in MB."""
    plan = dpcore.price(
        domain=domain(records, columns),
        adjacency=dpcore.REPLACE_ONE,
        learner=learner,
        mechanism=Gaussian(),
        budget=dpcore.PrivacyBudget(epsilon=1.0, delta=1e-9),
        blocks=True,
    )
    assert all(ask.sensitivity.solver_error == 0 for ask in plan.schedule.asks)
    with Timed(asks=asks, threads=threads, spool=path.parent) as engine:
        plan.run(source_of(path, records, columns), engine=engine)
    per = {
        name: [round(1e6 * s / records, 4) for s in spent] for name, spent in engine.seconds.items()
    }
    return {
        "seconds per 1e6": per,
        **({"ask over plain pass": engine.ratios()} if threads == 1 else {}),
        "passes of the whole run": plan.resources.passes,
        "stated": plan.resources.describe(),
        "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }


def same_bits(path: Path, records: int, columns: int) -> dict:
    """The sufficient statistics of the file from 1, 2 and 7 threads, and other blocks."""
    learner = SufficientStatistics(features=Identity())
    public = dpcore.Public(domain=domain(records, columns), coins=dpcore.PublicCoins(1), mu=1.0)
    (query,) = learner.queries(public)
    assert query.sum is not None, "they are sums"
    zero = (dpcore.Exact.zeros(query.shape, query.sum.unit),)

    def part(block: Records) -> Folded:
        return (learner.total_of(query, block, public),)

    totals = []
    for threads, rows in [(1, 4096), (2, 4096), (7, 4096), (2, 1000)]:
        with LocalEngine(threads=threads, rows=rows, spool=path.parent) as engine:
            engine.load(source_of(path, records, columns).parts(), public.domain.project)
            totals += engine.total(Task(part=part, zero=zero))
    return {"same bits": all(one == totals[0] for one in totals)}


QUESTIONS: dict[str, Callable[..., dict]] = {
    "sufficient_statistics": lambda path, n, d, asks, threads: run(
        SufficientStatistics(features=Identity()), path, n, d, asks, threads
    ),
    "staged_gradient": lambda path, n, d, asks, threads: run(
        StagedGradient(), path, n, d, asks, threads
    ),
    "same_bits": lambda path, n, d, asks, threads: same_bits(path, n, d),
    "ratio": lambda path, n, d, asks, threads: run(StagedGradient(), path, n, d, max(asks, 8), 1),
}


def main() -> None:
    """Ask every question in a process of its own."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--records", type=float, default=1e6)
    reader.add_argument("--columns", type=int, default=10)
    reader.add_argument("--asks", type=int, default=3)
    reader.add_argument("--threads", type=int, default=2)
    reader.add_argument("--folder", type=Path, required=True)
    reader.add_argument("--only", choices=QUESTIONS)
    given = reader.parse_args()
    records = int(given.records)
    if given.only is None:
        written(given.folder, records, given.columns)
        for name in QUESTIONS:
            command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
            subprocess.run(command, check=True)
        return
    path = given.folder / f"scale-{records}-{given.columns}.parquet"
    found = QUESTIONS[given.only](path, records, given.columns, given.asks, given.threads)
    print(json.dumps({given.only: found}))


if __name__ == "__main__":
    main()
