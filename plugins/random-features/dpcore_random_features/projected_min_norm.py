r"""The paper's estimator, made private: min-norm interpolation, projected on a public ball.

Theorem (T1): whatever map is followed by projection on a ball of public radius R, under any
adjacency it moves by at most 2R. The printed sensitivity of the interpolant itself holds only for
pairs of datasets whose features are both well conditioned: one label flip between nearly equal
records moves it arbitrarily far.
"""

import math
from typing import Any, ClassVar

import attrs
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive
from dpcore.randomness import LearnerRandomness
from dpcore_models.learners.regression import FeatureRegression
from dpcore_models.theorems.projection import ball_diameter
from dpcore_random_features.solvers.ball import into_ball
from dpcore_random_features.solvers.min_norm import fit_min_norm


@attrs.frozen(kw_only=True)
class ProjectedMinNorm(FeatureRegression):
    r"""Publish the shortest least-squares solution, scaled back to norm R where it is longer.

    Total: equal records are merged, a deficient rank is cut off, and where arithmetic breaks down
    the solver returns 0; the projection is certified in floating point. No number of records is
    read. Features are made in blocks: memory grows with the square of the smaller of the numbers of
    records and features, and not with their product.

    Args:
        features: Map from encoded columns to features.
        radius: R > 0, public: it may rest on a public bound on the number of records, never on the
            records. Noise is proportional to it; a small one biases the model.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.projected_min_norm",)
    total: ClassVar[bool] = True

    radius: float = attrs.field(validator=positive)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return a point of the ball, whatever the records."""
        features = self.features.drawn(public.domain, public.randomness)
        interpolant = fit_min_norm(features, query.shape[0], records.features, records.labels)
        # Whatever the solver returns is projected: the bound rests on this line only.
        return into_ball(interpolant, self.radius)


@attrs.frozen(kw_only=True)
class ProjectedMinNormBound(SensitivityBound):
    """T1 for `random_features.projected_min_norm`, under every relation; covers 0 as a fallback."""

    learner: ClassVar[type[Learner]] = ProjectedMinNorm

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """The ball's diameter. Accuracy of the solver is no part of it."""
        assert isinstance(learner, ProjectedMinNorm)
        if math.isinf(2 * learner.radius):
            return Refused(f"radius={learner.radius!r} is too large: twice it is infinite")
        # The relation is not looked at: T1 holds for any two datasets.
        diameter = ball_diameter(learner.radius)
        return Sensitivity(
            value=diameter,
            diameter=diameter,
            distance=Distance.L2,
            adjacency=adjacency,
            covers_fallback=True,
            source="T1 (projection on a public ball, any adjacency)",
            facts={"radius": learner.radius},
        )
