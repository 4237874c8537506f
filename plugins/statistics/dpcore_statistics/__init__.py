"""Private counts, sums, means, variances, histograms and more, each with its error bar.

A domain needs no target. Every number is published with an interval that follows from the noise
alone, and `dpcore check` tells its width before any record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore import Event, Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.registry.lazy_mapping import LazyMapping

if TYPE_CHECKING:
    from dpcore import Metric

_MECHANISMS = "dpcore_statistics.mechanisms"
_METRICS = "dpcore_statistics.metrics"


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """What is published: tables of numbers."""
    # These names are words of the spec's grammar: a renamed key breaks every spec that has it.
    return LazyMapping(
        {
            "statistics.bounded_mean": ("dpcore_statistics.bounds", "BoundedMean"),
            "statistics.count": ("dpcore_statistics.count", "Count"),
            "statistics.covariance": ("dpcore_statistics.pairs.covariance", "Covariance"),
            "statistics.distinct": ("dpcore_statistics.distinct", "Distinct"),
            "statistics.group_by": ("dpcore_statistics.groups", "GroupBy"),
            "statistics.group_errors": ("dpcore_statistics.group_errors", "GroupErrors"),
            "statistics.group_parity": ("dpcore_statistics.group_parity", "GroupParity"),
            "statistics.group_rates": ("dpcore_statistics.group_rates", "GroupRates"),
            "statistics.histogram": ("dpcore_statistics.histogram", "Histogram"),
            "statistics.marginals": ("dpcore_statistics.marginals.learner", "Marginals"),
            "statistics.mean": ("dpcore_statistics.mean", "Mean"),
            "statistics.prediction_interval": (
                "dpcore_statistics.ranks.prediction_interval",
                "PredictionInterval",
            ),
            "statistics.private_groups": ("dpcore_statistics.private_groups", "PrivateGroups"),
            "statistics.private_keys": ("dpcore_statistics.private_keys", "PrivateKeys"),
            "statistics.quantiles": ("dpcore_statistics.quantiles", "Quantiles"),
            "statistics.ratio": ("dpcore_statistics.pairs.ratio", "Ratio"),
            "statistics.running": ("dpcore_statistics.running", "Running"),
            "statistics.share": ("dpcore_statistics.count", "Share"),
            "statistics.sum": ("dpcore_statistics.total", "Total"),
            "statistics.table": ("dpcore_statistics.tables", "Table"),
            "statistics.top": ("dpcore_statistics.histogram", "Top"),
            "statistics.variance": ("dpcore_statistics.variance", "Variance"),
            "statistics.workload": ("dpcore_statistics.workload", "Workload"),
        }
    )


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return LazyMapping(
        {
            "statistics.bounded_mean": ("dpcore_statistics.bounds", "BoundedMeanBound"),
            "statistics.distinct": ("dpcore_statistics.distinct", "DistinctBound"),
            "statistics.private_groups": ("dpcore_statistics.private_groups", "PrivateGroupsBound"),
            "statistics.private_keys": ("dpcore_statistics.private_keys", "KeysBound"),
            "statistics.ranks": ("dpcore_statistics.quantiles", "RankBound"),
            "statistics.sums": ("dpcore_statistics.statistic", "StatisticBound"),
        }
    )


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Counts of keys that nobody listed, and the first score that is small enough."""
    return LazyMapping(
        {
            "statistics.sparse_vector": (f"{_MECHANISMS}.sparse_vector", "SparseVector"),
            "statistics.thresholded": (f"{_MECHANISMS}.thresholded", "Thresholded"),
        }
    )


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """The cost of the mechanisms above, by the event's name."""
    # An event of its own: that a key appears at all is leaked, which no Gaussian event covers.
    return LazyMapping(
        {"statistics.thresholded": (f"{_MECHANISMS}.thresholded", "ThresholdedEvent")}
    )


@hookimpl
def dpcore_metrics() -> Mapping[str, type[Metric]]:
    """What an evaluation tells beside means; specs name them without a dot, as the core's."""
    losses, rates, risk = (f"{_METRICS}.{file}" for file in ("losses", "rates", "risk"))
    return LazyMapping(
        {
            "balanced_accuracy": (f"{_METRICS}.balanced", "BalancedAccuracy"),
            "brier_score": (losses, "BrierScore"),
            "calibration_error": (f"{_METRICS}.calibration", "CalibrationError"),
            "excessive_risk": (risk, "ExcessiveRisk"),
            "false_positive_rate": (rates, "FalsePositiveRate"),
            "log_loss": (losses, "LogLoss"),
            "parity": (f"{_METRICS}.parity", "Parity"),
            "positive_rate": (rates, "PositiveRate"),
            "risk_gap": (risk, "RiskGap"),
            "roc_auc": (f"{_METRICS}.ranking", "AreaUnderCurve"),
            "true_positive_rate": (rates, "TruePositiveRate"),
        }
    )


@hookimpl
def dpcore_commands() -> Mapping[str, Callable[..., Any]]:
    """A way in: the examples, and a spec to fill in from the names of a file's columns."""
    return LazyMapping(
        {
            "examples": ("dpcore_statistics.start.examples_command", "examples"),
            "init": ("dpcore_statistics.start.command", "init"),
        }
    )


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest specs that use them."""
    folder = Path(__file__).parent / "examples"
    names = (
        "basics",
        "bounds",
        "clinic",
        "fairness",
        "fractions",
        "groups",
        "intervals",
        "keys",
        "marginals",
        "odds",
        "persons",
        "quantiles",
        "replaced",
        "running",
        "tables",
    )
    return {f"statistics.{name}": folder / f"{name}.yaml" for name in names}
