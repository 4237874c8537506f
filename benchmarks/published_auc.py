"""The area under the ROC curve that a run publishes with its price, next to a logistic model's.

20,000 synthetic records of 10 columns, about 18 % of the second class; epsilon 1 in all, of which
`--paid` goes to the area. The logistic model of scikit-learn is fitted on the records that the run
fitted on, without privacy, and both are measured on the records that the run in the hold-out.

    python benchmarks/published_auc.py [--paid 0.1] [--seeds 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dpcore.metrics.paid import PaidEvaluation
from dpcore.specs.spec import spec_of_text
from dpcore.transcript.replay_process import HERE

RECORDS, COLUMNS = 20_000, 10
SPEC = f"""\
dpcore: 1
data:
  source: synthetic.csv
  target: y
  domain:
    records: {RECORDS}
    columns: {{{", ".join(f"x{i}: [-1, 1]" for i in range(COLUMNS))}}}
    target: ["no", "yes"]
adjacency: replace_one
budget: {{epsilon: 1, delta: 1e-6}}
release: {{learner: tables.shape_functions, mechanism: gaussian}}
evaluate: {{holdout: 0.25, metrics: [{{name: roc_auc, least: 0.15}}], private: {{epsilon: PAID}}}}
"""


def records(seed: int) -> dict[str, np.ndarray]:
    """Return a logistic law of all columns."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (RECORDS, COLUMNS))
    score = x @ np.linspace(2, -1, COLUMNS) - 2.4
    yes = random.uniform(size=RECORDS) < 1 / (1 + np.exp(-score))
    table = {f"x{i}": x[:, i] for i in range(COLUMNS)}
    return {**table, "y": np.where(yes, "yes", "no")}


def main() -> None:
    """A line for every seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paid", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for seed in range(given.seeds):
        table, began = records(seed), time.process_time()
        plan = spec_of_text(SPEC.replace("PAID", str(given.paid)), "auc.yaml").price()
        assert isinstance(plan.request.evaluation, PaidEvaluation)
        outcome = plan.run(table, replaying=HERE)
        (planned_query,), (answer,) = plan.schedule.evaluation, outcome.answers["evaluation"]
        assert planned_query.noise_distribution is not None
        hold_out = outcome.opened.hold_out
        truth, rows = hold_out.labels() == "yes", hold_out.table()
        fitted = _others(table, rows)
        names = [f"x{i}" for i in range(COLUMNS)]
        logistic = LogisticRegression(C=1e6, max_iter=1000)
        logistic.fit(np.column_stack([fitted[n] for n in names]), fitted["y"])
        plain = roc_auc_score(
            truth, logistic.predict_proba(np.column_stack([rows[n] for n in names]))[:, 1]
        )
        model = outcome.models["release"]
        ours = roc_auc_score(truth, model.probabilities(rows)[:, 1])
        distance = planned_query.noise_distribution.within(0.05)
        print(
            f"seed {seed}: {np.mean(table['y'] == 'yes'):.1%} positive; epsilon "
            f"{outcome.guarantee.epsilon:.4g}; published {float(answer.value[0]):.4f} +- "
            f"{distance:.4f} "
            f"(95 %), exact {ours:.4f}, logistic {plain:.4f}, ratio {ours / plain:.4f}; "
            f"{time.process_time() - began:.1f} s of a processor"
        )


def _others(table: dict[str, np.ndarray], covered: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the records that are not in the hold-out, by their first column, which has no equal
    values.
    """
    kept = ~np.isin(table["x0"], np.asarray(covered["x0"], dtype=np.float64))
    return {name: column[kept] for name, column in table.items()}


if __name__ == "__main__":
    main()
