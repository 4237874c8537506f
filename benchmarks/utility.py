"""Squared error of private models relative to the constant predictor's, on public tables.

$DPCORE_DATA names a folder with insurance.csv, winequality-*.csv and a folder `tables`, where
NAME.json has the public facts of NAME.csv. `linear:5000` and its like are drawn: that many training
records and 2000 others; those of `ill` have 20 correlated columns, `diabetes` ships with
scikit-learn. The same fixed 90/10 splits for every learner and epsilon, made outside the
runs; labels in declared ranges, other columns in generous public ones; nothing is tuned per data
set; noise comes from secret randomness. Of classes the error is the share that is wrong, relative
to naming the most frequent one.
"""

import argparse
import csv
import json
import os
import statistics
import time
from pathlib import Path

import numpy as np
from pair_tables import KINDS, drawn_pairs

import dpcore
import dpcore.guarantee
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain
from dpcore.models.features.identity import Identity
from dpcore.transcript.replay_process import HERE
from dpcore_explainable_boosting.boosting import Cyclic
from dpcore_hessian_mixing.newton import Newton
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_linear.sufficient_statistics import SufficientStatistics
from dpcore_objective_perturbation.regression import Regression as Objective
from dpcore_sgd.regression import Regression
from dpcore_tables.shape_functions import ShapeFunctions

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-5
LINEAR = Affine(features=Identity())
LEARNERS = {  # of M, half the label's range, in whose units clips are given
    "shape_functions": lambda m: ShapeFunctions(),
    "staged_gradient": lambda m: StagedGradient(),
    "clipped_gradient": lambda m: ClippedGradient(features=LINEAR, clip=0.2 * m),
    "sufficient_statistics": lambda m: SufficientStatistics(features=LINEAR),
    "output_perturbation": lambda m: OutputPerturbation(
        features=LINEAR, total_regularization=5, clip=0.2 * m
    ),
    "sgd": lambda m: Regression(),
    "newton": lambda m: Newton(),
    "boosting": lambda m: Cyclic(),
    "objective": lambda m: Objective(regularization=10, clip=0.3),
}


def insurance():
    """Medical charges of 1338 insured people."""
    columns = {
        "age": Range(18, 100),
        "bmi": Range(10, 60),
        "children": Range(0, 10),
        "sex": Categories(("female", "male")),
        "smoker": Categories(("no", "yes")),
        "region": Categories(("northeast", "northwest", "southeast", "southwest")),
    }
    return "insurance.csv", ",", columns, "charges", Range(1121.8739, 63770.428)


def red_wine():
    """Quality of 1599 red wines by chemical analysis; ranges that hold for any wine."""
    ranges = {
        "fixed acidity": (3, 17),
        "volatile acidity": (0, 2),
        "citric acid": (0, 2),
        "residual sugar": (0, 70),
        "chlorides": (0, 0.7),
        "free sulfur dioxide": (0, 300),
        "total sulfur dioxide": (0, 450),
        "density": (0.98, 1.04),
        "pH": (2.5, 4.5),
        "sulphates": (0.2, 2.2),
        "alcohol": (8, 15),
    }
    columns = {name: Range(*ends) for name, ends in ranges.items()}
    return "winequality-red.csv", ";", columns, "quality", Range(3, 8)


def white_wine():
    """Quality of 4898 white wines on its scale from 0 to 10."""
    _, delimiter, columns, target, _ = red_wine()
    return "winequality-white.csv", delimiter, columns, target, Range(0, 10)


def read(folder, name, delimiter):
    """Columns by name."""
    with (folder / name).open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def split(table, seed):
    """A fixed 90/10 split: train and test by position after a seeded shuffle."""
    count = len(next(iter(table.values())))
    order = np.random.default_rng(seed).permutation(count)
    cut = count * 9 // 10
    return tuple(
        {name: values[rows] for name, values in table.items()}
        for rows in (order[:cut], order[cut:])
    )


def error(predictions, labels):
    """Mean squared error."""
    return float(np.mean((predictions - labels) ** 2))


def described(folder, name):
    """A table next to its public facts."""
    facts = json.loads((folder / "tables" / f"{name}.json").read_text())
    columns = {
        column: Range(*known["range"])
        if "range" in known
        else Categories(tuple(known["categories"]))
        for column, known in facts["columns"].items()
    }
    known = facts["labels"]
    labels = Range(*known["range"]) if "range" in known else Classes(tuple(known["categories"]))
    return f"tables/{name}.csv", ",", columns, facts["target"], labels


def diabetes(seed):
    """Disease progression of 442 patients, with ranges that medicine knows."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    table = {**dict(zip(data.feature_names, data.data.T, strict=True)), "target": data.target}
    ends = [(18, 100), (1, 2), (15, 50), (50, 150), (80, 320), (30, 260), (15, 110), (1, 10)]
    ends += [(3, 6.5), (50, 140)]
    columns = {name: Range(*end) for name, end in zip(data.feature_names, ends, strict=True)}
    return (*split(table, seed), columns, "target", Range(0, 350))


def ill(count, seed):
    """20 columns whose covariance has eigenvalues from 1 down to .003, and a linear truth."""
    truth, rng = np.random.default_rng(7), np.random.default_rng(seed)
    turn = np.linalg.qr(truth.standard_normal((20, 20)))[0]
    root = (turn * np.sqrt(np.geomspace(1, 0.003, 20))) @ turn.T
    x = rng.standard_normal((count + 2000, 20)) @ root
    x = np.clip(x / (3 * np.sqrt(np.diag(root @ root))), -1, 1)
    slopes = truth.standard_normal(20)
    scale = np.linalg.norm(root @ (slopes / np.sqrt(np.diag(root @ root)))) / 3
    y = np.clip(x @ slopes / scale + 0.5 * rng.standard_normal(len(x)), -4, 4)
    table = {**{f"x{i}": column for i, column in enumerate(x.T)}, "y": y}
    train = {name: values[:count] for name, values in table.items()}
    test = {name: values[count:] for name, values in table.items()}
    return train, test, {f"x{i}": Range(-1, 1) for i in range(20)}, "y", Range(-4, 4)


def tails(count, seed):
    """A column with a long tail, which the label follows to the end."""
    rng = np.random.default_rng(seed)
    x = np.exp(1.5 * rng.standard_normal(count + 2000))
    y = x + rng.standard_normal(len(x))
    table = {"x": np.clip(x, 0, 200), "y": np.clip(y, -5, 200)}
    train = {name: values[:count] for name, values in table.items()}
    test = {name: values[count:] for name, values in table.items()}
    return train, test, {"x": Range(0, 200)}, "y", Range(-5, 200)


def drawn(kind, count, seed):
    """Training and test records of a synthetic truth on ten columns in [-1, 1], five of them idle;
    on 120 columns, where it is called `wide`."""
    special = {"ill": ill, "tails": tails}
    if kind in special:
        return special[kind](count, seed)
    if kind in KINDS:
        return drawn_pairs(kind, count, seed)
    rng = np.random.default_rng(seed)
    width = 120 if kind == "wide" else 10
    x = rng.uniform(-1, 1, (count + 2000, width))
    noise = rng.normal(size=len(x))
    if kind == "linear":
        slopes = np.random.default_rng(7).normal(size=10)
        y, labels = x @ slopes + 0.5 * np.linalg.norm(slopes) / np.sqrt(3) * noise, Range(-8, 8)
    elif kind in ("friedman", "wide"):
        u = (x + 1) / 2
        y = 10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2
        y, labels = y + 10 * u[:, 3] + 5 * u[:, 4] + noise, Range(-5, 35)
    elif kind == "steps":
        y = 1.0 * (x[:, 0] > 0.3) + 1.5 * (x[:, 1] > -0.2) * (x[:, 2] > 0) - (x[:, 3] < -0.5)
        y, labels = y + 0.3 * noise, Range(-3, 4)
    elif kind != "skewed":
        raise SystemExit(f"no table is called {kind!r}")
    else:
        y = np.exp(0.8 * x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.6 * noise)
        labels = Range(0, 20)
    table = {**{f"x{i}": column for i, column in enumerate(x.T)}, "y": y}
    parts = (slice(None, count), slice(count, None))
    train, test = ({name: values[part] for name, values in table.items()} for part in parts)
    return train, test, {f"x{i}": Range(-1, 1) for i in range(width)}, "y", labels


def losses(model, constant, test, target, labels):
    """Of the model and of the best constant on the training records."""
    truth = np.asarray(test[target])
    if isinstance(labels, Classes):
        return float(np.mean(model.predict(test) != truth)), float(np.mean(truth != constant))
    truth = truth.astype(float)
    return error(model.predict(test), truth), error(np.full(truth.shape, constant), truth)


def parts(folder, data, seed, most):
    """Training and test records of one seed, with what is declared of them."""
    if data == "diabetes":
        return diabetes(seed)
    if isinstance(data, str):
        kind, count = data.split(":")
        return drawn(kind, int(count), seed)
    name, delimiter, columns, target, labels = data
    rules = {**columns, target: labels}
    table = {
        column: values.astype(float) if isinstance(rules.get(column), Range) else values
        for column, values in read(folder, name, delimiter).items()
    }
    train, test = split(table, seed)
    return (
        {column: values[:most] for column, values in train.items()},
        test,
        columns,
        target,
        labels,
    )


def measure(folder, data, learner, epsilon, splits, noise, most=None, adjacency=dpcore.REPLACE_ONE):
    """Errors of the model and of the constant over splits, and the seconds of each run, pricing
    apart.

    At most `most` records of each training part are used, if it is given.
    """
    private, constant, seconds = [], [], []
    for seed in splits:
        train, test, columns, target, labels = parts(folder, data, seed, most)
        if isinstance(labels, Classes):
            values, counts = np.unique(train[target], return_counts=True)
            usual = values[np.argmax(counts)]
        else:
            usual = np.asarray(train[target], dtype=float).mean()
        records = len(train[target])
        known = {"exact": records} if adjacency.replaces else {"limit": records}
        plan = dpcore.price(
            domain=Domain(columns=columns, target=target, labels=labels, **known),
            adjacency=adjacency,
            budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
            learner=learner,
            mechanism=None if isinstance(learner, Objective) else Gaussian(noise=noise),
            on_invalid="project",
        )
        assert plan.guarantee.status is dpcore.guarantee.Status.PROVED
        start = time.perf_counter()
        model = plan.run(train, replaying=HERE).model
        seconds.append(time.perf_counter() - start)
        own, other = losses(model, usual, test, target, labels)
        private.append(own)
        constant.append(other)
    return private, constant, seconds


def named(folder, name):
    """What `--data` names."""
    known = {"insurance": insurance, "red-wine": red_wine, "white-wine": white_wine}
    if ":" in name or name == "diabetes":
        return name
    return known[name]() if name in known else described(folder, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learner", choices=sorted(LEARNERS), default="shape_functions")
    parser.add_argument("--data", nargs="+", default=["insurance", "red-wine"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=5000, help="seed of the first split")
    parser.add_argument("--noise", choices=("grid", "float"), default="grid")
    parser.add_argument("--add-remove", action="store_true", help="the number of records private")
    options = parser.parse_args()
    folder = Path(os.environ.get("DPCORE_DATA", "."))
    for name in options.data:
        data = named(folder, name)
        half = 1.0
        if not isinstance(data, str):
            half = data[-1].half_width
        for epsilon in options.epsilon:
            private, constant, seconds = measure(
                folder,
                data,
                LEARNERS[options.learner](half),
                epsilon,
                range(options.first, options.first + options.splits),
                options.noise,
                adjacency=dpcore.ADD_REMOVE if options.add_remove else dpcore.REPLACE_ONE,
            )
            ratio = statistics.mean(private) / statistics.mean(constant)
            wins = sum(p < c for p, c in zip(private, constant, strict=True))
            print(
                f"{options.learner} {name:14s} epsilon {epsilon:3g}: {ratio:.3f} of the constant's "
                f"error, better in {wins}/{len(private)}, {statistics.median(seconds):.3f} s a run",
                flush=True,
            )


if __name__ == "__main__":
    main()
