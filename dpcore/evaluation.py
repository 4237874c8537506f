"""Evaluation on a private hold-out: for the operator, not covered by the guarantee."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.metrics import METRICS
from dpcore.plan import Outcome, Plan
from dpcore.randomness import SecretCoins
from dpcore.runtime import release, wide_open

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _error(metric: str, predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    return METRICS[metric].stated(METRICS[metric].mean(predicted, truth))


def evaluate(plan: Plan, outcome: Outcome, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Hold-out errors of each private model, the same learner without noise, and the constant.

    The constant is the training mean, or the most frequent class; neither it nor the model without
    noise is private.

    Returns:
        {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}
    """
    opened = outcome.opened
    truth = opened.holdout_labels
    if truth.size == 0:
        return {}
    secret = SecretCoins.draw()
    exact = release(plan.schedule, opened, outcome.coins, secret, wide_open)
    names = [scheduled.name for scheduled in plan.schedule.releases]
    values = {
        name: tuple(a.value for a in answers) for name, answers in zip(names, exact, strict=True)
    }
    noiseless = plan.rebuild(values, outcome.coins)
    domain = plan.schedule.domain
    typical = domain.labels.typical(opened.train.labels)
    constant = domain.uncentre(np.full(truth.shape, typical))
    return {
        name: {
            metric: {
                "private": _error(metric, model.predict(opened.holdout), truth),
                "constant": _error(metric, constant, truth),
                "without noise": _error(metric, noiseless[name].predict(opened.holdout), truth),
            }
            for metric in metrics
        }
        for name, model in outcome.models.items()
    }
