"""Explainable boosting: additive shape functions by noisy sums of residuals.

After Nori, Caruana, Bu, Shen & Kulkarni (2021), Accuracy, interpretability, and differential
privacy via explainable boosting, ICML, arXiv:2106.09680: their public code, its errata, and a sound
form.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore_explainable_boosting.boosting import Cyclic
from dpcore_explainable_boosting.printed import Printed, PrintedBound
from dpcore_explainable_boosting.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """The sound form, and the printed one."""
    return {"explainable_boosting.cyclic": Cyclic, "explainable_boosting.printed": Printed}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """The printed one; sums of `cyclic` need none of their own."""
    return {"explainable_boosting.printed": PrintedBound}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """Numbers and classes; the printed form under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    names = ("classes", "numbers", "printed")
    return {f"explainable_boosting.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """What the public code charges, and what it costs."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """What the public code charges, beside what it costs."""
    folder = Path(__file__).parent / "experiments"
    return {"explainable_boosting/constants": folder / "constants.yaml"}
