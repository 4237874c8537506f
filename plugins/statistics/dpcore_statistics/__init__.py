"""Private counts, sums, means, variances, histograms and more, each with its error bar.

A domain needs no target. Every number is published with an interval that follows from the noise
alone, and `dpcore check` tells its width before any record is read.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Event, Learner, Mechanism, SensitivityBound, hookimpl
from dpcore_statistics.bounds import BoundedMean, BoundedMeanBound
from dpcore_statistics.count import Count
from dpcore_statistics.distinct import Distinct, DistinctBound
from dpcore_statistics.group_errors import GroupErrors
from dpcore_statistics.group_parity import GroupParity
from dpcore_statistics.group_rates import GroupRates
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.mechanisms.sparse_vector import SparseVector
from dpcore_statistics.mechanisms.thresholded import Thresholded, ThresholdedEvent
from dpcore_statistics.private_groups import PrivateGroups, PrivateGroupsBound
from dpcore_statistics.private_keys import KeysBound, PrivateKeys
from dpcore_statistics.quantiles import Quantiles, RankBound
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance
from dpcore_statistics.workload import Workload


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """What is published: tables of numbers."""
    # These names are words of the spec's grammar: a renamed key breaks every spec that has it.
    return {
        "statistics.bounded_mean": BoundedMean,
        "statistics.count": Count,
        "statistics.distinct": Distinct,
        "statistics.group_by": GroupBy,
        "statistics.group_errors": GroupErrors,
        "statistics.group_parity": GroupParity,
        "statistics.group_rates": GroupRates,
        "statistics.histogram": Histogram,
        "statistics.mean": Mean,
        "statistics.private_groups": PrivateGroups,
        "statistics.private_keys": PrivateKeys,
        "statistics.quantiles": Quantiles,
        "statistics.sum": Total,
        "statistics.table": Table,
        "statistics.variance": Variance,
        "statistics.workload": Workload,
    }


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {
        "statistics.bounded_mean": BoundedMeanBound,
        "statistics.distinct": DistinctBound,
        "statistics.private_groups": PrivateGroupsBound,
        "statistics.private_keys": KeysBound,
        "statistics.ranks": RankBound,
        "statistics.sums": StatisticBound,
    }


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Counts of keys that nobody listed, and the first score that is small enough."""
    return {"statistics.sparse_vector": SparseVector, "statistics.thresholded": Thresholded}


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """The cost of the mechanisms above, by the event's name."""
    # An event of its own: that a key appears at all is leaked, which no Gaussian event covers.
    return {"statistics.thresholded": ThresholdedEvent}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest specs that use them."""
    folder = Path(__file__).parent / "examples"
    names = (
        "basics",
        "bounds",
        "clinic",
        "fairness",
        "groups",
        "keys",
        "odds",
        "persons",
        "quantiles",
        "replaced",
        "tables",
    )
    return {f"statistics.{name}": folder / f"{name}.yaml" for name in names}
