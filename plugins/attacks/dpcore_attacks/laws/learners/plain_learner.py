"""Plain learners, and a certain bound, for components that need some: wrapper bounds, choices."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    ADD_REMOVE,
    Adjacency,
    Distance,
    Domain,
    Learner,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.models import LinearModel, ScoringModel
from dpcore.models.features.identity import Identity
from dpcore.randomness import LearnerRandomness


@attrs.frozen(kw_only=True)
class LabelSum(OneShot):
    """Publishes the sum of the labels. Total: a sum of clipped labels is finite."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = True

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the one query: a single number, bounded in l2."""
        return (Query(name="sum", shape=(1,), distance=Distance.L2),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return the sum of all labels, shape (1,)."""
        return np.array([records.labels.sum()])

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> Constant:
        """Return a model that predicts the noisy sum for every row."""
        return Constant(domain=public.domain, value=answers["sum"])


@attrs.frozen(kw_only=True)
class PlainMoments(SummingLearner, OneShot):
    """Predicts by the products of columns and labels, which are summed exactly.

    Args:
        clip: Of what one record adds.
    """

    publishes: ClassVar[type[Any]] = ScoringModel

    clip: float = 1.5

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return a number for each column, and the count, in l2."""
        width = public.domain.width + 1
        sums = Sum(clip=self.clip)
        return (SumQuery(name="sums", shape=(width,), distance=Distance.L2, sum=sums),)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """Columns times label, and a 1 to count, shape (n_records, width + 1)."""
        return np.column_stack([block.features * block.labels[:, None], np.ones(len(block))])

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Return a linear model of the noisy correlations."""
        sums = answers["sums"]
        features = Identity().draw(public.domain, public.randomness)
        weights = sums[:-1] / max(1.0, float(sums[-1]))
        return LinearModel(domain=public.domain, features=features, coefficients=weights)


@attrs.frozen(kw_only=True, eq=False)
class Constant:
    """Predicts one value, clipped to the label range."""

    domain: Domain
    value: NDArray[np.float64]

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Return the value for every row of the table, in the file's units."""
        rows = len(encode_table(self.domain, table))
        return self.domain.uncentre(np.full(rows, float(self.value[0])))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the predicted value under the name `value`, shape (1,)."""
        return {"value": self.value}


@attrs.frozen(kw_only=True)
class LabelSumAddRemove(SensitivityBound):
    """One record more or less moves the sum by at most M; attained."""

    learner: ClassVar[type[Learner]] = LabelSum

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """M, with room for the rounding of a sum."""
        if not ADD_REMOVE.covers(adjacency):
            return Refused("it is about add/remove")
        # Summed in floats, so that the bound has room for the rounding of a long sum.
        return Sensitivity(
            value=public.domain.label_bound * (1 + 2.0**-30),
            distance=Distance.L2,
            adjacency=ADD_REMOVE,
            source="one summand",
        )
