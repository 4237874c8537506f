"""Histogram regression under logistic noise: no paper, a textbook exercise."""

from collections.abc import Mapping
from pathlib import Path

from acme_bins.bound import HistogramBound
from acme_bins.histogram import Histogram
from acme_bins.logistic import BoundedLoss, Logistic
from dpcore import Event, Learner, Mechanism, SensitivityBound, hookimpl


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """The mean label in bins of one column."""
    return {"acme_bins.histogram": Histogram}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {"acme_bins.histogram_l1": HistogramBound}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Logistic noise."""
    return {"acme_bins.logistic": Logistic}


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """What logistic noise costs."""
    return {"acme_bins.bounded_loss": BoundedLoss}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses both."""
    return {"bins": Path(__file__).with_name("example.yaml")}
