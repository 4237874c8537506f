"""Statistics and bounds that are wrong somewhere that the other sets do not look."""

import math

import attrs
import numpy as np

from dpcore import ADD_REMOVE
from dpcore.functions import Expansion

from gallery.entry import Claim, Released, bounded, where
from gallery.reported.functions import SumForm, WithGaussian
from gallery.reported.maps import mean_ridge
from gallery.reported.sums import OneNumber, clipped_rows


@attrs.frozen(kw_only=True)
class Overlapping(OneNumber):
    """The sum of labels, in blocks of 16 of which each begins with the last of the one before."""

    def of(self, labels, domain):
        return sum(labels[start : start + 16].sum() for start in range(0, len(labels), 15))


def blocks_that_overlap():
    """A sum is taken in blocks, and the record where two blocks meet is counted twice.

    Source: none: made for this set.
    """
    return Claim(
        learner=Overlapping, bound=bounded(lambda a, d: 2 * d.label_bound), domain=where(records=60)
    )


@attrs.frozen(kw_only=True)
class ColumnSums(Released):
    """The sums of all columns. Total: sums of clipped numbers."""

    def statistic(self, query, records, public, secret):
        return records.features.sum(axis=0)


def bound_of_two_columns():
    """The l2 sensitivity of sums of columns is right for two columns, whatever their number.

    Source: none: made for this set.
    """
    parts = {"learner": ColumnSums, "domain": where(columns=2)}
    wrong = bounded(lambda a, d: 2 * math.sqrt(2))
    right = bounded(lambda a, d: 2 * math.sqrt(d.width) * (1 + 1e-12))
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


@attrs.frozen(kw_only=True)
class MostCommonSign(OneNumber):
    """The mean label of the larger half: positive or negative ones."""

    def of(self, labels, domain):
        up, down = labels[labels > 0], labels[labels <= 0]
        larger = up if len(up) > len(down) else down
        return larger.sum() / domain.records


def mean_of_the_larger_class():
    """Only the larger class is summed; a tie that tips exchanges all of it.

    Source: none: made for this set.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records)
    return Claim(learner=MostCommonSign, bound=claim, domain=where(records=90))


@attrs.frozen(kw_only=True)
class AdaptiveClip(Released):
    """Rows clipped at their own median length. Total: sums of clipped vectors."""

    def statistic(self, query, records, public, secret):
        lengths = np.linalg.norm(records.features, axis=1)
        limit = float(np.clip(np.median(lengths), 0.1, 1.0)) if len(records) else 1.0
        return clipped_rows(records.features, limit).sum(axis=0)


def clip_at_the_median_length():
    """The clipping norm is the batch's median, bounded by 1, and the bound knows of that 1 only.

    Source: none: made for this set, after adaptive clipping without its own budget.
    """
    return Claim(
        learner=AdaptiveClip, bound=bounded(lambda a, d: 2.0), domain=where(records=41, columns=3)
    )


@attrs.frozen(kw_only=True)
class Deduplicated(OneNumber):
    """The sum of labels of the first record with each row, as rows agree to one digit."""

    def statistic(self, query, records, public, secret):
        keys = np.round(records.features, 1)
        _, first = np.unique(keys, axis=0, return_index=True)
        return np.array([records.labels[np.sort(first)].sum()])


def first_record_of_each_row():
    """Of records with equal rows the first one counts: another label may come in for it.

    Source: none: made for this set.
    """
    claim = bounded(lambda a, d: d.label_bound, relation=ADD_REMOVE)
    return Claim(
        learner=Deduplicated,
        bound=claim,
        domain=where(records=50, relation=ADD_REMOVE),
        relation=ADD_REMOVE,
    )


@attrs.frozen(kw_only=True)
class Vip(OneNumber):
    """The mean label; records with a certain row count for more."""

    weight: float = 1.0

    def statistic(self, query, records, public, secret):
        special = np.all(np.abs(records.features - [0.125, -0.625]) < 1e-3, axis=1)
        weights = np.where(special, 5.0, 1.0)
        return np.array([(weights * records.labels).sum() / public.domain.records])


def special_rows_count_for_more():
    """A mask gives records with one certain row five times the weight.

    Source: none: made for this set.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records)
    return Claim(learner=Vip, bound=claim, domain=where())


@attrs.frozen(kw_only=True)
class Newton(OneNumber):
    """The location that minimises a Huber loss, by steps until they are short."""

    def of(self, labels, domain):
        place = 0.0
        for _ in range(50):
            away = labels - place
            inside = np.abs(away) < 0.2
            step = np.clip(away, -0.2, 0.2).sum() / max(1, inside.sum())
            place += step
            if abs(step) < 1e-2:
                break
        return place


def location_with_few_inside():
    """The sensitivity of a robust location is c/n times a constant, as if most records were near.

    Source: none: made for this set.
    """
    claim = bounded(lambda a, d: 4 * 0.2 / d.records)
    return Claim(learner=Newton, bound=claim, domain=where(records=60))


@attrs.frozen(kw_only=True)
class WithGroups(Released):
    """Sums of labels by group, each over the root of the group's size. Total: sums, sizes >= 1."""

    def width(self, domain):
        return domain.width

    def statistic(self, query, records, public, secret):
        inside = records.features > 0.5
        sizes = np.maximum(1, inside.sum(axis=0))
        return (inside * records.labels[:, None]).sum(axis=0) / np.sqrt(sizes)


def sums_over_roots_of_sizes():
    """A group's sum is divided by the root of its private size, and taken to move by sqrt(2).

    Source: none: made for this set.
    """
    regions = ("north", "east", "south")
    claim = bounded(lambda a, d: math.sqrt(2) * d.label_bound)
    return Claim(learner=WithGroups, bound=claim, domain=where(columns=0, group=regions))


@attrs.frozen(kw_only=True)
class WrongAtOne(OneNumber):
    """The sample variance of labels. Total: the divisor is at least 1."""

    def of(self, labels, domain):
        return ((labels - labels.mean()) ** 2).sum() / max(1, domain.records - 1)


def variance_over_n_minus_one():
    """The bound of the variance over n is used for the one over n - 1.

    Source: none: made for this set.
    """

    def value(a, d):
        return (2 * d.label_bound) ** 2 * max(1, d.records - 1) / d.records**2

    def right(a, d):
        return (2 * d.label_bound) ** 2 / d.records * (1 + 1e-9)

    parts = {"learner": WrongAtOne, "domain": where(records=50)}
    return Claim(bound=bounded(value), **parts), Claim(bound=bounded(right), **parts)


@attrs.frozen(kw_only=True)
class Landmarks(WithGaussian):
    """Kernel ridge on the first records that lie apart from one another. Total: regular systems."""

    def statistic(self, query, records, public, secret):
        rows = records.features
        kept = []
        for number in range(len(rows)):
            if all(np.linalg.norm(rows[number] - rows[k]) > 0.3 for k in kept):
                kept.append(number)
        points = rows[kept]
        cross = query.kernel(rows, points)
        shift = self.regularization * public.domain.records * query.kernel(points, points)
        matrix = cross.T @ cross + shift + 1e-9 * np.eye(len(kept))
        found = np.linalg.solve(matrix, cross.T @ records.labels)
        return Expansion(kernel=query.kernel, points=points, coefficients=found)


def landmarks_of_the_records():
    """The points of a Nystrom solution are picked from the records, and the bound is that of the
    full solution.

    Source: none: made for this set.
    """
    claim = bounded(mean_ridge, distance="rkhs", solver_error=1e-6)
    return Claim(
        learner=Landmarks, bound=claim, domain=where(norm=1.0), mechanism="gaussian_process"
    )


@attrs.frozen(kw_only=True)
class Centred(SumForm):
    """Fitted to labels less their mean, which is not added again. Total: a regular system."""

    def statistic(self, query, records, public, secret):
        away = records.labels - (records.labels.mean() if len(records) else 0.0)
        matrix = query.kernel(records.features, records.features)
        shift = self.regularization * public.domain.records * np.eye(len(records))
        found = np.linalg.solve(matrix + shift, np.sign(away))
        return Expansion(kernel=query.kernel, points=records.features, coefficients=found)


def signs_around_the_mean():
    """A function is fitted to the signs of labels around their mean: one record turns many signs.

    Source: none: made for this set.
    """
    claim = bounded(mean_ridge, distance="rkhs", solver_error=1e-9)
    return Claim(learner=Centred, bound=claim, domain=where(norm=1.0), mechanism="gaussian_process")


STATISTICS = (
    blocks_that_overlap,
    bound_of_two_columns,
    mean_of_the_larger_class,
    clip_at_the_median_length,
    first_record_of_each_row,
    special_rows_count_for_more,
    location_with_few_inside,
    sums_over_roots_of_sizes,
    variance_over_n_minus_one,
)
FUNCTIONS = (landmarks_of_the_records, signs_around_the_mean)
