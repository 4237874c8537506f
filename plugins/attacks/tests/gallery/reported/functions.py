"""Function learners and interactive mechanisms, as they were reported to be wrong."""

from typing import ClassVar

import attrs
import numpy as np

from dpcore.functions import Expansion, Interactive, Oracle

from gallery.core import (
    GaussianKernel,
    PureEvent,
    free,
    positive,
    ridge_replace_one,
)
from gallery.entry import Claim, Single, bounded, subclass, where
from gallery.reported.maps import WithGaussian, mean_ridge
from gallery.reported.noise import laplace_draws


class _Thresholds(Oracle):
    """Says of each point whether the function is above a noisy threshold."""

    def __init__(self, query, function, mechanism, unit, noise):
        super().__init__(query, function, mechanism.most_points)
        self._mechanism, self._noise = mechanism, noise
        self._scale = 2 * unit * query.kappa * mechanism.noise_multiplier
        self._threshold = self._scale * laplace_draws(noise, 1)[0]

    def _answer(self, fresh):
        values = self._function(fresh)
        if self._mechanism.noisy_answers:
            values = values + 2 * self._scale * laplace_draws(self._noise, len(fresh))
        return (values >= self._threshold).astype(float)


@attrs.frozen(kw_only=True)
class Thresholds(Interactive):
    """The sparse vector technique, priced once as any (1/noise_multiplier)-DP release."""

    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "as printed"
    queries: ClassVar[int] = 1
    noisy_answers: ClassVar[bool] = False
    most_points: ClassVar[int] = 256
    noise_multiplier: float = free(validator=positive)

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        return PureEvent(epsilon=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    def open(self, value, query, sensitivity, noise):
        return _Thresholds(query, value, self, sensitivity.unit, noise)


def thresholds(**body):
    """The technique with some of its facts."""
    return Single(kind="mechanisms", component=subclass(Thresholds, **body))


def answers_without_noise():
    """The threshold has noise and the answers have none, for as many questions as are asked.

    Source: Lyu, Su & Li (2017), arXiv:1603.01699, Algorithm 5 (Stoddard, Chen & Machanavajjhala).
    """
    return thresholds()


def no_end_of_positive_answers():
    """Threshold and answers have noise, and positive answers are neither counted nor do they end
    it.

    Source: Lyu, Su & Li (2017), arXiv:1603.01699, Algorithm 6 (Chen, Xiao, Zhang & Xu).
    """
    return thresholds(noisy_answers=True)


@attrs.frozen(kw_only=True)
class MedianBandwidth(WithGaussian):
    """With coefficients fitted at the records' median distance. Total: likewise."""

    def statistic(self, query, records, public, secret):
        rows = records.features
        distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
        apart = distances[distances > 0]
        width = float(np.median(apart)) if apart.size else 1.0
        matrix = GaussianKernel(bandwidth=width)(rows, rows)
        shift = self.regularization * public.domain.records * np.eye(len(records))
        found = np.linalg.solve(matrix + shift, records.labels)
        return Expansion(kernel=query.kernel, points=rows, coefficients=found)


def bandwidth_by_the_median_of_distances():
    """The kernel's width is the median distance of the records, which no noise protects.

    Source: Harder, Adamczewski & Park (2021), arXiv:2002.11603 (the median heuristic on the data).
    """
    claim = bounded(mean_ridge, distance="rkhs", solver_error=1e-9)
    return Claim(
        learner=MedianBandwidth,
        bound=claim,
        domain=where(records=390, norm=1.0),
        mechanism="gaussian_process",
    )


@attrs.frozen(kw_only=True)
class SumForm(WithGaussian):
    """The regularization is that of the sum of losses. Total: likewise."""

    regularization: float = 4.0

    def statistic(self, query, records, public, secret):
        matrix = query.kernel(records.features, records.features)
        shift = self.regularization * np.eye(len(records))
        found = np.linalg.solve(matrix + shift, records.labels)
        return Expansion(kernel=query.kernel, points=records.features, coefficients=found)


def regularization_of_the_sum():
    """The solver's regularization belongs to the sum of losses, and the bound's to their mean,
    which is n times as much.

    Source: scikit-learn's `KernelRidge` (alpha of the sum) under the bound of Hall, Rinaldo &
    Wasserman (2013), JMLR 14, Section 4, which is of the mean.
    """

    def right(a, d):
        mean = a.regularization / d.records
        return ridge_replace_one(1.0, d.label_bound, mean, d.records) * (1 + 1e-9)

    parts = {
        "learner": SumForm,
        "domain": where(norm=1.0),
        "mechanism": "gaussian_process",
    }
    more = {"distance": "rkhs", "solver_error": 1e-9}
    return Claim(bound=bounded(mean_ridge, **more), **parts), Claim(
        bound=bounded(right, **more), **parts
    )


FUNCTIONS = (
    answers_without_noise,
    no_end_of_positive_answers,
    bandwidth_by_the_median_of_distances,
    regularization_of_the_sum,
)
