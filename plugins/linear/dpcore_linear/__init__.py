"""Private linear models: gradients, sufficient statistics, output perturbation.

Clipped gradients after Abadi et al. (2016), Deep learning with differential privacy.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore_linear.staged_gradient import StagedGradient, StagedGradientBound


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Learners that are linear in public features."""
    return {"linear.staged_gradient": StagedGradient}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {"linear.staged_gradient": StagedGradientBound}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses each learner."""
    folder = Path(__file__).parent / "examples"
    return {f"linear.{name}": folder / f"{name}.yaml" for name in ("staged_gradient",)}
