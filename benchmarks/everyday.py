"""Everyday statistics beside OpenDP and diffprivlib: errors at the same epsilon and relation.

Run in an environment that has them:
`.venv/hosts/bin/python benchmarks/everyday.py [--draws N]` (`make test-bridges` builds it).

Each line is a root mean squared error over draws of the noise, on the same made-up records, and the
ratio of the peer's to dpcore's: above 1, dpcore is more exact. Pure budgets: Laplace noise and
permute-and-flip here. Peers are used as their own documentation says, with the same declared range.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Domain, PrivacyBudget, PublicCoins, Range
from dpcore.mechanisms.exponential import Exponential
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.mechanisms.laplace import Laplace
from dpcore.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.workload import Workload

LOW, HIGH, RECORDS = 0.0, 100.0, 1000
Draw = Callable[[int], Any]


def records(size: int = RECORDS) -> NDArray[np.float64]:
    """Skewed values in [0, 100]."""
    return np.clip(np.random.default_rng(0).lognormal(3.0, 0.7, size), LOW, HIGH)


def ours(
    learner: Any, mechanism: Any, epsilon: float, delta: float, *, public: bool, values: Any
) -> Draw:
    """Estimates of one learner, at a number of the draw."""
    adjacency = REPLACE_ONE if public else ADD_REMOVE
    domain = Domain(columns={"x": Range(LOW, HIGH)}, exact=len(values) if public else None)
    plan = dpcore.price(
        domain=domain,
        adjacency=adjacency,
        budget=PrivacyBudget(epsilon=epsilon, delta=delta),
        learner=learner,
        mechanism=mechanism,
        coins=PublicCoins(1),
    )
    return lambda _: plan.run({"x": values}).models["release"].arrays()["estimate"]


def error(draw: Draw, truth: Any, draws: int) -> float:
    """Root mean squared error over draws, and over entries."""
    truth = np.atleast_1d(np.asarray(truth, dtype=float))
    off = [np.atleast_1d(draw(number))[: truth.size] - truth for number in range(draws)]
    return float(np.sqrt(np.mean(np.square(off))))


def rank_error(draw: Draw, values: NDArray[np.float64], quantiles: Any, draws: int) -> float:
    """Mean distance of the rank of a published quantile from the one asked for."""
    ordered = np.sort(values)
    found = []
    for number in range(draws):
        for q, t in zip(quantiles, np.atleast_1d(draw(number)), strict=True):
            low, high = (np.searchsorted(ordered, t, side=side) for side in ("left", "right"))
            found.append(max(0.0, low - q * len(values), q * len(values) - high))
    return float(np.mean(found))


def told(name: str, here: float, peer: str, there: float) -> None:
    """One line."""
    print(f"{name:44} dpcore {here:10.4g}   {peer:12} {there:10.4g}   ratio {there / here:6.2f}")


def opendp_mean(values: NDArray[np.float64], epsilon: float) -> Draw:
    """A noisy sum over a noisy count, half of the budget each."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    bounds = int(LOW), int(HIGH)

    def total(scale: float) -> Any:
        return space >> dp.t.then_clamp(bounds) >> dp.t.then_sum() >> dp.m.then_laplace(scale)

    def number(scale: float) -> Any:
        return space >> dp.t.then_count() >> dp.m.then_laplace(scale)

    sums = dp.binary_search_chain(total, 1, epsilon / 2)
    counts = dp.binary_search_chain(number, 1, epsilon / 2)
    listed = np.rint(values).astype(int).tolist()  # its float sums need a public length
    return lambda _: np.clip(sums(listed) / max(1, counts(listed)), LOW, HIGH)


def opendp_quantiles(
    values: NDArray[np.float64], wanted: tuple[float, ...], epsilon: float, points: int
) -> Draw:
    """One choice for each, of the same candidates."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates = np.linspace(LOW, HIGH, points).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def chosen(q: float) -> Any:
        def at(scale: float) -> Any:
            scores = space >> dp.t.then_quantile_score_candidates(candidates, q)
            return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

        return dp.binary_search_chain(at, 1, epsilon / len(wanted))

    measured, listed = [chosen(q) for q in wanted], values.tolist()
    return lambda _: np.array([candidates[one(listed)] for one in measured])


def means(values: NDArray[np.float64], draws: int) -> None:
    """Private n against OpenDP's sum and count at half the budget each; public n: diffprivlib."""
    for epsilon in (0.1, 1.0):
        mine = ours(Mean(column="x"), Laplace(), epsilon, 0.0, public=False, values=values)
        peer = opendp_mean(values, epsilon)
        found = error(mine, values.mean(), draws), error(peer, values.mean(), draws)
        told(f"mean, private n, epsilon={epsilon}", found[0], "OpenDP", found[1])
        mine = ours(Mean(column="x"), Laplace(), epsilon, 0.0, public=True, values=values)
        peer = diffprivlib_of("mean", values, epsilon=epsilon, bounds=(LOW, HIGH))
        found = error(mine, values.mean(), draws), error(peer, values.mean(), draws)
        told(f"mean, public n, epsilon={epsilon}", found[0], "diffprivlib", found[1])


def diffprivlib_of(tool: str, values: NDArray[np.float64], *more: Any, **fields: Any) -> Draw:
    """One of its tools."""
    import diffprivlib

    return lambda _: getattr(diffprivlib.tools, tool)(values, *more, **fields)


def quantiles(values: NDArray[np.float64], draws: int) -> None:
    """A median and nine deciles; mean rank error.

    Two thirds of what a quantile costs here go into its interval, which peers do not have: they are
    granted on top, so that the published points cost the same.
    """
    epsilon, points = 0.2, 2049
    for wanted in ((0.5,), tuple(k / 10 for k in range(1, 10))):
        name = f"{len(wanted)} quantile(s), epsilon={epsilon}, ranks"
        learner = Quantiles(column="x", quantiles=wanted, points=points)
        mine = ours(learner, PermuteAndFlip(), 3 * epsilon, 0.0, public=True, values=values)
        here = rank_error(mine, values, wanted, draws)
        peer = diffprivlib_of("quantile", values, list(wanted), epsilon=epsilon, bounds=(LOW, HIGH))
        told(f"{name}, public n", here, "diffprivlib", rank_error(peer, values, wanted, draws))
        mine = ours(learner, PermuteAndFlip(), 3 * epsilon, 0.0, public=False, values=values)
        here = rank_error(mine, values, wanted, draws)
        peer = opendp_quantiles(values, wanted, epsilon, points)
        told(f"{name}, private n", here, "OpenDP", rank_error(peer, values, wanted, draws))
    cumulated(values, wanted, 257, draws)


def cumulated(
    values: NDArray[np.float64], wanted: tuple[float, ...], points: int, draws: int
) -> None:
    """The deciles from one noisy distribution, against single choices of the same learner."""
    learner = Workload(column="x", bins=points - 1, ask_for="prefixes")
    mine = ours(learner, Gaussian(), 1.0, 1e-6, public=False, values=values)
    cut = np.linspace(LOW, HIGH, points)[1:]

    def inverted(number: int) -> Any:
        rising = np.maximum.accumulate(mine(number))
        return np.interp(np.array(wanted) * rising[-1], rising, cut)

    here = rank_error(inverted, values, wanted, draws)
    choices = Quantiles(column="x", quantiles=wanted, points=points)
    single = ours(choices, Exponential(), 1.0, 1e-6, public=False, values=values)
    there = rank_error(single, values, wanted, draws)
    told(f"{len(wanted)} quantiles, (1, 1e-6), ranks: workload", here, "choices", there)


def tables(values: NDArray[np.float64], draws: int) -> None:
    """A histogram, and prefix sums of 64 cells."""
    epsilon, bins = 0.5, 20
    truth = np.histogram(values, bins=bins, range=(LOW, HIGH))[0]
    learner = Histogram(column="x", bins=bins)
    mine = ours(learner, Laplace(), epsilon, 0.0, public=False, values=values)
    drawn = diffprivlib_of("histogram", values, epsilon=epsilon, bins=bins, range=(LOW, HIGH))
    found = error(mine, truth, draws), error(lambda n: drawn(n)[0], truth, draws)
    told(f"histogram of {bins}, epsilon={epsilon}", found[0], "diffprivlib", found[1])
    truth = np.cumsum(np.histogram(values, bins=64, range=(LOW, HIGH))[0])
    budget = 1.0, 1e-6
    learner = Workload(column="x", bins=64, ask_for="prefixes")
    mine = ours(learner, Gaussian(), *budget, public=False, values=values)
    cells = ours(Histogram(column="x", bins=64), Gaussian(), *budget, public=False, values=values)
    found = error(mine, truth, draws), error(lambda n: np.cumsum(cells(n)), truth, draws)
    told("64 prefixes, (1, 1e-6): optimal strategy", found[0], "cells summed", found[1])


def seconds() -> None:
    """One run of a mean, a histogram and a median over 10^6 records."""
    values = records(1_000_000)
    for learner, mechanism in (
        (Mean(column="x"), Gaussian()),
        (Histogram(column="x", bins=100), Gaussian()),
        (Quantiles(column="x", points=1025), Exponential()),
    ):
        mine = ours(learner, mechanism, 1.0, 1e-6, public=False, values=values)
        start = time.perf_counter()
        mine(0)
        print(f"{type(learner).__name__}, 10^6 records: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args().draws
    warnings.filterwarnings("ignore")
    values = records()
    print(f"{RECORDS} records, {draws} draws; standard error of a ratio about "
          f"{100 / math.sqrt(draws):.0f} %")  # fmt: skip
    means(values, draws)
    quantiles(values, max(20, draws // 4))
    tables(values, draws)
    seconds()


if __name__ == "__main__":
    main()
