"""Synthetic tables whose labels need a table of two columns, cell by cell: `curves:8000`.

A number after the colon is that of training records; 2000 others are for testing. The truth of a
kind is always the same; records are drawn by a seed. Run, it prints what can be reached: the error
of the truth, and of ridge regressions without privacy on all columns and on their pairs' cells,
relative to the constant's.
"""

import argparse
import statistics

import numpy as np

from dpcore.domain.columns import Categories, Range

TESTING = 2000


def curves(count, rng):
    """A curve over the hours of a day for each of 14 groups, with peaks of their own, and a skewed
    label; two of five columns say little or nothing."""
    truth = np.random.default_rng(31)
    hours = np.arange(24)
    means = np.zeros((14, 24))
    for group in range(14):
        means[group] = 0.4 * truth.normal()
        for _ in range(5):
            peak, width = truth.uniform(0, 24), truth.uniform(0.5, 2.5)
            means[group] += truth.normal() * np.exp(-0.5 * ((hours - peak) / width) ** 2)
    hour, group = rng.integers(24, size=count), rng.choice(14, count, p=_fractions(truth, 14))
    heat, kind, idle = rng.uniform(0, 1, count), rng.integers(3, size=count), rng.normal(size=count)
    score = means[group, hour] + 0.5 * heat + np.array([0.0, 0.1, -0.1])[kind]
    mean = 100 * np.exp(score)
    table = {
        "hour": hour.astype(float),
        "group": np.array([f"g{k}" for k in range(14)])[group],
        "heat": heat,
        "kind": np.array(["a", "b", "c"])[kind],
        "idle": np.clip(idle, -3, 3),
        "y": np.clip(mean * np.exp(0.16 * rng.standard_normal(count)), 0, 1200),
    }
    columns = {
        "hour": Range(0, 23),
        "group": Categories(tuple(f"g{k}" for k in range(14))),
        "heat": Range(0, 1),
        "kind": Categories(("a", "b", "c")),
        "idle": Range(-4, 4),
    }
    return table, columns, Range(0, 1200), np.minimum(mean, 1200)


def crossed(count, rng):
    """Categories of 100, 125 and 10 levels: the first two act otherwise at each of the ten."""
    truth = np.random.default_rng(32)
    sizes = (100, 125, 10)
    codes = [rng.choice(size, count, p=_fractions(truth, size)) for size in sizes]
    mean = sum(
        (0.9 * truth.normal(size=size))[code] for size, code in zip(sizes, codes, strict=True)
    )
    for first in (0, 1):
        effects = 0.24 * truth.normal(size=(sizes[first], sizes[2]))
        mean = mean + effects[codes[first], codes[2]]
    y = mean + 0.36 * rng.standard_normal(count)
    table, columns = {"y": np.clip(y, -6, 6)}, {}
    for name, size, code in zip("abc", sizes, codes, strict=True):
        levels = tuple(f"{name}{k}" for k in range(size))
        table[name], columns[name] = np.array(levels)[code], Categories(levels)
    return table, columns, Range(-6, 6), mean


def _fractions(truth, size):
    return truth.dirichlet(np.full(size, 4.0))


KINDS = {k.__name__: k for k in (curves, crossed)}


def drawn_pairs(kind, count, seed):
    """Training and test records, columns, target and labels."""
    table, columns, labels, _ = KINDS[kind](count + TESTING, np.random.default_rng(seed))
    train = {name: values[:count] for name, values in table.items()}
    test = {name: values[count:] for name, values in table.items()}
    return train, test, columns, "y", labels


def ridge(kind, count, seed, pairs):
    """The error of a ridge regression on indicators of columns and of pairs of them."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import OneHotEncoder

    def codes(table):
        columns = [name for name in table if name != "y" and len({*table[name]}) < TESTING / 10]
        texts = [table[name].astype(str) for name in columns]
        both = [
            np.char.add(table[first].astype(str), table[second].astype(str))
            for first, second in pairs
        ]
        return np.column_stack(texts + both)

    train, test, *_ = drawn_pairs(kind, count, seed)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(codes(train))
    fitted = Ridge(1.0).fit(encoder.transform(codes(train)), train["y"])
    return float(np.mean((fitted.predict(encoder.transform(codes(test))) - test["y"]) ** 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["curves:8000", "crossed:15000"])
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--first", type=int, default=300, help="seed of the first draw")
    options = parser.parse_args()
    pairs = {"curves": [("hour", "group")], "crossed": [("a", "c"), ("b", "c")]}
    for name in options.data:
        kind, count = name.split(":")[0], int(name.split(":")[1])
        rows = []
        for seed in range(options.first, options.first + options.splits):
            table, _, _, mean = KINDS[kind](count + TESTING, np.random.default_rng(seed))
            tests, constant = table["y"][count:], table["y"][:count].mean()
            rows.append(
                (
                    np.mean((tests - mean[count:]) ** 2),
                    ridge(kind, count, seed, []),
                    ridge(kind, count, seed, pairs[kind]),
                    np.mean((tests - constant) ** 2),
                )
            )
        truth, single, cells, constant = map(statistics.mean, zip(*rows, strict=True))
        print(
            f"{name}: truth {truth / constant:.3f}, columns {single / constant:.3f}, "
            f"cells of pairs {cells / constant:.3f} of the constant's error"
        )


if __name__ == "__main__":
    main()
