"""Evaluated records: the hold-out with what an earlier release of the run predicts there.

A release `of` another one publishes statistics of such records: errors by group, say. It is priced
like any release, by bounds on what one record changes, since

* the model is a function of answers that came through the door before; and given it
* each evaluated record is a function of one record of the hold-out, computed from that row alone.

So neighbours among records are neighbours among evaluated records, whatever the model is, and costs
add up (adaptive composition), although no record is both in the learners' part and in the hold-out.
A record that is replaced may change its prediction in any way: a relation that limits how features
or labels move becomes replace-one.
"""

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Column, Domain, Table
from dpcore.encoding.tables import encode_table, project_table
from dpcore.errors import ParameterError
from dpcore.learner import Model, ScoringModel
from dpcore.plan.parts import held_out, part_domain
from dpcore.records.records import Records
from dpcore.running.opening import Opened

PREDICTED, SCORE = "predicted", "score"
"""Columns of evaluated records: what the model predicts; and, of two classes and a model that says
so, how much it leans to the second, in [0, 1]."""


def evaluated_domain(
    domain: Domain, adjacency: Adjacency, share: float, *, scored: bool = False
) -> Domain:
    """What is public about evaluated records: the declared columns, groups, and `predicted`.

    Args:
        domain: Of the run's records. share: Of them that are held out.
        scored: Whether there is a `score` too.

    Raises:
        ParameterError: nothing is held out, or a column has the name of a prediction.
    """
    part_domain(domain, adjacency, share)  # the unit and the count fit
    if not 0 < share < 1:
        raise ParameterError(
            "a release of another one", "a hold-out to evaluate it on", "holdout", share,
            "evaluate.holdout",
            message="a release `of` another one needs a hold-out: add evaluate: {holdout: SHARE}",
        )  # fmt: skip
    columns: dict[str, Column] = {**domain.columns, **domain.groups}
    clashes = {PREDICTED, SCORE} & {*columns, domain.target}
    if clashes:
        raise ParameterError(
            "a release of another one", "other names of columns", "columns", min(clashes),
            "data.domain.columns",
        )  # fmt: skip
    # A prediction is projected as a label is, so it lies in the declared range or among the
    # declared classes, and bounds on labels hold for it.
    labels = domain.labels
    columns[PREDICTED] = (
        Categories(labels.values, as_text=labels.as_text)
        if isinstance(labels, Classes)
        else Range(labels.low, labels.high)
    )
    if scored and domain.classes == 2:
        columns[SCORE] = Range(0.0, 1.0)
    # The number of held-out records follows from two public numbers; where the count is private it
    # stays undeclared.
    exact = held_out(domain.records, share) if adjacency.replaces else None
    limit = None if adjacency.replaces else domain.at_most
    # What is held out are rows that count, so that no condition is left.
    return attrs.evolve(
        domain, columns=columns, groups={}, norm=None, only={}, exact=exact, limit=limit
    )


def evaluated_adjacency(adjacency: Adjacency) -> Adjacency:
    """What neighbours among records are among evaluated records."""
    return REPLACE_ONE if adjacency.replaces else adjacency


def evaluated_records(part: Domain, model: Model, opened: Opened, domain: Domain) -> Records:
    """PRIVATE: the hold-out, projected into `evaluated_domain`.

    Args:
        part: That domain. domain: Of the run's records.
        model: As rebuilt from the answers; it sees the hold-out and is dropped.
    """
    from dpcore.running.paid_evaluation import predictions

    predicted, holdout = predictions(model, opened, domain), opened.holdout
    empty = {name: np.zeros(0) for name in domain.rules}  # of no records, no columns were read
    table: dict[str, Any] = {**empty, **holdout, PREDICTED: predicted}
    if SCORE in part.columns:
        table[SCORE] = _scores(model, holdout, domain, predicted.size)
    return project_table(part, table)


def _scores(
    model: Model, holdout: Mapping[str, Any], domain: Domain, count: int
) -> NDArray[np.float64]:
    """PRIVATE: one row at a time, as `predictions`; what has no score is in the middle."""
    if not isinstance(model, ScoringModel):
        return np.full(count, 0.5)

    def rate(record: Table) -> float | None:
        score = float(np.asarray(model.score(encode_table(domain, record))).reshape(()))
        # Scores in [-1, 1] go to [0, 1], clipped first, as the declared range says.
        return (1 + min(max(score, -1.0), 1.0)) / 2 if np.isfinite(score) else None

    from dpcore.running.paid_evaluation import by_rows

    return by_rows(rate, holdout, np.full(count, 0.5))
