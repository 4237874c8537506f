"""Evaluation on a private hold-out: for the operator, not covered by the guarantee.

A published model predicts the hold-out itself. Of a function only answers at public points are
published, and asking its oracle at the hold-out would be asking at private ones: oracles opened for
the evaluation alone, with coins of their own, stand in for it. Their answers have the law of the
published ones, are seen by the operator only, and are no part of what the guarantee covers.
"""

import copy
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcore.learner import Model
from dpcore.randomness import SecretCoins
from dpcore.running.conversation import Conversation
from dpcore.running.metrics import METRICS
from dpcore.running.plan import Outcome, Plan
from dpcore.running.reuse import Reuse

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _error(metric: str, predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    return METRICS[metric].stated(METRICS[metric].mean(predicted, truth))


def evaluate(plan: Plan, outcome: Outcome, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Hold-out errors of each private model, the same learner without noise, and the constant.

    The constant is the training mean, or the most frequent class; neither it nor the model without
    noise is private. The errors of a function are those of stand-ins for its oracle (see above),
    never charged.

    Returns:
        {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}
    """
    opened = outcome.opened
    truth = opened.holdout_labels
    if truth.size == 0:
        return {}
    domain = plan.request.domain
    typical = domain.labels.typical(opened.train.labels)
    constant = domain.uncentre(np.full(truth.shape, typical))
    found: dict[str, Any] = {}
    reuse = Reuse()
    for number, scheduled in enumerate(plan.schedule.releases):
        if not scheduled.learner.predicts:
            continue
        held = Conversation(
            number=number,
            records=opened.train,
            coins=outcome.coins,
            secret=SecretCoins.draw(),
            reuse=reuse,
        )
        model = copy.deepcopy(outcome.models[scheduled.name])  # it sees the hold-out
        private, exact = scheduled.evaluated(held, cast(Model, model), opened.holdout)
        found[scheduled.name] = {
            metric: {
                "private": _error(metric, private, truth),
                "constant": _error(metric, constant, truth),
                "without noise": _error(metric, exact, truth),
            }
            for metric in metrics
        }
    return found
