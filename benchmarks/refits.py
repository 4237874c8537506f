"""What several fits of one table differ by, and what their standard errors claim of it.

All fits see the same records and have noise of their own, so that predictions differ by the privacy
noise only. Printed are the root mean squares of what was claimed over what was measured, at some
records of the table (of several classes of each score less the mean of all), and how often the mean
of the fits, but for a fit's own part in it, lies within two standard errors of a fit. Tables are
those of `nulls.py`; noise is drawn in floating point.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from nulls import table_of
from utility import DELTA

import dpcore
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import Domain
from dpcore.transcript.replay_process import HERE
from dpcore_tables.shape_functions import ShapeFunctions

PLACES = 300  # records at which fits are compared


def compared(models, table):
    """Claimed over measured, and the coverage."""
    scores = np.array([model.outputs(model.encode(table)) * model._unit for model in models])
    if scores.shape[2] > 1:
        scores = scores - scores.mean(axis=2, keepdims=True)
    claims = np.array([model.standard_errors(table) for model in models])
    count = len(models)
    # A fit is a part of the mean: its distance from it is smaller than from that of the others.
    distances = (scores - scores.mean(axis=0)) * np.sqrt(count / (count - 1))
    ratio = np.sqrt(np.mean(claims**2) / np.mean(distances**2))
    return ratio, np.mean(np.abs(distances) <= 2 * claims[:, :, None])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["wages", "computers", "hdma"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=(1.0, 4.0))
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--fits", type=int, default=10)
    options = parser.parse_args()
    folder = Path(os.environ["DPCORE_DATA"])
    for name in options.data:
        table, columns, target, labels = table_of(folder, name, options.records)
        domain = Domain(columns=columns, target=target, labels=labels, exact=len(table[target]))
        rows = np.random.default_rng(3).permutation(len(table[target]))[:PLACES]
        places = {key: values[rows] for key, values in table.items()}
        for epsilon in options.epsilon:
            plan = dpcore.price(
                domain=domain,
                adjacency=dpcore.REPLACE_ONE,
                budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
                learner=ShapeFunctions(),
                mechanism=Gaussian(noise="float"),
                on_invalid="project",
            )
            models = [plan.run(table, replaying=HERE).model for _ in range(options.fits)]
            ratio, coverage = compared(models, places)
            facts = f"claimed / measured {ratio:.2f}, within two errors {coverage:.3f}"
            print(f"{name}, {epsilon:g}: {facts}", flush=True)


if __name__ == "__main__":
    main()
