"""Statistics whose sensitivity is taken from a formula for something else."""

import math

import attrs
import numpy as np

from dpcore import ADD_REMOVE

from gallery.entry import Claim, Released, bounded, where
from gallery.reported.sums import OneNumber


def mean_of(factor, relation=None):
    """The bound of a mean, times a factor."""
    more = {} if relation is None else {"relation": relation}
    return bounded(lambda a, d: factor * 2 * d.label_bound / d.records * (1 + 1e-9), **more)


@attrs.frozen(kw_only=True)
class Trimmed(OneNumber):
    """The mean of the middle eight tenths of the labels. Total: a mean of some."""

    def of(self, labels, domain):
        cut = len(labels) // 10
        return np.sort(labels)[cut : len(labels) - cut].mean()


def trimmed_mean_over_all():
    """A trimmed mean is over fewer records than n, and its bound divides by n.

    Source: `scipy.stats.trim_mean` in place of a mean.
    """
    return Claim(learner=Trimmed, bound=mean_of(1.0), domain=where())


@attrs.frozen(kw_only=True)
class Correlation(OneNumber):
    """The correlation of a column and the label, 0 where one is constant. Total: yes."""

    def statistic(self, query, records, public, secret):
        x, y = records.features[:, 0], records.labels
        x, y = x - x.mean(), y - y.mean()
        scale = math.sqrt(float(x @ x) * float(y @ y))
        return np.array([float(x @ y) / scale if scale > 1e-9 else 0.0])


def correlation_moves_by_two_fractions():
    """A correlation is a mean of products, whose scales move too: a bound of 4/n is far too small.

    Source: private feature selection by Pearson's r.
    """
    claim = bounded(lambda a, d: 4 / d.records)
    return Claim(learner=Correlation, bound=claim, domain=where(columns=1))


@attrs.frozen(kw_only=True)
class Standard(Released):
    """Sums of a column after it was standardised by its own mean and deviation, clipped at 3.

    Total: the deviation is at least 1e-3.
    """

    def width(self, domain):
        return 2

    def statistic(self, query, records, public, secret):
        x = records.features[:, 0]
        z = np.clip((x - x.mean()) / max(x.std(), 1e-3), -3, 3)
        return np.array([np.maximum(z, 0).sum(), z @ records.labels]) / public.domain.records


def z_scores_of_the_data():
    """Columns are standardised by their own mean and deviation and clipped at 3, and the bound sees
    the clip only.

    Source: `StandardScaler` in front of a private step.
    """
    claim = bounded(lambda a, d: math.sqrt(9 + 36 * d.label_bound**2) / d.records)
    return Claim(learner=Standard, bound=claim, domain=where(columns=1))


@attrs.frozen(kw_only=True)
class Smoothed(OneNumber):
    """An exponential moving average along the records. Total: yes."""

    def of(self, labels, domain):
        found = 0.0
        for label in labels:
            found = 0.9 * found + 0.1 * label
        return found


def moving_average_as_a_mean():
    """A moving average has the latest record weigh a tenth, and the bound is that of a mean.

    Source: running statistics of batch normalisation.
    """
    return Claim(learner=Smoothed, bound=mean_of(1.0), domain=where(records=60))


@attrs.frozen(kw_only=True)
class PerGroup(Released):
    """The mean label of each group, 0 for one without records. Total: means."""

    def width(self, domain):
        return 3

    def statistic(self, query, records, public, secret):
        hot = records.features > 0.5
        return (hot.T @ records.labels) / np.maximum(hot.sum(axis=0), 1)


def group_means_over_three():
    """The means of three groups are taken to move as means over a third of the records.

    Source: `groupby().mean()` with noise per group.
    """
    claim = bounded(lambda a, d: math.sqrt(2) * 2 * d.label_bound * 3 / d.records)
    return Claim(learner=PerGroup, bound=claim, domain=where(columns=0, plan=("x", "y", "z")))


@attrs.frozen(kw_only=True)
class Weighted(OneNumber):
    """A weighted mean label; the weights are a column's, from 1/10 to 1. Total: yes."""

    def statistic(self, query, records, public, secret):
        weights = 0.55 + 0.45 * records.features[:, 0].clip(-1, 1)
        return np.array([float(weights @ records.labels / weights.sum())])


def weights_without_their_sum():
    """A weighted mean is divided by the weights' own sum, and the bound is that of a mean.

    Source: `np.average(weights=)` in place of a mean.
    """
    return Claim(learner=Weighted, bound=mean_of(1.0), domain=where(columns=1))


@attrs.frozen(kw_only=True)
class Bootstrap(OneNumber):
    """The mean label of n records drawn with replacement, by public randomness. Total: a mean."""

    def of(self, labels, domain):
        drawn = np.random.default_rng(5).integers(0, max(1, len(labels)), len(labels))
        return labels[drawn].sum() / domain.records


def bootstrap_counts_once():
    """A record may be drawn several times, and the bound counts it once.

    Source: bagging with differential privacy.
    """
    return Claim(learner=Bootstrap, bound=mean_of(1.0), domain=where())


@attrs.frozen(kw_only=True)
class Ratio(OneNumber):
    """The proportion of positive labels among records with a positive column. Total: yes."""

    def statistic(self, query, records, public, secret):
        chosen = records.features[:, 0] > 0
        return np.array([float((records.labels[chosen] > 0).sum() / max(5, chosen.sum()))])


def rate_with_a_floor():
    """A rate is over at least five records, and is taken to move by one fifth of one half.

    Source: true positive rates in fairness audits.
    """
    return Claim(
        learner=Ratio, bound=bounded(lambda a, d: 0.1 * (1 + 1e-9)), domain=where(columns=1)
    )


@attrs.frozen(kw_only=True)
class Halves(OneNumber):
    """The mean label over the mean absolute label. Total: the divisor is at least 1/4."""

    def of(self, labels, domain):
        n = domain.records
        return (labels.sum() / n) / max(0.25, np.abs(labels).sum() / n)


def scale_by_the_data():
    """A mean is divided by the data's own scale, with a floor, and the bound divides by the floor's
    neighbour 1/2.

    Source: adaptive clipping by the data's own scale.
    """
    return Claim(learner=Halves, bound=mean_of(2.0), domain=where())


@attrs.frozen(kw_only=True)
class Last(Released):
    """Mean labels of consecutive batches of 16. Total: means."""

    def width(self, domain):
        return -(-domain.records // 16)

    def statistic(self, query, records, public, secret):
        labels = records.labels
        found = np.zeros(self.width(public.domain))
        for at in range(len(found)):
            part = labels[16 * at : 16 * at + 16]
            found[at] = part.mean() if part.size else 0.0
        return found


def last_batch_is_shorter():
    """Batches have 16 records but for the last one, whose mean moves farther.

    Source: data loaders without `drop_last`.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / 16 * (1 + 1e-9))
    return Claim(learner=Last, bound=claim, domain=where(records=51))


@attrs.frozen(kw_only=True)
class Bias(Released):
    """The sum of rows clipped to norm 1, with a 1 appended, times the label. Total: sums."""

    def width(self, domain):
        return domain.width + 1

    def statistic(self, query, records, public, secret):
        rows = records.features
        rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        return np.column_stack([rows, np.ones(len(rows))]).T @ records.labels


def intercept_after_the_clip():
    """A column of ones is appended after rows are clipped, and the norm stays 1 in the bound.

    Source: `fit_intercept` of linear models with `data_norm`.
    """
    return Claim(learner=Bias, bound=bounded(lambda a, d: 2 * d.label_bound), domain=where())


@attrs.frozen(kw_only=True)
class Occupied(OneNumber):
    """The sum of the labels over the number of different rows, to one digit. Total: yes."""

    def statistic(self, query, records, public, secret):
        different = len({tuple(row) for row in np.round(records.features, 0).tolist()})
        return np.array([float(records.labels.sum() / max(1, different) / public.domain.records)])


def divided_by_the_distinct():
    """A sum is divided by how many different rows there are, which one record changes.

    Source: `nunique` in per-user averages.
    """
    return Claim(learner=Occupied, bound=mean_of(1.0), domain=where(columns=1))


@attrs.frozen(kw_only=True)
class Leaning(OneNumber):
    """The sum of the labels of the first twenty records with a positive column. Total: a sum."""

    def statistic(self, query, records, public, secret):
        chosen = records.labels[records.features[:, 0] > 0]
        return np.array([float(chosen[:20].sum())])


def first_twenty_of_a_class():
    """Twenty records of a class are kept in their order; under add/remove one that comes in moves
    another one out, and the bound counts one label.

    Source: undersampling of the larger class.
    """

    def claim(factor):
        return bounded(lambda a, d: factor * d.label_bound * (1 + 1e-9), relation=ADD_REMOVE)

    facts = where(records=60, columns=1, relation=ADD_REMOVE)
    wrong = Claim(learner=Leaning, bound=claim(1), domain=facts, relation=ADD_REMOVE)
    return wrong, attrs.evolve(wrong, bound=claim(2))


@attrs.frozen(kw_only=True)
class Pairs(OneNumber):
    """The mean absolute difference of neighbours in order, twice. Total: differences."""

    def of(self, labels, domain):
        return np.abs(np.diff(labels)).sum() / domain.records


def differences_count_once():
    """A record is in two differences of consecutive ones, and the bound counts one.

    Source: smart meters: private sums of changes.
    """
    return Claim(learner=Pairs, bound=mean_of(1.0), domain=where())


@attrs.frozen(kw_only=True)
class TwoSums(Released):
    """The sums of labels and of their squares. Total: sums."""

    def width(self, domain):
        return 2

    def statistic(self, query, records, public, secret):
        low = public.domain.labels.low + public.domain.label_bound
        y = records.labels + low
        return np.array([y.sum(), (y**2).sum()])


def squares_at_the_ends():
    """The square of a label in [-2, 1] moves by 4, and the bound takes the difference of squares at
    the range's ends, 3.

    Source: interval arithmetic on the ends of a range.
    """

    def wrong(learner, domain):
        low, high = domain.labels.low, domain.labels.high
        return math.hypot(high - low, high**2 - low**2) * (1 + 1e-9)

    def right(learner, domain):
        low, high = domain.labels.low, domain.labels.high
        return math.hypot(high - low, max(high**2, low**2)) * (1 + 1e-9)

    parts = {"learner": TwoSums, "domain": where(labels=(-2, 1))}
    return Claim(bound=bounded(wrong), **parts), Claim(bound=bounded(right), **parts)


STATISTICS = (
    trimmed_mean_over_all,
    correlation_moves_by_two_fractions,
    z_scores_of_the_data,
    moving_average_as_a_mean,
    group_means_over_three,
    weights_without_their_sum,
    bootstrap_counts_once,
    rate_with_a_floor,
    scale_by_the_data,
    last_batch_is_shorter,
    intercept_after_the_clip,
    divided_by_the_distinct,
    first_twenty_of_a_class,
    differences_count_once,
    squares_at_the_ends,
)
