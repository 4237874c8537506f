"""Evaluation on a private hold-out: for the operator, not covered by the guarantee.

A published model predicts the hold-out itself. Of a function only answers at public points are
published, and asking its oracle at the hold-out would be asking at private ones: oracles opened for
the evaluation alone, with coins of their own, stand in for it. Their answers have the law of the
published ones, are seen by the operator only, and are no part of what the guarantee covers.
"""

import copy
from functools import partial
from typing import Any, cast

import numpy as np

from dpcore.domain.domain import Domain
from dpcore.engines.records import EngineRecords
from dpcore.exact import Exact
from dpcore.learner import Model
from dpcore.randomness import SecretCoins
from dpcore.records.records import Records
from dpcore.running.conversation import Conversation
from dpcore.running.metrics import METRICS, RunningMean
from dpcore.running.plan import Outcome, Plan
from dpcore.running.reuse import Reuse

_PLACES, _ROWS = -30, 4096
_TOLD = ("private", "constant", "without noise")

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _typical(domain: Domain, train: Records | EngineRecords) -> float:
    """What a constant predictor says; behind an engine of labels rounded to 2^-30 of M."""
    if isinstance(train, Records):
        return domain.labels.typical(train.labels)
    codes = max(domain.classes, 1)
    zero = Exact.zeros((codes,), 0 if domain.classes else _PLACES)
    (total,) = train.fold(partial(_label_totals, domain), (zero,), _ROWS)
    if not domain.classes:
        return float(total.floats()[0]) * domain.label_bound / max(len(train), 1)
    values = (-1.0, 1.0) if codes == 2 else tuple(map(float, range(codes)))
    return values[int(np.argmax(total.floats()))]


def _label_totals(domain: Domain, block: Records) -> tuple[Exact]:
    """The sum of a block's labels, or how often each class stands in it."""
    if not domain.classes:
        whole = np.rint(np.ldexp(block.labels / domain.label_bound, -_PLACES)).astype(np.int64)
        return (Exact.of([int(whole.sum())], _PLACES),)
    codes = block.labels if domain.classes > 2 else (block.labels + 1) / 2
    return (Exact.of(np.bincount(codes.astype(np.intp), minlength=domain.classes), 0),)


def evaluate(plan: Plan, outcome: Outcome, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Hold-out errors of each private model, the same learner without noise, and the constant.

    The constant is the training mean, or the most frequent class; neither it nor the model without
    noise is private. The errors of a function are those of stand-ins for its oracle (see above),
    never charged.

    Returns:
        {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}
    """
    opened = outcome.opened
    if not len(opened.held):
        return {}
    domain = plan.request.domain
    typical = _typical(domain, opened.train)
    found: dict[str, Any] = {}
    reuse = Reuse()
    for number, scheduled in enumerate(plan.schedule.releases):
        if not scheduled.learner.predicts:
            continue
        held = Conversation(
            number=number,
            records=cast(Records, opened.train),  # folds alone, as in the run
            coins=outcome.coins,
            secret=SecretCoins.draw(),
            reuse=reuse,
        )
        model = copy.deepcopy(outcome.models[scheduled.name])  # it sees the hold-out
        means = {
            metric: {told: RunningMean(metric=METRICS[metric]) for told in _TOLD}
            for metric in metrics
        }
        for private, exact, truth in scheduled.evaluated(held, cast(Model, model), opened.held):
            constant = domain.uncentre(np.full(truth.shape, typical))
            for several in means.values():
                for told, predicted in zip(_TOLD, (private, constant, exact), strict=True):
                    several[told].add(predicted, truth)
        found[scheduled.name] = {
            metric: {told: running.stated for told, running in several.items()}
            for metric, several in means.items()
        }
    return found
