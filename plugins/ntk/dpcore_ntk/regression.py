r"""Private NTK regression by Gaussian sampling, the sound form: on K + lam0 I, labels released too.

Three releases, each with noise of its own: second moments of k draws from
:math:`N(0,K+\lambda_0I)`, the inputs X, and the labels. One record moves one row of the features
behind K by at most b(beta) (`dpcore_ntk.row_movement`), its input by beta and its target by 2 or
sqrt(2), in l2; beta is the adjacency's radius, or 2B where features may move anywhere. All three
compose to one curve: with Gaussian inputs and labels of mu_X and mu_Y, and theta = b/sqrt(lam0),

.. math:: \delta(\epsilon)=E_{u\sim\chi^2_k}\,
          \delta_G\big(\epsilon;\sqrt{\mu_X^2+\mu_Y^2+\theta^2u}\big),

because with the coefficients of the draws on the features revealed, all are Gaussian.
"""

import math
from typing import ClassVar, Literal

import attrs

from dpcore import (
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import one_of
from dpcore.mechanism import AnyMechanism
from dpcore.rounding import up
from dpcore_ntk.dual import DualRegression, asked
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.row_movement import row_movement
from dpcore_ntk.targets import Targets

_UNMOVED = 1e-9


@attrs.frozen(kw_only=True)
class Regression(DualRegression):
    r"""Kernel ridge regression from released second moments, inputs and labels.

    lam0 of `gaussian_sampling` is `regularization` unless the spec gives another: then the ridge
    that privacy needs is the one that learning wants. For a smaller lam0 the rest is added to the
    release; nothing is ever subtracted from it, which could make it indefinite.

    Total: products of finite numbers, and for every label a category that it has.

    Args:
        inputs: In which norm inputs move: `l2` (gaussian) or `l1` (laplace, truncated_laplace).
        labels: `l2` (gaussian), or `hamming` (randomized_response, for classes).
    """

    bounds: ClassVar[tuple[str, ...]] = ("ntk.regression",)
    total: ClassVar[bool] = True

    inputs: Literal["l1", "l2"] = attrs.field(default="l2", validator=one_of("l1", "l2"))
    labels: Literal["hamming", "l2"] = attrs.field(default="l2", validator=one_of("hamming", "l2"))

    def queries(self, public: Public) -> tuple[Query, Query, Query]:
        """Return the kernel matrix, as rows of features; the inputs; the labels."""
        return asked(
            public,
            Distance.PSD_ROWS,
            GaussianSampling(lam0=self.regularization),
            Distance(self.inputs),
            Distance(self.labels),
            self.drawn(public).feature_norm ** 2,
        )

    def solved(self, mechanism: AnyMechanism) -> tuple[float, int | None]:
        """max(lambda - lam0, 0), and the number of draws."""
        # Only Gaussian sampling has added lam0 already; for others the whole ridge is added here.
        if not isinstance(mechanism, GaussianSampling):
            return self.regularization, None
        return max(self.regularization - (mechanism.lam0 or 0.0), 0.0), mechanism.samples


@attrs.frozen(kw_only=True)
class RegressionBound(SensitivityBound):
    """b(beta), beta and the targets' distance, for every relation with a public count."""

    learner: ClassVar[type[Learner]] = Regression

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """By the query. What a relation does not move at all is given 1e-9 of its range."""
        assert isinstance(learner, Regression)
        if adjacency.membership:
            return Refused(f"a matrix of one row a record needs their public number: {adjacency}")
        if query.name == "kernel":
            neurons = learner.drawn(public)
            radius = moved_inputs(public, adjacency)
            value = row_movement(radius, neurons.norm, neurons.largest)
            source = "movement of one row of quadratic features (ntk README, theorem 3)"
        else:
            value, source = moved_inputs_or_labels(query, public, adjacency)
        return Sensitivity(value=value, distance=query.distance, adjacency=adjacency, source=source)


def moved_inputs(public: Public, adjacency: Adjacency) -> float:
    """beta: how far a row may move, at most 2B, and 1e-9 of that where it may not."""
    # A movement of zero is no sensitivity: 1e-9 of the range costs next to nothing.
    widest = 2 * public.domain.feature_norm
    return up(min(max(adjacency.feature_radius, _UNMOVED * widest), widest), roundings=500)


def moved_inputs_or_labels(query: Query, public: Public, adjacency: Adjacency) -> tuple[float, str]:
    """Return the bound of `inputs` or `labels`, rounded up, and its source."""
    if query.name == "inputs":
        radius = moved_inputs(public, adjacency)
        # |v|_1 <= sqrt(d) |v|_2.
        stretch = math.sqrt(public.domain.width) if query.distance is Distance.L1 else 1.0
        movement = up(radius * stretch, roundings=500)
        return movement, "inputs within the adjacency's radius, or the domain"
    if query.distance is Distance.HAMMING:
        return 1.0, "one label"
    widest = Targets(domain=public.domain).apart
    movement = up(widest * (1.0 if adjacency.label else _UNMOVED), roundings=500)
    return movement, "targets of two labels"
