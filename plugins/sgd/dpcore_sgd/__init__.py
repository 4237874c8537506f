"""Private stochastic gradient descent on features: output perturbation, and correlated noise.

After Wang & Guo (2024), Differentially private SGD with random features, Appl. Math. J. Chinese
Univ. 39, doi:10.1007/s11766-024-5037-0: the algorithm as printed, corrected, and in sound forms.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore_sgd.banded import Banded
from dpcore_sgd.bounds import PassesBound, PathBound
from dpcore_sgd.experiment_methods import THEOREM_3_NOISE
from dpcore_sgd.printed import CorrectedTheorem2, PrintedTheorem2
from dpcore_sgd.regression import Regression
from dpcore_sgd.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Output perturbation, and steps with correlated noise; what varies is a field."""
    return {"sgd.banded": Banded, "sgd.regression": Regression}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {
        "sgd.corrected": CorrectedTheorem2,
        "sgd.passes": PassesBound,
        "sgd.path": PathBound,
        "sgd.printed": PrintedTheorem2,
    }


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The recommended form, each order, and the paper: printed under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    names = ("banded", "corrected", "cyclic", "printed", "regression", "with_replacement")
    return {f"sgd.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_methods() -> Mapping[str, Callable[..., Any]]:
    """The noise as printed, for experiments of others that compare with it."""
    return {"sgd.theorem_3_noise": THEOREM_3_NOISE}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The paper's statements, printed and corrected."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """The paper's constants: it has no experiments."""
    folder = Path(__file__).parent / "experiments"
    return {"sgd/constants": folder / "constants.yaml"}
