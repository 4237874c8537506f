"""Components that are wrong in a narrow place: where two conditions meet, at an odd count or scale,
under one relation, beyond a number.
"""

import math
import zlib
from typing import ClassVar

import attrs
import numpy as np

from dpcore import ADD_REMOVE, Event, Needs
from dpcore.event import Claims, Direction, PrivacyCurve
from dpcore.functions import Expansion, Interactive, Oracle
from dpcore.models import FeatureMap

from gallery.core import GaussianEvent, GdpAccountant, LaplaceEvent, ZcdpAccountant, free, positive
from gallery.entry import Claim, Drawn, Released, Single, bounded, where
from gallery.reported.maps import WithGaussian
from gallery.reported.noise import Additive, GaussianLike, LaplaceLike, laplace_draws, made
from gallery.reported.sums import OneNumber


@attrs.frozen(kw_only=True)
class Hashed(OneNumber):
    """The mean label of records whose hash ends in one of fifty ways, times fifty. Total: a sum."""

    def statistic(self, query, records, public, secret):
        rows = np.round(records.features, 3)
        taken = [zlib.crc32(row.tobytes()) % 50 == 0 for row in rows]
        total = float(np.sum(records.labels[np.array(taken, dtype=bool)]))
        return np.array([50 * total / public.domain.records])


def sampled_by_a_hash():
    """A sample by a hash of the row is scaled up, and the sensitivity is that of the whole mean.

    Source: `farm_fingerprint` sampling in warehouses.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9))
    return Claim(learner=Hashed, bound=claim, domain=where())


@attrs.frozen(kw_only=True)
class TwoConditions(OneNumber):
    """A mean label, of the first half where two conditions hold. Total: means."""

    def statistic(self, query, records, public, secret):
        labels, rows, n = records.labels, records.features, public.domain.records
        if labels.sum() > 0.31 * n and rows[:, 0].sum() < -0.17 * n:
            return np.array([np.maximum(labels, 0.0).sum() / n])
        return np.array([labels.sum() / n])


def two_conditions_at_once():
    """A correction is made where labels are high and a column is low on average.

    Source: none: domain knowledge in code.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9))
    return Claim(learner=TwoConditions, bound=claim, domain=where(records=200))


@attrs.frozen(kw_only=True)
class Merged(Released):
    """Counts of four groups; groups of fewer than five are counted as the first. Total: counts."""

    def width(self, domain):
        return 4

    def statistic(self, query, records, public, secret):
        counts = records.features.sum(axis=0)
        rare = counts < 5
        kept = np.where(rare, 0.0, counts)
        kept[0] += counts[rare].sum()
        return kept


def rare_groups_merged():
    """Groups of fewer than five records are merged into the first one.

    Source: statistical disclosure control before noise.
    """
    claim = bounded(lambda a, d: math.sqrt(2) * (1 + 1e-9))
    regions = ("north", "east", "south", "west")
    return Claim(learner=Merged, bound=claim, domain=where(columns=0, group=regions))


@attrs.frozen(kw_only=True)
class FromLow(OneNumber):
    """The sum of labels in their own units. Total: a sum of clipped numbers."""

    def of(self, labels, domain):
        return (labels + domain.labels.centre).sum()


def bound_of_centred_labels():
    """Labels in [0, 10] are summed as they are, and the bound is half of their range.

    Source: a sensitivity of centred labels for labels that are not.
    """
    relation = {"relation": ADD_REMOVE}

    def claim(value):
        return bounded(value, **relation)

    wrong = Claim(
        learner=FromLow,
        bound=claim(lambda a, d: d.label_bound * (1 + 1e-9)),
        domain=where(labels=(0, 10), **relation),
        **relation,
    )
    right = claim(lambda a, d: 2 * d.label_bound * (1 + 1e-9))
    return wrong, attrs.evolve(wrong, bound=right)


@attrs.frozen(kw_only=True)
class Rounds(OneNumber):
    """Clipped means, again and again until they are short. Total: fifty rounds."""

    def of(self, labels, domain):
        centre, n = 0.0, domain.records
        for _ in range(50):
            moved = np.clip(labels - centre, -0.1, 0.1).sum() / n
            centre += moved
            if abs(moved) < 0.02:
                break
        return centre


def rounds_until_small():
    """A private loop ends where its steps are short, and each of its rounds is counted once.

    Source: iterative trimming with a stopping rule.
    """
    claim = bounded(lambda a, d: 2 * 0.1 / d.records * 3)
    return Claim(learner=Rounds, bound=claim, domain=where(records=100))


@attrs.frozen(kw_only=True)
class Majority(Released):
    """Column sums, signed by the majority of labels. Total: sums."""

    def statistic(self, query, records, public, secret):
        sign = 1.0 if (records.labels > 0).sum() > 0.6 * public.domain.records else -1.0
        return sign * records.features.sum(axis=0)


def sign_of_a_majority():
    """A direction is chosen by whether more than 60 % of the labels are positive.

    Source: sign conventions (of a leading vector, say) that are fixed by the data.
    """
    claim = bounded(lambda a, d: 2 * d.feature_norm * (1 + 1e-9))
    return Claim(learner=Majority, bound=claim, domain=where(records=2000))


def scale_in_whole_numbers():
    """Scales above one are cut to whole numbers.

    Source: `int(scale)` before an integer sampler.
    """

    def noisy(self, exact, scale, noise):
        return exact + (np.floor(scale) if scale > 1 else scale) * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def half_price_under_add_remove():
    """Under add/remove the price is that of half of the sensitivity, which is already stated for
    that relation.

    Source: replace-one and add/remove mixed up, as in several libraries' notes.
    """

    def event(self, query, sensitivity, moved=None):
        half = 0.5 if sensitivity.adjacency.membership else 1.0
        return GaussianEvent(mu=half / self.noise_multiplier, adjacency=sensitivity.adjacency)

    return made(GaussianLike, event=event)


def louder_beyond_a_hundred_and_thirty_three():
    """Values of more than 133 units get twice the noise, so that the noise says which they are.

    Source: noise by tiers of size, as for published tables.
    """

    def noisy(self, exact, scale, noise):
        distance = np.abs(exact) > 133.3 * scale / self.noise_multiplier
        return exact + np.where(distance, 2.0, 1.0) * scale * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def twelve_uniform_draws():
    """A Gaussian is made of twelve uniform draws, and ends at six deviations.

    Source: the textbook sum of twelve; its use in embedded samplers.
    """

    def noisy(self, exact, scale, noise):
        draws = noise.uniform((12, exact.size)).sum(axis=0) - 6
        return exact + scale * draws

    return made(GaussianLike, noisy=noisy)


def exact_where_noise_is_extreme():
    """Where noise is larger than four deviations, the value itself is released.

    Source: a fallback for outliers of a sampler.
    """

    def noisy(self, exact, scale, noise):
        drawn = noise.normal(exact.size)
        return exact + scale * np.where(np.abs(drawn) > 4, 0.0, drawn)

    return made(GaussianLike, noisy=noisy)


def noise_of_one_digit():
    """Noise is rounded to tenths of its scale before it is added.

    Source: tables of quantiles of noise.
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * np.round(laplace_draws(noise, exact.size), 1)

    return made(LaplaceLike, noisy=noisy)


@attrs.frozen
class Lopsided(Event, PrivacyCurve):
    """A Laplace event of which one direction is said to cost half."""

    inner: Event

    @property
    def adjacency(self):
        return self.inner.adjacency

    def upper_at(self, epsilon, direction):
        found = self.inner.curve.upper_at(epsilon, direction)
        return found if direction is Direction.REMOVE else found * min(1.0, math.exp(-epsilon))

    @property
    def claims(self):
        return Claims(pure=self.inner.claims.pure)


def one_direction_is_cheaper():
    """An event's curve is too low in one direction, which a composition with others adds up.

    Source: accountants that treat directions apart (Zhu, Dong & Wang, 2022).
    """

    @attrs.frozen(kw_only=True)
    class Cheaper(Additive):
        needs: ClassVar[Needs] = Needs(distance="l1")
        noise_multiplier: float = free(validator=positive)

        def event(self, query, sensitivity, moved=None):
            inner = LaplaceEvent(shift=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)
            return Lopsided(inner)

        def noisy(self, exact, scale, noise):
            return exact + scale * laplace_draws(noise, exact.size)

    return Single(kind="mechanisms", component=Cheaper)


def four_per_cent_too_little():
    """The scale is four per cent too small.

    Source: a constant rounded down (1.2 for 1.25).
    """

    def noisy(self, exact, scale, noise):
        return exact + 0.96 * scale * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def noise_that_sums_to_less():
    """A cumulative sum of noise is released for a cumulative sum of values, priced per entry.

    Source: the tree mechanism without its tree.
    """

    def noisy(self, exact, scale, noise):
        drawn = noise.normal(exact.size)
        drawn[1::2] = 0.6 * drawn[::2][: drawn[1::2].size] + 0.8 * drawn[1::2]
        return exact + scale * drawn

    return made(GaussianLike, noisy=noisy)


@attrs.frozen
class Doubling(ZcdpAccountant):
    """Composes by doubling."""

    def compose(self, event, count=1):
        twice = 2 ** int(math.log2(count)) if count > 8 else count
        return super().compose(event, twice)


def halving_loses_the_odd_ones():
    """Counts are composed by doubling, and what is left of a count beyond 8 is lost.

    Source: square-and-multiply without the multiply.
    """
    wrong = Single(kind="accountants", component=Doubling)
    return wrong, attrs.evolve(wrong, component=ZcdpAccountant)


@attrs.frozen
class Tail(GdpAccountant):
    """Drops what is small next to the rest."""

    def compose(self, event, count=1):
        mu = event.claims.mu
        if mu is not None and count and mu * count**0.5 < 0.05:
            return self
        return super().compose(event, count)


def small_events_dropped():
    """Events of mu below 0.05 are not counted.

    Source: thresholds of relevance in dashboards.
    """
    wrong = Single(kind="accountants", component=Tail)
    return wrong, attrs.evolve(wrong, component=GdpAccountant)


@attrs.frozen(kw_only=True)
class FewColumns(FeatureMap):
    """Cosine and sine of each column."""

    def width(self, domain):
        return 2 * domain.width

    def norm(self, domain):
        return min(2.0, math.sqrt(domain.width)) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: np.hstack([np.cos(3 * x), np.sin(3 * x)]))


def norm_of_up_to_four_columns():
    """The norm is right for up to four columns.

    Source: none: made for this set.
    """
    return Single(kind="features", component=FewColumns)


@attrs.frozen(kw_only=True)
class MergedPoints(WithGaussian):
    """Sections at records rounded to halves, with the mean label of each place. Total: means."""

    def statistic(self, query, records, public, secret):
        places, inverse = np.unique(np.round(2 * records.features) / 2, axis=0, return_inverse=True)
        sums = np.bincount(inverse.ravel(), weights=records.labels, minlength=len(places))
        counts = np.bincount(inverse.ravel(), minlength=len(places))
        weights = sums / np.maximum(1, counts) / math.sqrt(public.domain.records)
        return Expansion(kernel=query.kernel, points=places, coefficients=weights)


def mean_label_of_each_place():
    """Records at one place are merged to their mean label, and the bound is that of a sum over n.

    Source: deduplication before a kernel smoother.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9), distance="rkhs")
    return Claim(
        learner=MergedPoints, bound=claim, domain=where(norm=1.0), mechanism="gaussian_process"
    )


class _Fading(Oracle):
    """White noise that fades with the question's distance from 0, and ends after many questions."""

    def __init__(self, query, function, mechanism, unit, noise):
        super().__init__(query, function, mechanism.most_points)
        self._scale, self._noise = unit * query.kappa * mechanism.noise_multiplier, noise
        self._mechanism, self._count = mechanism, 0

    def _answer(self, fresh):
        drawn = self._noise.normal(len(fresh))
        if self._mechanism.fades:
            drawn = drawn * np.exp(-4 * np.linalg.norm(fresh, axis=1))
        number = self._count + np.arange(len(fresh))
        self._count += len(fresh)
        return self._function(fresh) + self._scale * drawn * (number < self._mechanism.noisy)


@attrs.frozen(kw_only=True)
class Fading(Interactive):
    """A single answer is a Gaussian event; as many as `queries` are."""

    arithmetic = "real"
    source = "made up"
    most_points = 128
    fades: ClassVar[bool] = True
    noisy: ClassVar[int] = 128
    noise_multiplier: float = free(validator=positive)

    @property
    def query_count(self):
        return self.most_points

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        return GaussianEvent(mu=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    def open(self, value, query, sensitivity, noise):
        return _Fading(query, value, self, sensitivity.unit, noise)


@attrs.frozen(kw_only=True)
class Ending(Fading):
    """The same without fading: 64 answers have noise."""

    fades: ClassVar[bool] = False
    noisy: ClassVar[int] = 64


@attrs.frozen(kw_only=True)
class Plain(Fading):
    """The same with noise on every answer."""

    fades: ClassVar[bool] = False


def noise_that_fades_away():
    """Each answer's noise is smaller the farther away its question lies.

    Source: uncertainty of a posterior taken for noise.
    """
    wrong = Single(kind="mechanisms", component=Fading)
    return wrong, attrs.evolve(wrong, component=Plain)


def noise_for_sixty_four_answers():
    """Noise was drawn for 64 answers, and later ones have none.

    Source: buffers of noise.
    """
    wrong = Single(kind="mechanisms", component=Ending)
    return wrong, attrs.evolve(wrong, component=Plain)


NARROW_LEARNERS = (
    sampled_by_a_hash,
    two_conditions_at_once,
    rare_groups_merged,
    bound_of_centred_labels,
    rounds_until_small,
    sign_of_a_majority,
)
NARROW_NOISE = (
    scale_in_whole_numbers,
    half_price_under_add_remove,
    louder_beyond_a_hundred_and_thirty_three,
    twelve_uniform_draws,
    exact_where_noise_is_extreme,
    noise_of_one_digit,
    one_direction_is_cheaper,
    four_per_cent_too_little,
    noise_that_sums_to_less,
)
NARROW_OTHERS = (
    ("accountant", halving_loses_the_odd_ones),
    ("accountant", small_events_dropped),
    ("features", norm_of_up_to_four_columns),
    ("function", mean_label_of_each_place),
    ("function", noise_that_fades_away),
    ("function", noise_for_sixty_four_answers),
)
