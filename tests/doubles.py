"""Learners, bounds and mechanisms that only tests use."""

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import (
    REPLACE_ONE,
    Domain,
    Learner,
    OneShot,
    Query,
    Range,
    Sensitivity,
    SensitivityBound,
)
from dpcore.errors import SourceError, need
from dpcore.functions import Expansion, FunctionLearner, FunctionQuery
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.sensitivity import WorstCase
from dpcore.sources.opening import location, reading
from dpcore.sources.text import read_columns


def domain(records=40, columns=2, **options):
    """Columns a, b, ... in [-1, 1], labels y in [-1, 1]: encoding changes nothing."""
    names = "abcdefgh"[:columns]
    return Domain(
        columns={name: Range(-1, 1) for name in names},
        target="y",
        labels=Range(-1, 1),
        exact=records,
        **options,
    )


def table(records=40, columns=2, seed=0):
    """Random records inside `domain`."""
    rng = np.random.default_rng(seed)
    found = {name: rng.uniform(-1, 1, records) for name in "abcdefgh"[:columns]}
    return {**found, "y": rng.uniform(-1, 1, records)}


def arrays(path):
    """The arrays of an npz file, which is closed again."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


@attrs.frozen(eq=False)
class Numbers:
    """A model that is its numbers."""

    values: np.ndarray

    def predict(self, table):
        return np.full(len(table["y"]), float(np.sum(self.values)))

    def arrays(self):
        return {"values": self.values}


@attrs.frozen(kw_only=True)
class LabelMean(OneShot):
    """Total: clipped labels have a mean."""

    bounds: ClassVar[tuple[str, ...]] = ("label_mean",)
    total: ClassVar[bool] = True
    fail: str = ""

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        if self.fail == "raise":
            raise ValueError(f"the first label is {records.labels[0]}")
        if self.fail == "exit":
            raise SystemExit(3)
        if self.fail == "nan":
            return np.array([np.nan])
        if self.fail == "shape":
            return np.zeros(3)
        return np.array([records.labels.mean()])

    def assemble(self, answers, public):
        return Numbers(answers["mean"])


@attrs.frozen(kw_only=True)
class LabelMeanBound(SensitivityBound):
    learner: ClassVar[type[Learner]] = LabelMean
    validity: Any = attrs.field(factory=WorstCase)
    covers_fallback: bool = False
    reads_randomness: bool = False

    def sensitivity(self, query, learner, public, adjacency):
        if self.reads_randomness:
            public.randomness.stream("features")
        return Sensitivity(
            value=2 * public.domain.label_bound / public.domain.records,
            distance="l2",
            adjacency=REPLACE_ONE,
            source="two values of a mean",
            validity=self.validity,
            covers_fallback=self.covers_fallback,
        )


@attrs.frozen(kw_only=True)
class Staged(Learner):
    """Four queries, two of them asked again and again with args that depend on the answers.

    Total: sums of clipped labels are finite.
    """

    bounds: ClassVar[tuple[str, ...]] = ("staged",)
    total: ClassVar[bool] = True
    plan: tuple[tuple[float, int], ...] = ((0.05, 1), (0.05, 1), (0.25, 180), (0.65, 510))
    greedy: bool = False

    def queries(self, public):
        return tuple(
            Query(name=f"stage{i}", shape=(2,), distance="l2", at_most=count, share=fraction)
            for i, (fraction, count) in enumerate(self.plan)
        )

    def start(self, public):
        return (self.queries(public), 0, np.zeros(2))

    def ask(self, state):
        queries, asked, weights = state
        for query in queries:
            limit = query.at_most + (1 if self.greedy else 0)
            if asked < limit:
                return attrs.evolve(query, args={"weights": weights})
            asked -= limit
        return None

    def statistic(self, query, records, public, secret):
        clipped = np.clip(records.labels - query.args["weights"].sum(), -1, 1)
        return np.array([clipped.sum(), clipped.sum()]) / np.sqrt(2)

    def update(self, state, answer):
        queries, asked, weights = state
        return (queries, asked + 1, weights + 0.001 * answer.value)

    def model(self, state):
        return Numbers(state[2])


@attrs.frozen(kw_only=True)
class StagedBound(SensitivityBound):
    learner: ClassVar[type[Learner]] = Staged

    def sensitivity(self, query, learner, public, adjacency):
        return Sensitivity(
            value=2.0, distance="l2", adjacency=REPLACE_ONE, source="clipped to [-1, 1]"
        )


@attrs.frozen(kw_only=True)
class Bump(FunctionLearner):
    """The function mean(y) K(0, x). Total: clipped labels have a mean."""

    bounds: ClassVar[tuple[str, ...]] = ("bump",)
    total: ClassVar[bool] = True
    fail: str = ""

    def function_query(self, public):
        return FunctionQuery(
            name="bump",
            distance="rkhs",
            kernel=GaussianKernel(bandwidth=0.5),
            width=public.domain.width,
            kappa=1.0,
            label_bound=public.domain.label_bound,
            evaluation_error=1e-15,
        )

    def statistic(self, query, records, public, secret):
        if self.fail == "raise":
            raise ValueError(f"the first label is {records.labels[0]}")
        mean = np.nan if self.fail == "nan" else records.labels.mean()
        kernel = GaussianKernel(bandwidth=0.4) if self.fail == "kernel" else query.kernel
        points = np.zeros((1, query.width))
        return Expansion(kernel=kernel, points=points, coefficients=np.array([mean]))


@attrs.frozen(kw_only=True)
class BumpBound(SensitivityBound):
    learner: ClassVar[type[Learner]] = Bump
    validity: Any = attrs.field(factory=WorstCase)

    def sensitivity(self, query, learner, public, adjacency):
        return Sensitivity(
            value=2 * public.domain.label_bound / public.domain.records,
            distance="rkhs",
            adjacency=REPLACE_ONE,
            source="two values of a mean",
            validity=self.validity,
        )


def load_table(source, folder, layout, domain, *, refuse=False, total=False):
    """The declared columns of a source, in memory; arguments as `open_source` takes them."""
    declared = reading(domain, folder, layout, refuse=refuse, total=total)
    place = location(source)
    table = read_columns(place.open(declared), declared, place.name)
    need(
        total or domain.exact is None or len(table[declared.names[-1]]),
        SourceError,
        f"{place.name}: a header and no records",
    )
    return table
