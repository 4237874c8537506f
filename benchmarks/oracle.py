"""How long a Gaussian-process oracle takes for adaptive questions, asked one by one.

    python benchmarks/oracle.py COLUMNS QUESTIONS BANDWIDTH

Prints, at five stages, the questions so far, the points kept, the bytes of their Cholesky factor,
and the mean time of a question since the stage before.
"""

import sys
import time

import numpy as np

from dpcore import REPLACE_ONE, SecretRandomness, Sensitivity
from dpcore.functions import Expansion, FunctionQuery
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore_kernel_ridge.gaussian_process import GaussianProcess


def main(columns: int, questions: int, bandwidth: float) -> None:
    """Ask, each time at a point that depends on the answer before."""
    rng = np.random.default_rng(0)
    kernel = GaussianKernel(bandwidth=bandwidth)
    query = FunctionQuery(
        name="f",
        distance="rkhs",
        kernel=kernel,
        width=columns,
        kappa=1.0,
        label_bound=1.0,
        evaluation_error=1e-12,
    )
    moved = Sensitivity(value=0.01, distance="rkhs", adjacency=REPLACE_ONE, source="a benchmark")
    function = Expansion(
        kernel=kernel,
        points=rng.uniform(-1, 1, (500, columns)),
        coefficients=rng.normal(size=500) / 500,
    )
    noise = SecretRandomness.draw().noise(0, "f", 1)
    oracle = GaussianProcess(noise_multiplier=2.0).open(function, query, moved, noise)
    point, start, stage = np.zeros(columns), time.perf_counter(), max(1, questions // 5)
    for number in range(1, questions + 1):
        answer = oracle.ask(point[None, :])[0]
        point = np.clip(0.9 * point + rng.normal(size=columns) / 2 + answer, -1, 1)
        if number % stage == 0:
            each, factor = (time.perf_counter() - start) / stage, 4 * oracle.kept**2
            print(f"{number} asked, {oracle.kept} kept, {factor / 1e6:.2f} MB, {each * 1e6:.0f} us")
            start = time.perf_counter()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
