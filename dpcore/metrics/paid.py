"""`paid_evaluation`: plan a hold-out metric that is paid for, and therefore published.

Each metric of each release is one Laplace release of its statistic over the hold-out (a mean,
mostly), after the models are fixed by their answers. A record is either in the hold-out or not, so
that its replacement moves the statistics by at most `PricedMetric.sensitivity`; the cost is added
to the rest of the run all the same.
"""

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.parts import hold_out_size
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError, ParameterError, need
from dpcore.metrics.base import HoldOutPredictions, Metric
from dpcore.metrics.priced import PricedMetric
from dpcore.query import Query
from dpcore.rounding import gamma
from dpcore.sensitivity import Distance, Sensitivity


def _require_prices(metrics: Mapping[str, Metric]) -> dict[str, PricedMetric]:
    priced_metrics = {}
    for name, metric in metrics.items():
        if not isinstance(metric, PricedMetric):
            raise ParameterError(
                "evaluate.private", "metrics that have a price", "metrics", name, "private",
                message=f"{name} has no price here: nothing is proved of how far one record moves "
                f"it; by group, publish it with a release `of` the model",
            )  # fmt: skip
        priced_metrics[name] = metric
    return priced_metrics


@attrs.frozen(kw_only=True)
class PaidEvaluation:
    """Metrics that a run pays for on its hold-out, and publishes.

    Args:
        metrics: By name, each with a proved sensitivity.
        epsilon: What one metric of one release costs, > 0.
    """

    metrics: Mapping[str, PricedMetric] = attrs.field(converter=_require_prices)
    epsilon: float

    def queries(
        self, releases: tuple[str, ...], domain: Domain, adjacency: Adjacency, holdout: float
    ) -> tuple[PlannedQuery, ...]:
        """Plan a Laplace release for each metric of each release.

        Raises:
            NoClaimError: under add/remove, where the size of the hold-out is private.
            ParameterError: there is no hold-out.
        """
        # The sensitivity of a metric depends on the size of the hold-out, which must be public.
        secret = adjacency.privacy_unit.holdout_secret
        need(
            adjacency.replaces,
            NoClaimError,
            f"a paid evaluation needs a public hold-out size; {secret}",
            "evaluate.private",
        )
        records = hold_out_size(domain.records, holdout)
        need(records >= 1, "evaluate.private", "a hold-out", "holdout", holdout, "evaluate")
        return tuple(
            self._ask(f"{release}.{metric}", metric, domain, records)
            for release in releases
            for metric in self.metrics
        )

    def _ask(self, name: str, metric: str, domain: Domain, records: int) -> PlannedQuery:
        priced_metric = self.metrics[metric]
        bound = priced_metric.diameter(domain.labels)
        if bound is None:
            raise ParameterError(
                "evaluate.private",
                "metrics that fit the kind of target",
                "metrics",
                metric,
                "evaluate",
            )
        # The models are fixed by their answers before the paid evaluation. So replacing a record
        # moves these statistics only if it is in the hold-out, and then by the metric's own
        # theorem.
        sensitivity = Sensitivity(
            value=priced_metric.sensitivity(domain.labels, records),
            distance=Distance.L1,
            adjacency=REPLACE_ONE,
            solver_error=bound * gamma(8),
            source=priced_metric.source(metric),
        )
        query = Query(name=name, shape=(1,), distance=Distance.L1)
        # Explicit noise: it is composed with the releases, and calibration leaves it alone.
        mechanism = Laplace().at(1 / self.epsilon, query, sensitivity)
        return PlannedQuery(query=query, sensitivity=sensitivity, mechanism=mechanism, share=1.0)

    @property
    def needs_probabilities(self) -> bool:
        """Whether some metric needs stated probabilities."""
        return any(metric.needs_probabilities for metric in self.metrics.values())

    def statistic(self, query: str, hold_out: HoldOutPredictions) -> NDArray[np.float64]:
        """PRIVATE: the statistic over the hold-out that one query releases; shape (1,)."""
        return np.array([self._metric(query).statistic(hold_out)])

    def stated(self, statistics: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
        """{release: {metric: value}} from released statistics, by query name."""
        figures: dict[str, dict[str, float]] = {}
        for name, value in statistics.items():
            release, metric = name.split(".", 1)
            figures.setdefault(release, {})[metric] = self._metric(name).stated(float(value[0]))
        return figures

    def _metric(self, query: str) -> PricedMetric:
        return self.metrics[query.split(".", 1)[1]]
