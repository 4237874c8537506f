"""Models from synthetic rows next to a model that is fitted directly, at the same budget.

$DPCORE_DATA names a folder as `utility.py` has it. Every split of 90/10 is measured three times, at
the same epsilon, delta 1e-5, and relation (add/remove, about how many records there are is public):
`tables.shape_functions` on the records; the same learner on rows of `synthetic.rows` with `target:`
and its default cells, where a budget without end represents no noise; boosted trees of scikit-learn
on the same rows. Errors are those of hold-out records over the constant's: squared errors, or wrong
classes.

    python benchmarks/synthetic_models.py --splits 3
    python benchmarks/synthetic_models.py --data insurance --epsilon 1
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import OrdinalEncoder
from utility import DELTA, losses, named, parts

import dpcore
import dpcore.guarantee
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories
from dpcore.transcript.replay_process import HERE
from dpcore_synthetic.learner import Rows
from dpcore_tables.shape_functions import ShapeFunctions

TABLES = ("insurance", "computers", "diamonds", "wages", "hdma", "retblack")
WAYS = ("direct", "on rows", "trees on rows")
NO_NOISE = 1e4  # epsilon


def published(table, domain, epsilon, learner):
    """What one learner publishes of a table."""
    plan = dpcore.price(
        domain=domain,
        adjacency=dpcore.ADD_REMOVE,
        budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
        learner=learner,
        mechanism=Gaussian(),
        on_invalid="project",
    )
    assert plan.guarantee.status is dpcore.guarantee.Status.PROVED
    return plan.run(table, replaying=HERE).models["release"]


def rows_of(train, columns, target, labels, epsilon):
    """Synthetic rows, as columns that a learner reads."""
    outcome = Categories(labels.values) if isinstance(labels, Classes) else labels
    # No other category occurs in these files, which their public facts say.
    rules = {
        name: Categories(rule.values, default=rule.values[0])
        if isinstance(rule, Categories)
        else rule
        for name, rule in {**columns, target: outcome}.items()
    }
    learner = Rows(target=target, rows_about=len(train[target]))
    return published(train, dpcore.Domain(columns=rules), epsilon, learner).columns


class Trees:
    """Boosted trees of scikit-learn with its defaults.

    Args:
        columns: By name, as they are declared.
    """

    def __init__(self, rows, columns, target, labels):
        is_category = [isinstance(rule, Categories) for rule in columns.values()]
        self._names, self._categories = [*columns], is_category
        values = [[*rule.values] for rule in columns.values() if isinstance(rule, Categories)]
        self._codes = OrdinalEncoder(categories=values)
        kind = HistGradientBoostingRegressor
        if isinstance(labels, Classes):
            kind = HistGradientBoostingClassifier
        self._trees = kind(categorical_features=is_category, random_state=0)
        if values:
            self._codes.fit(self._texts(rows))
        self._trees.fit(self._encoded(rows), rows[target])

    def _texts(self, table):
        names = zip(self._names, self._categories, strict=True)
        texts = [np.asarray(table[name], dtype=object) for name, is_text in names if is_text]
        return np.column_stack(texts)

    def _encoded(self, table):
        columns = np.zeros((len(table[self._names[0]]), len(self._names)))
        for place, name in enumerate(self._names):
            if not self._categories[place]:
                columns[:, place] = np.asarray(table[name], dtype=float)
        if any(self._categories):
            columns[:, np.flatnonzero(self._categories)] = self._codes.transform(self._texts(table))
        return columns

    def predict(self, table):
        """Labels of a table."""
        return self._trees.predict(self._encoded(table))


def measure(folder, data, epsilon, seed):
    """Errors of every way, and of the constant, on the hold-out records of one split."""
    train, test, columns, target, labels = parts(folder, data, seed, None)
    if isinstance(labels, Classes):
        values, counts = np.unique(train[target], return_counts=True)
        constant = values[np.argmax(counts)]
    else:
        constant = np.asarray(train[target], dtype=float).mean()
    domain = dpcore.Domain(columns=columns, target=target, labels=labels)
    about = len(train[target])
    learner = ShapeFunctions(expected_records=about)
    direct = published(train, domain, epsilon, learner)
    rows = rows_of(train, columns, target, labels, epsilon)
    models = (
        direct,
        published(rows, domain, NO_NOISE, learner),
        Trees(rows, columns, target, labels),
    )
    pairs = [losses(model, constant, test, target, labels) for model in models]
    return [*(error for error, _ in pairs), pairs[0][1]]


def main():
    """Print a line for every table and budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=TABLES)
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 4.0])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    folder = Path(os.environ.get("DPCORE_DATA", "."))
    for name in options.data:
        for epsilon in options.epsilon:
            data = named(folder, name)
            runs = np.array([measure(folder, data, epsilon, k) for k in range(options.splits)])
            means = runs.mean(axis=0)
            ratios = runs[:, :-1] / means[-1]
            figures = ", ".join(
                f"{way} {ratio:.3f} ({low:.3f} to {high:.3f})"
                for way, ratio, low, high in zip(
                    WAYS, ratios.mean(axis=0), ratios.min(axis=0), ratios.max(axis=0), strict=True
                )
            )
            print(f"{name:10} epsilon {epsilon:g}: {figures}", flush=True)


if __name__ == "__main__":
    main()
