"""Sums, means and counts with sensitivities that were reported to be too small."""

import math
from typing import ClassVar

import attrs
import numpy as np

from dpcore import ADD_REMOVE

from gallery.entry import Claim, Released, bounded, where


def clipped_rows(rows, limit):
    """Every row scaled down to at most `limit` in l2."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, limit / np.maximum(lengths, 1e-300))


class OneNumber(Released):
    """One number; `of` computes it from the labels."""

    def width(self, domain):
        return 1

    def statistic(self, query, records, public, secret):
        return np.array([float(self.of(records.labels, public.domain))])


@attrs.frozen(kw_only=True)
class Means(Released):
    """The means of all columns, and of the label. Total: means of clipped numbers."""

    def width(self, domain):
        return domain.width + 1

    def statistic(self, query, records, public, secret):
        rows = np.column_stack([records.features, records.labels])
        return rows.sum(axis=0) / public.domain.records


def one_slice_for_two_means():
    """Means of the columns and of the label are released in one slice of the budget, whose noise
    is that of the columns' mean only.

    Source: IBM/differential-privacy-library issue 104, item 2 (LinearRegression, `fit_intercept`).
    """
    wrong = bounded(lambda a, d: 2 * d.feature_norm / d.records)
    right = bounded(lambda a, d: 2 * math.hypot(d.feature_norm, d.label_bound) / d.records)
    parts = {"learner": Means, "domain": where(labels=(-3, 3))}
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


@attrs.frozen(kw_only=True)
class SecondMoments(Released):
    """Second moments of rows clipped to norm `clip`, which are computed from the rows as they came.

    Total: sums of products of clipped numbers.
    """

    clip: float = 0.5
    censored: ClassVar[bool] = False

    def width(self, domain):
        return domain.width**2

    def statistic(self, query, records, public, secret):
        clean = clipped_rows(records.features, self.clip)
        rows = clean if self.censored else records.features
        return (rows.T @ rows).ravel()


@attrs.frozen(kw_only=True)
class CensoredMoments(SecondMoments):
    """The same, from the clipped rows. Total: likewise."""

    censored: ClassVar[bool] = True


def covariance_of_uncensored_rows():
    """Rows are clipped into a new variable, and the covariance is computed from the old one.

    Source: opendp/smartnoise-sdk issue 622 (dp_covariance.py).
    """
    value = bounded(lambda a, d: math.sqrt(2) * a.clip**2)
    wrong = Claim(learner=SecondMoments, bound=value, domain=where())
    return wrong, attrs.evolve(wrong, learner=CensoredMoments)


@attrs.frozen(kw_only=True)
class WholeLabels(OneNumber):
    """The sum of labels of whole numbers. Total: a sum of clipped numbers."""

    def of(self, labels, domain):
        return np.rint(labels + domain.labels.centre).sum()


def halved_range_rounded_down():
    """The sensitivity of a sum of integers is d (U - L) / 2 in integers, and the odd half is lost.

    Source: opendp/opendp issue 314 (sized bounded sum).
    """
    wrong = bounded(lambda a, d: 2 * int((d.labels.high - d.labels.low) // 2))
    right = bounded(lambda a, d: d.labels.high - d.labels.low)
    parts = {"learner": WholeLabels, "domain": where(labels=(0, 3))}
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


@attrs.frozen(kw_only=True)
class Covariances(Released):
    """Mean products of columns and label over however many records there are. Total: as such."""

    def statistic(self, query, records, public, secret):
        return records.features.T @ records.labels / max(1, len(records))


def mean_with_its_own_count():
    """A record that comes or goes moves a mean by 1/n of the data at hand; the bound takes n from
    the public limit.

    Source: opendp/smartnoise-core issues 355 and 356 (whitepaper on the mean and the covariance).
    """
    wrong = bounded(lambda a, d: 2 * d.feature_norm * d.label_bound / d.at_most, ADD_REMOVE)
    right = bounded(lambda a, d: 2 * d.feature_norm * d.label_bound, ADD_REMOVE)
    domain = where(relation=ADD_REMOVE)
    parts = {"learner": Covariances, "domain": domain, "relation": ADD_REMOVE}
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


@attrs.frozen(kw_only=True)
class ScaledByTheData(OneNumber):
    """The sum of labels on a scale of 0 to 1. Total: a sum of clipped numbers."""

    def of(self, labels, domain):
        low, high = labels.min(initial=0.0), labels.max(initial=0.0)
        return ((labels - low) / max(high - low, 1e-9)).sum()


def bounds_taken_from_the_data():
    """Least and largest value are read from the records, and a record is said to weigh 1 at most.

    Source: vanderschaarlab/synthcity issue 278, google/dpsynth issue 34 (exact minimum and
    maximum).
    """
    return Claim(learner=ScaledByTheData, bound=bounded(lambda a, d: 1.0), domain=where())


@attrs.frozen(kw_only=True)
class Votes(Released):
    """How many of ten teachers vote for class 1, each trained on a part of the records of its own.

    Total: counts.
    """

    teachers: int = 10
    own_part: ClassVar[bool] = False

    def width(self, domain):
        return 1

    def statistic(self, query, records, public, secret):
        parts = np.array_split(records.labels, self.teachers)
        seen = parts if self.own_part else [parts[0]] * self.teachers
        return np.array([float(sum(part.sum() > 0 for part in seen))])


@attrs.frozen(kw_only=True)
class VotesOfParts(Votes):
    """The same, with the index of each part. Total: counts."""

    own_part: ClassVar[bool] = True


def one_part_for_all_teachers():
    """An index is wrong, so that every teacher is trained on the first part, and one record turns
    all ten votes.

    Source: vanderschaarlab/mlforhealthlabpub issue 29 (PATE-GAN).
    """
    wrong = Claim(learner=Votes, bound=bounded(lambda a, d: 1.0), domain=where())
    return wrong, attrs.evolve(wrong, learner=VotesOfParts)


@attrs.frozen(kw_only=True)
class HalfPrecisionSum(OneNumber):
    """The sum of labels, in an accumulator of 16 bits. Total: it stays below 65504."""

    def of(self, labels, domain):
        return np.add.accumulate(np.append(0, labels).astype(np.float16))[-1]


def sum_in_half_precision():
    """Adding one by one in a narrow float rounds at every step, and an early record decides how all
    the later ones are rounded.

    Source: Casacuberta, Shoemate, Vadhan & Wagaman (2022), arXiv:2207.10635, repeated rounding;
    google/differential-privacy issue 126.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound * (1 + 2**-10))
    return Claim(learner=HalfPrecisionSum, bound=claim, domain=where(records=3000))


@attrs.frozen(kw_only=True)
class ByteSum(OneNumber):
    """The sum of labels rounded to integers of 8 bits. Total: it wraps around."""

    def of(self, labels, domain):
        return np.rint(labels).astype(np.int8).sum(dtype=np.int8)


def sum_that_wraps_around():
    """Integers of the accumulator wrap around, so that one record can move the sum by 255.

    Source: google/differential-privacy issue 40; Casacuberta et al. (2022), arXiv:2207.10635,
    integer overflow.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound + 1)
    return Claim(learner=ByteSum, bound=claim, domain=where(labels=(-30, 30)))


@attrs.frozen(kw_only=True)
class Winsorised(OneNumber):
    """The mean of labels, clipped to their own 5 % and 95 % quantiles. Total: a mean."""

    def of(self, labels, domain):
        if not labels.size:
            return 0.0
        low, high = np.quantile(labels, [0.05, 0.95])
        return np.clip(labels, low, high).mean()


def quantiles_of_the_data_as_clip():
    """Values are clipped to quantiles of the records, and a record is said to move the mean by the
    public range over n.

    Source: opendp/smartnoise-sdk pull request 580 (approximate bounds that follow extreme values).
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records)
    return Claim(learner=Winsorised, bound=claim, domain=where(records=300))


@attrs.frozen(kw_only=True)
class SuppressedCounts(Released):
    """Counts of a column's groups, 0 where fewer than five records are. Total: counts."""

    least: ClassVar[int] = 5

    def statistic(self, query, records, public, secret):
        counts = (records.features > 0.5).sum(axis=0).astype(float)
        return np.where(counts < self.least, 0.0, counts)


@attrs.frozen(kw_only=True)
class AllCounts(SuppressedCounts):
    """Counts of all groups. Total: counts."""

    least: ClassVar[int] = 1


def small_groups_suppressed():
    """Groups of fewer than five are left out before noise is added, which moves a count by five.

    Source: ddsjoberg/gtsummary issue 1691; opendp/smartnoise-sdk issue 309 (why a threshold needs
    noise of its own).
    """
    domain = where(records=400, columns=0, group=("north", "east", "south", "west"))
    claim = bounded(lambda a, d: math.sqrt(2))
    wrong = Claim(learner=SuppressedCounts, bound=claim, domain=domain)
    return wrong, attrs.evolve(wrong, learner=AllCounts)


SUMS = (
    one_slice_for_two_means,
    covariance_of_uncensored_rows,
    halved_range_rounded_down,
    mean_with_its_own_count,
    bounds_taken_from_the_data,
    one_part_for_all_teachers,
    sum_in_half_precision,
    sum_that_wraps_around,
    quantiles_of_the_data_as_clip,
    small_groups_suppressed,
)
