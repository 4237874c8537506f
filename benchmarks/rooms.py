"""What `dpcore check` says that a run needs of the machine, against what its process took.

Every shipped example runs in a process of its own. Memory is the largest process; seconds are the
processor's, of all processes, at the yardstick: ten million passes of `s += i` take 1.2 s. The loop
is timed before and after each run, since a busy machine is slow in processor seconds too.

    OPENBLAS_NUM_THREADS=1 python benchmarks/rooms.py [EXAMPLE ...]
    OPENBLAS_NUM_THREADS=1 python benchmarks/rooms.py --constants

With `--constants` it prints what to write into `dpcore/claims/plan/cost_statement.py` and
`dpcore/resources/cost_estimate.py`. A cell and a multiplication are measured on specs that differ
from a mean of a hundred records in that only. The start and an ask are the middle of what the
examples take next to that, the query of those with many.
"""

import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from dpcore.claims.plan.cost_statement import YARDSTICK

ROOT = Path(__file__).parents[1]
LOOP = "import time\ns = 0\nb = time.process_time()\nfor i in range(10**7):\n    s += i\n"
MAIN = "from dpcore.console import main; main()"
FACTOR, ROUNDS = 1.5, 3
MEAN, FIT = {"name": "statistics.mean", "column": "x0"}, {"name": "linear.sufficient_statistics"}
FEW, MANY = 50, 200  # asks
SPECS = {
    # Records, columns, and the learner. The first is what the others are compared with.
    "start": (100, 2, MEAN),
    "cells": (400_000, 5, MEAN),
    "work": (20_000, 2, {**FIT, "features": {"name": "cos_sin", "count": 150}}),
}


def run(folder, *arguments):
    """Exit code, standard output, bytes at the peak and processor seconds of a command."""
    with tempfile.TemporaryFile() as out, open(os.devnull, "w") as nowhere:
        command = [sys.executable, "-c", MAIN, *arguments]
        child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        seconds = usage.ru_utime + usage.ru_stime
        return child.returncode, out.read().decode(), usage.ru_maxrss * 1024, seconds


def collect_data(path, folder):
    """An example and the files that it names: synthetic ones, one's own data, and those next to."""
    visits = [sys.executable, "-m", "dpcore_statistics.synthetic_visits", str(folder)]
    subprocess.run(visits, check=True, stdout=subprocess.DEVNULL)
    if data := os.environ.get("DPCORE_DATA"):
        shutil.copy(Path(data) / "insurance.csv", folder)
    for adjacent in (path, *path.parent.glob("*.csv")):
        shutil.copy(adjacent, folder)


def write_spec(name, folder):
    """One of `SPECS` with its records; the path of its file."""
    records, count, learner = SPECS[name]
    columns = [f"x{number}" for number in range(count)]
    header, drawn = [*columns, "y"], random.Random(0)
    rows = [",".join(f"{drawn.uniform(-1, 1):.6f}" for _ in header) for _ in range(records)]
    (folder / "records.csv").write_text("\n".join([",".join(header), *rows, ""]))
    domain = {"records": records, "columns": {c: [-1, 1] for c in columns}, "target": [-1, 1]}
    spec = {
        "dpcore": 1,
        "data": {"source": "records.csv", "target": "y", "domain": domain},
        "adjacency": "replace_one",
        "budget": {"epsilon": 1, "delta": 1e-5},
        "release": {"learner": learner, "mechanism": "gaussian"},
    }
    (folder / f"{name}.yaml").write_text(json.dumps(spec))  # which is YAML too
    return folder / f"{name}.yaml"


def seconds_of_loop():
    """The yardstick on this machine, now."""
    code = LOOP + "print(time.process_time() - b)"
    return float(subprocess.check_output([sys.executable, "-c", code]))


def measure(path, folder):
    """What check says of a spec, bytes at the peak, and seconds at the yardstick, or exit codes.

    Raises:
        ValueError: it is refused as printed, or has no file here.
    """
    code, text, _, _ = run(folder, "check", path.name, "--json")
    peaks, times = [], []
    for _ in range(ROUNDS):
        before = seconds_of_loop()
        ran, _, peak, seconds = run(folder, "run", path.name)
        if code or ran:
            raise ValueError(f"check ends in {code}, run in {ran}")
        peaks.append(peak)
        times.append(seconds * 2 * YARDSTICK / (before + seconds_of_loop()))
    return json.loads(text)["resources"], max(peaks), statistics.median(times)


def measure_examples(names):
    """Of each example that runs here: what was stated, bytes, seconds; a line is printed of it."""
    print(
        f"{'example':44} {'MB stated':>9} {'MB':>5} {'ratio':>5}   {'s stated':>8} {'s':>5} ratio"
    )
    for path in sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("plugins/*/*/examples/*.yaml")]):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            collect_data(path, Path(folder))
            try:
                stated, memory, seconds = measure(path, folder)
            except ValueError as error:
                print(f"{path.relative_to(ROOT)}: {error}")
                continue
        print(
            f"{path.parent.parent.name[:20] + '/' + path.stem:44} "
            f"{stated['memory'] / 1e6:9.0f} {memory / 1e6:5.0f} "
            f"{stated['memory'] / memory:5.2f}   {stated['seconds']:8.1f} {seconds:5.1f} "
            f"{stated['seconds'] / seconds:5.2f}",
            flush=True,
        )
        yield stated, memory, seconds


def middle(values):
    """The number from which the largest and the smallest are equally far, as ratios."""
    return math.sqrt(max(values) * min(values))


def print_constant(name, values):
    """A constant, and between which values it is the middle."""
    print(f"{name} = {middle(values):.3g}  # {min(values):.3g} to {max(values):.3g}")


def print_constants():
    """The constants of the two files, from the specs above and from all examples."""
    with tempfile.TemporaryDirectory() as folder:
        figures = {name: measure(write_spec(name, Path(folder)), folder) for name in SPECS}
    base, _, base_seconds = figures["start"]
    costs = {}
    for name in ("cells", "work"):  # in this order: the latter reads cells too
        stated, _, seconds = figures[name]
        known = sum(cost * (stated[key] - base[key]) for key, cost in costs.items())
        costs[name] = (seconds - base_seconds - known) / (stated[name] - base[name])
    processes, adjacent = [], []
    for stated, memory, seconds in measure_examples(()):
        processes.append(memory - (stated["memory"] - base["memory"]))
        known = sum(cost * stated[key] for key, cost in costs.items())
        adjacent.append((stated["passes"], seconds - known))
    starts = [seconds for queries, seconds in adjacent if queries < FEW]
    passes = [
        (seconds - middle(starts)) / queries for queries, seconds in adjacent if queries > MANY
    ]
    print_constant("_START", starts)
    print_constant("_PASS", passes)
    print_constant("_WORK", [costs["work"]])
    print_constant("_READ", [costs["cells"]])
    print_constant("_PROCESS", processes)


def main(names):
    """Print a line for each example that runs here, and how many lie outside the factor."""
    outside = {"memory": 0, "seconds": 0}
    for stated, memory, seconds in measure_examples(names):
        ratios = stated["memory"] / memory, stated["seconds"] / seconds
        for key, ratio in zip(outside, ratios, strict=True):
            outside[key] += not 1 / FACTOR <= ratio <= FACTOR
    print(f"outside a factor of {FACTOR}: {outside}")


if __name__ == "__main__":
    print_constants() if sys.argv[1:] == ["--constants"] else main(sys.argv[1:])
