"""Evaluated records: the hold-out with what an earlier release of the run predicts there.

A release `of` another one publishes statistics of such records: errors by group, say. It is priced
like any release, by bounds on what one record changes, since

* the model is a function of answers that came through the release boundary before; and given it
* each evaluated record is a function of one record of the hold-out, computed from that row only.

So neighbours among records are neighbours among evaluated records, whatever the model is, and costs
add up (adaptive composition), although no record is both in the learners' part and in the hold-out.
A record that is replaced may change its prediction in any way: a relation that limits how features
or labels move becomes replace-one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.parts import PREDICTED, SCORE
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table, project_table
from dpcore.learner import Model, ScoringModel
from dpcore.private.opening import Opened
from dpcore.private.paid_evaluation import by_rows, predictions
from dpcore.records import Records


def evaluated_records(part: Domain, model: Model, opened: Opened, domain: Domain) -> Records:
    """PRIVATE: project the hold-out into `evaluated_domain`.

    Args:
        part: That domain. domain: Of the run's records.
        model: As rebuilt from the answers; it sees the hold-out and is dropped.
    """
    predicted, holdout = predictions(model, opened, domain), opened.holdout
    empty = {name: np.zeros(0) for name in domain.rules}  # of no records, no columns were read
    table: dict[str, Any] = {**empty, **holdout, PREDICTED: predicted}
    if SCORE in part.columns:
        table[SCORE] = _scores(model, holdout, domain, predicted.size)
    return project_table(part, table)


def _scores(
    model: Model, holdout: Mapping[str, Any], domain: Domain, count: int
) -> NDArray[np.float64]:
    """PRIVATE: return one row at a time, as `predictions`; what has no score is in the middle."""
    if not isinstance(model, ScoringModel):
        return np.full(count, 0.5)

    def rate(record: Table) -> float | None:
        score = float(np.asarray(model.score(encode_table(domain, record))).reshape(()))
        # Scores in [-1, 1] go to [0, 1], clipped first, as the declared range says.
        return (1 + min(max(score, -1.0), 1.0)) / 2 if np.isfinite(score) else None

    return by_rows(rate, holdout, np.full(count, 0.5))
