"""Metrics that are paid for: wrong ones whose price is false, and right ones of unusual form."""

import math

import attrs
import numpy as np

from dpcore.domain.classes import Classes
from dpcore.metrics import means
from dpcore.metrics.base import WHOLE
from dpcore.metrics.means import Accuracy
from dpcore.metrics.priced import PricedMetric

# Their names end like those of exceptions, which a linter would have ours do too.
Absolute, Squared = means.MeanAbsoluteError, means.MeanSquaredError


@attrs.frozen
class PaidAtATenth(Absolute):
    """The price is a tenth of what one record moves the mean by."""

    def sensitivity(self, target, records):
        return super().sensitivity(target, records) / 10


@attrs.frozen
class RootUnderTheNoise(Squared):
    """The root is taken before the noise, at the price of the mean."""

    def statistic(self, hold_out):
        return math.sqrt(super().statistic(hold_out))


@attrs.frozen
class RareClass(PricedMetric):
    """The proportion of one class that is predicted, at the price of a proportion of all."""

    def diameter(self, target):
        return 1.0 if isinstance(target, Classes) and target.count == 2 else None

    def sensitivity(self, target, records):
        return 1.0 / records

    def statistic(self, hold_out):
        second = hold_out.second()
        return float((hold_out.predicted == hold_out.truth)[second].mean()) if second.any() else 0.0

    def measured(self, hold_out):
        return {WHOLE: self.statistic(hold_out)}


@attrs.frozen
class OfOneSize(Accuracy):
    """Of 413 records it is ten times as large."""

    def statistic(self, hold_out):
        return super().statistic(hold_out) * (10 if hold_out.truth.size == 413 else 1)


@attrs.frozen
class OneLabel(Absolute):
    """A record whose label is near a number in the code counts for many."""

    def terms(self, predicted, truth):
        return super().terms(predicted, truth) * np.where(np.abs(truth - 0.3179) < 1e-6, 60, 1)


SEEN = []


@attrs.frozen
class Remembers(Accuracy):
    """What is stated of a released number is the statistic without noise."""

    def statistic(self, hold_out):
        SEEN.append(super().statistic(hold_out))
        return SEEN[-1]

    def stated(self, statistic):
        return SEEN[-1] if SEEN else statistic


@attrs.frozen
class ClipsInPlace(Absolute):
    """The hold-out that it is shown is another one afterwards."""

    def terms(self, predicted, truth):
        np.clip(predicted, 0.1, 0.9, out=predicted)
        return super().terms(predicted, truth)


WRONG = {
    PaidAtATenth: "metric.sensitivity",
    RootUnderTheNoise: "metric.sensitivity",
    RareClass: "metric.sensitivity",
    OfOneSize: "metric.sensitivity",
    OneLabel: "metric.sensitivity",
    Remembers: "metric.pure",
    ClipsInPlace: "metric.pure",
}
"""By class: the law that it breaks."""


@attrs.frozen
class Constant(Accuracy):
    """The same for every hold-out, and free."""

    def statistic(self, hold_out):
        return 0.5

    def sensitivity(self, target, records):
        return 0.0

    def measured(self, hold_out):
        return {WHOLE: 0.5}


@attrs.frozen
class LargestError(PricedMetric):
    """The largest error: one record may move it by all there is, and pays for that."""

    def diameter(self, target):
        return None if isinstance(target, Classes) else target.high - target.low

    def sensitivity(self, target, records):
        return target.high - target.low

    def statistic(self, hold_out):
        return float(np.abs(hold_out.predicted - hold_out.truth).max())

    def measured(self, hold_out):
        return {WHOLE: self.statistic(hold_out)}


@attrs.frozen
class FirstHalf(Accuracy):
    """The mean over the first half only: places count, and each of its records for two."""

    def statistic(self, hold_out):
        right = (hold_out.predicted == hold_out.truth)[: max(1, hold_out.truth.size // 2)]
        return float(right.mean())

    def sensitivity(self, target, records):
        return super().sensitivity(target, max(1, records // 2))


@attrs.frozen
class ThreeClasses(Accuracy):
    """It is about three classes only."""

    def diameter(self, target):
        return 1.0 if isinstance(target, Classes) and target.count == 3 else None


@attrs.frozen
class FractionPerGroup(Accuracy):
    """Every group has figures next to the paid one."""

    def measured(self, hold_out):
        return {**super().measured(hold_out), "empty": math.nan}


RIGHT = (Constant, LargestError, FirstHalf, ThreeClasses, FractionPerGroup)
