"""Processor seconds and memory of fits of shape functions, as ratios that hold on a busy machine.

    python benchmarks/table_fits.py --records 1e5 1e6 --turns 3

A table of eight numbers, three categories and a label is drawn in memory, and fitted with exact
noise at epsilon 1. Every fit runs in a process of its own, so that its peak of memory is its own;
editions take turns. Seconds are the least of all turns, of the processor, in one thread. `loops`
are they over those of ten million passes of `s += i`, taken before and after in the same process.
`--cells` asks for the errors of shapes of four categories instead, of which one pair is a table.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

import dpcore
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore_tables.shape_functions import ShapeFunctions

LEVELS = (2, 5, 12)


def loop():
    """Seconds of ten million passes, as at the top of a module: a global name is added to."""
    began = time.process_time()
    exec("for i in range(10**7): s += i", {"s": 0})
    return time.process_time() - began


def categories(levels):
    """As many levels as that."""
    return dpcore.Categories(tuple(f"l{i}" for i in range(levels)))


def mixed(records):
    """Columns, and records of which numbers, categories and pairs of them say the label."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": dpcore.Range(-6, 6) for j in range(6)}
    columns |= {f"u{j}": dpcore.Range(0, 1) for j in range(2)}
    table = {f"x{j}": rng.normal(size=records) for j in range(6)}
    table |= {f"u{j}": rng.uniform(size=records) for j in range(2)}
    codes = {f"c{levels}": rng.integers(levels, size=records) for levels in LEVELS}
    label = table["x0"] + np.sin(2 * table["x1"]) + table["x2"] * table["x3"] / 2
    label += 3 * (table["u0"] - 0.5) ** 2 + rng.normal(size=12)[codes["c12"]] / 2
    label += codes["c2"] * table["x4"] + rng.normal(size=records)
    for levels, (name, code) in zip(LEVELS, codes.items(), strict=True):
        columns[name] = categories(levels)
        table[name] = np.array(columns[name].values)[code]
    return columns, {**table, "y": np.clip(label, -12, 12)}


def crossed(records, levels=49):
    """Four categories whose pairs all interact."""
    rng = np.random.default_rng(0)
    columns = {f"c{j}": categories(levels) for j in range(4)}
    codes = [rng.integers(levels, size=records) for _ in columns]
    label = rng.normal(size=records)
    for first, second in itertools.combinations(codes, 2):
        label += rng.normal(size=(levels, levels))[first, second]
    names = np.array(columns["c0"].values)
    table = {name: names[code] for name, code in zip(columns, codes, strict=True)}
    return columns, {**table, "y": np.clip(label, -12, 12)}


def planned(columns, table, edition=2, epsilon=1.0):
    """A plan of a fit of these records."""
    facts = dpcore.Domain(
        columns=columns, target="y", labels=dpcore.Range(-12, 12), exact=len(table["y"])
    )
    return dpcore.price(
        domain=facts,
        adjacency=dpcore.REPLACE_ONE,
        budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=1e-5),
        learner=ShapeFunctions(edition=edition),
        mechanism=Gaussian(),
    )


def peak():
    """Of this process, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def timed(work):
    """What it gives, its seconds, and its seconds in loops."""
    before, began = loop(), time.process_time()
    result = work()
    seconds = time.process_time() - began
    return result, seconds, 2 * seconds / (before + loop())


def fit(records, edition):
    """Of one process."""
    columns, table = mixed(records)
    plan, first = planned(columns, table, edition), peak()
    _, seconds, loops = timed(lambda: plan.run(table))
    return {"seconds": seconds, "loops": loops, "MB": peak(), "MB of the table": first}


def shapes(records):
    """Errors of all shapes of one fit."""
    columns, table = crossed(records)
    model, first = planned(columns, table, epsilon=8.0).run(table).model, peak()
    _, seconds, loops = timed(model.shapes)
    cells = sum(len(pair.values) for pair in model.state.tables.tables)
    return {"cells": cells, "seconds": seconds, "loops": loops, "MB": peak(), "MB before": first}


def single(*options):
    """What a process of its own measures."""
    command = [sys.executable, __file__, *map(str, options)]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        command, check=True, env={**os.environ, **threads}, stdout=subprocess.PIPE
    )
    return json.loads(found.stdout)


def least(turns):
    """Of every figure its least."""
    return {name: round(min(turn[name] for turn in turns), 2) for name in turns[0]}


def main():
    """Take turns, and print one line for each number of records."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--records", type=float, nargs="+", default=[1e5])
    reader.add_argument("--turns", type=int, default=3)
    reader.add_argument("--cells", action="store_true")
    reader.add_argument("--edition", type=int)
    arguments = reader.parse_args()
    for records in map(int, arguments.records):
        if arguments.edition is not None:
            measure = shapes if arguments.cells else lambda count: fit(count, arguments.edition)
            print(json.dumps(measure(records)))
        elif arguments.cells:
            options = ("--records", records, "--cells", "--edition", 2)
            turns = [single(*options) for _ in range(arguments.turns)]
            print(json.dumps({"records": records, **least(turns)}), flush=True)
        else:
            turns = [
                [single("--records", records, "--edition", edition) for edition in (1, 2)]
                for _ in range(arguments.turns)
            ]
            first, second = (least(pairs) for pairs in zip(*turns, strict=True))
            ratio = round(second["seconds"] / first["seconds"], 2)
            print(json.dumps({"records": records, "edition 1": first}), flush=True)
            print(json.dumps({"records": records, **second, "over edition 1": ratio}), flush=True)


if __name__ == "__main__":
    main()
