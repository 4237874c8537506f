r"""Private groups: counts, and the mean of a column, by keys that no one listed.

First the keys are published as `private_keys` publishes them. Then, with what came out as a public
argument, each record adds (w, t) to the pair of its own key, t in [-1, 1] the value's place in its
range; a record whose key is not among them adds to a pair of all others, and one without a key to
none.

Theorem: for every list of keys, the pairs move in l2 by at most :math:`\sqrt{1+w^2}` where a
record comes or goes, and by at most :math:`\max(2,\sqrt2\sqrt{1+w^2})` where one is replaced: a
record adds to one pair at most, as a key that occurs twice in the list counts at its first place.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SumQuery,
)
from dpcore.checks import fraction
from dpcore.errors import ContractError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.clipping import clipped_integers
from dpcore.learners.conversation import Transcript
from dpcore.models.figures import Figures, Statistics
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore.sensitivity import Distance
from dpcore_statistics.bars import around, cut_count, ratio
from dpcore_statistics.columns import number_column, selected
from dpcore_statistics.mean import in_units, with_count
from dpcore_statistics.private_keys import KeysBound, PrivateKeys
from dpcore_statistics.statistic import ROOT_TWO, ROWS

KEYS, MEANS = "keys", "means"


@attrs.frozen(kw_only=True)
class PrivateGroups(PrivateKeys):
    """The values of a column that enough records have, with their counts and means of another.

    Published are the tables `count` and `mean`, a row for each value, and `others`: the mean and
    the count of the records whose value is not published.

    Total: as `private_keys`, and sums of clipped values are finite.

    Args:
        mean_of: A declared range; records without a value do not count in the means.
        share: Of the budget, for the keys.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.private_groups",)
    total: ClassVar[bool] = True

    mean_of: str
    share: float = attrs.field(default=0.5, validator=fraction)

    def weight(self, public: Public) -> float:
        """Return w: the weight that is free under replacement, else sqrt(1/2)."""
        return 1.0 if public.domain.exact is not None else math.sqrt(0.5)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return two queries: `keys`, then `means` with the keys as its argument.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        # The keys are asked as `private_keys` asks them, with a fraction of the budget.
        (keys,) = super().queries(public)
        number_column(public.domain, self.mean_of)
        clip = with_count(Distance.L2, self.weight(public), 1.0)
        means = SumQuery(
            name=MEANS,
            shape=(self.most + 1, 2),
            distance=Distance.L2,
            share=1 - self.share,
            sum=Sum(clip=clip),
        )
        return attrs.evolve(keys, share=self.share), means

    def ask(self, state: Transcript) -> Query | None:
        """Return the keys, then the means of those that were published."""
        keys, means = state.queries
        if not state.answers:
            return keys
        if len(state.answers) == 1:
            # Released keys are public from here on; their counts are not passed on.
            return attrs.evolve(means, args={KEYS: state.answers[0].value[:, :-1]})
        return None

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE: return the keys with their counts, or the exact sums by key."""
        if not isinstance(query, SumQuery):
            return super().statistic(query, records, public, secret)
        zero = (Exact.zeros(query.shape, query.sum.unit),)
        (total,) = records.fold(partial(self._added, query, public), zero, ROWS)
        return total

    def _added(self, query: SumQuery, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: sum (w, t) of each record, clipped, at the index of its key."""
        text, start = self.texts(public)
        keys = np.asarray((query.args or {}).get(KEYS), dtype=np.float64)
        # The theorem is for every list of keys, but of this shape.
        need(
            keys.shape == (self.most, text.width),
            ContractError,
            "the keys of a sum are those that were published",
        )
        column = number_column(public.domain, self.mean_of)
        block_keys = block.columns(start, start + text.width)
        # A record has one key, so it adds to one pair: this is what the sensitivity rests on.
        place = _places(block_keys, keys, fallback=self.most)
        mask = selected(public.domain, self.where, block) & column.present(block) & (place >= 0)
        weights = np.full(len(block), self.weight(public))
        pairs = np.column_stack([weights, column.scaled(block)])
        unit = query.sum.unit
        # Clip and round each record before anything is added.
        integers = clipped_integers(pairs, query.sum.clip, unit, query.distance, positive=False)
        sums = np.zeros(query.shape, dtype=np.int64)
        np.add.at(sums, place[mask], integers[mask])
        return (Exact.of(sums, unit),)

    def model(self, state: Transcript) -> Statistics:
        """Return the tables `count` and `mean`, one row per published key, and `others`."""
        first, second = state.answers
        counts = self.counted(first, state.public)
        rows = np.asarray(first.value, dtype=np.float64)
        key_rows = np.flatnonzero((rows[:, :-1] != 0).any(axis=1))
        pairs = np.asarray(second.value, dtype=np.float64)
        miss = apart(1 - self.level, max(1, key_rows.size))
        means = [self._mean(pair, miss, second, state.public) for pair in pairs[key_rows].tolist()]
        other_pair = pairs[-1].tolist()
        mean = self._mean(other_pair, 1 - self.level, second, state.public)
        w = self.weight(state.public)
        ends = around(other_pair[0], second.noise_distribution, 1 - self.level)
        count = cut_count((ends[0] / w, ends[1] / w), state.public.domain)
        other_figures = self._figures(
            {"statistic": (f"mean of {self.mean_of}", "count")}, [mean, (other_pair[0] / w, *count)]
        )
        dates = number_column(state.public.domain, self.mean_of).date_rows
        mean_figures = attrs.evolve(
            self._figures(counts.about, means), joint=True, dates=dates(len(means))
        )
        other_figures = attrs.evolve(other_figures, dates=dates(1))
        return Statistics(tables={"count": counts, "mean": mean_figures, "others": other_figures})

    def _mean(
        self, pair: list[float], miss: float, answer: Answer, public: Public
    ) -> tuple[float, float, float]:
        """Return one group's mean and interval from its released pair, clipped to the range."""
        column, w = number_column(public.domain, self.mean_of), self.weight(public)
        weighted, total = pair
        ends = ratio(total, weighted, w, answer.noise_distribution, miss, 1.0)
        return in_units(column, total / max(1.0, weighted / w), ends)

    def _figures(
        self, about: Mapping[str, tuple[Any, ...]], rows: list[tuple[float, float, float]]
    ) -> Figures:
        return Figures(
            about=about,
            estimate=np.array([row[0] for row in rows]),
            low=np.array([row[1] for row in rows]),
            high=np.array([row[2] for row in rows]),
            level=self.level,
            covers=f"noise only: where the mean of {self.mean_of} lies of the records whose value "
            "is published, or not, given which are; each clipped to its declared range and "
            "missing ones left out; few records may have an interval that says nothing",
        )

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Return the half-width of every count, and about that of a mean."""
        counts = super().forecast(public, noise_distributions)
        if MEANS not in noise_distributions:
            return counts
        half = noise_distributions[MEANS].within(1 - self.level)
        mean_half = half * number_column(public.domain, self.mean_of).column.half_width
        return (*counts, f"each mean of {self.mean_of} about +- {mean_half:.4g}/n for n records")


def _places(
    record_keys: NDArray[np.float64], keys: NDArray[np.float64], fallback: int
) -> NDArray[np.intp]:
    """PRIVATE: return the first index of each record's key among the published ones.

    It is `fallback` for another key, and -1 without a key.
    """
    first: dict[bytes, int] = {}
    # `setdefault`: a key that occurs twice counts at its first place, as the theorem says.
    for number, key in enumerate(keys):
        if key.any():
            first.setdefault(key.tobytes(), number)
    distinct, inverse = np.unique(record_keys, axis=0, return_inverse=True)
    places = np.array(
        [first.get(key.tobytes(), fallback) if key.any() else -1 for key in distinct], dtype=np.intp
    )
    return places[inverse.reshape(-1)] if len(distinct) else np.zeros(0, dtype=np.intp)


@attrs.frozen
class PrivateGroupsBound(SensitivityBound):
    """That of `private_keys` for the keys; the theorem above for the means, at every list."""

    learner: ClassVar[type[AnyLearner]] = PrivateGroups

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return `KeysBound` for the keys; for the means the theorem above, plus rounding."""
        if not isinstance(query, SumQuery):
            return KeysBound().sensitivity(query, learner, public, adjacency)
        longest = query.sum.clip
        movement = ByRelation(
            add_remove=longest, replace_one=max(2.0, up(ROOT_TWO * longest, roundings=2))
        )
        claim, value = movement.under(adjacency)
        rounding = 4 * 2.0 * 2.0**query.sum.unit  # two coordinates, rounded on either side
        return Sensitivity(
            value=up(value + rounding, roundings=4),
            distance=query.distance,
            adjacency=claim,
            source=f"a count and a sum of values in one group, whatever the keys ({claim})",
        )
