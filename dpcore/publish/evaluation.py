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
from dpcore.learning.metrics.base import WHOLE, Curve, Held, Metric, ScoreLaw
from dpcore.learning.metrics.groups import Groups
from dpcore.learning.probabilities import probabilities, scored
from dpcore.randomness import SecretCoins
from dpcore.records.records import Records
from dpcore.running.hold_out import HoldOut, joined
from dpcore.running.plan import Outcome, Plan
from dpcore.running.release_context import Conversation
from dpcore.running.reuse import Reuse
from dpcore.running.schedule import Scheduled

_PLACES, _ROWS = -30, 4096

UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)

PRIVATE, CONSTANT, WITHOUT_NOISE = "private", "constant", "without noise"


def _typical(domain: Domain, train: Records | EngineRecords) -> tuple[float, NDArray[np.float64]]:
    """What a constant predictor says, and shares of classes (none of a number); behind an engine of
    labels rounded to 2^-30 of M."""
    if isinstance(train, Records) and not domain.classes:
        return domain.labels.typical(train.labels), np.zeros(0)
    codes = max(domain.classes, 1)
    zero = Exact.zeros((codes,), 0 if domain.classes else _PLACES)
    if isinstance(train, Records):
        (total,) = _label_totals(domain, train)
    else:
        (total,) = train.fold(partial(_label_totals, domain), (zero,), _ROWS)
    counts = total.floats()
    if not domain.classes:
        return float(counts[0]) * domain.label_bound / max(len(train), 1), np.zeros(0)
    values = (-1.0, 1.0) if codes == 2 else tuple(map(float, range(codes)))
    return values[int(np.argmax(counts))], counts / max(counts.sum(), 1.0)


def _label_totals(domain: Domain, block: Records) -> tuple[Exact]:
    """The sum of a block's labels, or how often each class stands in it."""
    if not domain.classes:
        whole = np.rint(np.ldexp(block.labels / domain.label_bound, -_PLACES)).astype(np.int64)
        return (Exact.of([int(whole.sum())], _PLACES),)
    codes = block.labels if domain.classes > 2 else (block.labels + 1) / 2
    return (Exact.of(np.bincount(codes.astype(np.intp), minlength=domain.classes), 0),)


@attrs.frozen(kw_only=True, eq=False)
class Evaluation:
    """PRIVATE: what the operator is told of models on the hold-out.

    Args:
        told: {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}; what
            is told of a group stands under "METRIC of GROUP".
        curves: Pictures of private models: {release: {metric: Curve}}.
    """

    told: Mapping[str, Mapping[str, Mapping[str, float]]] = attrs.field(factory=dict)
    curves: Mapping[str, Mapping[str, Curve]] = attrs.field(factory=dict)


def evaluate(
    plan: Plan, outcome: Outcome, metrics: Mapping[str, Metric], groups: Groups | None = None
) -> Mapping[str, Any]:
    """`Evaluation.told` of `evaluation`."""
    return evaluation(plan, outcome, metrics, groups).told


def evaluation(
    plan: Plan, outcome: Outcome, metrics: Mapping[str, Metric], groups: Groups | None = None
) -> Evaluation:
    """Hold-out metrics of each private model, the same learner without noise, and the constant.

    The constant is the training mean; or the most frequent class, with the classes' shares as its
    probabilities. Neither it nor the model without noise is private. The errors of a function are
    those of stand-ins for its oracle (see above), never charged.

    Args:
        metrics: By name.
        groups: Whose metrics are told beside those of all records.

    Raises:
        RequestError: a metric needs what a release's model does not tell.
    """
    opened = outcome.opened
    if not len(opened.held):
        return Evaluation()
    domain, truth = plan.request.domain, opened.held.labels()
    typical, shares = _typical(domain, opened.train)
    everybody = Held(
        predicted=domain.uncentre(np.full(truth.shape, typical)),
        truth=truth,
        target=domain.labels,
        groups=groups,
        codes=_codes(groups, opened.held),
        law=_without_noise(domain, np.full(truth.shape, typical)),
        probabilities=np.tile(shares, (truth.size, 1)) if domain.classes else None,
    )
    found: dict[str, Any] = {}
    curves: dict[str, Any] = {}
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
        seen = {
            PRIVATE: attrs.evolve(everybody, **shown[0]),
            CONSTANT: everybody,
            WITHOUT_NOISE: attrs.evolve(everybody, **shown[1]),
        }
        told = {who: _told(metrics, one) for who, one in seen.items()}
        found[scheduled.name] = {
            name: {who: told[who].get(name, float("nan")) for who in told} for name in told[PRIVATE]
        }
        drawn = {name: metric.curve(seen[PRIVATE]) for name, metric in metrics.items()}
        curves[scheduled.name] = {name: one for name, one in drawn.items() if one is not None}
    return Evaluation(told=found, curves=curves)


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
    if not any(metric.needs_law or metric.needs_probabilities for metric in metrics.values()):
        private, exact = scheduled.evaluated(held, model, holdout)
        return {"predicted": private}, {"predicted": exact}
    without = cast(Model, scheduled.without_noise(held))  # None of a function, which tells neither
    shown = [_of_batch(scheduled, metrics, model, without, table) for table, _ in holdout.batches()]
    private, exact = zip(*shown, strict=True)
    return _as_one(private), _as_one(exact)


def _of_batch(
    scheduled: Scheduled,
    metrics: Mapping[str, Metric],
    model: Model,
    without: Model,
    table: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PRIVATE: of some records."""
    domain = scheduled.part
    found: tuple[dict[str, Any], ...] = ({}, {})
    needing_law = _first(metrics, "needs_law")
    if needing_law:
        law = _law(scheduled, model, without, table, needing_law)
        found = ({"law": law}, {"law": attrs.evolve(law, std=np.zeros(law.std.shape), normal=True)})
    if needing := _first(metrics, "needs_probabilities"):
        if without is None or not scored(model, domain) or not scored(without, domain):
            raise RequestError(_lacking(scheduled, needing, "probabilities of classes"))
        for told, one in zip(found, (model, without), strict=True):
            told["probabilities"] = probabilities(one, domain, table)
    for told, one in zip(found, (model, without), strict=True):
        told["predicted"] = one.predict(table)
    return found[0], found[1]


def _first(metrics: Mapping[str, Metric], need: str) -> str:
    """The first metric with a need, or nothing."""
    return next((name for name, metric in metrics.items() if getattr(metric, need)), "")


def _as_one(batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """PRIVATE: of all batches."""
    found: dict[str, Any] = {}
    for name, first in batches[0].items():
        pieces = [one[name] for one in batches]
        if isinstance(first, ScoreLaw):
            found[name] = attrs.evolve(
                first,
                mean=joined([one.mean for one in pieces]),
                std=joined([one.std for one in pieces]),
            )
        else:
            found[name] = joined(pieces) if first.ndim == 1 else np.concatenate(pieces)
    return found


def _law(
    scheduled: Scheduled, model: Model, without: Model, table: Mapping[str, Any], metric: str
) -> ScoreLaw:
    """PRIVATE: the law of scores, by what the noise on the model's only answer does to them."""
    domain = scheduled.part
    (ask, *more) = scheduled.asks.values()
    spread = ask.spread
    plain = scheduled.learner.linear and not more and ask.query.at_most == 1
    if (
        not plain
        or spread is None
        or not isinstance(model, LinearScoreModel)
        or not isinstance(without, ScoringModel)
    ):
        raise RequestError(
            _lacking(scheduled, metric, "a score that is linear in one noisy answer")
        )
    encoded = domain.encode(table)
    return ScoreLaw(
        mean=without.score(encoded) + domain.labels.centre,
        std=spread.std * model.lengths(encoded),
        normal=isinstance(spread, NormalSpread),
    )


def _lacking(scheduled: Scheduled, metric: str, needed: str) -> str:
    return (
        f"the metric {metric} needs {needed}, which the learner of release {scheduled.name!r} "
        f"({type(scheduled.learner).__name__}) does not have; leave the metric out"
    )


def _without_noise(domain: Domain, centred: NDArray[np.float64]) -> ScoreLaw | None:
    """PRIVATE: the law of scores that are sure; None for classes."""
    if domain.classes:
        return None
    return ScoreLaw(mean=centred + domain.labels.centre, std=np.zeros(centred.shape))
