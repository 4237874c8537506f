"""What a metric promises: a price that no replaced record exceeds, and the hold-out's facts only.

A metric that is paid for is released with noise of the sensitivity that it states, and nothing else
compares that with the statistic. Small hold-outs are tried with every replacement of a record by
another one of a few extreme kinds; larger ones with one or two kinds of other records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range
from dpcore.metrics.base import HoldOutPredictions, Metric, ScoreDistribution
from dpcore.metrics.groups import Groups
from dpcore.metrics.priced import PricedMetric
from dpcore.rounding import gamma
from dpcore_attacks.attacks.source_constants import Written, written
from dpcore_attacks.laws.law import (
    Law,
    NotApplicableError,
    Outcome,
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
    "Figures are numbers that depend on the hold-out only, which stays as it was, whatever came "
    "before; a stated value depends on the released statistic only.",
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
_SPLITS = 12  # larger hold-outs of two kinds of records, for each size
_KINDS = 9


@attrs.frozen(eq=False)
class _Kinds:
    """A few kinds of records of one target: a hold-out is a list of their numbers."""

    records: HoldOutPredictions

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
            # A number in the code may be in the file's units, or a proportion of the range.
            places = target.clip(
                np.concatenate([target.centre + target.half_width * ends, code.numbers[:4]])
            )
            predicted, truth = (side.ravel() for side in np.meshgrid(places, places))
            probabilities, scores = None, predicted
        # All are kept if they are few; the two ends always are.
        chosen = np.arange(len(truth))
        if len(chosen) > _KINDS:
            chosen = np.concatenate([chosen[:2], rng.permutation(chosen[2:])[: _KINDS - 2]])
        records = HoldOutPredictions(
            predicted=predicted[chosen],
            truth=truth[chosen],
            target=target,
            groups=_GROUPS,
            codes=chosen % 3 - 1,
            distribution=ScoreDistribution(mean=scores[chosen], std=np.full(len(chosen), 0.1)),
            probabilities=None if probabilities is None else probabilities[chosen],
        )
        return cls(records)

    def predictions(self, numbers: Sequence[int]) -> HoldOutPredictions:
        """A hold-out with these kinds of records, in arrays of its own."""
        rows, records = np.asarray(numbers, dtype=np.intp), self.records
        assert records.distribution is not None
        arrays: dict[str, Any] = {
            "predicted": records.predicted[rows],
            "truth": records.truth[rows],
            "codes": records.codes[rows],
        }
        if records.probabilities is not None:
            arrays["probabilities"] = records.probabilities[rows]
        for array in arrays.values():
            array.flags.writeable = False  # a metric that writes into its hold-out raises
        law = ScoreDistribution(
            mean=records.distribution.mean[rows], std=records.distribution.std[rows]
        )
        return attrs.evolve(records, distribution=law, **arrays)

    def describe(self, *numbers: int) -> str:
        """Kinds in words: the prediction, or the stated probabilities, and the label."""
        records = self.records
        predictions = records.predicted if records.probabilities is None else records.probabilities
        return " and ".join(
            f"({np.array2string(np.asarray(predictions[n]), precision=4)} for {records.truth[n]})"
            for n in numbers
        )

    def rests(self, sizes: Sequence[int], rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
        """Yield all other records of a hold-out: every choice of few, then some of many."""
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


def metric_verdicts(metric: Metric, seed: int = 0) -> list[Verdict]:
    """Return all laws of one metric, at every target of the conformance suite that it is about."""
    rng, code, name = np.random.default_rng(seed), written(metric, 1.0), type(metric).__name__
    kinds = [_Kinds.of(target, code, rng) for target in _TARGETS if metric.about(target)]
    if not kinds:
        return [
            Verdict(law, name, Outcome.NOT_TESTED, "no target of the conformance suite fits")
            for law in LAWS
        ]
    # A size that is in the code, and the next: there a comparison changes its answer.
    counts = [count + more for count in code.counts if count <= 2000 for more in (0, 1)]
    checks: dict[Law, Callable[..., str]] = {
        SENSITIVITY: partial(_sensitivity, sizes=(*_SIZES, *counts[:6])),
        PURE: _pure,
    }
    return judge_all(checks, name, metric, kinds, rng)


def _sensitivity(
    metric: Metric, targets: Sequence[_Kinds], rng: np.random.Generator, sizes: Sequence[int]
) -> str:
    """Next to the same other records, any two statistics are one replaced record apart."""
    if not isinstance(metric, PricedMetric):
        raise NotApplicableError("it has no price, so that only the operator learns it")
    worst = 0.0
    for kinds in targets:
        target, count = kinds.records.target, len(kinds.records.truth)
        # What the plan adds to the claim for the rounding of a statistic, at either neighbour.
        room = 2 * (metric.diameter(target) or 0.0) * gamma(8)
        for number, rest in enumerate(kinds.rests(sizes, rng)):
            # Each kind of record before the others or behind them: a place may count.
            first, last = ((), rest) if number % 2 else (rest, ())
            holdouts = [kinds.predictions((*first, kind, *last)) for kind in range(count)]
            statistics = np.array([metric.statistic(holdout) for holdout in holdouts])
            claimed = metric.sensitivity(target, len(rest) + 1)
            movement = float(statistics.max() - statistics.min())
            # Not by `>`: a claim or a statistic that is no number is as wrong.
            fail_if(
                not (math.isfinite(claimed) and movement <= claimed * (1 + 1e-9) + room),
                f"it moves by {movement:.6g} where one of {len(rest) + 1} records is replaced, "
                f"{claimed:.6g} is claimed ({target}): "
                f"{kinds.describe(int(statistics.argmin()))} becomes "
                f"{kinds.describe(int(statistics.argmax()))}, next to "
                f"{kinds.describe(*dict.fromkeys(rest)) or 'none'}",
            )
            worst = max(worst, movement / claimed if claimed else 0.0)
    return f"worst ratio {worst:.3g}"


def _pure(metric: Metric, targets: Sequence[_Kinds], rng: np.random.Generator) -> str:
    """Forwards and then backwards through few hold-outs: a memory would differ."""
    holdouts = [
        kinds.predictions(rng.choice(len(kinds.records.truth), size).tolist())
        for kinds in targets
        for size in (1, 2, *_SIZES)
    ]
    rounds = [
        [_figures(metric, holdout) for holdout in holdouts[::step]][::step] for step in (1, -1)
    ]
    fail_if(rounds[0] != rounds[1], "the same hold-out has other figures the second time")
    texts = {text for _, text in rounds[0]}
    fail_if(len(texts) > 1, "what it states of one released number depends on the hold-out")
    return f"{len(holdouts)} hold-outs, twice"


def _figures(metric: Metric, hold_out: HoldOutPredictions) -> tuple[str, str]:
    """Return all that it says of a hold-out, then what it states of a released number: texts, so
    that NaN equals itself.
    """
    figures = sorted((name, float(value)) for name, value in metric.measured(hold_out).items())
    if not isinstance(metric, PricedMetric):
        return repr(figures), ""
    return repr((figures, metric.statistic(hold_out))), repr(metric.stated(0.25))
