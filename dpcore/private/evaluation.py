"""Evaluation on a private hold-out: for the operator, not covered by the guarantee.

A published model predicts the hold-out itself. Of a function only answers at public points are
published, and asking its oracle at the hold-out would be asking at private ones: oracles opened for
the evaluation only, with randomness of their own, stand in for it. Their answers have the law of
the published ones, are seen by the operator only, and are no part of what the guarantee covers.
"""

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.schedule import Scheduled
from dpcore.domain.domain import Domain
from dpcore.encoding.tables import encode_table
from dpcore.errors import RequestError, need
from dpcore.exact import Exact
from dpcore.interval import NormalDistribution
from dpcore.learner import LinearNoiseModel, LinearScoreModel, Model, ScoringModel, promises
from dpcore.metrics.base import WHOLE, Curve, HoldOutPredictions, Metric, ScoreDistribution
from dpcore.metrics.groups import Groups
from dpcore.models.probabilities import probabilities, scored
from dpcore.private.engines.records import EngineRecords
from dpcore.private.hold_out import HoldOut, joined
from dpcore.private.outcome import Outcome
from dpcore.private.release_context import Conversation, Reuse
from dpcore.private.runtime import kind_of
from dpcore.randomness import SecretRandomness
from dpcore.records import Records
from dpcore.transcript.rebuild import Handover, IsolatedRelease, isolate

_PLACES, _ROWS = -30, 4096

PRIVATE, CONSTANT, WITHOUT_NOISE = "private", "constant", "without noise"


def _typical_label(
    domain: Domain, train: Records | EngineRecords
) -> tuple[float, NDArray[np.float64]]:
    """Return a constant predictor's label, and proportions of classes (none for a number).

    Behind an engine it is a mean of labels rounded to 2^-30 of M.
    """
    # Records in memory say their own summary. An engine only folds exact sums: labels are rounded.
    if isinstance(train, Records) and not domain.classes:
        return domain.labels.typical(train.labels), np.zeros(0)
    codes = max(domain.classes, 1)
    zero = Exact.zeros((codes,), 0 if domain.classes else _PLACES)
    (total,) = (
        _label_totals(domain, train)
        if isinstance(train, Records)
        else train.fold(partial(_label_totals, domain), (zero,), _ROWS)
    )
    counts = total.floats()
    if not domain.classes:
        return float(counts[0]) * domain.label_bound / max(len(train), 1), np.zeros(0)
    values = (-1.0, 1.0) if codes == 2 else tuple(map(float, range(codes)))
    return values[int(np.argmax(counts))], counts / max(counts.sum(), 1.0)


def _label_totals(domain: Domain, block: Records) -> tuple[Exact]:
    """Sum a block's labels, or count each class in it."""
    if not domain.classes:
        units = np.rint(np.ldexp(block.labels / domain.label_bound, -_PLACES)).astype(np.int64)
        return (Exact.of([int(units.sum())], _PLACES),)
    codes = block.labels if domain.classes > 2 else (block.labels + 1) / 2
    return (Exact.of(np.bincount(codes.astype(np.intp), minlength=domain.classes), 0),)


@attrs.frozen(kw_only=True, eq=False)
class Evaluation:
    """PRIVATE: what the operator is reported of models on the hold-out.

    Args:
        figures: {release: {metric: {"private": ..., "constant": ..., "without noise": ...}}}; what
            is reported of a group is under "METRIC of GROUP".
        curves: Pictures of private models: {release: {metric: Curve}}.
    """

    figures: Mapping[str, Mapping[str, Mapping[str, float]]] = attrs.field(factory=dict)
    curves: Mapping[str, Mapping[str, Curve]] = attrs.field(factory=dict)


def evaluate(
    plan: Plan, outcome: Outcome, metrics: Mapping[str, Metric], groups: Groups | None = None
) -> Mapping[str, Any]:
    """PRIVATE: return the figures that `evaluation` computes, without its curves.

    Returns:
        {release: {metric: {predictor: value}}}, as in `Evaluation.figures`.
    """
    return evaluation(plan, outcome, metrics, groups).figures


def evaluation(
    plan: Plan, outcome: Outcome, metrics: Mapping[str, Metric], groups: Groups | None = None
) -> Evaluation:
    """Evaluate on the hold-out each private model, the same without noise, and the constant.

    The constant is the training mean; or the most frequent class, with the proportions of classes
    as its probabilities. Neither it nor the model without noise is private. The errors of a
    function are those of stand-ins for its oracle (see above), never charged.

    Args:
        metrics: By name.
        groups: Groups of records, each of which gets metrics next to those of all records.

    Raises:
        RequestError: a metric needs what a release's model does not say.
    """
    opened = outcome.opened
    if not len(opened.hold_out):
        return Evaluation()
    domain, truth = plan.request.domain, opened.hold_out.labels()
    typical_label, fractions = _typical_label(domain, opened.train)
    # What a model without any feature would say: no figure means much without it.
    baseline = HoldOutPredictions(
        predicted=domain.uncentre(np.full(truth.shape, typical_label)),
        truth=truth,
        target=domain.labels,
        groups=groups,
        # The number of every record's group; 0 where no one asked for groups.
        codes=np.zeros(len(opened.hold_out), np.intp)
        if groups is None
        else joined([groups.codes(table) for table, _ in opened.hold_out.batches()]),
        distribution=_without_noise(domain, np.full(truth.shape, typical_label)),
        probabilities=np.tile(fractions, (truth.size, 1)) if domain.classes else None,
    )
    figures: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    releases, reuse = isolate(plan.schedule.releases), Reuse()
    handover = Handover(releases)
    for number, release in enumerate(releases):
        scheduled = release.scheduled
        handover.keep(scheduled.name, outcome.models[scheduled.name])
        if not promises(scheduled.learner, Model):
            continue
        # Secret randomness of their own: stand-ins must not repeat the noise of the published
        # answers.
        conversation = Conversation(
            number=number,
            records=cast(Records, opened.train),  # folds only, as in the run
            randomness=outcome.randomness,
            secret=SecretRandomness.draw(),
            reuse=reuse,
            inputs=partial(handover.inputs, release),
        )
        model = copy.deepcopy(outcome.models[scheduled.name])  # it sees the hold-out
        measures = _collect_inputs(
            release, metrics, conversation, cast(Model, model), opened.hold_out
        )
        # The same metrics of all three: what the noise costs, and what the features bring.
        predictors = {
            PRIVATE: attrs.evolve(baseline, **measures[0]),
            CONSTANT: baseline,
            WITHOUT_NOISE: attrs.evolve(baseline, **measures[1]),
        }
        measurements = {who: _measure(metrics, entry) for who, entry in predictors.items()}
        # A metric may have a group for one predictor and not for another: that figure is no number.
        figures[scheduled.name] = {
            name: {who: measurements[who].get(name, float("nan")) for who in measurements}
            for name in measurements[PRIVATE]
        }
        curves[scheduled.name] = {
            name: curve
            for name, metric in metrics.items()
            if (curve := metric.curve(predictors[PRIVATE])) is not None
        }
    return Evaluation(figures=figures, curves=curves)


def _measure(metrics: Mapping[str, Metric], predictor: HoldOutPredictions) -> dict[str, float]:
    """PRIVATE: return all metrics of one predictor, by what they are about."""
    return {
        f"{name} of {part}" if part != WHOLE else name: float(value)
        for name, metric in metrics.items()
        for part, value in metric.measured(predictor).items()
    }


def _collect_inputs(
    release: IsolatedRelease,
    metrics: Mapping[str, Metric],
    conversation: Conversation,
    model: Model,
    holdout: HoldOut,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PRIVATE: return the inputs of metrics for a model, and for the same without noise.

    They are numbers of every record, made of its cells batch by batch.
    """
    scheduled, kind = release.scheduled, kind_of(release.scheduled)
    # Predictions only suffice: even a function's stand-ins give those.
    if not any(
        metric.needs_distribution or metric.needs_probabilities for metric in metrics.values()
    ):
        private, exact = kind.predict_holdout(release, conversation, model, holdout)
        return {"predicted": private}, {"predicted": exact}
    # None of a function, which says neither laws nor probabilities: the first batch refuses it.
    noiseless = cast(Model, kind.fit_without_noise(release, conversation))
    batches = [
        _batch_inputs(scheduled, metrics, model, noiseless, table) for table, _ in holdout.batches()
    ]
    private, exact = zip(*batches, strict=True)
    return _join_batches(private), _join_batches(exact)


def _batch_inputs(
    scheduled: Scheduled,
    metrics: Mapping[str, Metric],
    model: Model,
    noiseless: Model,
    table: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PRIVATE: return the inputs of metrics for a batch of records, with and without noise."""
    domain = scheduled.part
    inputs: tuple[dict[str, Any], ...] = ({}, {})
    distribution_metric = _first(metrics, "needs_distribution")
    if distribution_metric:
        distribution = _score_distribution(scheduled, model, noiseless, table, distribution_metric)
        # Without noise a score is sure: the same means and no dispersion.
        inputs = (
            {"distribution": distribution},
            {
                "distribution": attrs.evolve(
                    distribution, std=np.zeros(distribution.std.shape), normal=True
                )
            },
        )
    if class_metric := _first(metrics, "needs_probabilities"):
        need(
            noiseless is not None and scored(model, domain) and scored(noiseless, domain),
            RequestError,
            _describe_lack(scheduled, class_metric, "probabilities of classes"),
        )
        for fields, predictor in zip(inputs, (model, noiseless), strict=True):
            fields["probabilities"] = probabilities(predictor, domain, table)
    for fields, predictor in zip(inputs, (model, noiseless), strict=True):
        fields["predicted"] = predictor.predict(table)
    return inputs[0], inputs[1]


def _first(metrics: Mapping[str, Metric], condition: str) -> str:
    """Return the name of the first metric for which a condition holds; empty if there is none."""
    return next((name for name, metric in metrics.items() if getattr(metric, condition)), "")


def _join_batches(batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """PRIVATE: return the fields of all batches, joined in their order."""
    fields: dict[str, Any] = {}
    for name, first in batches[0].items():
        pieces = [piece[name] for piece in batches]
        if isinstance(first, ScoreDistribution):
            fields[name] = attrs.evolve(
                first,
                mean=joined([piece.mean for piece in pieces]),
                std=joined([piece.std for piece in pieces]),
            )
        else:
            fields[name] = joined(pieces) if first.ndim == 1 else np.concatenate(pieces)
    return fields


def _score_distribution(
    scheduled: Scheduled, model: Model, noiseless: Model, table: Mapping[str, Any], metric: str
) -> ScoreDistribution:
    """PRIVATE: return the law of scores that follows from the noise on the model's only answer."""
    domain = scheduled.part
    (planned_query, *further_queries) = scheduled.queries.values()
    noise_distribution = planned_query.noise_distribution
    # Only then is a score a fixed linear map of one noise vector, whose law the plan knows.
    is_linear = promises(scheduled.learner, LinearNoiseModel)
    is_plain = is_linear and not further_queries and planned_query.query.at_most == 1
    if (
        not is_plain
        or noise_distribution is None
        or not isinstance(model, LinearScoreModel)
        or not isinstance(noiseless, ScoringModel)
    ):
        raise RequestError(
            _describe_lack(scheduled, metric, "a score that is linear in one noisy answer")
        )
    encoded = encode_table(domain, table)
    return ScoreDistribution(
        mean=noiseless.score(encoded) + domain.labels.centre,
        std=noise_distribution.std * model.lengths(encoded),
        normal=isinstance(noise_distribution, NormalDistribution),
    )


def _describe_lack(scheduled: Scheduled, metric: str, requirement: str) -> str:
    return (
        f"the metric {metric} needs {requirement}, which the learner of release {scheduled.name!r} "
        f"({type(scheduled.learner).__name__}) does not have; leave the metric out"
    )


def _without_noise(domain: Domain, centred_labels: NDArray[np.float64]) -> ScoreDistribution | None:
    """PRIVATE: return the law of scores that are sure; None for classes."""
    return (
        None
        if domain.classes
        else ScoreDistribution(
            mean=centred_labels + domain.labels.centre, std=np.zeros(centred_labels.shape)
        )
    )
