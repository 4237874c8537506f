"""Looking: the paid metrics of a hold-out, once the models are fixed by their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.learner import Answer, Model, Published
from dpcore.randomness import SecretCoins
from dpcore.running.ask import Ask
from dpcore.running.conversation import Door
from dpcore.running.hold_out import HoldOut
from dpcore.running.metrics import METRICS
from dpcore.running.opening import Opened


def look(
    asks: tuple[Ask, ...],
    models: Mapping[str, Published],
    opened: Opened,
    domain: Domain,
    secret: SecretCoins,
    number: int,
    door: Door,
) -> Iterator[Answer]:
    """PRIVATE inside: each metric's mean on the hold-out, through the door.

    Args:
        number: Of this "release" among the run's, so that its noise is its own.
    """
    for ask in asks:
        release, metric = ask.query.name.rsplit(".", 1)
        predicted = _predictions(cast(Model, models[release]), opened.held, domain)
        mean = np.array([METRICS[metric].mean(predicted)])
        value = door(ask, ask.query, mean, secret.noise(number, ask.query.name, 1))
        yield Answer(query=ask.query, number=1, value=value, mechanism=ask.mechanism)


def _predictions(
    model: Model, held: HoldOut, domain: Domain
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """PRIVATE: of every batch, predictions one row at a time, so that no record can move another's;
    and the labels.

    What a model cannot predict, or not as a finite number, counts as the middle of the range; of
    classes, as the first.
    """
    for table, truth in held.batches():
        predicted = domain.uncentre(np.zeros(truth.shape))
        columns = {name: np.asarray(column) for name, column in table.items()}
        for row in range(predicted.size):
            one = {name: column[row : row + 1] for name, column in columns.items()}
            try:
                found = domain.centre(np.asarray(model.predict(one)).reshape((1,)))
            except Exception:
                continue
            predicted[row] = domain.uncentre(found)[0]  # in the range, or one of the classes
        yield predicted, truth
