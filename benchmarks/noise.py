"""How fast is noise? Ratios against OpenDP and numpy, measured side by side in one process.

Run with one thread: OPENBLAS_NUM_THREADS=1 python benchmarks/noise.py [--quick]
Needs `opendp`; figures are medians of interleaved repetitions. Ratios above 1 are in favour of
dpcore, except where a line says "cost".
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import opendp.prelude as dp
from scipy.linalg import blas

from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.randomness import SecretRandomness
from dpcore_ntk.wishart import wishart_mean


def interleaved(tasks: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Median seconds of every task, one repetition of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repetitions):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def integers(count: int, repetitions: int) -> None:
    """Exact integer noise on a vector against OpenDP's, and against numpy's float normals."""
    dp.enable_features("contrib")
    randomness = SecretRandomness.draw()
    vector = [0] * count
    generator = np.random.default_rng()
    distributions = {
        "gaussian": (gaussian_distribution, dp.m.make_gaussian, dp.l2_distance(T=float)),
        "laplace": (laplace_distribution, dp.m.make_laplace, dp.l1_distance(T=int)),
    }
    domain = dp.vector_domain(dp.atom_domain(T=int))
    for distribution, (ours, make, metric) in distributions.items():
        for width in (10.0, 1000.0, 1e6, 1e9):
            theirs = make(domain, metric, scale=width)
            stream = randomness.noise(0, f"{distribution} {width}", 1)
            seconds = interleaved(
                {
                    "dpcore": lambda f=ours, w=width, s=stream: f(w, count).symmetric(count, s),
                    "opendp": lambda m=theirs: m(vector),
                    "numpy": lambda: generator.standard_normal(count),
                },
                repetitions,
            )
            each = {name: 1e9 * taken / count for name, taken in seconds.items()}
            print(
                f"discrete {distribution} width {width:<8g} dpcore {each['dpcore']:7.1f} ns, "
                f"opendp {each['opendp']:8.1f} ns, numpy float normal {each['numpy']:5.1f} ns; "
                f"opendp/dpcore {each['opendp'] / each['dpcore']:6.1f}, "
                f"cost over numpy {each['dpcore'] / each['numpy']:4.1f}"
            )


def one_draw(repetitions: int) -> None:
    """A single draw, where the tables are not yet worth their while."""
    randomness = SecretRandomness.draw()
    theirs = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=float), scale=1000.0)
    stream = randomness.noise(0, "one", 1)
    seconds = interleaved(
        {
            "dpcore": lambda: gaussian_distribution(1000.0, 1).symmetric(1, stream),
            "opendp": lambda: theirs(0),
        },
        20 * repetitions,
    )
    print(
        f"one discrete gaussian of width 1000: dpcore {1e6 * seconds['dpcore']:.0f} us, "
        f"opendp {1e6 * seconds['opendp']:.0f} us"
    )


def wishart(n: int, degrees: int, repetitions: int) -> None:
    """A Wishart mean against k explicit vectors, and against dsyrk plus the random numbers."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((n, 50))
    covariance = rows @ rows.T + 10 * np.eye(n)
    stream = SecretRandomness.draw().noise(0, "wishart", 1)
    square = np.asfortranarray(covariance)

    def naive() -> np.ndarray:
        factor = np.linalg.cholesky(covariance)
        total = np.zeros((n, n))
        for _ in range(0, degrees, 10_000):
            vectors = factor @ generator.standard_normal((n, min(10_000, degrees)))
            total += vectors @ vectors.T
        return total / degrees

    count = n * (n - 1) // 2
    seconds = interleaved(
        {
            "ours": lambda: wishart_mean(covariance, degrees, stream),
            "dsyrk": lambda: blas.dsyrk(1.0, square, lower=1),
            "secure": lambda: stream.normal(count),
            "numpy": lambda: generator.standard_normal(count),
        },
        5 * repetitions,
    )
    slow = interleaved({"naive": naive}, repetitions)["naive"]
    ours = seconds["ours"]
    print(
        f"wishart n={n} k={degrees}: dpcore {1e3 * ours:.1f} ms, naive {1e3 * slow:.0f} ms; "
        f"naive/dpcore {slow / ours:.0f}; cost over dsyrk + secure random numbers "
        f"{ours / (seconds['dsyrk'] + seconds['secure']):.2f}, over dsyrk + numpy's "
        f"{ours / (seconds['dsyrk'] + seconds['numpy']):.2f}"
    )


def words(repetitions: int) -> None:
    """What a random word costs, by source."""
    count = 1 << 20
    secret = SecretRandomness.draw().noise(0, "words", 1)
    generator = np.random.default_rng()
    seconds = interleaved(
        {
            "secret stream": lambda: secret.words(count),
            "os.urandom": lambda: os.urandom(8 * count),
            "numpy PCG64": lambda: generator.bit_generator.random_raw(count),
        },
        5 * repetitions,
    )
    print("; ".join(f"{name} {1e9 * t / count:.1f} ns a word" for name, t in seconds.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter vectors, one repetition")
    quick = parser.parse_args().quick
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1: threads spin on small matrices")
    words(3)
    integers(10**5 if quick else 10**6, 1 if quick else 3)
    one_draw(3)
    wishart(1000, 10**4 if quick else 10**5, 1 if quick else 3)


if __name__ == "__main__":
    main()
