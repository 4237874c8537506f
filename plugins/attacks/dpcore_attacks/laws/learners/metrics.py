"""What a metric promises: a price that no replaced record exceeds, and the hold-out's facts alone.

A metric that is paid for is released with noise of the sensitivity that it states, and nothing else
compares that with the statistic. Small hold-outs are tried with every replacement of a record by
another one of a few extreme kinds; larger ones with one or two kinds of other records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range
from dpcore.learning.metrics.base import Held, Metric, ScoreLaw
from dpcore.learning.metrics.groups import Groups
from dpcore.learning.metrics.priced import PricedMetric
from dpcore.rounding import gamma
from dpcore_attacks.attacks.source_constants import Written, written
from dpcore_attacks.laws.law import (
    Law,
    NotApplicableError,
    NotTestedError,
    Verdict,
    fail_if,
    judge_all,
)

SENSITIVITY = Law(
    "metric.sensitivity",
    "No replaced record moves a paid statistic farther than its sensitivity (attacked).",
)
PURE = Law(
    "metric.pure",
    "Figures are numbers that depend on the hold-out alone, which stays as it was, whatever came "
    "before; a stated value depends on the released statistic alone.",
)

LAWS = (SENSITIVITY, PURE)

_TARGETS: tuple[Range | Classes, ...] = (
    Range(0, 1),
    Range(-3, 5),
    Range(100, 1100),
    Classes(("no", "yes")),
    Classes(("a", "b", "c")),
)
_GROUPS = Groups(columns={"group": Categories(("x", "y"))})
_SMALL = (1, 2, 3)  # records: every hold-out of so many is tried
_SIZES = (5, 20, 101)
_LARGEST = 2000  # records of a hold-out whose size stands in the code
_COUNTS = 3  # such sizes that are tried
_SPLITS = 12  # larger hold-outs of two kinds of records, for each size
_KINDS = 9


@attrs.frozen(eq=False)
class _Kinds:
    """A few kinds of records of one target: a hold-out is a list of their numbers."""

    target: Range | Classes
    records: Held

    @classmethod
    def of(cls, target: Range | Classes, code: Written, rng: np.random.Generator) -> _Kinds:
        """Predictions and labels at both ends, between them and where the code looks."""
        if isinstance(target, Classes):
            sharp = np.eye(target.count)
            blurred = [*(0.9 * sharp + 0.1 / target.count), rng.dirichlet(np.ones(target.count))]
            probabilities = np.array([*sharp, *blurred])
            # Every label with every probability: a model may be as wrong as it likes.
            labels = np.repeat(np.arange(target.count), len(probabilities))
            probabilities = np.tile(probabilities, (target.count, 1))
            predicted, truth = target.named(probabilities.argmax(axis=1)), target.named(labels)
            scores = probabilities[:, -1]
        else:
            ends = np.array([-1.0, 1.0, 0.0, *code.numbers[:4]])
            # A number in the code may be in the file's units, or a share of the range.
            places = target.clip(
                np.concatenate([target.centre + target.half_width * ends, code.numbers[:4]])
            )
            predicted, truth = (side.ravel() for side in np.meshgrid(places, places))
            probabilities, scores = None, predicted
        # All are kept if they are few; the two ends always are.
        chosen = np.arange(len(truth))
        if len(chosen) > _KINDS:
            chosen = np.concatenate([chosen[:2], rng.permutation(chosen[2:])[: _KINDS - 2]])
        records = Held(
            predicted=predicted[chosen],
            truth=truth[chosen],
            target=target,
            groups=_GROUPS,
            codes=chosen % 3 - 1,
            law=ScoreLaw(mean=scores[chosen], std=np.full(len(chosen), 0.1)),
            probabilities=None if probabilities is None else probabilities[chosen],
        )
        return cls(target, records)

    def held(self, numbers: Sequence[int]) -> Held:
        """A hold-out with these kinds of records, in arrays of its own."""
        rows, records = np.asarray(numbers, dtype=np.intp), self.records
        assert records.law is not None
        arrays = {
            "predicted": records.predicted[rows],
            "truth": records.truth[rows],
            "codes": records.codes[rows],
        }
        if records.probabilities is not None:
            arrays["probabilities"] = records.probabilities[rows]
        for array in arrays.values():
            array.flags.writeable = False  # a metric that writes into its hold-out raises
        law = ScoreLaw(mean=records.law.mean[rows], std=records.law.std[rows])
        return attrs.evolve(records, law=law, **arrays)

    def describe(self, *numbers: int) -> str:
        """Kinds in words: the prediction, or the stated probabilities, and the label."""
        records = self.records
        stated = records.predicted if records.probabilities is None else records.probabilities
        return " and ".join(
            f"({np.array2string(np.asarray(stated[n]), precision=4)} for {records.truth[n]})"
            for n in numbers
        )

    def rests(self, sizes: Sequence[int], rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
        """All other records of a hold-out: every choice of few, then some of many."""
        kinds = range(len(self.records.truth))
        for size in _SMALL:
            yield from itertools.combinations_with_replacement(kinds, size - 1)
        for size in sizes:
            yield from ((kind,) * (size - 1) for kind in kinds)
            for _ in range(_SPLITS):
                first, second = rng.choice(len(kinds), 2)
                # Few of one kind, where a rare class is; or as many of both.
                few = int(rng.integers(size)) if rng.integers(2) else min(3, size - 1)
                yield (first,) * few + (second,) * (size - 1 - few)
            yield tuple(rng.choice(len(kinds), size - 1).tolist())


@attrs.frozen(eq=False, slots=False)
class _Trial:
    """A metric, kinds of records for each target that it is about, and sizes of hold-outs."""

    metric: Metric
    kinds: tuple[_Kinds, ...]
    sizes: tuple[int, ...]
    seed: int

    def priced(self) -> PricedMetric:
        """The metric, where it has a price.

        Raises:
            NotApplicableError: it has none.
        """
        if isinstance(self.metric, PricedMetric):
            return self.metric
        raise NotApplicableError("it has no price, so that only the operator learns it")

    @cached_property
    def statistics(self) -> list[tuple[_Kinds, tuple[int, ...], NDArray[np.float64]]]:
        """Kinds, all other records of a hold-out, and the statistic with each kind beside them."""
        metric, rng = self.priced(), np.random.default_rng(self.seed)
        rows = []
        for kinds in self.kinds:
            for number, rest in enumerate(kinds.rests(self.sizes, rng)):
                # Before them or behind them: a place may count.
                first, last = ((), rest) if number % 2 else (rest, ())
                holdouts = [(*first, kind, *last) for kind in range(len(kinds.records.truth))]
                values = [metric.statistic(kinds.held(numbers)) for numbers in holdouts]
                rows.append((kinds, rest, np.array(values)))
        if not rows:
            raise NotTestedError("it is about no target of the kit")
        return rows

    def holdouts(self) -> Iterator[Held]:
        """Few hold-outs of every target: one record, and some of a few sizes."""
        rng = np.random.default_rng(self.seed)
        for kinds in self.kinds:
            for size in (1, 2, *_SIZES):
                yield kinds.held(rng.choice(len(kinds.records.truth), size).tolist())


def metric_verdicts(metric: Metric, seed: int = 0) -> list[Verdict]:
    """All laws of one metric, at every target of the kit that it is about."""
    rng, code = np.random.default_rng(seed), written(metric, 1.0)
    counts = [count for count in code.counts if count <= _LARGEST][:_COUNTS]
    trial = _Trial(
        metric=metric,
        kinds=tuple(_Kinds.of(target, code, rng) for target in _TARGETS if metric.about(target)),
        # A size that stands in the code, and the next: there a comparison changes its answer.
        sizes=(*_SIZES, *counts, *(count + 1 for count in counts)),
        seed=seed,
    )
    checks = {SENSITIVITY: _sensitivity, PURE: _pure}
    return judge_all(checks, type(metric).__name__, trial)


def _sensitivity(trial: _Trial) -> str:
    """Beside the same other records, any two statistics are one replaced record apart."""
    metric, worst = trial.priced(), 0.0
    for kinds, rest, statistics in trial.statistics:
        # What the plan adds to the claim for the rounding of a statistic, at either neighbour.
        room = 2 * (metric.reach(kinds.target) or 0.0) * gamma(8)
        claimed = metric.sensitivity(kinds.target, len(rest) + 1)
        moved = float(statistics.max() - statistics.min())
        before, after = int(statistics.argmin()), int(statistics.argmax())
        # Not by `>`: a claim or a statistic that is no number is as wrong.
        fail_if(
            not (math.isfinite(claimed) and moved <= claimed * (1 + 1e-9) + room),
            f"it moves by {moved:.6g} where one of {len(rest) + 1} records is replaced, "
            f"{claimed:.6g} is claimed ({kinds.target}): {kinds.describe(before)} becomes "
            f"{kinds.describe(after)}, beside {kinds.describe(*dict.fromkeys(rest))}",
        )
        worst = max(worst, moved / claimed if claimed else 0.0)
    return f"worst ratio {worst:.3g}"


def _pure(trial: _Trial) -> str:
    """Forwards and then backwards through the hold-outs: a memory would differ."""
    metric, holdouts = trial.metric, [*trial.holdouts()]
    if not holdouts:
        raise NotTestedError("it is about no target of the kit")
    rounds = [[_figures(metric, held) for held in holdouts[::step]][::step] for step in (1, -1)]
    fail_if(rounds[0] != rounds[1], "the same hold-out has other figures the second time")
    if isinstance(metric, PricedMetric):
        values = set()
        for held in holdouts:
            metric.statistic(held)
            values.add(metric.stated(0.25))
        fail_if(len(values) > 1, "what it states of one released number depends on the hold-out")
    return f"{len(holdouts)} hold-outs, twice"


def _figures(metric: Metric, held: Held) -> str:
    """All that it tells of a hold-out; text, so that NaN equals itself."""
    figures = sorted((name, float(value)) for name, value in metric.measured(held).items())
    return repr((figures, metric.statistic(held) if isinstance(metric, PricedMetric) else None))
