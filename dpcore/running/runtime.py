"""The runtime: opens records, and lets nothing but released answers reach the public part.

Every answer passes a door; the only door whose answers a guarantee covers is `through_mechanism`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Table
from dpcore.errors import SourceError
from dpcore.learner import Answer
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.records.cells import cells, named
from dpcore.records.records import Records
from dpcore.running.conversation import Conversation, Door, through_mechanism
from dpcore.running.parts import held_out
from dpcore.running.schedule import Schedule


@attrs.frozen(eq=False, repr=False)
class Opened:
    """PRIVATE: the projected records, shuffled and split."""

    train: Records
    holdout: Table
    holdout_labels: NDArray[Any]


def open_records(schedule: Schedule, table: Table, secret: SecretCoins) -> Opened:
    """Project, shuffle in secret, and split: never by values.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the schedule refuses that.
    """
    request = schedule.request
    domain, table = request.domain, named(table)
    absent = [name for name in domain.rules if name not in table]
    if absent:
        raise SourceError(f"column {absent[0]!r} is missing")
    if request.on_invalid == "refuse":
        for column, row, rule in domain.misfits(table):
            raise SourceError(f"column {column!r}, record {row + 1}: needs {rule}")
    records = domain.project(table)
    count = len(records)
    if domain.exact is not None and count != domain.exact:
        raise SourceError(f"{domain.exact} records are declared, the source has {count}")
    if domain.limit is not None and count > domain.limit:
        raise SourceError(f"at most {domain.limit} records are declared, the source has more")
    order = secret.runtime("shuffle").permutation(count)
    if request.adjacency.membership:
        kept_out = secret.runtime("split").uniform(count) < request.holdout
        holdout, train = order[kept_out], order[~kept_out]
    else:
        cut = held_out(count, request.holdout)
        holdout, train = order[:cut], order[cut:]
    labels = records.labels[holdout]
    return Opened(
        train=records.take(train),
        holdout={name: cells(table[name])[holdout] for name in domain.rules},
        holdout_labels=domain.uncentre(labels) if domain.labelled else labels,
    )


def release(
    schedule: Schedule,
    records: Records,
    coins: PublicCoins,
    secret: SecretCoins,
    door: Door = through_mechanism,
    progress: Callable[[], None] = lambda: None,
    points: Mapping[str, NDArray[np.float64] | None] | None = None,
) -> tuple[tuple[Answer, ...], ...]:
    """Run every release on the learners' part; the answers in order of asking, by release.

    Args:
        progress: Called after every answer.
        points: Encoded points to predict at, by the name of each function release.

    Raises:
        ReleaseError: a private function failed; nothing is released and the budget is spent.
    """
    first = Conversation(
        number=0,
        records=records,
        coins=coins,
        secret=secret,
        door=door,
        progress=progress,
    )
    asked = {} if points is None else points
    return tuple(
        tuple(one.answers(attrs.evolve(first, number=number, points=asked.get(one.name))))
        for number, one in enumerate(schedule.releases)
    )
