"""NTK regression: the kernel matrix, Gaussian sampling, and accuracy on handwritten digits.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ntk.py speed
    OPENBLAS_NUM_THREADS=1 python benchmarks/ntk.py digits [RUNS]

`speed` prints medians of interleaved repetitions: the lower triangle of the kernel matrix, written
into a matrix that is used again, over the two symmetric products (dsyrk) it cannot do without; and
the naive product of k vectors over a whole Gaussian sampling release with k draws.

`digits` prints test accuracies on 359 of scikit-learn's 1797 digits (fresh splits, the plan's own
hold-out), replace-one at delta = 1e-5: the central route at its defaults, and Gaussian sampling of
the kernel matrix, inputs and labels for several regularizations, of which the best is the best
afterwards.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from dpcore import (
    REPLACE_ONE,
    Domain,
    Learner,
    Mechanism,
    PrivacyBudget,
    Query,
    Range,
    SecretRandomness,
    Sensitivity,
    price,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.metrics.means import Accuracy
from dpcore.private.evaluation import evaluate
from dpcore.transcript.replay_process import HERE
from dpcore_ntk.central import Central
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.kernel import ntk_lower, ntk_matrix
from dpcore_ntk.regression import Regression
from dpcore_ntk.wishart import wishart_mean


def medians(repetitions: int, *jobs: Callable[[], object]) -> list[float]:
    """Median seconds of each job, interleaved."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(repetitions):
        for job, found in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def kernel(records: int, width: int, rank: int) -> None:
    """The lower triangle over two dsyrk."""
    rng = np.random.default_rng(0)
    rows, hidden = rng.normal(size=(records, width)), rng.normal(size=(records, rank))
    out = np.zeros((records, records))
    square = np.zeros((records, records), order="F")

    def two() -> None:
        for part in (rows, hidden):
            blas.dsyrk(1.0, part.T, trans=1, lower=1, c=square, overwrite_c=1)

    ours, limit = medians(15, lambda: ntk_lower(rows, hidden, out), two)
    print(f"kernel n={records} d={width} r={rank}: {1e3 * ours:.1f} ms, {ours / limit:.2f} x dsyrk")


def sampling(records: int, samples: int) -> None:
    """One release of the mechanism, and its sampler over samples that are drawn one by one."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(records, 64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    gram = ntk_matrix(rows, rows)
    query = Query(name="kernel", shape=gram.shape, distance="psd_rows")
    claim = Sensitivity(value=1e-3, distance="psd_rows", adjacency=REPLACE_ONE, source="benchmark")
    mechanism = GaussianSampling(samples=samples, lam0=10.0)
    covariance = gram + 10.0 * np.eye(records)
    root = np.linalg.cholesky(covariance)

    def noise() -> object:
        return SecretRandomness.rehearsal(0).noise(0, "kernel", 1)

    def naive() -> None:
        total = np.zeros_like(gram)
        for _ in range(0, samples, 1000):
            draws = root @ rng.normal(size=(records, 1000))
            total += draws @ draws.T

    whole, sampler = medians(
        7,
        lambda: mechanism.release(gram, query, claim, noise()),
        lambda: wishart_mean(covariance, samples, noise()),
    )
    (slow,) = medians(1, naive)
    print(
        f"sampling n={records} k={samples:.0e}: release {1e3 * whole:.0f} ms, of which the sampler "
        f"{1e3 * sampler:.0f} ms; naive {1e3 * slow:.0f} ms = {slow / whole:.0f} x"
    )


def digits(runs: int) -> None:
    """Accuracies of both routes under the same budgets."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    table = {str(name): bundle.data[:, i] for i, name in enumerate(bundle.feature_names)}
    domain = Domain(
        columns={name: Range(0, 16) for name in table},
        target="target",
        labels=Classes(tuple(range(10))),
        exact=1797,
        norm=1.0,
    )
    table["target"] = bundle.target

    def measured(
        learner: Learner, mechanism: Mechanism | dict[str, Mechanism], epsilon: float
    ) -> str:
        plan = price(
            domain=domain,
            adjacency=REPLACE_ONE,
            budget=PrivacyBudget(epsilon=epsilon, delta=1e-5),
            learner=learner,
            mechanism=mechanism,
            holdout=0.2,
        )
        found = [
            evaluate(plan, plan.run(table, replaying=HERE), {"accuracy": Accuracy()})["release"][
                "accuracy"
            ]
            for _ in range(runs)
        ]
        columns = {name: [f[name] for f in found] for name in found[0]}
        return ", ".join(f"{k} {np.mean(v):.3f} +- {np.std(v):.3f}" for k, v in columns.items())

    for epsilon in (1.0, 2.0, 4.0, 8.0):
        print(
            f"central, epsilon={epsilon:g}: {measured(Central(), Gaussian(), epsilon)}", flush=True
        )
    for regularization in (100.0, 1e3, 1e4, 1e5):
        found = measured(
            Regression(regularization=regularization),
            {"kernel": GaussianSampling(), "inputs": Gaussian(), "labels": Gaussian()},
            4.0,
        )
        print(f"sampling, epsilon=4, regularization={regularization:g}: {found}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["speed"]:
        for size in ((1000, 64, 64), (2000, 512, 256), (3000, 512, 256)):
            kernel(*size)
        for draws in (1000, 10_000, 100_000):
            sampling(1000, draws)
    elif sys.argv[1:2] == ["digits"]:
        digits(int(sys.argv[2]) if len(sys.argv) > 2 else 20)
    else:
        raise SystemExit(__doc__)
