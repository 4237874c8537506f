"""Prefixes, ranges and quantiles: errors and intervals against those of commit d655587.

`python benchmarks/ranks.py [--draws N]`. What that commit published is still there: `bars: single`
and `method: choice`, at the same budget and relation. Each line has the figure by formula or before
data, the figure over draws of the noise, and the ratio of the older one to this one: above 1, this
one is more exact. Records are made up: 5,000 skewed values with ties in [0, 100].
"""

from __future__ import annotations

import argparse
import math

import attrs
import numpy as np
from numpy.typing import NDArray

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Answer, Domain, PrivacyBudget, PublicRandomness, Range
from dpcore.encoding.tables import project_table
from dpcore.randomness import SecretRandomness
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.workload import Workload

LOW, HIGH, RECORDS = 0.0, 100.0, 5000
MOST_DRAWN = 64
DECILES = tuple(k / 10 for k in range(1, 10))


def records() -> NDArray[np.float64]:
    """Skewed values, a fifth of them the same one."""
    rng = np.random.default_rng(0)
    values = np.clip(rng.lognormal(3.0, 0.7, RECORDS), LOW, HIGH)
    return np.where(rng.random(RECORDS) < 0.2, 20.0, values)


@attrs.frozen
class Priced:
    """One learner at one budget, with what it will publish at any draw of the noise."""

    learner: Workload | Quantiles
    scheduled: object
    public: object
    noise_distributions: dict[str, object]
    encoded: object

    @classmethod
    def of(
        cls, learner: Workload | Quantiles, epsilon: float, delta: float, *, public: bool = False
    ) -> Priced:
        """Priced under add/remove, or under replacement with a public n."""
        plan = dpcore.price(
            domain=Domain(columns={"x": Range(LOW, HIGH)}, exact=RECORDS if public else None),
            adjacency=REPLACE_ONE if public else ADD_REMOVE,
            budget=PrivacyBudget(epsilon=epsilon, delta=delta),
            learner=learner,
            randomness=PublicRandomness(1),
        )
        (scheduled,) = plan.schedule.releases
        noise_distributions = {
            name: planned_query.noise_distribution
            for name, planned_query in scheduled.queries.items()
        }
        public_facts = scheduled.public(PublicRandomness(1))
        encoded = project_table(public_facts.domain, {"x": records()})
        return cls(learner, scheduled, public_facts, noise_distributions, encoded)

    def published(self, seed: int) -> object:
        """Return the table of one draw."""
        state, number = self.learner.start(self.public), 0
        while (query := self.learner.ask(state)) is not None:
            number += 1
            planned_query = self.scheduled.queries[query.name]
            randomness = SecretRandomness.rehearsal(seed)
            value = self.learner.statistic(
                query, self.encoded, self.public, randomness.learner(0, query.name, number)
            )
            released = planned_query.release(value, query, randomness.noise(0, query.name, number))
            answer = Answer(
                query=query, number=number, value=released, mechanism=planned_query.mechanism,
                noise_distribution=planned_query.noise_distribution,
            )  # fmt: skip
            state = self.learner.update(state, answer)
        return self.learner.model(state).tables[""]


def compare(name: str, here: float, before: float, unit: str = "") -> None:
    """One line."""
    print(f"{name}: {here:.4g}{unit}, before {before:.4g}{unit}, ratio {before / here:.3g}")


def prefixes(kind: str, cells: int, epsilon: float, delta: float, draws: int) -> None:
    """Root mean square error by formula and by draws, the intervals, and how often all hold."""
    learner, found = Workload(column="x", bins=cells, ask_for=kind), {}
    counts = np.histogram(records(), bins=cells, range=(LOW, HIGH))[0]
    for intervals in ("joint", "single"):
        priced = Priced.of(attrs.evolve(learner, bars=intervals), epsilon, delta)
        strategy = priced.learner.strategy(priced.public)
        truth, distribution = (
            strategy.answers @ (strategy.measured @ counts),
            priced.noise_distributions["measured"],
        )
        rms = distribution.std * math.sqrt(strategy.total / len(truth))
        half = priced.learner.half_widths(distribution, priced.public)
        squares, covered = [], 0
        # Draws of what was published then take hours of many cells: the formula has to serve.
        for seed in range(draws if intervals == "joint" or cells <= MOST_DRAWN else 0):
            table = priced.published(seed)
            squares.append(float(np.mean((table.estimate - truth) ** 2)))
            covered += bool(((table.low - 1e-6 <= truth) & (truth <= table.high + 1e-6)).all())
        drawn = math.sqrt(np.mean(squares)) if squares else math.nan
        found[intervals] = (rms, drawn, float(half.max()), covered / draws if squares else math.nan)
    title = f"{cells} {kind} at ({epsilon:g}, {delta:g})"
    joint, single = found["joint"], found["single"]
    compare(f"{title}, error by formula", joint[0], single[0])
    compare(f"{title}, error over {draws} draws", joint[1], single[1])
    compare(f"{title}, widest interval", joint[2], single[2])
    print(f"{title}, all intervals held in {joint[3]:.4f} of draws, before {single[3]:.4f}")


def quantiles(
    fractions: tuple[float, ...], epsilon: float, delta: float, draws: int, *, public: bool
) -> None:
    """The intervals before data, and errors and widths of intervals in ranks over draws."""
    learner, values, found = Quantiles(column="x", quantiles=fractions), np.sort(records()), {}
    wanted = np.array(fractions) * RECORDS
    for method in (None, "choice"):
        priced = Priced.of(attrs.evolve(learner, method=method), epsilon, delta, public=public)
        errors, widths, covered = [], [], 0
        for seed in range(draws):
            table = priced.published(seed)
            # The distance of a rank from those of a value: 0 where the value has this rank.
            step = (HIGH - LOW) / (learner.points - 1) / 2
            below = np.searchsorted(values, table.estimate - step, side="left")
            at_most = np.searchsorted(values, table.estimate + step, side="right")
            errors.append(np.maximum(np.maximum(below - wanted, wanted - at_most), 0))
            first = np.searchsorted(values, table.low - 1e-9, side="left")
            last = np.searchsorted(values, table.high + 1e-9, side="right")
            widths.append(np.maximum(last - wanted, wanted - first))
            covered += bool(((first <= wanted) & (wanted <= last)).all())
        (line, *_) = priced.learner.forecast(priced.public, priced.noise_distributions)
        rms = math.sqrt(np.mean(np.square(errors)))
        found[method] = (rms, float(np.mean(widths)), covered / draws, line)
    title = f"{len(fractions)} quantile(s) at ({epsilon:g}, {delta:g})"
    title += f", {'public' if public else 'private'} n"
    here, before = found[None], found["choice"]
    print(f"{title}: {here[3]}; before {before[3]}")
    if here == before:
        print(f"{title}: a choice, as before; error {here[0]:.3g} ranks")
        return
    compare(f"{title}, error over {draws} draws", here[0], before[0], " ranks")
    compare(f"{title}, mean reach of an interval", here[1], before[1], " ranks")
    print(f"{title}, all intervals held in {here[2]:.4f} of draws, before {before[2]:.4f}")


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    draws = parser.parse_args().draws
    for kind, cells, epsilon, delta in (
        ("prefixes", 64, 0.5, 0.0),
        ("prefixes", 1024, 0.5, 0.0),
        ("ranges", 64, 0.5, 0.0),
        ("prefixes", 256, 0.5, 1e-6),
        ("prefixes", 1024, 0.5, 1e-6),
    ):
        prefixes(kind, cells, epsilon, delta, draws)
    for fractions in ((0.5,), (0.25, 0.5, 0.75), DECILES):
        for delta, public in ((1e-6, False), (1e-6, True), (0.0, False)):
            quantiles(fractions, 0.5, delta, draws, public=public)


if __name__ == "__main__":
    main()
