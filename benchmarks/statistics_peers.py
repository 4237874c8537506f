"""Counts, sums, means, histograms, deciles and groups next to OpenDP, diffprivlib and PipelineDP.

Run it in an environment that has them (`python -m venv peers`; `peers/bin/pip install .
./plugins/models ./plugins/statistics opendp diffprivlib pipeline-dp 'scikit-learn<1.7'`):
`peers/bin/python benchmarks/statistics_peers.py [--draws N]`. A peer that is missing is skipped.

Both have the same guarantee, the same declared ranges and the same records: synthetic ones, and the
charges of insurance.csv in the folder $DPCORE_DATA. Each line has the root mean square error over
draws of the noise (ours over five times as many), and their ratio with its standard error: above 1,
dpcore is more exact. OpenDP and PipelineDP protect a record that comes or goes, diffprivlib one
that is replaced. Errors of deciles are in ranks.

Peers are used as their own documentation says. Of these, dpcore by itself publishes intervals too;
its deciles are the ones that come with a joint band.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
from everyday import Found, error, report
from numpy.typing import NDArray

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    PrivacyBudget,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.encoding.tables import project_table
from dpcore_statistics.count import Count
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.total import Total

DATA = Path(os.environ.get("DPCORE_DATA", "."))
DECILES = tuple(k / 10 for k in range(1, 10))
CELLS, POINTS, GROUPS = 20, 513, 8
BUDGETS = ((0.5, 0.0), (1.0, 1e-6))

Numbers = NDArray[np.float64]
Draw = Callable[[int], Any]


@attrs.frozen(kw_only=True)
class Case:
    """A column with its declared range, and groups of its records.

    Args:
        values: In the range. groups: Numbers of groups, below `GROUPS`.
    """

    name: str
    values: Numbers
    groups: NDArray[np.intp]
    low: float
    high: float

    @property
    def domain(self) -> Domain:
        """What is declared: the range, and the names of the groups."""
        return Domain(
            columns={"x": Range(self.low, self.high), "g": Categories(tuple(range(GROUPS)))}
        )

    @property
    def cells(self) -> NDArray[np.intp]:
        """Every record's cell of a histogram."""
        place = (self.values - self.low) / (self.high - self.low) * CELLS
        return np.minimum(place.astype(np.intp), CELLS - 1)


def cases() -> Iterator[Case]:
    """Yield a synthetic column, and that of a file where it is there."""
    rng = np.random.default_rng(0)
    yield case("skewed", np.clip(rng.lognormal(3.0, 0.7, 1000), 0, 100), 0, 100)
    if (DATA / "insurance.csv").is_file():
        with (DATA / "insurance.csv").open() as lines:
            values = np.array([float(row["charges"]) for row in csv.DictReader(lines)])
        yield case("charges", values, 0, 100_000)


def case(name: str, values: Numbers, low: float, high: float) -> Case:
    """Return a column whose groups are of unequal sizes."""
    groups = np.random.default_rng(1).geometric(0.4, len(values)) % GROUPS
    return Case(name=name, values=values, groups=groups, low=low, high=high)


def ours(subject: Case, learner: Any, budget: tuple[float, float], *, public: bool = False) -> Draw:
    """The unbiased numbers of a learner's tables, one after the other, at a number of the draw."""
    domain = attrs.evolve(subject.domain, exact=len(subject.values) if public else None)
    plan = dpcore.price(
        domain=domain,
        adjacency=REPLACE_ONE if public else ADD_REMOVE,
        budget=PrivacyBudget(epsilon=budget[0], delta=budget[1]),
        learner=learner,
        randomness=PublicRandomness(1),
    )
    # The exact sums of the records are computed once: a draw is one of the noise.
    (scheduled,) = plan.schedule.releases
    (planned_query,), learner_public = (
        scheduled.queries.values(),
        scheduled.public(PublicRandomness(1)),
    )
    records = project_table(domain, {"x": subject.values, "g": subject.groups})
    randomness = SecretRandomness.rehearsal(0).learner(0, planned_query.query.name, 1)
    exact = scheduled.learner.statistic(planned_query.query, records, learner_public, randomness)
    state = scheduled.learner.start(learner_public)

    def draw(number: int) -> Numbers:
        # Learners draw apart, so that the luck of a few draws is not that of every line.
        noise = SecretRandomness.rehearsal(number).noise(0, f"{learner}", 1)
        answer = Answer(
            query=planned_query.query,
            number=1,
            value=planned_query.release(exact, planned_query.query, noise),
            mechanism=planned_query.mechanism,
            noise_distribution=planned_query.noise_distribution,
        )
        release = scheduled.learner.model(scheduled.learner.update(state, answer))
        numbers = [
            figures.estimate if figures.unbiased is None else figures.unbiased
            for figures in release.tables.values()
        ]
        return np.concatenate(numbers)

    return draw


@attrs.frozen
class Peer:
    """Another toolkit, with one column and one budget."""

    name: ClassVar[str]
    package: ClassVar[str]

    subject: Case
    epsilon: float
    delta: float

    def cut(self, draw: Draw) -> Draw:
        """Means within the declared range, as ours are."""
        return lambda number: np.clip(draw(number), self.subject.low, self.subject.high)


class OpenDP(Peer):
    """Its measurements, with the scale that it finds for the budget itself."""

    name, package = "OpenDP", "opendp"

    @property
    def dp(self) -> Any:
        """The library, with what it calls contributed."""
        library = importlib.import_module("opendp.prelude")
        library.enable_features("contrib")
        return library

    def measured(
        self, transformation: Any, records: list[Any], part: float = 1.0, most: float = 1.0
    ) -> Draw:
        """Discrete Laplace noise; with a delta discrete Gaussian noise, by zCDP.

        Args:
            most: About how far a record moves the answer: its search for the scale starts there.
        """
        dp = self.dp

        def laplace(scale: float) -> Any:
            return transformation >> dp.m.then_laplace(scale)

        def gaussian(scale: float) -> Any:
            divergence = dp.c.make_zCDP_to_approxDP(transformation >> dp.m.then_gaussian(scale))
            return dp.c.make_fix_delta(divergence, self.delta * part)

        epsilon = self.epsilon * part
        if self.delta:
            answer = dp.binary_search_chain(
                gaussian, 1, (epsilon, self.delta * part), bounds=(most / 4, most * 1e5)
            )
        else:
            answer = dp.binary_search_chain(laplace, 1, epsilon)
        return lambda _: answer(records)

    def space(self, kind: Any) -> Any:
        """Vectors of a kind of atom, and the relation."""
        atoms = self.dp.atom_domain(T=kind, nan=False) if kind is float else self.dp.atom_domain(
            T=kind
        )  # fmt: skip
        return self.dp.vector_domain(atoms), self.dp.symmetric_distance()

    def count(self) -> Draw:
        """Return the number of records."""
        records = self.subject.values.tolist()
        return self.measured(self.space(float) >> self.dp.t.then_count(), records)

    def total(self, part: float = 1.0) -> Draw:
        """Return a sum of whole numbers: one of floats needs a public number of records.

        Values are rounded to a thousandth of the range, which no error shows.
        """
        unit = (self.subject.high - self.subject.low) / 1000
        bounds = (round(self.subject.low / unit), round(self.subject.high / unit))
        chain = self.space(int) >> self.dp.t.then_clamp(bounds) >> self.dp.t.then_sum()
        records = np.rint(self.subject.values / unit).astype(int).tolist()
        draw = self.measured(chain, records, part, max(map(abs, bounds)))
        return lambda number: draw(number) * unit

    def mean(self) -> Draw:
        """Return a sum over a count, half of the budget each."""
        records = self.subject.values.tolist()
        sums = self.total(0.5)
        counts = self.measured(self.space(float) >> self.dp.t.then_count(), records, 0.5)
        return self.cut(lambda number: sums(number) / max(1, counts(number)))

    def by_category(self, records: NDArray[np.intp], size: int, *more: Any) -> Draw:
        """Counts of disjoint categories, or what follows from these."""
        # Its trees are of whole numbers, for which it has Laplace noise only.
        delta = 0.0 if more else self.delta
        norm = "L2Distance<f64>" if delta else "L1Distance<i32>"
        chain = self.space(int) >> self.dp.t.then_count_by_categories(
            [*range(size)], null_category=False, MO=norm, TOA="i32"
        )
        for step in more:
            chain = chain >> step
        return attrs.evolve(self, delta=delta).measured(chain, records.tolist())

    def histogram(self) -> Draw:
        """Counts of the cells."""
        return self.by_category(self.subject.cells, CELLS)

    def groups(self) -> Draw:
        """Counts of the groups."""
        return self.by_category(self.subject.groups, GROUPS)

    def deciles(self) -> Draw:
        """From a consistent tree of cells, as its documentation does for several quantiles."""
        subject, transform = self.subject, self.dp.t
        branches, size = transform.choose_branching_factor(len(subject.values)), POINTS - 1
        place = (subject.values - subject.low) / (subject.high - subject.low) * size
        cells = np.minimum(place.astype(np.intp), size - 1)
        tree = self.by_category(cells, size, transform.then_b_ary_tree(size, branches))
        consistent = transform.make_consistent_b_ary_tree(branches)
        grid = np.linspace(subject.low, subject.high, POINTS).tolist()
        quantiles = transform.make_quantiles_from_counts(grid, list(DECILES), F="f64")
        return lambda number: np.array(
            quantiles([float(count) for count in consistent(tree(number))])
        )


class PipelineDP(Peer):
    """Its aggregates, each record another person's, of public groups."""

    name, package = "PipelineDP", "pipeline_dp"

    @property
    def library(self) -> Any:
        """The library."""
        return importlib.import_module(self.package)

    def drawn(
        self, fields: Sequence[str], groups: NDArray[np.intp], size: int, *metrics: Any
    ) -> Draw:
        """Return the fields of every group, one after the other."""
        library, subject, public = self.library, self.subject, [*range(size)]
        kind = library.NoiseKind.GAUSSIAN if self.delta else library.NoiseKind.LAPLACE
        params = library.AggregateParams(
            metrics=[*metrics],
            noise_kind=kind,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=subject.low,
            max_value=subject.high,
        )
        extractors = library.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        columns = range(len(groups)), groups.tolist(), subject.values.tolist()
        rows = [*zip(*columns, strict=True)]

        def draw(_: int) -> Numbers:
            accountant = library.NaiveBudgetAccountant(self.epsilon, self.delta)
            engine = library.DPEngine(accountant, library.LocalBackend())
            answer = engine.aggregate(rows, params, extractors, public)
            accountant.compute_budgets()
            by_group = dict(answer)
            return np.array([getattr(by_group[g], field) for field in fields for g in public])

        return draw

    def _of_all(self, field: str, metric: Any) -> Draw:
        return self.drawn([field], np.zeros(len(self.subject.values), dtype=np.intp), 1, metric)

    def count(self) -> Draw:
        """Return the number of records."""
        return self._of_all("count", self.library.Metrics.COUNT)

    def total(self) -> Draw:
        """Return the sum."""
        return self._of_all("sum", self.library.Metrics.SUM)

    def mean(self) -> Draw:
        """Return the mean."""
        return self.cut(self._of_all("mean", self.library.Metrics.MEAN))

    def histogram(self) -> Draw:
        """Counts of the cells, as public groups."""
        return self.drawn(["count"], self.subject.cells, CELLS, self.library.Metrics.COUNT)

    def groups(self) -> Draw:
        """Counts of the groups."""
        return self.drawn(["count"], self.subject.groups, GROUPS, self.library.Metrics.COUNT)

    def group_means(self) -> Draw:
        """Means of the groups."""
        return self.cut(
            self.drawn(["mean"], self.subject.groups, GROUPS, self.library.Metrics.MEAN)
        )

    def deciles(self) -> Draw:
        """From its tree of quantiles."""
        percentiles = [round(100 * q) for q in DECILES]
        metrics = [self.library.Metrics.PERCENTILE(percentile) for percentile in percentiles]
        fields = [f"percentile_{percentile}" for percentile in percentiles]
        return self.drawn(fields, np.zeros(len(self.subject.values), dtype=np.intp), 1, *metrics)


class Diffprivlib(Peer):
    """Its tools that are about a record that is replaced; without a delta."""

    name, package = "diffprivlib", "diffprivlib"

    def _tool(self, name: str, *more: Any) -> Draw:
        bounds = self.subject.low, self.subject.high
        tool = getattr(importlib.import_module("diffprivlib.tools"), name)
        values = self.subject.values
        return lambda _: tool(values, *more, epsilon=self.epsilon, bounds=bounds)

    def total(self) -> Draw:
        """Return the sum."""
        return self._tool("sum")

    def mean(self) -> Draw:
        """Return the mean."""
        return self._tool("mean")

    def deciles(self) -> Draw:
        """Return one choice each."""
        return self._tool("quantile", list(DECILES))


def ranks(subject: Case, draw: Draw) -> Draw:
    """Return how far the ranks of drawn deciles are from those that they should have."""
    ordered, n = np.sort(subject.values), len(subject.values)
    goals = np.array(DECILES) * n

    def off(number: int) -> Numbers:
        points = np.asarray(draw(number), dtype=float)[: len(DECILES)]
        below = np.searchsorted(ordered, points, side="left")
        up_to = np.searchsorted(ordered, points, side="right")
        return np.asarray(np.maximum(0.0, np.maximum(below - goals, goals - up_to)))

    return off


def truths(subject: Case) -> dict[str, tuple[Any, Any]]:
    """Of every statistic: our learner, and the number itself."""
    values, groups = subject.values, subject.groups
    sizes = np.bincount(groups, minlength=GROUPS)
    cells = np.bincount(subject.cells, minlength=CELLS)
    means = np.bincount(groups, weights=values, minlength=GROUPS) / sizes
    return {
        "count": (Count(), len(values)),
        "total": (Total(column="x"), values.sum()),
        "mean": (Mean(column="x"), values.mean()),
        "histogram": (Histogram(column="x", bins=CELLS), cells),
        "groups": (Count(by=("g",)), sizes),
        "group_means": (GroupBy(by=("g",), column="x"), means),
        # With one release in the budget, as the documentation says: Laplace noise uses no delta.
        "deciles": (
            Quantiles(column="x", quantiles=DECILES, points=POINTS, distance="l1"),
            np.zeros(9),
        ),
    }


def compare(subject: Case, budget: tuple[float, float], draws: int) -> None:
    """All statistics of one column at one budget, next to every peer that has them."""
    for name, (learner, truth) in truths(subject).items():
        errors: dict[bool, Found] = {}
        # A table of means follows that of counts; of deciles the error is that of their ranks.
        first = GROUPS if name == "group_means" else 0
        off = partial(ranks, subject) if name == "deciles" else (lambda draw: draw)
        for peer in (OpenDP, PipelineDP, Diffprivlib):
            public = peer is Diffprivlib
            is_here = find_spec(peer.package) is not None
            if not is_here or not hasattr(peer, name) or (public and budget[1]):
                continue
            if public not in errors:
                draw = off(ours(subject, learner, budget, public=public))
                # A draw of ours is cheap: more of them make the ratio known more exactly.
                errors[public] = error(partial(_after, draw, first), truth, 5 * draws)
            there = error(off(getattr(peer(subject, *budget), name)()), truth, draws)
            label = f"{subject.name} {name} {budget[0]:g}, {budget[1]:g}"
            report(label, errors[public], peer.name, there)


def _after(draw: Draw, first: int, number: int) -> Numbers:
    """Return the numbers of a draw from one on."""
    return np.asarray(draw(number)[first:])


def main() -> None:
    """Every column, at every budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    for subject in cases():
        for budget in BUDGETS:
            compare(subject, budget, draws)


if __name__ == "__main__":
    main()
