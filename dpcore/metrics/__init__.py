"""Metrics: what an evaluation says of predictions on a hold-out, in all and by group."""

from typing import TYPE_CHECKING

from dpcore.siblings import lazy_names

if TYPE_CHECKING:
    from dpcore.metrics.base import HoldOutPredictions as HoldOutPredictions, Metric as Metric
    from dpcore.metrics.priced import PricedMetric as PricedMetric
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "HoldOutPredictions": "metrics.base",
            "Metric": "metrics.base",
            "PricedMetric": "metrics.priced",
        },
    )
