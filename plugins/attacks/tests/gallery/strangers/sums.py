"""Sums, means and histograms that a stranger gets wrong."""

import math
from typing import ClassVar

import attrs
import numpy as np

from dpcore import ADD_REMOVE

from gallery.entry import Claim, Released, bounded, where
from gallery.reported.sums import OneNumber


@attrs.frozen(kw_only=True)
class EdgesOfTheData(Released):
    """A histogram of labels in eight bins. Total: counts."""

    def width(self, domain):
        return 8

    def statistic(self, query, records, public, secret):
        return np.histogram(records.labels, bins=8)[0].astype(float)


def bins_between_least_and_largest():
    """The histogram's edges are the least and the largest label.

    Source: numpy's `histogram` without a range, as diffprivlib warns of.
    """
    claim = bounded(lambda a, d: math.sqrt(2) * (1 + 1e-12))
    return Claim(learner=EdgesOfTheData, bound=claim, domain=where())


@attrs.frozen(kw_only=True)
class SixteenBits(OneNumber):
    """The sum of labels in thousandths. Total: integers."""

    def of(self, labels, domain):
        thousandths = np.rint(1000 * labels).astype(np.int16)
        return thousandths.sum(dtype=np.int16) / 1000


def integers_that_wrap():
    """A sum of 16-bit integers wraps around: 33 and -32.5 are neighbours.

    Source: overflow of integer sums in query engines; Casacuberta et al. (2022), arXiv:2207.10635.
    """
    return Claim(
        learner=SixteenBits, bound=bounded(lambda a, d: 2.01 * d.label_bound), domain=where()
    )


@attrs.frozen(kw_only=True)
class Codes(OneNumber):
    """The sum of ordinal codes of labels rounded to tenths, over 20. Total: a sum."""

    def of(self, labels, domain):
        _, codes = np.unique(np.round(labels, 1), return_inverse=True)
        return codes.sum() / 20


def codes_of_the_values_that_occur():
    """An ordinal encoder is fitted on the data: a new value moves the codes of all larger ones.

    Source: scikit-learn's `OrdinalEncoder(categories="auto")` before a private sum.
    """
    return Claim(learner=Codes, bound=bounded(lambda a, d: 1.0 + 1e-9), domain=where())


@attrs.frozen(kw_only=True)
class Imputed(OneNumber):
    """The mean label, where an unknown group gets the mean of the others. Total: means."""

    def statistic(self, query, records, public, secret):
        known = records.features[:, -1] < 0.5
        labels = records.labels
        fill = labels[known].mean() if known.any() else 0.0
        return np.array([np.where(known, labels, fill).sum() / public.domain.records])


def missing_filled_by_the_mean():
    """Missing labels are filled by the mean of those known, before a mean of sensitivity 2 M/n.

    Source: pandas' `fillna(frame.mean())` before a private mean.
    """
    regions = ("north", "south", "unknown")
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9))
    return Claim(learner=Imputed, bound=claim, domain=where(columns=0, group=regions))


@attrs.frozen(kw_only=True)
class MeanWithFloor(OneNumber):
    """The mean label, over ten at least. Total: the divisor is positive."""

    def of(self, labels, domain):
        return labels.sum() / max(10, len(labels))


def mean_moves_by_one_fraction():
    """A record that comes adds its proportion of at most M/10 to the mean, and the proportions of
    all others shrink, which the bound leaves out.

    Source: a mean's sensitivity under add/remove in lecture notes.
    """
    relation = {"relation": ADD_REMOVE}

    def claim(value):
        return bounded(value, **relation)

    wrong = Claim(
        learner=MeanWithFloor,
        bound=claim(lambda a, d: d.label_bound / 10 * (1 + 1e-9)),
        domain=where(records=50, **relation),
        **relation,
    )
    return wrong, attrs.evolve(wrong, bound=claim(lambda a, d: 2 * d.label_bound / 11 * (1 + 1e-9)))


@attrs.frozen(kw_only=True)
class ColumnSums(Released):
    """The sums of four columns. Total: sums of clipped numbers."""

    distance: ClassVar[str] = "l1"

    def statistic(self, query, records, public, secret):
        return records.features.sum(axis=0)


def l2_norm_for_laplace():
    """The rows are at most 1 long in l2, and that is the Laplace mechanism's sensitivity.

    Source: diffprivlib and lecture notes: clipping in l2 with Laplace noise.
    """
    parts = {"learner": ColumnSums, "domain": where(columns=4, norm=1.0), "mechanism": "laplace"}
    wrong = bounded(lambda a, d: 2 * d.feature_norm * (1 + 1e-9), distance="l1")
    right = bounded(
        lambda a, d: 2 * math.sqrt(d.width) * d.feature_norm * (1 + 1e-9), distance="l1"
    )
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


_KNOWN = {}


@attrs.frozen(kw_only=True)
class Remembered(OneNumber):
    """The mean label, kept by a digest of the rows. Total: a mean."""

    def statistic(self, query, records, public, secret):
        key = records.features.tobytes()
        if key not in _KNOWN:
            _KNOWN[key] = np.array([records.labels.sum() / public.domain.records])
        return _KNOWN[key]


def kept_by_a_digest_of_the_rows():
    """A cache on disk or in memory knows rows and not labels.

    Source: joblib's `Memory` with `ignore=["y"]`.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9))
    return Claim(learner=Remembered, bound=claim, domain=where())


@attrs.frozen(kw_only=True)
class OneHot(Released):
    """How many records each group has. Total: counts."""

    def width(self, domain):
        return domain.width

    def statistic(self, query, records, public, secret):
        codes = records.features.argmax(axis=1)
        return np.bincount(codes).astype(float)


def bincount_as_long_as_the_data():
    """The histogram ends at the largest code that occurs.

    Source: numpy's `bincount` without `minlength`; pandas' `get_dummies`.
    """
    claim = bounded(lambda a, d: math.sqrt(2) * (1 + 1e-9))
    regions = ("north", "east", "south", "west")
    return Claim(learner=OneHot, bound=claim, domain=where(columns=0, group=regions))


SUMS = (
    bins_between_least_and_largest,
    integers_that_wrap,
    codes_of_the_values_that_occur,
    missing_filled_by_the_mean,
    mean_moves_by_one_fraction,
    l2_norm_for_laplace,
    kept_by_a_digest_of_the_rows,
    bincount_as_long_as_the_data,
)
