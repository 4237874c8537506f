r"""Ridge from one release of its sufficient statistics: Gram matrix and moments together.

Theorem (T9): :math:`(\sum\phi\phi^T/a,\ \sum y\phi/w)` moves in l2 by at most
:math:`\sqrt{2\kappa^4(1-t^2)/a^2+2\kappa^2M^2(1+t)/w^2}` (replace-one) or
:math:`\sqrt{\kappa^4/a^2+\kappa^2M^2/w^2}` (add/remove), whatever the number of records. All that
follows is a function of what was released. Sums are integers. After Wang (2018), arXiv:1803.02596,
Algorithm 2.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
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
from dpcore.checks import one_of, positive
from dpcore.errors import NoClaimError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.by_person import of_whole_persons
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore_linear.exact_sums import BLOCK, GramUnits
from dpcore_linear.gram_intervals import gram_intervals
from dpcore_models.solvers.sums import plain

_FAILURE = 0.05  # of the bound on the noise's norm, which only helps to choose a regularization


@attrs.frozen(kw_only=True)
class SufficientStatistics(SummingLearner, OneShot):
    r"""Release Gram matrix and moments once, clip eigenvalues at 0, and solve.

    No number of records is read. Where `total_regularization` is left out it is what the released
    least eigenvalue lacks to the norm that the planned noise may have.

    Total, and its sums are exact: see `SummingLearner`. Rows are rounded to about 18 binary places
    and labels to 14, and the bound allows for that (`dpcore_linear.exact_sums`).

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0, of the sum form; chosen after the release if None.
        gram_weight: > 0; above 1 the Gram matrix gets more of the noise and the moments less.
        clip: What the noise hides: `record`, k records of a person; `person`, one person whose
            records' sums are added and clipped to the length of `counts_for` of them, so that k
            costs nothing. For domains with `people`.
        counts_for: How many whole records a person counts for at most, where persons are clipped.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.sufficient_statistics",)
    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    features: FeatureMap
    total_regularization: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive)
    )
    gram_weight: float = attrs.field(default=1.0, validator=positive)
    clip: Literal["record", "person"] = attrs.field(
        default="record", validator=one_of("record", "person")
    )
    counts_for: float = attrs.field(default=1.0, validator=positive)

    def units(self, domain: Domain) -> GramUnits:
        """Return the units in which a record's part of a sum has length 1 (or 1/gram_weight)."""
        return GramUnits.of(
            self.features.norm(domain),
            domain.label_bound,
            self.features.width(domain),
            self.gram_weight,
        )

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one query: both sums in one vector, in l2."""
        need(
            public.mu is not None or self.total_regularization is not None,
            NoClaimError,
            "sufficient_statistics needs total_regularization where the budget has no delta",
        )
        # The declared clip is the longest vector of one
        # record, so that the sum's unit matches the claim.
        units = self.units(public.domain)
        total = Sum(clip=units.add_remove, exponent=units.exponent)
        query = SumQuery(name="statistics", shape=(units.size,), distance=Distance.L2, sum=total)
        if self.clip == "person":
            query = of_whole_persons(query, self.counts_for, public.domain)
        return (query,)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return each record's own products."""
        return self.units(public.domain).vectors(self._rows(block, public), block.labels)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the contributions, as integers."""
        return self.units(public.domain).total(self._rows(block, public), block.labels)

    def _rows(self, block: Records, public: Public) -> NDArray[np.float64]:
        features = self.features.drawn(public.domain, public.randomness)
        return row_by_row(features, block.features, self.features.width(public.domain))

    def regularization(
        self, least: float, public: Public, noise_distribution: NoiseDistribution | None = None
    ) -> float:
        """Return Lam, given the least eigenvalue of the clipped matrix.

        Args:
            noise_distribution: The distribution of the noise, which is read where a person is the
                unit; else the noise is that of the planned budget.
        """
        if self.total_regularization is not None:
            return self.total_regularization
        assert public.mu is not None, "the plan needs one of both"
        units = self.units(public.domain)
        # The noise's spectral norm, at most about sqrt(2d)
        # s: Lam lifts the least eigenvalue above it.
        noise = units.a * units.replace_one / public.mu
        if public.domain.people is not None and noise_distribution is not None:
            noise = units.a * noise_distribution.std
        longest = math.sqrt(2 * units.width) + math.sqrt(2 * math.log(2 / _FAILURE))
        return max(noise * longest - least, 1e-9 * noise)

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> LinearModel:
        """Fit the model with confidence intervals, by the distribution of the noise."""
        answer = answers["statistics"]
        return self._fit_model(answer.value, public, answer.noise_distribution)

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> LinearModel:
        """Fit ridge on the positive part of the released matrix."""
        return self._fit_model(answers["statistics"], public, None)

    def _fit_model(
        self, vector: NDArray[Any], public: Public, noise_distribution: NoiseDistribution | None
    ) -> LinearModel:
        units = self.units(public.domain)
        gram, moments = units.parted(vector)
        values, vectors = np.linalg.eigh(gram)
        # Noise can make the released matrix indefinite; its
        # positive part is nearer to the true one.
        values = np.maximum(values, 0.0)
        values += self.regularization(float(values[0]), public, noise_distribution)
        theta = vectors @ ((vectors.T @ moments) / values)
        return LinearModel(
            domain=public.domain,
            features=self.features.drawn(public.domain, public.randomness),
            coefficients=theta,
            noise_intervals=gram_intervals(units, noise_distribution, (values, vectors), theta),
        )


@attrs.frozen(kw_only=True)
class SufficientStatisticsBound(SensitivityBound):
    """T9, for every relation and without a number of records."""

    learner: ClassVar[type[Learner]] = SufficientStatistics

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the joint bound of each relation."""
        assert isinstance(learner, SufficientStatistics)
        domain = public.domain
        # In this range no product of two features or labels leaves the normal numbers.
        if not plain(learner.features.norm(domain), domain.label_bound, learner.gram_weight):
            return Refused("its sums could overflow: rescale the label, or the features")
        units = learner.units(domain)
        movements = ByRelation(
            add_remove=units.add_remove,
            replace_one=units.replace_one,
            replace_label=units.replace_label,
        )
        claim, value = movements.under(adjacency)
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            source=f"T9 (sufficient statistics, {claim}), in integers",
            facts={"label": domain.label_bound, "norm": learner.features.norm(domain)},
        )
