"""Looking: the paid metrics of a hold-out, once the models are fixed by their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.learner import Answer, Model, Published
from dpcore.learning.metrics.base import Held
from dpcore.learning.probabilities import probabilities
from dpcore.plan.ask import Ask
from dpcore.plan.paid_evaluation import PrivateLook
from dpcore.randomness import SecretCoins
from dpcore.running.hold_out import joined
from dpcore.running.opening import Opened
from dpcore.running.release_context import Door


def look(
    what: PrivateLook,
    asks: tuple[Ask, ...],
    models: Mapping[str, Published],
    opened: Opened,
    domain: Domain,
    secret: SecretCoins,
    number: int,
    door: Door,
) -> Iterator[Answer]:
    """PRIVATE inside: each metric's statistic on the hold-out, through the door.

    Args:
        number: Of this "release" among the run's, so that its noise is its own.
    """
    seen: dict[str, Held] = {}
    for ask in asks:
        release = ask.query.name.split(".", 1)[0]
        if release not in seen:
            model, needed = cast(Model, models[release]), what.needs_probabilities
            seen[release] = _held(model, opened, domain, stated=needed)
        statistic = what.statistic(ask.query.name, seen[release])
        value = door(ask, ask.query, statistic, secret.noise(number, ask.query.name, 1))
        yield Answer(query=ask.query, number=1, value=value, mechanism=ask.mechanism)


def _held(model: Model, opened: Opened, domain: Domain, *, stated: bool) -> Held:
    """PRIVATE: what metrics see."""
    held = Held(
        predicted=predictions(model, opened, domain),
        truth=opened.holdout_labels,
        target=domain.labels,
    )
    if not stated:
        return held
    found = [_stated(model, table, truth.size, domain) for table, truth in opened.held.batches()]
    return attrs.evolve(held, probabilities=np.concatenate(found))


def predictions(model: Model, opened: Opened, domain: Domain) -> NDArray[Any]:
    """PRIVATE: one row at a time, so that no record can move another's prediction.

    What a model cannot predict, or not as a finite number, counts as the middle of the range; of
    classes, as the first.
    """
    found = [_of_batch(model, table, truth.shape, domain) for table, truth in opened.held.batches()]
    return joined(found)


def _of_batch(model: Model, table: Table, shape: tuple[int, ...], domain: Domain) -> NDArray[Any]:
    predicted = domain.uncentre(np.zeros(shape))
    columns = {name: np.asarray(column) for name, column in table.items()}
    for row in range(predicted.size):
        one = {name: column[row : row + 1] for name, column in columns.items()}
        try:
            found = domain.centre(np.asarray(model.predict(one)).reshape((1,)))
        except Exception:
            continue
        predicted[row] = domain.uncentre(found)[0]  # in the range, or one of the classes
    return predicted


def _stated(model: Model, table: Table, count: int, domain: Domain) -> NDArray[np.float64]:
    """PRIVATE: probabilities of classes, shape (count, classes), one row at a time.

    What a model does not state, or not as shares of one whole, counts as equal shares.
    """
    found = np.full((count, domain.classes), 1 / domain.classes)
    columns = {name: np.asarray(column) for name, column in table.items()}
    for row in range(count):
        one = {name: column[row : row + 1] for name, column in columns.items()}
        try:
            stated = np.asarray(probabilities(model, domain, one), dtype=np.float64).reshape(-1)
        except Exception:
            continue
        whole = stated.shape == (domain.classes,) and np.all((stated >= 0) & (stated <= 1))
        if whole and abs(stated.sum() - 1) < 1e-6:
            found[row] = stated
    return found
