"""Private linear models: gradients, sufficient statistics, output perturbation.

After Abadi et al. (2016), Deep learning with differential privacy (clipped gradients); Wang (2018),
arXiv:1803.02596 (sufficient statistics); Chaudhuri, Monteleoni & Sarwate (2011) (output).
"""

from dpcore_linear.affine import Affine
from dpcore_linear.chosen_ridge import ChosenRidge, ChosenRidgeBound
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.logistic import LogisticTable
from dpcore_linear.ols import OrdinaryLeastSquares, OrdinaryLeastSquaresBound
from dpcore_linear.output_perturbation import (
    OutputPerturbation,
    OutputPerturbationBound,
    PrintedBound,
)
from dpcore_linear.staged_gradient import StagedGradient, StagedGradientBound
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound

provides = {
    "learners": {
        "linear.chosen_ridge": ChosenRidge,
        "linear.clipped_gradient": ClippedGradient,
        "linear.logistic": LogisticTable,
        "linear.ols": OrdinaryLeastSquares,
        "linear.output_perturbation": OutputPerturbation,
        "linear.staged_gradient": StagedGradient,
        "linear.sufficient_statistics": SufficientStatistics,
    },
    "bounds": {
        "linear.chaudhuri_2011": PrintedBound,
        "linear.chosen_ridge": ChosenRidgeBound,
        "linear.clipped_gradient": ClippedGradientBound,
        "linear.ols": OrdinaryLeastSquaresBound,
        "linear.output_perturbation": OutputPerturbationBound,
        "linear.staged_gradient": StagedGradientBound,
        "linear.sufficient_statistics": SufficientStatisticsBound,
    },
    "features": {
        "linear.affine": Affine,
    },
    "examples": {"linear.*": "examples/*.yaml"},
    "estimators": {
        "SufficientStatisticsRidge": "dpcore_linear.estimators:SufficientStatisticsRidge",
    },
}
