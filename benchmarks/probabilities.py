"""Probabilities of classes on public tables: area, log loss and calibration, next to no privacy.

`computers/premium` names a table of $DPCORE_DATA/tables and the column of categories to predict,
from all others; `hdma` only its declared target. `imbalanced:1500` and its like are drawn, see
`class_tables.py`. Fixed 90/10 splits, replace-one, delta 1e-5. The
logistic regression of scikit-learn has no privacy: standardised numbers and one column a category.
Of several classes the area is the mean over each against the rest. Log losses are relative to that
of the training part's shares; calibration is the mean distance, over ten bins of equal width, of
the probability of the rarest class from how often it came true.

    python benchmarks/probabilities.py --data computers/premium hdma wages/sex
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from class_tables import drawn_classes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from utility import DELTA, EPSILONS, described, read, split

import dpcore
import dpcore.domain
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.transcript.replay_process import HERE
from dpcore_tables.shape_functions import ShapeFunctions

BINS = 10


def table_of(folder, name, most):
    """Records, columns, target and labels."""
    table, _, column = name.partition("/")
    path, delimiter, columns, target, labels = described(folder, table)
    declared = {**columns, target: labels}
    records = {
        name: values[:most].astype(float) if isinstance(declared[name], Range) else values[:most]
        for name, values in read(folder, path, delimiter).items()
        if name in declared
    }
    if column:
        known = {**columns, target: labels}
        chosen = known.pop(column)
        return records, known, column, dpcore.domain.Classes(chosen.values)
    return records, columns, target, labels


def calibration(found, true):
    """Of one class's probabilities, weighted by how many records a bin has."""
    bins = np.minimum((found * BINS).astype(int), BINS - 1)
    gaps = [
        abs(found[bins == one].mean() - true[bins == one].mean()) * np.mean(bins == one)
        for one in np.unique(bins)
    ]
    return float(np.sum(gaps))


def scores(found, truth, classes, base):
    """Area, relative log loss, calibration, and the relative share that is wrong."""
    codes = np.array([classes.index(one) for one in truth])
    rare = int(np.argmin(base))
    if len(classes) == 2:
        area = roc_auc_score(codes, found[:, 1])
    else:
        area = roc_auc_score(codes, found, multi_class="ovr", labels=range(len(classes)))
    found = np.clip(found, 1e-12, None)
    found = found / found.sum(axis=1, keepdims=True)
    constant = np.tile(base, (len(codes), 1))
    labels = range(len(classes))
    loss = log_loss(codes, found, labels=labels) / log_loss(codes, constant, labels=labels)
    wrong = np.mean(found.argmax(axis=1) != codes) / np.mean(np.argmax(base) != codes)
    return area, loss, calibration(found[:, rare], codes == rare), wrong


def plain(train, test, columns, target, classes):
    """What no privacy gives."""

    def encoded(part):
        found = []
        for name, column in columns.items():
            if isinstance(column, Range):
                own = np.asarray(part[name], dtype=float)
                known = np.asarray(train[name], dtype=float)
                found.append((own - known.mean()) / max(known.std(), 1e-9))
            else:
                found += [(part[name] == value).astype(float) for value in column.values]
        return np.column_stack(found)

    fitted = LogisticRegression(max_iter=2000).fit(encoded(train), train[target])
    found = fitted.predict_proba(encoded(test))
    known = fitted.classes_.tolist()
    return np.column_stack(
        [found[:, known.index(c)] if c in known else np.zeros(len(found)) for c in classes]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    usual = ["computers/premium", "hdma", "wages/sex"]
    parser.add_argument("--data", nargs="+", default=usual)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=90_000, help="seed of the first split")
    parser.add_argument("--most", type=int, help="records at most")
    parser.add_argument("--edition", type=int, choices=(1, 2), default=2, help="of the rules")
    parser.add_argument("--noise", choices=("grid", "float"), default="grid")
    given = parser.parse_args()
    folder = Path(os.environ.get("DPCORE_DATA", "."))
    for name in given.data:
        results, began = {}, time.process_time()
        for seed in range(given.first, given.first + given.splits):
            if ":" in name:
                train, test, columns, target, labels = drawn_classes(name, seed)
            else:
                records, columns, target, labels = table_of(folder, name, given.most)
                train, test = split(records, seed)
            classes = list(labels.values)
            base = np.array([np.mean(train[target] == one) for one in classes])
            found = plain(train, test, columns, target, classes)
            results.setdefault("no privacy", []).append(scores(found, test[target], classes, base))
            for epsilon in given.epsilon:
                plan = dpcore.price(
                    domain=Domain(
                        columns=columns, target=target, labels=labels, exact=len(train[target])
                    ),
                    adjacency=dpcore.REPLACE_ONE,
                    budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
                    learner=ShapeFunctions(edition=given.edition),
                    mechanism=Gaussian(noise=given.noise),
                    on_invalid="project",
                )
                model = plan.run(train, replaying=HERE).model
                own = scores(model.probabilities(test), test[target], classes, base)
                results.setdefault(f"epsilon {epsilon:g}", []).append(own)
        fractions = " ".join(f"{fraction:.1%}" for fraction in sorted(base))
        print(f"{name}: {len(train[target])} records to train on, classes {fractions}")
        for who, each in results.items():
            mean, error = np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / len(each) ** 0.5
            report = ("area", "log loss", "calibration", "wrong")
            row = ", ".join(
                f"{what} {m:.3f} +- {e:.3f}" for what, m, e in zip(report, mean, error, strict=True)
            )
            print(f"  {who:11s} {row}")
        print(f"  {time.process_time() - began:.0f} s of a processor", flush=True)


if __name__ == "__main__":
    main()
