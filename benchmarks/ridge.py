"""One private ridge release against scikit-learn's ridge on the same features, one BLAS thread.

Prints ratios of medians, interleaved in one process: the price of projection, features, noise and
replay on top of the fit itself.
"""

import statistics
import time

import numpy as np
from sklearn.linear_model import Ridge as SklearnRidge
from threadpoolctl import threadpool_limits

import dpcore
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import encode_table
from dpcore.transcript.replay_process import HERE
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.ridge import Ridge

RECORDS, COLUMNS, REPEATS = 5000, 8, 7


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(COLUMNS)]
    table = {name: rng.uniform(-1, 1, RECORDS) for name in names}
    table["y"] = rng.uniform(-1, 1, RECORDS)
    domain = dpcore.Domain(
        columns={name: dpcore.Range(-1, 1) for name in names},
        target="y",
        labels=dpcore.Range(-1, 1),
        exact=RECORDS,
    )
    for count in (50, 250, 500):
        plan = dpcore.price(
            domain=domain,
            adjacency=dpcore.REPLACE_ONE,
            budget=dpcore.PrivacyBudget(epsilon=1, delta=1e-5),
            learner=Ridge(features=CosSin(count=count), regularization=0.1),
            mechanism=Gaussian(),
        )
        features = CosSin(count=count).draw(domain, dpcore.PublicRandomness(1))
        encoded = encode_table(domain, table)
        peer = SklearnRidge(alpha=0.1 * RECORDS, fit_intercept=False, solver="cholesky")
        pairs = []
        for _ in range(REPEATS):
            ours = seconds(lambda: plan.run(table, replaying=HERE))  # noqa: B023  # called at once
            theirs = seconds(lambda: peer.fit(features(encoded), table["y"]))  # noqa: B023  # same
            pairs.append((ours, theirs))
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{2 * count:5d} features: private run / scikit-learn fit = {ours / theirs:.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
