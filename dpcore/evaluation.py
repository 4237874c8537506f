"""Evaluation on a private hold-out: for the operator, not covered by the guarantee."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.plan import Outcome, Plan
from dpcore.randomness import SecretCoins
from dpcore.runtime import release, wide_open

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _mse(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.mean((predicted - truth) ** 2))


def _rmse(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.sqrt(_mse(predicted, truth)))


def _mae(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.mean(np.abs(predicted - truth)))


METRICS = {"mae": _mae, "mse": _mse, "rmse": _rmse}
"""Metrics by name; in the file's units (squared for mse), on predictions clipped to the range."""


def evaluate(plan: Plan, outcome: Outcome, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Hold-out errors of each private model, the same learner without noise, and the constant.

    The constant is the training mean; neither it nor the model without noise is private.

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
    mean = np.full(truth.shape, np.mean(opened.train.labels))
    constant = plan.schedule.domain.uncentre(mean)
    return {
        name: {
            metric: {
                "private": METRICS[metric](model.predict(opened.holdout), truth),
                "constant": METRICS[metric](constant, truth),
                "without noise": METRICS[metric](noiseless[name].predict(opened.holdout), truth),
            }
            for metric in metrics
        }
        for name, model in outcome.models.items()
    }
