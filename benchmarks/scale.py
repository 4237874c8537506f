"""Data larger than memory: seconds per 10^6 records and pass, and memory, of the local engine.

    python benchmarks/scale.py --records 1e7 --columns 10 --asks 3 --folder /somewhere

A Parquet file of that size is written to the folder once, and read from there. Every question runs
in a process of its own, so that its peak of memory is its own. `ratio` compares every query of one
thread with a plain numpy pass over the very same spooled blocks, right after it: read, convert to
doubles, score, subtract the labels, clip, multiply back, add. It counts processor seconds, the
least of all queries, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import dpcore
import dpcore.exact
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.encoding.tables import project_table
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import Task
from dpcore.private.engines.local import DerivedBlocks, LocalEngine
from dpcore.records import Folded, Records
from dpcore.source import Columns, Part, Source
from dpcore.sources.csv.arrow_reader import by_arrow
from dpcore.sources.csv.dialect import DeclaredColumn, Dialect
from dpcore.sources.csv.frames import by_lines
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore.summing import require_sum
from dpcore.transcript.replay_process import HERE
from dpcore_linear import StagedGradient, SufficientStatistics
from dpcore_linear.integers import BLOCK, clipped_gradients, integer_rows, unit_of
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_random_features.ridge import Ridge

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
    """Return the Parquet file, written a batch at a time if it is missing."""
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

    query_count: int = 3
    seconds: dict[str, list[float]] = attrs.field(factory=dict)
    worked: dict[str, list[tuple[float, float]]] = attrs.field(factory=dict)

    def load(self, parts: Any, encode: Any) -> tuple[int, ...]:
        """As a local engine, timed."""
        began = time.perf_counter()
        found = super().load(parts, encode)
        self.seconds["load"] = [time.perf_counter() - began]
        return found

    def total(self, task: Task) -> Folded:
        """As a local engine, timed; after `query_count` of one shape the first total is
        repeated.
        """
        name = str(task.zero[0].shape)
        spent = self.seconds.setdefault(name, [])
        if len(spent) > self.query_count:
            return task.zero  # the learner's path from here on is of no interest
        began, worked = time.perf_counter(), time.process_time()
        found = super().total(task)
        spent.append(time.perf_counter() - began)
        worked = time.process_time() - worked
        plain = plain_pass(self._held[task.split].derived) if self.threads == 1 else None
        if plain is not None:
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
    if spool is None or any(len(entry.items) < 3 for entry in blocks._entries.values()):
        return None  # nothing is derived, or not what a descent derives
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
    """Return the file, as a spec would open it."""
    return open_source(str(path), None, Csv(), domain(records, columns))


def run(
    learner: Any, path: Path, records: int, columns: int, query_count: int, threads: int
) -> dict:
    """Seconds per 10^6 records of loading and of queries, and the peak of memory in MB."""
    plan = dpcore.price(
        domain=domain(records, columns),
        adjacency=dpcore.REPLACE_ONE,
        learner=learner,
        mechanism=Gaussian(),
        budget=dpcore.PrivacyBudget(epsilon=1.0, delta=1e-9),
        blocks=True,
    )
    summed = all(
        isinstance(planned_query.query, dpcore.SumQuery) for planned_query in plan.schedule.queries
    )
    assert not summed or all(
        planned_query.sensitivity.solver_error == 0 for planned_query in plan.schedule.queries
    )
    with Timed(query_count=query_count, threads=threads, spool=path.parent) as engine:
        plan.run(source_of(path, records, columns), engine=engine, replaying=HERE)
    per = {
        name: [round(1e6 * s / records, 4) for s in spent[:4]]
        for name, spent in engine.seconds.items()
    }
    return {
        "seconds per 1e6": per,
        "passes timed": {name: len(spent) for name, spent in engine.seconds.items()},
        **({"ask over plain pass": engine.ratios()} if threads == 1 else {}),
        "passes of the whole run": plan.resources.passes,
        "stated": plan.resources.describe(),
        "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }


def same_bits(path: Path, records: int, columns: int) -> dict:
    """Return the sufficient statistics of the file from 1, 2 and 7 threads, and other blocks."""
    learner = SufficientStatistics(features=Identity())
    public = dpcore.Public(
        domain=domain(records, columns), randomness=dpcore.PublicRandomness(1), mu=1.0
    )
    (query,) = learner.queries(public)
    query = require_sum(query, learner)
    zero = (dpcore.exact.Exact.zeros(query.shape, query.sum.unit),)

    def part(block: Records) -> Folded:
        return (learner.total_of(query, block, public),)

    totals = []
    for threads, rows in [(1, 4096), (2, 4096), (7, 4096), (2, 1000)]:
        with LocalEngine(threads=threads, rows=rows, spool=path.parent) as engine:
            engine.load(
                source_of(path, records, columns).parts(), partial(project_table, public.domain)
            )
            totals += engine.total(Task(part=part, zero=zero))
    return {"same bits": all(one == totals[0] for one in totals)}


def least(work: Callable[[], Any], times: int = 7) -> float:
    """Processor seconds of the quickest of so many calls."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def exact_sum(width: int = 80, blocks: int = 24) -> dict:
    """Return a sum in integers against the same in floats, over blocks in memory; they take
    turns.
    """
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(BLOCK * blocks, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels, weights = rng.uniform(-1, 1, len(rows)), rng.normal(size=width) / width
    cut = [slice(at, at + BLOCK) for at in range(0, len(rows), BLOCK)]
    whole = [integer_rows(rows[part], labels[part], 0.3, unit_of(0.3)) for part in cut]
    limits = 0.3 / np.linalg.norm(rows, axis=1)

    def exact() -> Any:
        total = clipped_gradients(whole[0], weights)
        for one in whole[1:]:
            total += clipped_gradients(one, weights)
        return total

    def floats() -> Any:
        total = np.zeros(width)
        for part in cut:
            pulls = np.clip(rows[part] @ weights - labels[part], -limits[part], limits[part])
            total += rows[part].T @ pulls
        return total

    exact(), floats()
    turns = [(least(exact, 1), least(floats, 1)) for _ in range(40)]
    found, plain = (min(several) for several in zip(*turns, strict=True))
    return {
        "ms per 1e6": [round(1e9 * s / len(rows)) for s in (found, plain)],
        "ratio": round(found / plain, 2),
    }


def csv_read(columns: int, records: int = 40_000) -> dict:
    """Return the strict reader on pyarrow against the one by lines: numbers and codes, cells
    included.
    """
    rng = np.random.default_rng(1)
    cells = rng.uniform(-1, 1, (records, columns + 1)).tolist()
    chunk = "".join(",".join(map(repr, row)) + "\n" for row in cells).encode()
    names = [*(f"c{j}" for j in range(columns)), "y"]
    form = Dialect(
        delimiter=",",
        decimal=".",
        width=len(names),
        wanted=tuple(
            DeclaredColumn(name=name, place=j, numeric=True) for j, name in enumerate(names)
        ),
        start=0,
        total=False,
        keep=False,
        refuse=False,
    )
    project = partial(project_table, domain(records, columns))
    quick = least(lambda: project(by_arrow(chunk, form).columns))
    slow = least(lambda: project(by_lines(chunk, form).columns), 3)
    per = [round(1e6 * seconds / records, 2) for seconds in (quick, slow)]
    return {"seconds per 1e6": per, "times as fast": round(slow / quick, 1)}


def loading(path: Path, records: int, columns: int) -> dict:
    """Encoding and spooling a Parquet file against a plain pass of pyarrow over its columns."""
    from pyarrow import parquet

    def plain() -> None:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH * _GROUP, use_threads=False):
                for column in batch.columns:
                    float(column.to_numpy().sum())

    def load() -> None:
        with LocalEngine(threads=1, spool=path.parent) as engine:
            engine.load(
                source_of(path, records, columns).parts(),
                partial(project_table, domain(records, columns)),
            )

    plain()
    found, passed = least(load, 3), least(plain, 3)
    per = [round(1e6 * seconds / records, 3) for seconds in (found, passed)]
    return {"seconds per 1e6": per, "ratio": round(found / passed, 2)}


QUESTIONS: dict[str, Callable[..., dict]] = {
    "exact_sum": lambda path, n, d, query_count, threads: exact_sum(),
    "csv": lambda path, n, d, query_count, threads: csv_read(d),
    "loading": lambda path, n, d, query_count, threads: loading(path, n, d),
    "ridge": lambda path, n, d, query_count, threads: run(
        Ridge(features=Identity(), regularization=0.01), path, n, d, query_count, threads
    ),
    "output_perturbation": lambda path, n, d, query_count, threads: run(
        OutputPerturbation(features=Identity(), total_regularization=1e-3 * n, clip=0.5),
        path,
        n,
        d,
        400,
        threads,
    ),
    "sufficient_statistics": lambda path, n, d, query_count, threads: run(
        SufficientStatistics(features=Identity()), path, n, d, query_count, threads
    ),
    "staged_gradient": lambda path, n, d, query_count, threads: run(
        StagedGradient(), path, n, d, query_count, threads
    ),
    "same_bits": lambda path, n, d, query_count, threads: same_bits(path, n, d),
    "ratio": lambda path, n, d, query_count, threads: run(
        StagedGradient(), path, n, d, max(query_count, 8), 1
    ),
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
    found = QUESTIONS[given.only](path, records, given.columns, given.query_count, given.threads)
    print(json.dumps({given.only: found}))


if __name__ == "__main__":
    main()
