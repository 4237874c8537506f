r"""Scores and probabilities of classes, from whatever a published model states.

A model of two classes fits labels -1 and +1, so that its score s estimates
:math:`E[y\mid x]=2p-1`, and p = (1 + s)/2. A score is not bounded, and says of no row that it is
certain: from \|s\| = c on the smaller probability falls as

.. math:: \frac{1-c}2\cdot\frac{1-c}{|s|-c+(1-c)},

with the same value and slope at c, so that the order of scores is the order of probabilities.

All of it is computed from what is published, so that it costs nothing.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.learner import Model, ProbabilityModel, Published, ScoringModel

_STRAIGHT = 0.95  # c


def scored(model: Published, domain: Domain) -> bool:
    """Return whether `decision` and `probabilities` have something to say of the model."""
    if domain.classes > 2:
        return isinstance(model, ProbabilityModel)
    return isinstance(model, ProbabilityModel | ScoringModel)


def decision(model: Model, domain: Domain, table: Table) -> NDArray[np.float64]:
    """Of two classes a score, shape (n,), at least 0 where the second is predicted; of several
    one number a class, shape (n, classes), of which the largest is predicted.

    Raises:
        AttributeError: the model states neither scores nor probabilities.
    """
    if domain.classes == 2 and isinstance(model, ScoringModel):
        return np.asarray(model.score(encode_table(domain, table)), dtype=np.float64)
    if not isinstance(model, ProbabilityModel):
        raise AttributeError(f"{type(model).__name__} predicts classes, and no scores of them")
    class_probabilities = model.probabilities(table)
    # Two classes are centred at 0, so that the sign of the number is the decision.
    return np.asarray(
        2 * class_probabilities[:, 1] - 1 if domain.classes == 2 else class_probabilities
    )


def probabilities(model: Model, domain: Domain, table: Table) -> NDArray[np.float64]:
    """Of every class, in the order in which they are declared; shape (n, classes).

    Raises:
        AttributeError: as `decision`.
    """
    if isinstance(model, ProbabilityModel):
        return np.asarray(model.probabilities(table))
    return of_scores(decision(model, domain, table))


def of_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of two classes, of estimates of labels -1 and +1; shape (n, 2)."""
    size, margin = np.abs(scores), 1 - _STRAIGHT
    excess = np.maximum(size, _STRAIGHT) - _STRAIGHT
    # Linear up to c; beyond, the hyperbola of the formula above.
    smaller = np.where(size <= _STRAIGHT, (1 - size) / 2, margin / 2 * margin / (excess + margin))
    # A score of 0 goes to the second class, as in `Classes.codes`.
    second = np.where(scores >= 0, 1 - smaller, smaller)
    return np.stack([1 - second, second], axis=1)
