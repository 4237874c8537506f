"""Private counts, sums, means, variances, histograms and more, each with its half-width.

A domain needs no target. Every number is published with an interval that follows from the noise
only, and `dpcore check` says its width before any record is read.
"""

provides = {
    # These names are words of the spec's grammar: a renamed key breaks every spec that has it.
    "learners": {
        "statistics.bounded_mean": "dpcore_statistics.bounds:BoundedMean",
        "statistics.count": "dpcore_statistics.count:Count",
        "statistics.covariance": "dpcore_statistics.pairs.covariance:Covariance",
        "statistics.distinct": "dpcore_statistics.distinct:Distinct",
        "statistics.group_by": "dpcore_statistics.groups:GroupBy",
        "statistics.group_errors": "dpcore_statistics.group_errors:GroupErrors",
        "statistics.group_parity": "dpcore_statistics.group_parity:GroupParity",
        "statistics.group_rates": "dpcore_statistics.group_rates:GroupRates",
        "statistics.histogram": "dpcore_statistics.histogram:Histogram",
        "statistics.marginals": "dpcore_statistics.marginals.learner:Marginals",
        "statistics.mean": "dpcore_statistics.mean:Mean",
        "statistics.prediction_interval": (
            "dpcore_statistics.ranks.prediction_interval:PredictionInterval"
        ),
        "statistics.private_groups": "dpcore_statistics.private_groups:PrivateGroups",
        "statistics.private_keys": "dpcore_statistics.private_keys:PrivateKeys",
        "statistics.quantiles": "dpcore_statistics.quantiles:Quantiles",
        "statistics.ratio": "dpcore_statistics.pairs.ratio:Ratio",
        "statistics.running": "dpcore_statistics.running:Running",
        "statistics.share": "dpcore_statistics.count:Share",
        "statistics.sum": "dpcore_statistics.total:Total",
        "statistics.table": "dpcore_statistics.tables:Table",
        "statistics.top": "dpcore_statistics.histogram:Top",
        "statistics.variance": "dpcore_statistics.variance:Variance",
        "statistics.workload": "dpcore_statistics.workload:Workload",
    },
    "bounds": {
        "statistics.bounded_mean": "dpcore_statistics.bounds:BoundedMeanBound",
        "statistics.distinct": "dpcore_statistics.distinct:DistinctBound",
        "statistics.private_groups": "dpcore_statistics.private_groups:PrivateGroupsBound",
        "statistics.private_keys": "dpcore_statistics.private_keys:KeysBound",
        "statistics.ranks": "dpcore_statistics.quantiles:RankBound",
        "statistics.sums": "dpcore_statistics.statistic:StatisticBound",
    },
    # Counts of keys that no one listed, and the first score that is small enough.
    "mechanisms": {
        "statistics.sparse_vector": "dpcore_statistics.mechanisms.sparse_vector:SparseVector",
        "statistics.thresholded": "dpcore_statistics.mechanisms.thresholded:Thresholded",
    },
    # An event of its own: that a key appears at all is leaked, which no Gaussian event covers.
    "events": {
        "statistics.thresholded": "dpcore_statistics.mechanisms.thresholded:ThresholdedEvent",
    },
    # What an evaluation says next to means; specs name them without a dot, as the core's.
    "metrics": {
        "balanced_accuracy": "dpcore_statistics.metrics.balanced:BalancedAccuracy",
        "brier_score": "dpcore_statistics.metrics.losses:BrierScore",
        "calibration_error": "dpcore_statistics.metrics.calibration:CalibrationError",
        "excessive_risk": "dpcore_statistics.metrics.risk:ExcessiveRisk",
        "false_positive_rate": "dpcore_statistics.metrics.rates:FalsePositiveRate",
        "log_loss": "dpcore_statistics.metrics.losses:LogLoss",
        "parity": "dpcore_statistics.metrics.parity:Parity",
        "positive_rate": "dpcore_statistics.metrics.rates:PositiveRate",
        "risk_gap": "dpcore_statistics.metrics.risk:RiskGap",
        "roc_auc": "dpcore_statistics.metrics.ranking:AreaUnderCurve",
        "true_positive_rate": "dpcore_statistics.metrics.rates:TruePositiveRate",
    },
    # A way in: the examples, and a spec to fill in from the names of a file's columns.
    "commands": {
        "examples": "dpcore_statistics.start.examples_command:examples",
        "init": "dpcore_statistics.start.command:init",
    },
    "examples": {"statistics.*": "examples/*.yaml"},
}
