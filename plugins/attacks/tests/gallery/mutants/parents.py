"""Right learners and bounds to mutate: those of dpcore's plugins, and small ones."""

import math

import attrs
import numpy as np

from gallery.core import (
    BallRidgeBound,
    BallRidgeLearner,
    ClippedGradient,
    ClippedGradientBound,
    KernelRidge,
    KernelRidgeReplaceOne,
    OutputPerturbation,
    OutputPerturbationBound,
    ProjectedMinNorm,
    ProjectedMinNormBound,
    Ridge,
    RidgeReplaceOne,
    SufficientStatistics,
    SufficientStatisticsBound,
)
from gallery.entry import Claim, bounded, where
from gallery.reported.gradients import Layers
from gallery.reported.sums import AllCounts, CensoredMoments, OneNumber


@attrs.frozen(kw_only=True)
class LabelSum(OneNumber):
    """The sum of labels. Total: a sum of clipped numbers."""

    def of(self, labels, domain):
        return labels.sum()


@attrs.frozen(kw_only=True)
class LabelMean(OneNumber):
    """The mean of labels, over the public number of records. Total: a mean."""

    def of(self, labels, domain):
        return labels.sum() / domain.records


def _plain(learner, value, **options):
    return Claim(learner=learner, bound=bounded(value), domain=where(**options))


def _shipped(learner, bound, fields, **options):
    options = {"norm": 1.0, **options}
    mechanism = options.pop("mechanism", "gaussian")
    fields = {"fields": fields, "mechanism": mechanism}
    return Claim(learner=learner, bound=bound, domain=where(**options), **fields)


REGIONS = ("north", "east", "south", "west")

CLAIMS = {
    "label_sum": _plain(LabelSum, lambda a, d: 2 * d.label_bound),
    "label_mean": _plain(LabelMean, lambda a, d: 2 * d.label_bound / d.records),
    "counts": _plain(AllCounts, lambda a, d: math.sqrt(2), columns=0, group=REGIONS),
    "moments": _plain(CensoredMoments, lambda a, d: math.sqrt(2) * a.clip**2),
    "layers": _plain(Layers, lambda a, d: 2 * a.clip * np.sqrt(d.width)),
    "clipped_gradient": _shipped(
        ClippedGradient, ClippedGradientBound, "features: identity, steps: 2, clip: 0.5"
    ),
    "sufficient_statistics": _shipped(
        SufficientStatistics,
        SufficientStatisticsBound,
        "features: identity, total_regularization: 1",
    ),
    "output_perturbation": _shipped(
        OutputPerturbation,
        OutputPerturbationBound,
        "features: identity, total_regularization: 5, clip: 0.3",
    ),
    "ball_ridge": _shipped(
        BallRidgeLearner,
        BallRidgeBound,
        "features: identity, total_regularization: 5, radius: 0.3",
    ),
    "projected_min_norm": _shipped(
        ProjectedMinNorm, ProjectedMinNormBound, "features: identity, radius: 0.5"
    ),
    "ridge": _shipped(Ridge, RidgeReplaceOne, "features: identity, regularization: 0.1"),
    "kernel_ridge": _shipped(
        KernelRidge,
        KernelRidgeReplaceOne,
        "kernel: gaussian, bandwidth: 0.5, regularization: 1.0",
        mechanism="gaussian_process",
    ),
}
"""By name. Each attains its bound, or comes near to it, on records that the theory knows."""
