"""Which shapes are found of columns that say nothing: columns of real tables, permuted.

Every fit permutes some columns of numbers or categories, each by itself, so that they say nothing
of the target and of other columns. Counted are, of the permuted columns, how many are found, how
many tests are below 5 %, and how many joint bands hold 0 everywhere; of all that is found, columns
and pairs, the mean share in which a permuted column is. In brackets is what is out of the
noise only. Tables are those of `utility.py`, and `computers/premium` and its like those of
`probabilities.py`; noise is drawn in floating point.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from probabilities import table_of as classes_of
from utility import DELTA, drawn, named, read

import dpcore
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.transcript.replay_process import HERE
from dpcore_tables.shape_functions import ShapeFunctions


def table_of(folder, name, most):
    """At most so many records, and what is declared of them."""
    if "/" in name:
        table, columns, target, labels = classes_of(folder, name, None)
        rows = np.random.default_rng(0).permutation(len(table[target]))[:most]
        return {key: values[rows] for key, values in table.items()}, columns, target, labels
    data = named(folder, name)
    if isinstance(data, str):
        kind, count = data.split(":")
        table, _, columns, target, labels = drawn(kind, int(count), 0)
        return table, columns, target, labels
    file, delimiter, columns, target, labels = data
    table = read(folder, file, delimiter)
    rows = np.random.default_rng(0).permutation(len(table[target]))[:most]
    declared = {**columns, target: labels}
    typed = {
        name: values[rows].astype(float) if isinstance(declared[name], Range) else values[rows]
        for name, values in table.items()
        if name in declared
    }
    return typed, columns, target, labels


def permuted(table, columns, count, seed):
    """The table with some columns permuted, and their names."""
    rng = np.random.default_rng(seed)
    names = rng.choice([*columns], count, replace=False).tolist()
    return {**table, **{name: rng.permutation(table[name]) for name in names}}, {*names}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["housing", "wages", "star", "hdma"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=(1.0,))
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first permutation")
    parser.add_argument("--most", type=int, default=6000, help="records of a table")
    parser.add_argument("--columns", type=int, default=2, help="columns to permute in every fit")
    options = parser.parse_args()
    folder = Path(os.environ.get("DPCORE_DATA", "."))
    for name in options.data:
        table, columns, target, labels = table_of(folder, name, options.most)
        for epsilon in options.epsilon:
            plan = dpcore.price(
                domain=Domain(
                    columns=columns, target=target, labels=labels, exact=len(table[target])
                ),
                adjacency=dpcore.REPLACE_ONE,
                budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
                learner=ShapeFunctions(),
                mechanism=Gaussian(noise="float"),
                on_invalid="project",
            )
            nulls, pairs, fractions, counts = [], [], [], []
            for seed in range(options.first, options.first + options.fits):
                records, names = permuted(table, columns, options.columns, seed)
                shapes = plan.run(records, replaying=HERE).model.shapes()
                found = [shape for shape in shapes if shape.found]
                wrong = sum(not names.isdisjoint(shape.columns) for shape in found)
                fractions.append(wrong / max(len(found), 1))
                counts.append(len(found))
                for shape in shapes:
                    if names.isdisjoint(shape.columns):
                        continue
                    inside = np.abs(shape.values.T) <= shape.joint_band.T + 1e-12
                    row = (
                        shape.found,
                        shape.p_value < 0.05,
                        bool(inside.all()),
                        shape.importance > shape.floor,
                    )
                    (nulls if len(shape.columns) == 1 else pairs).append(row)
            rates = [np.mean(np.array(rows or [(0,) * 4]), axis=0) for rows in (nulls, pairs)]
            print(
                f"{name} epsilon {epsilon:g}: {len(nulls)} null columns, found {rates[0][0]:.3f}, "
                f"tests below 5 % {rates[0][1]:.3f}, bands hold 0 {rates[0][2]:.3f} (above the "
                f"noise {rates[0][3]:.3f}); {len(pairs)} null pairs, {rates[1][0]:.3f}, "
                f"{rates[1][1]:.3f}, {rates[1][2]:.3f} ({rates[1][3]:.3f}); found a fit "
                f"{np.mean(counts):.1f}, of them null {np.mean(fractions):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
