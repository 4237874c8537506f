"""Private random feature models: after Liao, Needell, Schaeffer & Xue (2025).

Differentially private random feature model; the sound forms rest on T1 and T3-T6 of the docs.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore_random_features.ball_ridge import BallRidgeBound, BallRidgeLearner
from dpcore_random_features.huber_ridge import HuberRidgeBound, HuberRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm, ProjectedMinNormBound
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Learners of the paper, in sound form."""
    return {
        "random_features.ball_ridge": BallRidgeLearner,
        "random_features.huber_ridge": HuberRidgeLearner,
        "random_features.projected_min_norm": ProjectedMinNorm,
        "random_features.ridge": Ridge,
    }


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {
        "random_features.ball_ridge": BallRidgeBound,
        "random_features.huber_ridge": HuberRidgeBound,
        "random_features.projected_min_norm": ProjectedMinNormBound,
        "random_features.ridge_replace_one": RidgeReplaceOne,
    }


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses each learner of this release."""
    folder = Path(__file__).parent / "examples"
    names = ("ball_ridge", "huber_ridge", "projected_min_norm")
    return {f"random_features.{name}": folder / f"{name}.yaml" for name in names}
