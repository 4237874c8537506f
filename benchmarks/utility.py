"""Squared error of private models relative to the constant predictor's, on public tables.

$DPCORE_DATA names a folder with insurance.csv and winequality-*.csv. The same fixed 90/10 splits
for every learner and epsilon, made outside the runs; labels in declared ranges, other columns in
generous public ones; nothing is tuned per data set; noise comes from secret coins.
"""

import argparse
import csv
import os
import statistics
import time
from pathlib import Path

import numpy as np

import dpcore
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain
from dpcore.learning.features.identity import Identity
from dpcore.mechanisms.gaussian import Gaussian
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_linear.sufficient_statistics import SufficientStatistics
from dpcore_sgd.regression import Regression

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-5
LINEAR = Affine(features=Identity())
LEARNERS = {  # of M, half the label's range, in whose units clips are given
    "staged_gradient": lambda m: StagedGradient(),
    "clipped_gradient": lambda m: ClippedGradient(features=LINEAR, clip=0.2 * m),
    "sufficient_statistics": lambda m: SufficientStatistics(features=LINEAR),
    "output_perturbation": lambda m: OutputPerturbation(
        features=LINEAR, total_regularization=5, clip=0.2 * m
    ),
    "sgd": lambda m: Regression(),
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


def measure(folder, data, learner, epsilon, splits, noise, most=None):
    """Relative errors over splits, and the seconds of each run, pricing apart.

    At most `most` records of each training part are used, if it is given.
    """
    name, delimiter, columns, target, labels = data
    table = read(folder, name, delimiter)
    private, constant, seconds = [], [], []
    for seed in splits:
        train, test = split(table, seed)
        train = {column: values[:most] for column, values in train.items()}
        known = np.asarray(train[target], dtype=float)
        domain = Domain(columns=columns, target=target, labels=labels, exact=len(known))
        plan = dpcore.price(
            domain=domain,
            adjacency=dpcore.REPLACE_ONE,
            budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
            learner=learner,
            mechanism=Gaussian(noise=noise),
            on_invalid="project",
        )
        assert plan.guarantee.status is dpcore.Status.PROVED
        start = time.perf_counter()
        model = plan.run(train).model
        seconds.append(time.perf_counter() - start)
        truth = np.asarray(test[target], dtype=float)
        private.append(error(model.predict(test), truth))
        constant.append(error(np.full(truth.shape, known.mean()), truth))
    return private, constant, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learner", choices=sorted(LEARNERS), default="staged_gradient")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=5000, help="seed of the first split")
    parser.add_argument("--noise", choices=("grid", "float"), default="grid")
    options = parser.parse_args()
    folder = Path(os.environ["DPCORE_DATA"])
    for label, data in (("insurance", insurance()), ("red wine", red_wine())):
        for epsilon in EPSILONS:
            private, constant, seconds = measure(
                folder,
                data,
                LEARNERS[options.learner](data[-1].half_width),
                epsilon,
                range(options.first, options.first + options.splits),
                options.noise,
            )
            ratio = statistics.mean(private) / statistics.mean(constant)
            wins = sum(p < c for p, c in zip(private, constant, strict=True))
            print(
                f"{label:9s} epsilon {epsilon:3g}: {ratio:.3f} of the constant's squared error, "
                f"better in {wins}/{len(private)}, {statistics.median(seconds):.3f} s a run",
                flush=True,
            )


if __name__ == "__main__":
    main()
