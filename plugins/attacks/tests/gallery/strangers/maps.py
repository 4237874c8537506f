"""Feature maps, functions of records and an oracle, as a stranger gets them wrong."""

import math

import attrs
import numpy as np

from dpcore.functions import Expansion, Interactive, Oracle
from dpcore.models import FeatureMap

from gallery.core import GaussianEvent, free, positive
from gallery.entry import Claim, Drawn, Single, bounded, where
from gallery.reported.maps import WithGaussian, mean_ridge


class _Running:
    """The largest entry of each column so far."""

    def __init__(self):
        self.most = None

    def __call__(self, encoded):
        here = np.abs(encoded).max(axis=0, initial=0.1)
        self.most = here if self.most is None else np.maximum(self.most, here)
        return encoded / self.most


@attrs.frozen(kw_only=True)
class RunningMaximum(FeatureMap):
    """Columns over the largest entry that was seen so far."""

    def width(self, domain):
        return domain.width

    def norm(self, domain):
        return math.sqrt(domain.width) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(_Running())


def running_maximum():
    """A scaler learns as it goes: features depend on the rows that were seen before.

    Source: scikit-learn's `MaxAbsScaler.partial_fit`.
    """
    return Single(kind="features", component=RunningMaximum)


@attrs.frozen(kw_only=True)
class Waves(FeatureMap):
    """Each column, and a wave of it."""

    def width(self, domain):
        return 2 * domain.width

    def norm(self, domain):
        grid = np.linspace(-1, 1, 21)
        longest = np.sqrt(grid**2 + np.sin(20 * np.pi * grid) ** 2).max()
        return float(longest) * math.sqrt(domain.width) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: np.hstack([x, np.sin(20 * np.pi * x)]))


def norm_on_a_grid():
    """The norm is the largest on a grid of points, between which it is larger.

    Source: numerical bounds of features on a grid.
    """
    return Single(kind="features", component=Waves)


@attrs.frozen(kw_only=True)
class Balanced(WithGaussian):
    """The difference of two means of kernel sections: of positive and of other labels.

    Total: divisors are at least 1.
    """

    def statistic(self, query, records, public, secret):
        up = records.labels > 0
        weights = np.where(up, 1 / max(1, up.sum()), -1 / max(1, (~up).sum()))
        return Expansion(kernel=query.kernel, points=records.features, coefficients=weights)


def means_of_private_sizes():
    """Each class's mean has the sensitivity of a mean over half of the records.

    Source: kernel mean embeddings with balanced classes; MMD estimates.
    """
    claim = bounded(lambda a, d: 4 * math.sqrt(2) / d.records, distance="rkhs")
    return Claim(
        learner=Balanced, bound=claim, domain=where(norm=1.0), mechanism="gaussian_process"
    )


@attrs.frozen(kw_only=True)
class LeaveOneOut(WithGaussian):
    """Kernel ridge at the better of two regularizations by leave-one-out. Total: regular."""

    def statistic(self, query, records, public, secret):
        matrix, n = query.kernel(records.features, records.features), len(records)
        best, chosen = np.inf, np.zeros(n)
        for strength in (self.regularization, 5 * self.regularization):
            inverse = np.linalg.inv(matrix + strength * public.domain.records * np.eye(n))
            found = inverse @ records.labels
            error = float(((found / np.diag(inverse)) ** 2).sum()) if n else 0.0
            if error < best:
                best, chosen = error, found
        return Expansion(kernel=query.kernel, points=records.features, coefficients=chosen)


def chosen_by_leaving_one_out():
    """The regularization is chosen by leave-one-out errors, and the bound is that of the smaller.

    Source: scikit-learn's `RidgeCV` before a private fit.
    """
    claim = bounded(mean_ridge, distance="rkhs", solver_error=1e-9)
    return Claim(
        learner=LeaveOneOut, bound=claim, domain=where(norm=1.0), mechanism="gaussian_process"
    )


class _Shared(Oracle):
    """Noise by cells of the plane: questions in one cell share it."""

    def __init__(self, query, function, mechanism, unit, noise):
        super().__init__(query, function, mechanism.most_points)
        self._scale, self._noise = unit * query.kappa * mechanism.noise_multiplier, noise
        self._known = {}

    def _answer(self, fresh):
        found = []
        for point, value in zip(fresh, self._function(fresh), strict=True):
            cell = tuple(np.floor(2 * point))
            if cell not in self._known:
                self._known[cell] = self._scale * self._noise.normal(1)[0]
            found.append(value + self._known[cell])
        return np.array(found)


@attrs.frozen(kw_only=True)
class SharedNoise(Interactive):
    """Answers with noise that is drawn once for each cell, one event for all questions."""

    arithmetic = "real"
    source = "made up"
    queries = 1
    most_points = 256
    noise_multiplier: float = free(validator=positive)

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        return GaussianEvent(mu=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    def open(self, value, query, sensitivity, noise):
        return _Shared(query, value, self, sensitivity.unit, noise)


def noise_of_the_nearest_cell():
    """Questions in one cell share their noise, so that differences of answers have none.

    Source: consistent noise in tiles of maps.
    """
    return Single(kind="mechanisms", component=SharedNoise)


MAPS = (running_maximum, norm_on_a_grid)
FUNCTIONS = (means_of_private_sizes, chosen_by_leaving_one_out, noise_of_the_nearest_cell)
