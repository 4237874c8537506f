"""All pairs: of an exact sum, every two records of a block of candidates are compared at once.

What one record moves a sum by is its own contribution, or the difference of two, whatever the other
records are. So one evaluation of each candidate by itself says the movement of all their pairs. The
worst of them are then fired as whole datasets, which is what a finding shows: that the others do
not matter is a law of its own (`sum.row-wise`), and is not taken for granted there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import REPLACE_ONE, Adjacency, Distance, DpcoreError, Query, SummingLearner, SumQuery
from dpcore.summing import sums_exactly
from dpcore_attacks.attacks.neighbours import Configuration
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case

_ORDERS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}
_FIRED = 2  # of the most distant pairs, as whole datasets
_WITH = 3  # records next to the changed one, where their number is free


@attrs.frozen(kw_only=True, eq=False)
class Candidates:
    """Synthetic records, each to be evaluated by itself.

    Args:
        raw: Shape (k, width). labels: Centred, shape (k,).
    """

    rows: Rows
    raw: NDArray[np.float64]
    labels: NDArray[np.float64]

    @classmethod
    def drawn(cls, rows: Rows, count: int, rng: np.random.Generator) -> Candidates:
        """Corners, axes, lines and anything, with labels at the ends of their range and within."""
        quarter = -(-count // 4)
        raw = np.vstack(
            [rows.corners(rng, quarter), rows.anywhere(rng, quarter), rows.structured(rng)]
        )
        # corners and random rows all stay; a random part of the structured rows fills up to `count`
        indices = np.concatenate(
            [np.arange(2 * quarter), 2 * quarter + rng.permutation(len(raw) - 2 * quarter)]
        )[:count]
        labels = rng.choice([-1.0, 1.0, 1.0, -1.0, 0.3], len(indices)) * rows.label_bound
        return cls(rows=rows, raw=raw[indices], labels=labels)

    def distant_configurations(
        self, case: Case, query: Query, norm: Distance
    ) -> Iterator[Configuration]:
        """Yield the pairs that move the sum most distant in a norm, as neighbours of whole
        datasets; none where the query is no exact sum, or the relation fixes a part of a record."""
        relation = case.adjacency
        if not attackable(case, query):
            return
        totals = self.totals(case, query)
        for old, new in distant_pairs(totals, norm, relation, _FIRED):
            yield self._configuration(old, new, case)

    def totals(self, case: Case, query: Query) -> NDArray[np.float64]:
        """Return the sum of each candidate only, flat, shape (k, size); zeros where it fails."""
        assert isinstance(case.learner, SummingLearner), "it is attackable"
        learner, public = copy.deepcopy(case.learner), case.public
        sums = np.zeros((len(self.raw), int(np.prod(query.shape))))
        records = self.rows.project(self.raw, self.labels)
        # each candidate is a person of its own: a learner that clips by person sees one record
        owned = attrs.evolve(records, persons=np.arange(len(records), dtype=np.int32))
        # a candidate that fails counts as 0: it ranks last, and is no finding here
        for place, record in enumerate(owned.singles()):
            try:
                sums[place] = learner.total_of(query, record, public).floats().reshape(-1)
            except (DpcoreError, ValueError, ArithmeticError):
                continue
        return sums

    def _configuration(self, old: int, new: int, case: Case) -> Configuration:
        """Two candidates among copies of a third."""
        exact, limit = case.domain.exact, case.domain.at_most
        base_size = exact - 1 if exact is not None else min(_WITH, (limit or _WITH + 1) - 1)
        kinds = [0, old, new] if base_size else [old, new]
        return Configuration(
            raw=self.raw[kinds],
            labels=self.labels[kinds],
            counts=np.array([base_size] if base_size else [], dtype=np.intp),
            position=1.0,
            origin="the most distant of all pairs",
        )


def attackable(case: Case, query: Query) -> bool:
    """Return whether the movement between any two records is that between neighbours."""
    return (
        sums_exactly(case.learner)
        and isinstance(query, SumQuery)
        and query.sampling is None
        and query.distance in _ORDERS
        and (case.adjacency.membership or case.adjacency == REPLACE_ONE)
    )


def distant_pairs(
    totals: NDArray[np.float64], distance: Distance, relation: Adjacency, most: int
) -> list[tuple[int, int]]:
    """(old, new) of the most distant pairs, most distant first, no record twice; under add/remove,
    of the longest totals, with itself."""
    if relation.membership:
        # a record that comes or goes moves the sum by its own contribution
        lengths = np.linalg.norm(totals, ord=_ORDERS[distance], axis=1)
        return [(int(place), int(place)) for place in np.argsort(-lengths, kind="stable")[:most]]
    distances = _distances(totals, distance)
    pairs: list[tuple[int, int]] = []
    for _ in range(min(most, len(totals) // 2)):
        old, new = np.unravel_index(int(np.argmax(distances)), distances.shape)
        if distances[old, new] <= 0:
            break
        pairs.append((int(old), int(new)))
        for place in (old, new):
            distances[place, :] = distances[:, place] = 0.0
    return pairs


def _distances(totals: NDArray[np.float64], distance: Distance) -> NDArray[np.float64]:
    """Return how far every two totals lie apart, shape (k, k); squared in l2, up to rounding."""
    if distance is Distance.L2:
        # one product of matrices; it only ranks pairs, and what is claimed of one is fired anew
        squares = np.einsum("ij,ij->i", totals, totals)
        return np.asarray(squares[:, None] + squares - 2 * (totals @ totals.T))
    order = _ORDERS[distance]
    return np.array([np.linalg.norm(totals - row, ord=order, axis=1) for row in totals])
