"""How fast are the fits? Ratios against numpy, LAPACK and scikit-learn, interleaved in one process.

Run with one thread: OPENBLAS_NUM_THREADS=1 python benchmarks/solvers.py [--quick] [--large]
Figures are medians of processor time: the wall's on an idle machine, without what others take on a
shared one. The goal is behind each. With $DPCORE_DATA, a folder with insurance.csv, it also
times whole private fits of a table.
"""

import argparse
import csv
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack
from sklearn.kernel_ridge import KernelRidge

import dpcore
from dpcore import Categories, Domain, PrivacyBudget, PublicRandomness, Range, Release
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.transcript.replay_process import HERE
from dpcore_kernel_ridge.solver import solve_kernel_ridge
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_models.features.cosines import Cosines
from dpcore_models.features.turns import cosines
from dpcore_random_features.projected_min_norm import ProjectedMinNorm
from dpcore_random_features.solvers.min_norm import fit_min_norm

RECORDS, COLUMNS = 1204, 6


def interleaved(tasks: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Median processor seconds of every task, one repetition of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repetitions):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def numbers(records: int) -> Domain:
    """Columns and labels in [-1, 1]."""
    columns = {f"x{k}": Range(-1, 1) for k in range(COLUMNS)}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), exact=records)


def waves(repetitions: int) -> None:
    """The polynomial cosine against numpy's."""
    turns = np.random.default_rng(0).normal(size=1 << 20)
    angles = 2 * np.pi * turns
    seconds = interleaved(
        {"ours": lambda: cosines(turns.copy()), "numpy": lambda: np.cos(angles)}, 5 * repetitions
    )
    each = {name: 1e9 * taken / turns.size for name, taken in seconds.items()}
    print(
        f"a cosine: dpcore {each['ours']:.1f} ns, numpy {each['numpy']:.1f} ns; "
        f"numpy/dpcore {each['numpy'] / each['ours']:.1f}"
    )


def min_norm(count: int, repetitions: int) -> None:
    """A fit of random cosines against numpy's pseudo-inverse, and against its Gram matrix only."""
    rng = np.random.default_rng(1)
    features = Cosines(count=count).draw(numbers(RECORDS), PublicRandomness(1))
    rows = rng.normal(size=(RECORDS, COLUMNS))
    labels = rng.uniform(-1, 1, RECORDS)
    matrix = np.asfortranarray(features(rows))
    found = []
    seconds = interleaved(
        {
            "ours": lambda: found.append(fit_min_norm(features, count, rows, labels)),
            "dsyrk": lambda: blas.dsyrk(1.0, matrix, lower=1),
            "pinv": lambda: np.linalg.pinv(features(rows)) @ labels,
        },
        repetitions,
    )
    exact = linalg.lstsq(matrix, labels, lapack_driver="gelsy")[0]
    error = np.linalg.norm(found[0] - exact) / np.linalg.norm(exact)
    gram = blas.dsyrk(1.0, matrix, lower=1)
    condition = np.linalg.cond(gram + np.tril(gram, -1).T)
    print(
        f"min norm, {RECORDS} records, {count} cosines: dpcore {seconds['ours']:.3f} s; "
        f"pinv/dpcore {seconds['pinv'] / seconds['ours']:.1f} (goal >= 10); "
        f"dpcore/dsyrk {seconds['ours'] / seconds['dsyrk']:.2f} (goal <= 2.2); off lstsq by "
        f"{error:.1e} at condition number {condition:.1e} (goal <= 1e-9 up to 1e7)"
    )


def large_min_norm(repetitions: int) -> None:
    """5847 records, where the factorisation counts too."""
    rng = np.random.default_rng(2)
    records, count = 5847, 10_000
    features = Cosines(count=count).draw(numbers(records), PublicRandomness(1))
    rows = 2 * rng.normal(size=(records, COLUMNS))
    labels = rng.uniform(-1, 1, records)
    matrix = np.asfortranarray(features(rows))
    gram = blas.dsyrk(1.0, matrix, lower=1)
    seconds = interleaved(
        {
            "ours": lambda: fit_min_norm(features, count, rows, labels),
            "dsyrk": lambda: blas.dsyrk(1.0, matrix, lower=1),
            "potrf": lambda: lapack.dpotrf(gram, lower=1),
        },
        repetitions,
    )
    least = seconds["dsyrk"] + seconds["potrf"]
    print(
        f"min norm, {records} records, {count} cosines: dpcore {seconds['ours']:.2f} s; "
        f"dpcore/(dsyrk + dpotrf) {seconds['ours'] / least:.2f} (goal <= 1.4)"
    )


def kernel_ridge(records: int, repetitions: int) -> None:
    """One regularization against scikit-learn's kernel ridge."""
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(records, 8)), rng.normal(size=(records, 5))
    kernel = GaussianKernel(bandwidth=2.0)
    peer = KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / 8)
    seconds = interleaved(
        {
            "one": lambda: solve_kernel_ridge(kernel, rows, labels, 1.0),
            "sklearn": lambda: peer.fit(rows, labels),
        },
        repetitions,
    )
    print(
        f"kernel ridge, {records} records, 5 outputs: one regularization, scikit-learn/dpcore "
        f"{seconds['sklearn'] / seconds['one']:.2f} (goal >= 1.5)"
    )


def releases(count: int, repetitions: int) -> None:
    """Many releases of one fit in one run, against as many runs; pricing apart."""
    rng = np.random.default_rng(4)
    domain = numbers(RECORDS)
    names = [*domain.columns, domain.target]
    table = {name: rng.uniform(-1, 1, RECORDS) for name in names}
    learner = ProjectedMinNorm(features=Cosines(count=4000, bandwidth=0.3), radius=50.0)

    def plan(number: int, noise: str) -> Any:
        return dpcore.price(
            domain=domain,
            adjacency=dpcore.REPLACE_ONE,
            budget=PrivacyBudget(epsilon=1, delta=1e-5),
            releases=[
                Release(name=f"r{k}", learner=learner, mechanism=Gaussian(noise=noise))
                for k in range(number)
            ],
        )

    for noise, goal in (("float", "goal >= 100"), ("grid", "exact noise")):
        one, many = plan(1, noise), plan(count, noise)
        seconds = interleaved(
            {
                "one": lambda plan=one: plan.run(table, replaying=HERE),
                "many": lambda plan=many: plan.run(table, replaying=HERE),
            },
            repetitions,
        )
        print(
            f"{count} releases of one fit, 4000 coefficients, {noise} noise: "
            f"{seconds['many']:.3f} s, {count} refits {count * seconds['one']:.1f} s; "
            f"refits/dpcore {count * seconds['one'] / seconds['many']:.0f} ({goal})"
        )


def staged(folder: Path, repetitions: int) -> None:
    """A whole private fit of a table with exact noise, from rows to model; pricing apart."""
    with (folder / "insurance.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    domain = Domain(
        columns={
            "age": Range(18, 100),
            "bmi": Range(10, 60),
            "children": Range(0, 10),
            "sex": Categories(("female", "male")),
            "smoker": Categories(("no", "yes")),
            "region": Categories(("northeast", "northwest", "southeast", "southwest")),
        },
        target="charges",
        labels=Range(0, 65_000),
        exact=len(rows),
    )
    for epsilon in (0.5, 1.0, 4.0):
        plan = dpcore.price(
            domain=domain,
            adjacency=dpcore.REPLACE_ONE,
            budget=PrivacyBudget(epsilon=epsilon, delta=1e-5),
            learner=StagedGradient(),
            mechanism=Gaussian(),
        )
        seconds = interleaved(
            {"run": lambda plan=plan: plan.run(table, replaying=HERE)}, repetitions
        )["run"]
        print(
            f"staged_gradient, {len(rows)} records, epsilon {epsilon:g}, {plan.most_queries} exact "
            f"releases: {seconds:.3f} s (goal < 0.2)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer repetitions")
    parser.add_argument("--large", action="store_true", help="also 5847 records: 1.5 GB")
    options = parser.parse_args()
    quick = options.quick
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1: threads spin on small matrices")
    repetitions = 1 if quick else 5
    waves(repetitions)
    min_norm(2000 if quick else 10_000, repetitions)
    kernel_ridge(800 if quick else 2500, repetitions)
    releases(50 if quick else 200, repetitions)
    if "DPCORE_DATA" in os.environ:
        staged(Path(os.environ["DPCORE_DATA"]), 3 * repetitions)
    if options.large:
        large_min_norm(1)


if __name__ == "__main__":
    main()
