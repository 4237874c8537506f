"""Everyday statistics next to OpenDP, diffprivlib and PipelineDP: errors at the same epsilon.

Run in an environment that has them (`make test-hosts` builds one without PipelineDP, which is no
dependency: `.venv/hosts/bin/python -m pip install -e plugins/statistics pipeline-dp` adds both):
`.venv/hosts/bin/python benchmarks/everyday.py [--draws N]`. It cannot be called `statistics.py`:
Python would take it for the module of that name.

Each line is an error over draws of the noise, on the same synthetic records under the same
relation, and the ratio of the peer's to dpcore's with its standard error (of the two means over
draws): above 1, dpcore is more exact. Pure budgets: Laplace noise and permute-and-flip here. Peers
are used as their own documentation says, with the same declared range.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Domain, PrivacyBudget, PublicRandomness, Range
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.domain.columns import Texts
from dpcore.transcript.replay_process import HERE
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.mechanisms.thresholded import Thresholded
from dpcore_statistics.private_groups import PrivateGroups
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
        randomness=PublicRandomness(1),
    )
    return lambda _: plan.run({"x": values}, replaying=HERE).models["release"].arrays()["estimate"]


def ours_shown(learner: Any, mechanism: Any, epsilon: float, values: Any) -> Draw:
    """Return what is displayed next to the estimates: counts that are not negative."""
    plan = dpcore.price(
        domain=Domain(columns={"x": Range(LOW, HIGH)}),
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=epsilon, delta=0.0),
        learner=learner,
        mechanism=mechanism,
        randomness=PublicRandomness(1),
    )
    return lambda _: plan.run({"x": values}, replaying=HERE).models["release"].arrays()["display"]


class Found(NamedTuple):
    """An error, and its standard error over draws."""

    error: float
    off: float


def error(draw: Draw, truth: Any, draws: int) -> Found:
    """Root mean squared error over draws, and over entries."""
    truth = np.atleast_1d(np.asarray(truth, dtype=float))
    off = [np.atleast_1d(draw(number))[: truth.size] - truth for number in range(draws)]
    squares = np.mean(np.square(off), axis=1)
    root = math.sqrt(squares.mean())
    return Found(root, float(squares.std()) / math.sqrt(draws) / (2 * root))


def rank_error(draw: Draw, values: NDArray[np.float64], quantiles: Any, draws: int) -> Found:
    """Mean distance of the rank of a published quantile from the one asked for."""
    ordered = np.sort(values)
    found = np.zeros((draws, len(quantiles)))
    for number in range(draws):
        for place, (q, t) in enumerate(zip(quantiles, np.atleast_1d(draw(number)), strict=True)):
            low, high = (np.searchsorted(ordered, t, side=side) for side in ("left", "right"))
            found[number, place] = max(0.0, low - q * len(values), q * len(values) - high)
    means = found.mean(axis=1)
    return Found(float(means.mean()), float(means.std()) / math.sqrt(draws))


def report(name: str, here: Found, peer: str, there: Found) -> None:
    """One line."""
    ratio = there.error / here.error
    off = ratio * math.hypot(there.off / there.error, here.off / here.error)
    print(
        f"{name:46} dpcore {here.error:9.4g}   {peer:14} {there.error:9.4g}   "
        f"ratio {ratio:5.2f} +- {off:.2f}",
        flush=True,
    )


def opendp_mean(values: NDArray[np.float64], epsilon: float) -> Draw:
    """Return a noisy sum over a noisy count, half of the budget each."""
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
    """Return one choice for each, of the same candidates."""
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
        report(f"mean, private n, epsilon={epsilon}", found[0], "OpenDP", found[1])
        mine = ours(Mean(column="x"), Laplace(), epsilon, 0.0, public=True, values=values)
        peer = diffprivlib_of("mean", values, epsilon=epsilon, bounds=(LOW, HIGH))
        found = error(mine, values.mean(), draws), error(peer, values.mean(), draws)
        report(f"mean, public n, epsilon={epsilon}", found[0], "diffprivlib", found[1])


def diffprivlib_of(tool: str, values: NDArray[np.float64], *more: Any, **fields: Any) -> Draw:
    """Return one of its tools."""
    import diffprivlib

    return lambda _: getattr(diffprivlib.tools, tool)(values, *more, **fields)


def quantiles(values: NDArray[np.float64], draws: int) -> None:
    """A median and nine deciles, without intervals, which peers do not have; mean rank error."""
    epsilon, points = 0.2, 2049
    for wanted in ((0.5,), tuple(k / 10 for k in range(1, 10))):
        name = f"{len(wanted)} quantile(s), epsilon={epsilon}, ranks"
        learner = Quantiles(
            column="x", quantiles=wanted, points=points, interval=False, method="choice"
        )
        mine = ours(learner, PermuteAndFlip(), epsilon, 0.0, public=True, values=values)
        here = rank_error(mine, values, wanted, draws)
        peer = diffprivlib_of("quantile", values, list(wanted), epsilon=epsilon, bounds=(LOW, HIGH))
        report(f"{name}, public n", here, "diffprivlib", rank_error(peer, values, wanted, draws))
        mine = ours(learner, PermuteAndFlip(), epsilon, 0.0, public=False, values=values)
        here = rank_error(mine, values, wanted, draws)
        peer = opendp_quantiles(values, wanted, epsilon, points)
        report(f"{name}, private n", here, "OpenDP", rank_error(peer, values, wanted, draws))
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
    choices = Quantiles(
        column="x", quantiles=wanted, points=points, interval=False, method="choice"
    )
    single = ours(choices, Exponential(), 1.0, 1e-6, public=False, values=values)
    there = rank_error(single, values, wanted, draws)
    report(f"{len(wanted)} quantiles, (1, 1e-6), ranks: workload", here, "choices", there)


def tables(values: NDArray[np.float64], draws: int) -> None:
    """A histogram, as it is published and as it is displayed (none negative, which is what the peer
    publishes: less noise in empty cells, and a bias), and prefix sums of 64 cells."""
    epsilon, bins = 0.5, 20
    truth = np.histogram(values, bins=bins, range=(LOW, HIGH))[0]
    learner = Histogram(column="x", bins=bins)
    mine = ours(learner, DiscreteLaplace(), epsilon, 0.0, public=False, values=values)
    drawn = diffprivlib_of("histogram", values, epsilon=epsilon, bins=bins, range=(LOW, HIGH))
    found = error(mine, truth, draws), error(lambda n: drawn(n)[0], truth, draws)
    report(f"histogram of {bins}, epsilon={epsilon}", found[0], "diffprivlib", found[1])
    shown = ours_shown(learner, DiscreteLaplace(), epsilon, values)
    found = error(shown, truth, draws), found[1]
    report("the same, none negative (display)", found[0], "diffprivlib", found[1])
    truth = np.cumsum(np.histogram(values, bins=64, range=(LOW, HIGH))[0])
    budget = 1.0, 1e-6
    learner = Workload(column="x", bins=64, ask_for="prefixes")
    mine = ours(learner, Gaussian(), *budget, public=False, values=values)
    cells = ours(Histogram(column="x", bins=64), Gaussian(), *budget, public=False, values=values)
    found = error(mine, truth, draws), error(lambda n: np.cumsum(cells(n)), truth, draws)
    report("64 prefixes, (1, 1e-6): optimal strategy", found[0], "cells summed", found[1])


def towns(size: int = 400) -> tuple[list[str], NDArray[np.float64]]:
    """Keys whose frequencies fall like 1/k^1.1, and a value of each record."""
    rng = np.random.default_rng(0)
    counts = np.maximum(1, 2000 / np.arange(1, size + 1) ** 1.1).astype(int)
    which = np.repeat(np.arange(size), counts)
    values = np.clip(rng.normal(20 + which % 60, 5), LOW, HIGH)
    return [f"k{number:03d}" for number in which], values


Groups = Callable[[], dict[str, tuple[float, float]]]


def our_groups(
    keys: list[str], values: NDArray[np.float64], epsilon: float, delta: float
) -> Groups:
    """Counts and means by keys that no one listed."""
    plan = dpcore.price(
        domain=Domain(columns={"key": Texts(4), "x": Range(LOW, HIGH)}),
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=epsilon, delta=delta),
        learner=PrivateGroups(column="key", mean_of="x", most=200),
        mechanism={"keys": Thresholded(shown=delta / 10), "means": Gaussian()},
        randomness=PublicRandomness(1),
    )

    def drawn() -> dict[str, tuple[float, float]]:
        tables = plan.run({"key": keys, "x": values}, replaying=HERE).models["release"].tables
        counts = {row[0]: row[1] for row in tables["count"].rows()}
        return {row[0]: (counts[row[0]], row[1]) for row in tables["mean"].rows()}

    return drawn


def pipeline_groups(
    keys: list[str], values: NDArray[np.float64], epsilon: float, delta: float
) -> Groups:
    """PipelineDP's, each record another person's, Gaussian noise and its default selection."""
    import pipeline_dp

    metrics = pipeline_dp.Metrics
    params = pipeline_dp.AggregateParams(
        metrics=[metrics.COUNT, metrics.MEAN],
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    rows = [(number, *pair) for number, pair in enumerate(zip(keys, values.tolist(), strict=True))]

    def drawn() -> dict[str, tuple[float, float]]:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        found = engine.aggregate(rows, params, extractors)
        accountant.compute_budgets()
        return {key: (one.count, one.mean) for key, one in found}

    return drawn


def private_keys(draws: int) -> None:
    """Counts and means of the 20 most frequent of 400 keys, and how many keys are published."""
    try:
        import pipeline_dp  # noqa: F401  # whether it is there
    except ImportError:
        print("PipelineDP is not installed: no comparison of private keys")
        return
    keys, values = towns()
    names, which, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=values) / sizes
    largest = np.argsort(-sizes)[:20]
    truth = {names[k]: (float(sizes[k]), float(means[k])) for k in largest}
    found = []
    for made in (our_groups, pipeline_groups):
        released = [draw() for draw in [made(keys, values, 1.0, 1e-6)] for _ in range(draws)]
        errors = []
        for number in range(2):
            off = [
                float(np.mean([(one[key][number] - truth[key][number]) ** 2
                               for key in truth if key in one]))
                for one in released
            ]  # fmt: skip
            root = math.sqrt(np.mean(off))
            errors.append(Found(root, float(np.std(off)) / math.sqrt(draws) / (2 * root)))
        shown = [float(len(one)) for one in released]
        lacking = float(np.mean([len({*truth} - {*one}) for one in released]))
        found.append((errors, float(np.mean(shown)), lacking))
    for number, what in enumerate(("counts", "means")):
        report(f"{what} by private keys, (1, 1e-6)", found[0][0][number], "PipelineDP",
             found[1][0][number])  # fmt: skip
    for who, (_, shown_keys, lacking) in zip(("dpcore", "PipelineDP"), found, strict=True):
        print(
            f"{who}: {shown_keys:.1f} keys published of {len(names)}, {lacking:.2f} of the 20 lack"
        )


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
    print(f"{RECORDS} records, {draws} draws")
    means(values, draws)
    quantiles(values, draws)
    tables(values, draws)
    private_keys(max(20, draws // 10))
    seconds()


if __name__ == "__main__":
    main()
