"""Keys: how many records each value of a column has, where the values themselves are private."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Public,
    Published,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import confidence
from dpcore.domain import Texts
from dpcore.encoding.columns import decode_text
from dpcore.errors import ParameterError, need
from dpcore.interval import NoiseDistribution
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.models.figures import Figures, Statistics
from dpcore.randomness import LearnerRandomness
from dpcore.sensitivity import Distance
from dpcore_statistics.bars import around, cut_count
from dpcore_statistics.columns import MOST_CELLS, Cutting, require_conditions, selected
from dpcore_statistics.mechanisms.thresholded import KeyedQuery, Thresholded
from dpcore_statistics.statistic import ROOT_TWO


@attrs.frozen(kw_only=True)
class PrivateKeys(Conversation, Cutting):
    """The values of a column that enough records have, with their counts.

    No one has to list the values. A value is published only if its noisy count is above a threshold
    that the plan fixes; how many values there are, and which were left out, is not given.

    Total: values with counts are found whatever the records; of none there are none.

    Args:
        column: A declared column of texts.
        most: Values that are published at most; of more, those with the largest noisy counts.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability an half-width holds, for each value by itself.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.private_keys",)
    total: ClassVar[bool] = True
    publishes: ClassVar[type[Any]] = Published

    column: str
    most: int = 1000
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)

    def __attrs_post_init__(self) -> None:
        # The shape of the release is public: it must not depend on how many keys occur.
        need(1 <= self.most <= MOST_CELLS, "private_keys", f"1 to {MOST_CELLS}", "most", self.most)

    def texts(self, public: Public) -> tuple[Texts, int]:
        """Return the column, and the index at which its encoding starts.

        Raises:
            ParameterError: it is none of texts.
        """
        start = 0
        for name, column in public.domain.columns.items():
            if name == self.column and isinstance(column, Texts):
                return column, start
            start += column.width
        raise ParameterError(
            "private_keys", "a declared column of texts ({texts: 24})", "column", self.column
        )

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the query for all keys with their counts.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        width = self.texts(public)[0].width
        return (
            KeyedQuery(
                name="keys",
                shape=(self.most, width + 1),
                distance=Distance.L2,
                mechanism=Thresholded(),
            ),
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[np.float64]:
        """PRIVATE: return a row for each key that occurs, its count last; an empty key has none."""
        column, start = self.texts(public)
        encoded = records.columns(start, start + column.width)
        # An empty text is no key: such a record is in no row.
        rows = encoded[selected(public.domain, self.where, records) & (encoded != 0).any(axis=1)]
        if not len(rows):
            return np.zeros((0, column.width + 1))
        keys, counts = np.unique(rows, axis=0, return_counts=True)
        return np.column_stack([keys, counts.astype(np.float64)])

    def model(self, state: Transcript) -> Statistics:
        """Return a table with a row for each published key: its noisy count and interval."""
        (answer,) = state.answers
        return Statistics.of(self.counted(answer, state.public))

    def counted(self, answer: Answer, public: Public) -> Figures:
        """Return the published keys with their counts."""
        rows = np.asarray(answer.value, dtype=np.float64)
        # Rows of zeros only fill the public shape.
        rows = rows[(rows[:, :-1] != 0).any(axis=1)]
        ends = [
            cut_count(
                around(float(count), answer.noise_distribution, 1 - self.level), public.domain
            )
            for count in rows[:, -1]
        ]
        return Figures(
            about={self.column: tuple(decode_text(row) for row in rows[:, :-1])},
            estimate=rows[:, -1],
            low=np.array([low for low, _ in ends]),
            high=np.array([high for _, high in ends]),
            level=self.level,
            covers="noise only: of a value chosen beforehand, the exact count is outside its "
            "published interval with at most the missing probability, runs that do not "
            "publish it counted in. Values with few records are left out, so that the "
            "published counts just above the threshold are too large on average",
        )

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the half-width of a count, which no value of fewer records exceeds."""
        return (
            noise_distributions["keys"].within(1 - self.level)
            if "keys" in noise_distributions
            else 0.0
        )

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Return the half-width of every count."""
        if (half := self.least_records(public, noise_distributions)) == 0:
            return ()
        return (f"each published count of {self.column} +- {half:.4g} ({100 * self.level:g} %)",)


@attrs.frozen
class KeysBound(SensitivityBound):
    """Counts of one key a record: 1 in l2 where a record comes or goes, sqrt(2) where replaced."""

    learner: ClassVar[type[AnyLearner]] = PrivateKeys

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the sensitivity: a record has at most one key."""
        # A replaced record takes 1 from one key and adds 1 to another: two orthogonal moves.
        claim, value = ByRelation(add_remove=1.0, replace_one=ROOT_TWO).under(adjacency)
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            source=f"a record has at most one key ({claim})",
        )
