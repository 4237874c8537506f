"""Evaluation on a private hold-out: for the operator, not covered by the guarantee.

A published model predicts the hold-out itself. Of a function only answers at public points are
published, and asking its oracle at the hold-out would be asking at private ones: oracles opened for
the evaluation alone, with coins of their own, stand in for it. Their answers have the law of the
published ones, are seen by the operator only, and are no part of what the guarantee covers.
"""

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.engines.records import EngineRecords
from dpcore.errors import RequestError
from dpcore.exact import Exact
from dpcore.interval import NormalSpread
from dpcore.learner import LinearScoreModel, Model, ScoringModel
from dpcore.learning.metrics.base import WHOLE, Held, Metric, ScoreLaw
from dpcore.learning.metrics.groups import Groups
from dpcore.randomness import SecretCoins
from dpcore.records.records import Records
from dpcore.running.conversation import Conversation
from dpcore.running.hold_out import HoldOut, joined
from dpcore.running.plan import Outcome, Plan
from dpcore.running.reuse import Reuse
from dpcore.running.schedule import Scheduled

_PLACES, _ROWS = -30, 4096

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)

PRIVATE, CONSTANT, WITHOUT_NOISE = "private", "constant", "without noise"


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


def evaluate(
    plan: Plan, outcome: Outcome, metrics: Mapping[str, Metric], groups: Groups | None = None
) -> dict[str, Any]:
    """Hold-out metrics of each private model, the same learner without noise, and the constant.

    The constant is the training mean, or the most frequent class; neither it nor the model without
    noise is private. The errors of a function are those of stand-ins for its oracle (see above),
    never charged.

    Args:
        metrics: By name.
        groups: Whose metrics are told beside those of all records.

    Returns:
        {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}; what is told
        of a group stands under "METRIC of GROUP".

    Raises:
        RequestError: a metric needs what a release's model does not tell.
    """
    opened = outcome.opened
    if not len(opened.held):
        return {}
    domain, truth = plan.request.domain, opened.held.labels()
    typical = _typical(domain, opened.train)
    everybody = Held(
        predicted=domain.uncentre(np.full(truth.shape, typical)),
        truth=truth,
        target=domain.labels,
        groups=groups,
        codes=_codes(groups, opened.held),
        law=_without_noise(domain, np.full(truth.shape, typical)),
        scores=_leaning(domain, np.full(truth.shape, typical)),
    )
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
        shown = _shown(scheduled, metrics, held, cast(Model, model), opened.held)
        told = {
            who: _told(metrics, attrs.evolve(everybody, **seen))
            for who, seen in ((PRIVATE, shown[0]), (CONSTANT, {}), (WITHOUT_NOISE, shown[1]))
        }
        found[scheduled.name] = {
            name: {who: told[who].get(name, float("nan")) for who in told} for name in told[PRIVATE]
        }
    return found


def _told(metrics: Mapping[str, Metric], held: Held) -> dict[str, float]:
    """PRIVATE: all metrics of one predictor, by what they are about."""
    return {
        f"{name} of {part}" if part != WHOLE else name: float(value)
        for name, metric in metrics.items()
        for part, value in metric.measured(held).items()
    }


def _codes(groups: Groups | None, holdout: HoldOut) -> NDArray[np.intp]:
    """PRIVATE: the number of every record's group; 0 where nobody asked for groups."""
    if groups is None:
        return np.zeros(len(holdout), np.intp)
    return joined([groups.codes(table) for table, _ in holdout.batches()])


def _shown(
    scheduled: Scheduled,
    metrics: Mapping[str, Metric],
    held: Conversation,
    model: Model,
    holdout: HoldOut,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PRIVATE: what metrics need of a model, and of the same without noise: numbers of every
    record, made of its cells batch by batch."""
    if not any(metric.needs_law or metric.needs_scores for metric in metrics.values()):
        private, exact = scheduled.evaluated(held, model, holdout)
        return {"predicted": private}, {"predicted": exact}
    without = scheduled.without_noise(held)
    if not (isinstance(model, ScoringModel) and isinstance(without, ScoringModel)):
        raise RequestError(_lacking(scheduled, metrics, "scores of encoded records"))
    shown = [_of_batch(scheduled, metrics, model, without, table) for table, _ in holdout.batches()]
    private, exact = zip(*shown, strict=True)
    return _as_one(private), _as_one(exact)


def _of_batch(
    scheduled: Scheduled,
    metrics: Mapping[str, Metric],
    model: ScoringModel,
    without: ScoringModel,
    table: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PRIVATE: of some records."""
    domain = scheduled.part
    encoded = domain.encode(table)
    centred = without.score(encoded)
    law = sure = _without_noise(domain, centred)
    if sure is not None and any(metric.needs_law for metric in metrics.values()):
        law = attrs.evolve(sure, **_noise(scheduled, model, encoded, metrics))
    return (
        {
            "predicted": model.predict(table),
            "law": law,
            "scores": _leaning(domain, model.score(encoded)),
        },
        {
            "predicted": without.predict(table),
            "law": sure,
            "scores": _leaning(domain, centred),
        },
    )


def _as_one(batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """PRIVATE: of all batches; what is None of one is None of all."""
    first, laws = batches[0], [one["law"] for one in batches]
    law = first["law"]
    if law is not None:
        law = attrs.evolve(
            law, mean=joined([one.mean for one in laws]), std=joined([one.std for one in laws])
        )
    scores = None
    if first["scores"] is not None:
        scores = joined([one["scores"] for one in batches])
    return {
        "predicted": joined([one["predicted"] for one in batches]),
        "law": law,
        "scores": scores,
    }


def _noise(
    scheduled: Scheduled,
    model: ScoringModel,
    encoded: NDArray[np.float64],
    metrics: Mapping[str, Metric],
) -> dict[str, Any]:
    """PRIVATE: standard deviations of the scores, and whether the noise is normal."""
    (ask, *more) = scheduled.asks.values()
    spread = ask.spread
    plain = scheduled.learner.linear and not more and ask.query.at_most == 1
    if not plain or spread is None or not isinstance(model, LinearScoreModel):
        needed = "a score that is linear in one noisy answer"
        raise RequestError(_lacking(scheduled, metrics, needed))
    return {
        "std": spread.std * model.lengths(encoded),
        "normal": isinstance(spread, NormalSpread),
    }


def _lacking(scheduled: Scheduled, metrics: Mapping[str, Metric], needed: str) -> str:
    name = next(name for name, one in metrics.items() if one.needs_law or one.needs_scores)
    return (
        f"the metric {name} needs {needed}, which the learner of release {scheduled.name!r} "
        f"({type(scheduled.learner).__name__}) does not have; leave the metric out"
    )


def _without_noise(domain: Domain, centred: NDArray[np.float64]) -> ScoreLaw | None:
    """PRIVATE: the law of scores that are sure; None for classes."""
    if domain.classes:
        return None
    return ScoreLaw(mean=centred + domain.labels.centre, std=np.zeros(centred.shape))


def _leaning(domain: Domain, centred: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """PRIVATE: how much scores lean to the second of two classes, in [0, 1]."""
    return (1 + np.clip(centred, -1.0, 1.0)) / 2 if domain.classes == 2 else None
