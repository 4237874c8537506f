"""Evaluation on a private hold-out: for the operator, not covered by the guarantee.

A published model predicts the hold-out itself. Of a function only answers at public points are
published, and asking its oracle at the hold-out would be asking at private ones: oracles opened for
the evaluation alone, with coins of their own, stand in for it. Their answers have the law of the
published ones, are seen by the operator only, and are no part of what the guarantee covers.
"""

from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.functions.interactive import Interactive
from dpcore.randomness import SecretCoins
from dpcore.running.metrics import METRICS
from dpcore.running.plan import Outcome, Plan
from dpcore.running.reuse import Reuse
from dpcore.running.runtime import release, replay, wide_open
from dpcore.running.schedule import Scheduled
from dpcore.running.serving import fit_function, is_function, oracle_of

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)

STAND_IN = "answers of oracles opened for this evaluation alone; none of them is published"


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
        if is_function(scheduled):
            private, exact = _asked(number, scheduled, outcome, reuse)
        else:
            private = outcome.models[scheduled.name].predict(opened.holdout)
            exact = _noiseless(plan, scheduled, outcome, reuse)
        found[scheduled.name] = {
            metric: {
                "private": _error(metric, private, truth),
                "constant": _error(metric, constant, truth),
                "without noise": _error(metric, exact, truth),
            }
            for metric in metrics
        }
    return found


def _noiseless(
    plan: Plan, scheduled: Scheduled, outcome: Outcome, reuse: Reuse
) -> NDArray[np.float64]:
    """Predictions of the same learner from exact answers."""
    alone, opened = attrs.evolve(plan.schedule, releases=(scheduled,)), outcome.opened
    (answers,) = release(alone, opened, outcome.coins, SecretCoins.draw(), wide_open, reuse=reuse)
    model = replay(scheduled, outcome.coins, [answer.value for answer in answers])
    return model.predict(opened.holdout)


def _asked(
    number: int, scheduled: Scheduled, outcome: Outcome, reuse: Reuse
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What stand-in oracles answer at the hold-out, as many as it takes; and the function there."""
    secret, domain, opened = SecretCoins.draw(), scheduled.part, outcome.opened
    function = fit_function(number, scheduled, opened.train, outcome.coins, secret, reuse)
    rows, back = np.unique(domain.encode(opened.holdout) + 0.0, axis=0, return_inverse=True)
    (ask,) = scheduled.asks.values()
    most = cast(Interactive, ask.mechanism).most_points
    answers = [
        oracle_of(function, number, scheduled, secret, 1 + start // most).ask(
            rows[start : start + most]
        )
        for start in range(0, rows.shape[0], most)
    ]
    back = back.reshape(-1)
    private = domain.uncentre(np.concatenate(answers)[back])
    return private, domain.uncentre(function(rows)[back])
