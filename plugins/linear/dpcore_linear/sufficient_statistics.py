r"""Ridge from one release of its sufficient statistics: Gram matrix and moments together.

Theorem (T9): :math:`(\sum\phi\phi^T/a,\ \sum y\phi/w)` moves in l2 by at most
:math:`\sqrt{2\kappa^4(1-t^2)/a^2+2\kappa^2M^2(1+t)/w^2}` (replace-one) or
:math:`\sqrt{\kappa^4/a^2+\kappa^2M^2/w^2}` (add/remove), whatever the number of records. All that
follows is a function of what was released. After Wang (2018), arXiv:1803.02596, Algorithm 2.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Distance,
    Domain,
    FeatureMap,
    Learner,
    LearnerCoins,
    LinearModel,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive
from dpcore.errors import NoClaimError
from dpcore.learning.features.base import row_by_row
from dpcore.learning.solvers.sums import plain
from dpcore.learning.theorems.by_relation import ByRelation
from dpcore.learning.theorems.sufficient_statistics import (
    statistics_add_remove,
    statistics_replace_label,
    statistics_replace_one,
)
from dpcore_linear.exact_sums import exact_sums, joined, joined_error, parted

_FAILURE = 0.05  # of the bound on the noise's norm, which only helps to choose a regularization


@attrs.frozen(kw_only=True)
class SufficientStatistics(OneShot):
    r"""Release Gram matrix and moments once, clip eigenvalues at 0, and solve.

    No number of records is read. Where `total_regularization` is left out it is what the released
    least eigenvalue lacks to the norm that the planned noise may have.

    Total: sums of products of finite numbers, saturating; the bound refuses units so extreme that
    they could overflow.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0, of the sum form; chosen after the release if None.
        gram_weight: > 0; above 1 the Gram matrix gets more of the noise and the moments less.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.sufficient_statistics",)
    total: ClassVar[bool] = True
    scores: ClassVar[bool] = True

    features: FeatureMap
    total_regularization: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive)
    )
    gram_weight: float = attrs.field(default=1.0, validator=positive)

    def weights(self, domain: Domain) -> tuple[float, float]:
        """a and w: one record's part of either sum is at most 1 (or 1/gram_weight) long."""
        kappa = self.features.norm(domain)
        return self.gram_weight * kappa * kappa, kappa * domain.label_bound

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One: both sums in one vector, in l2."""
        if public.mu is None and self.total_regularization is None:
            raise NoClaimError(
                "sufficient_statistics needs total_regularization where the budget has no delta"
            )
        width = self.features.width(public.domain)
        size = width * (width + 1) // 2 + width
        return (Query(name="statistics", shape=(size,), distance=Distance.L2),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The sums, exact up to a few roundings of the results."""
        domain = public.domain
        drawn = self.features.draw(domain, public.coins)
        rows = row_by_row(drawn, records.features, self.features.width(domain))
        kappa = self.features.norm(domain)
        sums = exact_sums(rows, records.labels, kappa, domain.label_bound)
        return joined(sums, *self.weights(domain))

    def regularization(self, least: float, public: Public) -> float:
        """Lam, given the least eigenvalue of the clipped matrix."""
        if self.total_regularization is not None:
            return self.total_regularization
        assert public.mu is not None, "the plan needs one of both"
        a, w = self.weights(public.domain)
        kappa = self.features.norm(public.domain)
        noise = a * statistics_replace_one(kappa, public.domain.label_bound, a, w) / public.mu
        width = self.features.width(public.domain)
        longest = math.sqrt(2 * width) + math.sqrt(2 * math.log(2 / _FAILURE))
        return max(noise * longest - least, 1e-9 * noise)

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Ridge on the positive part of the released matrix."""
        width = self.features.width(public.domain)
        gram, moments = parted(answers["statistics"], width, *self.weights(public.domain))
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0)
        shift = self.regularization(float(values[0]), public)
        return LinearModel(
            domain=public.domain,
            features=self.features.drawn(public.domain, public.coins),
            coefficients=vectors @ ((vectors.T @ moments) / (values + shift)),
        )


@attrs.frozen(kw_only=True)
class SufficientStatisticsBound(SensitivityBound):
    """T9, for every relation and without a number of records."""

    learner: ClassVar[type[Learner]] = SufficientStatistics

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """The joint bound of each relation."""
        assert isinstance(learner, SufficientStatistics)
        domain = public.domain
        kappa, label_bound = learner.features.norm(domain), domain.label_bound
        a, w = learner.weights(domain)
        if not plain(kappa, label_bound, a, w):
            return Refused("its sums could overflow: rescale the label, or the features")
        moved = ByRelation(
            add_remove=statistics_add_remove(kappa, label_bound, a, w),
            replace_one=statistics_replace_one(kappa, label_bound, a, w),
            replace_label=statistics_replace_label(kappa, label_bound, w),
        )
        claim, value = moved.under(adjacency)
        width = learner.features.width(domain)
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            solver_error=joined_error(domain.at_most, width, kappa, label_bound, a, w),
            source=f"T9 (sufficient statistics, {claim})",
        )
