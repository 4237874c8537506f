"""Configurations and pairs: a handful of different rows that spell out two neighbouring datasets.

A dataset of a thousand records that breaks a bound has few different rows, each repeated. So a
configuration is k base rows with counts, the row that changes and what it changes to, and a
search moves k + 2 points only.
"""

from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Adjacency, Records
from dpcore_attacks.attacks.rows import Rows

_REFINED = 12  # times a way is cut into sixteen: for radii down to 1e-14 of it
_NEAR = 1e-4  # of the most distant point, how near it is found


@attrs.frozen(eq=False)
class Configuration:
    """Two neighbours in few numbers.

    Args:
        raw: Shape (k + 2, width): k base rows, the changing row, and what it becomes.
        labels: Centred, shape (k + 2,).
        counts: How often each base row is in both datasets, shape (k,).
        position: Where the changing row is, in [0, 1]: 0 first, 1 last.
        origin: Name of the construction it came from.
        several: What a person's records are: all the changing row; `opposed`, that row times 1, -1,
            1/2, -1/2, ..., which come or go; or `spread`, that row times equally spaced numbers
            between 1 and -1, which come or go too. Of one record it says nothing.
    """

    raw: NDArray[np.float64]
    labels: NDArray[np.float64]
    counts: NDArray[np.intp]
    position: float
    origin: str
    several: Literal["same", "opposed", "spread"] = "same"

    @property
    def base_size(self) -> int:
        """Records that both datasets share."""
        return int(self.counts.sum())


@attrs.frozen(eq=False)
class Pair:
    """Two neighbouring datasets, and where they differ.

    Args:
        before, after: Under add/remove, `before` is the smaller one.
        changed: Row number of the record that changed or came; the first of them, of a person.
        count: How many records of one person changed or came, one after the other.
    """

    before: Records
    after: Records
    changed: int
    count: int = 1


def pair_of(configuration: Configuration, rows: Rows, adjacency: Adjacency) -> Pair:
    """Return the two datasets, made to be neighbours under `adjacency`.

    A label that may not change is kept; features that moved too far are pulled back.
    """
    if adjacency.varies:
        return _person(configuration, rows, adjacency)
    raw, labels = _constrain(configuration, rows, adjacency)
    bound = rows.label_bound
    # through the domain: neither dataset holds a record that a run could not see
    records = rows.project(raw, np.clip(labels, -bound, bound))
    kinds = len(configuration.counts)
    base = np.repeat(np.arange(kinds), configuration.counts)
    changed = int(np.clip(configuration.position, 0.0, 1.0) * len(base))
    # row `kinds` is what the record was, `kinds + 1` what it became; under add/remove it was none
    after = np.insert(base, changed, kinds + 1)
    before = base if adjacency.membership else np.insert(base, changed, kinds)
    return Pair(records.take(before), records.take(after), changed)


def _person(configuration: Configuration, rows: Rows, adjacency: Adjacency) -> Pair:
    """Return one person with as many records as may be, or one row, that comes or replaces
    another.
    """
    kinds, base_size = len(configuration.counts), configuration.base_size
    count = _of_one_person(rows, adjacency, base_size)
    base = np.repeat(np.arange(kinds), configuration.counts)
    changed = int(np.clip(configuration.position, 0.0, 1.0) * base_size)
    # records of one person need not be alike: their contributions may add up or cancel
    factors = np.ones(count)
    if configuration.several == "spread" and count > 1:
        factors = np.linspace(1.0, -1.0, count)
    if configuration.several == "opposed":
        factors = np.ldexp((-1.0) ** np.arange(count), -(np.arange(count) // 2))
    raw, labels = (
        np.concatenate([points, np.multiply.outer(factors, points[-1])])
        for points in (configuration.raw, configuration.labels)
    )
    records = rows.project(raw, np.clip(labels, -rows.label_bound, rows.label_bound))
    after = np.insert(base, changed, np.arange(kinds + 2, kinds + 2 + count))
    # spread and opposed records come or go, whatever the relation: a person may have none
    is_joining = adjacency.membership or configuration.several != "same"
    before = base if is_joining else np.insert(base, changed, np.full(count, kinds))
    pair = Pair(records.take(before), records.take(after), changed, count)
    return _with_persons(pair, base_size) if adjacency.of_person else pair


def _of_one_person(rows: Rows, adjacency: Adjacency, base_size: int) -> int:
    """As many records as one person may have, next to so many of others."""
    limit = rows.domain.at_most
    return adjacency.records if limit is None else max(1, min(adjacency.records, limit - base_size))


def _with_persons(pair: Pair, base_size: int) -> Pair:
    """Return the same records with their persons: every other record is a person's only one."""
    # person 0 owns the changed rows
    base_persons = np.arange(1, base_size + 1, dtype=np.int32)
    all_persons = np.insert(base_persons, pair.changed, np.zeros(pair.count, dtype=np.int32))
    before = base_persons if len(pair.before) == base_size else all_persons
    return attrs.evolve(
        pair,
        before=attrs.evolve(pair.before, persons=before),
        after=attrs.evolve(pair.after, persons=all_persons),
    )


def configuration_of(pair: Pair, rows: Rows) -> Configuration | None:
    """Return a pair as a configuration of the domain that `rows` is about; None if it does not fit
    in.

    Where a domain has another exact number of records, its most frequent row gets more or fewer.
    """
    after = np.column_stack([pair.after.features, pair.after.labels])
    before = np.column_stack([pair.before.features, pair.before.labels])
    if after.shape[1] != rows.width + 1 or not len(after):
        return None
    # equal rows become one row with a count, in order of their first appearance
    base, first, counts = np.unique(
        np.delete(after, pair.changed, axis=0), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    base, counts = base[order], counts[order]
    domain, replaced = rows.domain, len(after) == len(before)
    old = before[pair.changed] if replaced else after[pair.changed]
    # of another exact size: the most frequent row takes up the difference
    if domain.exact is not None and len(counts):
        counts[int(np.argmax(counts))] += domain.exact - 1 - counts.sum()
    too_many = domain.limit is not None and counts.sum() >= domain.limit
    if too_many or (counts < 1).any() or (domain.exact not in (None, counts.sum() + 1)):
        return None
    kinds = np.vstack([base, old, after[pair.changed]])
    raw, labels = kinds[:, :-1], kinds[:, -1]
    if (np.abs(raw) > 1).any() or (np.abs(labels) > rows.label_bound).any():
        return None
    # a row that this domain would encode otherwise is no record of it
    projection = rows.project(raw, labels)
    if not (np.allclose(projection.features, raw) and np.allclose(projection.labels, labels)):
        return None
    return Configuration(
        raw=raw,
        labels=labels,
        counts=counts.astype(np.intp),
        position=pair.changed / max(1, len(after) - 1),
        origin="a saved counterexample",
    )


def _constrain(
    configuration: Configuration, rows: Rows, adjacency: Adjacency
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    raw, labels = configuration.raw, configuration.labels
    if adjacency.membership:
        return raw, labels
    # the relation fixes the label: the changed row keeps its own
    if not adjacency.label:
        labels = np.append(labels[:-1], labels[-2])
    if np.isinf(adjacency.feature_radius):
        return raw, labels
    raw = raw.copy()
    raw[-1] = _pull_back(raw[-2], raw[-1], rows, adjacency.feature_radius)
    return raw, labels


def _pull_back(
    start: NDArray[np.float64], end: NDArray[np.float64], rows: Rows, radius: float
) -> NDArray[np.float64]:
    """The most distant point on the way from `start` to `end` that stays within `radius`,
    encoded.
    """
    if radius == 0:
        return start
    low, high = 0.0, 1.0
    # encoding is not linear, so the way is searched; `low` always stays within the radius
    for _ in range(_REFINED):
        steps = np.linspace(low, high, 17)
        raw = start + steps[:, None] * (end - start)
        encoded = rows.project(np.vstack([start, raw]), np.zeros(18)).features
        distance = np.linalg.norm(encoded[1:] - encoded[0], axis=1) > radius
        if not distance.any():
            return np.asarray(start + high * (end - start))
        first = int(np.argmax(distance))
        if first == 0:
            return start
        low, high = float(steps[first - 1]), float(steps[first])
        if high - low <= _NEAR * low:
            break
    return np.asarray(start + low * (end - start))
