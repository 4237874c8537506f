"""Private random feature models: after Liao, Needell, Schaeffer & Xue (2025).

Differentially private random feature model; the sound forms rest on T1 and T3-T6 of the docs.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpcore import Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.learning.statement import Statement
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_random_features.ball_ridge import BallRidgeBound, BallRidgeLearner
from dpcore_random_features.experiment_groups import fit_ridge
from dpcore_random_features.experiment_methods import f1, f2, fit_cosines
from dpcore_random_features.experiment_noises import ALGORITHM_NOISE, GAMMA_NOISE, GAP_NOISE
from dpcore_random_features.huber_ridge import HuberRidgeBound, HuberRidgeLearner
from dpcore_random_features.min_norm import Algorithm1, LiaoLemma9, MinNorm, PublishedCode
from dpcore_random_features.projected_min_norm import ProjectedMinNorm, ProjectedMinNormBound
from dpcore_random_features.real_noise import RealNoise
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne
from dpcore_random_features.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Learners of the paper, in sound form and (`min_norm`) as printed."""
    return {
        "random_features.ball_ridge": BallRidgeLearner,
        "random_features.huber_ridge": HuberRidgeLearner,
        "random_features.min_norm": MinNorm,
        "random_features.projected_min_norm": ProjectedMinNorm,
        "random_features.ridge": Ridge,
    }


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {
        "random_features.algorithm_1": Algorithm1,
        "random_features.ball_ridge": BallRidgeBound,
        "random_features.huber_ridge": HuberRidgeBound,
        "random_features.liao_lemma_9": LiaoLemma9,
        "random_features.projected_min_norm": ProjectedMinNormBound,
        "random_features.published_code": PublishedCode,
        "random_features.ridge_replace_one": RidgeReplaceOne,
    }


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Algorithm 1's noise, as printed."""
    return {"random_features.real_noise": RealNoise}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """A spec for each sound learner; what is printed runs under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    sound = ("ball_ridge", "huber_ridge", "projected_min_norm", "ridge")
    names = (*sound, "algorithm_1", "kaczmarz", "published_code")
    return {f"random_features.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """Tables 1 and 2 and Figures 1-8, as the published code runs them, where there is one."""
    folder = Path(__file__).parent / "experiments"
    return {f"random_features/{path.stem}": path for path in sorted(folder.glob("*.yaml"))}


@hookimpl
def dpcore_methods() -> Mapping[str, Callable[..., Any]]:
    """Methods that the experiments' files name: data, fits and noises."""
    methods = {f"random_features.{m.__name__}": m for m in (f1, f2, fit_cosines, fit_ridge)}
    return {
        **methods,
        "random_features.algorithm_noise": ALGORITHM_NOISE,
        "random_features.classical_noise": ALGORITHM_NOISE,
        "random_features.gamma_noise": GAMMA_NOISE,
        "random_features.gap_noise": GAP_NOISE,
    }


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The paper's statements, printed and corrected."""
    return STATEMENTS


@hookimpl
def dpcore_estimators() -> Mapping[str, type[Estimator]]:
    """The estimator for scikit-learn, loaded when it is asked for."""
    return LazyMapping(
        {
            "RandomFeaturesRidge": ("dpcore_random_features.estimators", "RandomFeaturesRidge"),
        }
    )
