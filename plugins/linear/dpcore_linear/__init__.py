"""Private linear models: gradients, sufficient statistics, output perturbation.

After Abadi et al. (2016), Deep learning with differential privacy (clipped gradients); Wang (2018),
arXiv:1803.02596 (sufficient statistics); Chaudhuri, Monteleoni & Sarwate (2011) (output).
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import FeatureMap, Learner, SensitivityBound, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.registry.lazy_mapping import LazyMapping
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


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Learners that are linear in public features."""
    return {
        "linear.chosen_ridge": ChosenRidge,
        "linear.clipped_gradient": ClippedGradient,
        "linear.logistic": LogisticTable,
        "linear.ols": OrdinaryLeastSquares,
        "linear.output_perturbation": OutputPerturbation,
        "linear.staged_gradient": StagedGradient,
        "linear.sufficient_statistics": SufficientStatistics,
    }


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {
        "linear.chaudhuri_2011": PrintedBound,
        "linear.chosen_ridge": ChosenRidgeBound,
        "linear.clipped_gradient": ClippedGradientBound,
        "linear.ols": OrdinaryLeastSquaresBound,
        "linear.output_perturbation": OutputPerturbationBound,
        "linear.staged_gradient": StagedGradientBound,
        "linear.sufficient_statistics": SufficientStatisticsBound,
    }


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """Maps that any learner may use."""
    return {"linear.affine": Affine}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses each learner."""
    folder = Path(__file__).parent / "examples"
    names = (
        "chosen_ridge",
        "classification",
        "clipped_gradient",
        "logistic",
        "ols",
        "output_perturbation",
        "staged_gradient",
        "sufficient_statistics",
    )
    return {f"linear.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_estimators() -> Mapping[str, type[Estimator]]:
    """The estimator for scikit-learn, loaded when it is asked for."""
    return LazyMapping(
        {
            "SufficientStatisticsRidge": ("dpcore_linear.estimators", "SufficientStatisticsRidge"),
        }
    )
