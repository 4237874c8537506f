"""FeatureRegression: one-shot learners that publish a model linear in features."""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.distance import Distance
from dpcore.learner import Public
from dpcore.learning.features.base import FeatureMap
from dpcore.learning.features.model import LinearModel
from dpcore.learning.learners.one_shot import OneShot
from dpcore.query import Query
from dpcore.records.records import Records


@attrs.frozen(kw_only=True)
class FeatureRegression(OneShot):
    """Asks one query, the coefficients in l2; what is left to write is `statistic`.

    Args:
        features: Map from encoded columns to features.
    """

    scores: ClassVar[bool] = True
    linear: ClassVar[bool] = True

    features: FeatureMap

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One: the coefficients, in l2."""
        width = self.features.width(public.domain)
        return (Query(name="coefficients", shape=(width,), distance=Distance.L2),)

    def mapped(self, records: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: the records' features, shape (n, width), rows at most kappa long."""
        return self.features.drawn(public.domain, public.coins)(records.features)

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """A linear model in the features."""
        return LinearModel(
            domain=public.domain,
            features=self.features.drawn(public.domain, public.coins),
            coefficients=np.asarray(answers["coefficients"], dtype=np.float64),
        )
