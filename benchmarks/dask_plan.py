"""What one process sends, gets and holds as a client of many Dask workers, and a plan for 1,000.

    python benchmarks/dask_plan.py [--workers 10 20 40] [--plan 1000]

The scheduler and all workers are threads of one process, and speak TCP; the client has a process of
its own for each number of workers, which counts its messages and their bytes. Every worker has
five parts of few records, as costs of the client do not depend on records. Totals of 40,000 numbers
in two limbs (640 kB) and tasks of 1 MB are larger than those of most models. A straight line
through the costs of several numbers of workers gives those of the plan.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from scale import Made, domain

from dpcore.encoding.tables import project_table
from dpcore.exact import Exact
from dpcore.private.engines.base import Task

QUERIES, PARTS, RECORDS, COLUMNS = 3, 5, 100, 3
NUMBERS, TASK = 40_000, 1_000_000


def serve(count: int) -> None:
    """A cluster of so many workers, until the standard input ends."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=count, threads_per_worker=1, processes=False, protocol="tcp://",
        memory_limit=None, dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:  # fmt: skip
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


class Traffic:
    """Messages and bytes of this process, both ways."""

    def __init__(self) -> None:
        from distributed.comm import tcp

        self.counts = dict.fromkeys(("messages out", "MB out", "messages in", "MB in"), 0.0)
        write, read = tcp.to_frames, tcp.from_frames

        async def to_frames(*args: Any, **kwargs: Any) -> Any:
            frames = await write(*args, **kwargs)
            self._count("out", frames)
            return frames

        async def from_frames(frames: Any, *args: Any, **kwargs: Any) -> Any:
            self._count("in", frames)
            return await read(frames, *args, **kwargs)

        tcp.to_frames, tcp.from_frames = to_frames, from_frames

    def _count(self, way: str, frames: Any) -> None:
        self.counts[f"messages {way}"] += 1
        self.counts[f"MB {way}"] += sum(len(memoryview(frame).cast("B")) for frame in frames) / 1e6

    def during(self, work: Any, times: int) -> dict[str, float]:
        """Return what each of so many calls takes; with the client's seconds of processor time."""
        before, start = dict(self.counts), time.process_time()
        for _ in range(times):
            work()
        counts = {name: (self.counts[name] - before[name]) / times for name in before}
        return {**counts, "processor s": (time.process_time() - start) / times}


def measure(address: str, count: int) -> dict[str, Any]:
    """Loading, asks, and the most memory that this process ever had."""
    traffic = Traffic()
    from distributed import Client

    from dpcore_engines.dask import Dask

    payload = secrets.token_bytes(TASK)

    def part(block: Any, payload: bytes = payload) -> tuple[Exact]:
        from dpcore.exact import Exact

        return (Exact.of([len(block)] * NUMBERS, 0),)

    task = Task(part=part, zero=(Exact.zeros((NUMBERS,), 0),))
    parts = [Made(RECORDS, COLUMNS, number) for number in range(PARTS * count)]
    records = RECORDS * len(parts)
    with Client(address, set_as_default=False) as client, Dask(client) as engine:
        encode = partial(project_table, domain(records, COLUMNS))
        loading = traffic.during(lambda: engine.load(parts, encode), 1)
        (total,) = engine.total(task)
        assert total.integers() == [records] * NUMBERS, "other integers"
        planned_query = traffic.during(lambda: engine.total(task), QUERIES)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"load": loading, "ask": planned_query, "run": {"peak MB": memory}}


def main() -> None:
    """Every number of workers in turn, and the plan."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--plan", type=int, default=1000)
    parser.add_argument("--serve", type=int)
    parser.add_argument("--measure")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
    elif options.measure is not None:
        print(json.dumps(measure(options.measure, options.workers[0])))
    else:
        costs = [_of_cluster(count) for count in options.workers]
        for phase, names in costs[0].items():
            for name in names:
                values = [cost[phase][name] for cost in costs]
                slope, base = np.polyfit(options.workers, values, 1)
                shown = ", ".join(f"{value:.4g}" for value in values)
                plan = base + slope * options.plan
                print(f"{phase}, {name}: {shown}; {plan:.4g} for {options.plan} workers")


def _of_cluster(count: int) -> Any:
    """Return what a client of so many workers costs."""
    command = [sys.executable, __file__]
    with subprocess.Popen(
        [*command, "--serve", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as cluster:
        assert cluster.stdin is not None, "a pipe"
        assert cluster.stdout is not None, "a pipe"
        address = cluster.stdout.readline().strip()
        client = [*command, "--measure", address, "--workers", str(count)]
        output = subprocess.run(client, check=True, stdout=subprocess.PIPE, text=True).stdout
        cluster.stdin.close()
    return json.loads(output)


if __name__ == "__main__":
    main()
