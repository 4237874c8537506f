"""Right components that look wrong: nothing may be said against them."""

import math
from typing import ClassVar

import attrs
import numpy as np

from dpcore import ADD_REMOVE
from dpcore.interval import Interval
from dpcore.models import FeatureMap

from gallery.core import BasicAccountant
from gallery.entry import Claim, Drawn, Released, Single, bounded, where
from gallery.reported.noise import GaussianLike, LaplaceLike, laplace_draws
from gallery.reported.sums import OneNumber
from gallery.strangers.noise import PureLike


@attrs.frozen(kw_only=True)
class Cauchy(PureLike):
    """Cauchy noise: its log density moves by at most 1 a scale."""

    def noisy(self, exact, scale, noise):
        return exact + scale * np.tan(np.pi * (noise.uniform(exact.size) - 0.5))


def cauchy_noise():
    """Cauchy noise is priced by the steepest slope of its log density, which is 1.

    Source: Nissim, Raskhodnikova & Smith (2007), Section 2.
    """
    return Single(kind="mechanisms", component=Cauchy)


@attrs.frozen(kw_only=True)
class ThreeDigits(GaussianLike):
    """Gaussian noise; what is published has three significant digits."""

    def noisy(self, exact, scale, noise):
        found = exact + scale * noise.normal(exact.size)
        place = np.floor(np.log10(np.maximum(np.abs(found), 1e-300)))
        return np.rint(found / 10.0 ** (place - 2)) * 10.0 ** (place - 2)


def three_digits_are_published():
    """Noisy values are rounded to three significant digits, which depends on the release by itself.

    Source: none: postprocessing.
    """
    return Single(kind="mechanisms", component=ThreeDigits)


@attrs.frozen(kw_only=True)
class Louder(LaplaceLike):
    """One release in two has three times the noise."""

    def noisy(self, exact, scale, noise):
        factor = 3.0 if noise.uniform(1)[0] < 0.5 else 1.0
        return exact + factor * scale * laplace_draws(noise, exact.size)


def half_of_the_releases_are_louder():
    """Some releases have more noise than they need, and none has less.

    Source: none: a mixture is at most as saying as its worst part.
    """
    return Single(kind="mechanisms", component=Louder)


@attrs.frozen(kw_only=True)
class TopFive(OneNumber):
    """The sum of the five largest labels. Total: a sum of clipped numbers."""

    def of(self, labels, domain):
        return np.sort(labels)[-5:].sum()


def sum_of_the_five_largest():
    """The sum of the five largest labels moves by at most their range.

    Source: none: order statistics of neighbours interlace.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound * (1 + 1e-12))
    return Claim(learner=TopFive, bound=claim, domain=where())


@attrs.frozen(kw_only=True)
class Sorted(Released):
    """All labels in ascending order. Total: a sort."""

    distance: ClassVar[str] = "l1"

    def width(self, domain):
        return domain.records

    def statistic(self, query, records, public, secret):
        return np.sort(records.labels)


def all_labels_sorted():
    """Sorting moves no two vectors apart in l1, so that one label moves the sorted ones by 2 M.

    Source: Hay et al. (2010), on unattributed histograms.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound * (1 + 1e-12), distance="l1")
    return Claim(learner=Sorted, bound=claim, domain=where(records=30), mechanism="laplace")


@attrs.frozen(kw_only=True)
class Thinned(OneNumber):
    """The largest gap between labels and the ends of their range. Total: a maximum of numbers."""

    def of(self, labels, domain):
        ends = [domain.labels.low - domain.labels.centre, domain.labels.high - domain.labels.centre]
        return np.diff(np.sort([*labels, *ends])).max()


def largest_gap():
    """A record splits one gap or joins two: the largest one at most halves or doubles, by M at
    most.

    Source: none: a gap of length g is split into two of which one is at least g/2.
    """
    claim = bounded(lambda a, d: d.label_bound * (1 + 1e-9), relation=ADD_REMOVE)
    return Claim(
        learner=Thinned,
        bound=claim,
        domain=where(records=30, relation=ADD_REMOVE),
        relation=ADD_REMOVE,
    )


@attrs.frozen(kw_only=True)
class Around(FeatureMap):
    """Cosine and sine of each column's angle, 1 long a column."""

    def width(self, domain):
        return 2 * domain.width

    def norm(self, domain):
        return math.sqrt(domain.width) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: np.hstack([np.cos(37 * x), np.sin(37 * x)]))


def angles_around():
    """All features are equally long, whatever the row.

    Source: none: cos^2 + sin^2 = 1.
    """
    return Single(kind="features", component=Around)


@attrs.frozen
class RoundedUp(BasicAccountant):
    """Quotes in steps of 0.01, upwards."""

    def epsilon(self, delta):
        return Interval(0.0, math.ceil(100 * super().epsilon(delta).upper * (1 + 1e-12)) / 100)


def quoted_in_hundredths():
    """What is quoted is rounded up.

    Source: none.
    """
    return Single(kind="accountants", component=RoundedUp)


RIGHT = (
    ("mechanism", cauchy_noise),
    ("mechanism", three_digits_are_published),
    ("mechanism", half_of_the_releases_are_louder),
    ("learner", sum_of_the_five_largest),
    ("learner", all_labels_sorted),
    ("learner", largest_gap),
    ("features", angles_around),
    ("accountant", quoted_in_hundredths),
)
