"""`paid_evaluation`: release the paid metrics of a hold-out, once answers have fixed the models."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.planned_query import PaidQueries, PlannedQuery
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.columns import centre_labels
from dpcore.learner import Answer, Model, Published
from dpcore.metrics.base import HoldOutPredictions
from dpcore.metrics.paid import PaidEvaluation
from dpcore.models.probabilities import probabilities
from dpcore.private.hold_out import joined
from dpcore.private.opening import Opened
from dpcore.private.release_context import ReleaseBoundary
from dpcore.randomness import SecretRandomness


def evaluate_paid(
    queries: PaidQueries,
    planned_queries: tuple[PlannedQuery, ...],
    models: Mapping[str, Published],
    opened: Opened,
    domain: Domain,
    secret: SecretRandomness,
    number: int,
    release_through: ReleaseBoundary,
) -> Iterator[Answer]:
    """PRIVATE inside: release each metric's statistic on the hold-out through the release boundary.

    Args:
        number: Of this "release" among the run's, so that its noise is its own.
    """
    views: dict[str, HoldOutPredictions] = {}
    evaluation = cast(PaidEvaluation, queries)  # the one kind that there is
    for planned_query in planned_queries:
        # Several metrics of one release share one pass over the hold-out; each of them still draws
        # noise of its own.
        release = planned_query.query.name.split(".", 1)[0]
        if release not in views:
            views[release] = _view_holdout(
                cast(Model, models[release]),
                opened,
                domain,
                with_probabilities=evaluation.needs_probabilities,
            )
        statistic = evaluation.statistic(planned_query.query.name, views[release])
        # Metrics are paid like any query: their statistic leaves through the same release boundary.
        value = release_through(
            planned_query,
            planned_query.query,
            statistic,
            secret.noise(number, planned_query.query.name, 1),
        )
        yield Answer(
            query=planned_query.query, number=1, value=value, mechanism=planned_query.mechanism
        )


def _view_holdout(
    model: Model, opened: Opened, domain: Domain, *, with_probabilities: bool
) -> HoldOutPredictions:
    """PRIVATE: return the predictions, labels and probabilities that metrics are computed from."""
    view = HoldOutPredictions(
        predicted=predictions(model, opened, domain),
        truth=opened.holdout_labels,
        target=domain.labels,
    )
    if not with_probabilities:
        return view
    pieces = [
        _probabilities(model, table, truth.size, domain)
        for table, truth in opened.hold_out.batches()
    ]
    return attrs.evolve(view, probabilities=np.concatenate(pieces))


def predictions(model: Model, opened: Opened, domain: Domain) -> NDArray[Any]:
    """PRIVATE: return one row at a time, so that no record can move another's prediction.

    What a model cannot predict, or not as a finite number, counts as the middle of the range; of
    classes, as the first.
    """

    def predict(record: Table) -> NDArray[Any]:
        return domain.uncentre(
            centre_labels(domain.labels, np.asarray(model.predict(record)).reshape((1,)))
        )  # in the range, or one of the classes

    return joined(
        [
            by_rows(predict, table, domain.uncentre(np.zeros(truth.shape)))
            for table, truth in opened.hold_out.batches()
        ]
    )


def by_rows(
    compute: Callable[[Table], NDArray[Any] | float | None], table: Table, values: NDArray[Any]
) -> NDArray[Any]:
    """PRIVATE: replace each of `values`, one a record, by what `compute` makes of its record only.

    The sensitivity of a metric counts one record's own contribution: a model that saw the whole
    batch could let one record move all others.

    Args:
        values: Public defaults. A record keeps its own where `compute` fails or returns None; an
            error must not stop the run, since whether it comes depends on the record.
    """
    columns = {name: np.asarray(column) for name, column in table.items()}
    for row in range(len(values)):
        record = {name: column[row : row + 1] for name, column in columns.items()}
        with contextlib.suppress(Exception):
            if (value := compute(record)) is not None:
                values[row : row + 1] = value
    return values


def _probabilities(model: Model, table: Table, count: int, domain: Domain) -> NDArray[np.float64]:
    """PRIVATE: return probabilities of classes, shape (count, classes), one row at a time.

    What a model does not state, or not as proportions of one whole, counts as equal shares.
    """

    def state(record: Table) -> NDArray[np.float64] | None:
        answer = np.asarray(probabilities(model, domain, record), dtype=np.float64).reshape(-1)
        # NaN fails both comparisons, so it leaves equal shares like anything else that is no
        # distribution.
        is_distribution = answer.shape == (domain.classes,) and np.all(
            (answer >= 0) & (answer <= 1)
        )
        return answer if is_distribution and abs(answer.sum() - 1) < 1e-6 else None

    return by_rows(state, table, np.full((count, domain.classes), 1 / domain.classes))
