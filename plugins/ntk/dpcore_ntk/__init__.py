"""Private regression with a neural tangent kernel: after Gu, Liang, Sha, Shi & Song (2024).

Differential Privacy Mechanisms in Neural Tangent Kernel Regression: as printed, made sound, and a
central route that protects whole records.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpcore import Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.learning.statement import Statement
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_ntk.central import Central, CentralBound
from dpcore_ntk.experiment_methods import digits, fit_kernel
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.gram_sampling import GramSampling
from dpcore_ntk.printed import Equation1Bound, Printed, PromisedBound
from dpcore_ntk.regression import Regression, RegressionBound
from dpcore_ntk.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """The learners of this plugin: the central one is recommended."""
    return {
        "ntk.central": Central,
        "ntk.printed": Printed,
        "ntk.regression": Regression,
    }


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move; what the paper promises, and what it prints."""
    return {
        "ntk.central": CentralBound,
        "ntk.equation_1": Equation1Bound,
        "ntk.eta_min": PromisedBound,
        "ntk.regression": RegressionBound,
    }


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Gaussian sampling made sound, and as printed, private under a promise alone."""
    # Specs name the sound one without a dot, as they did when it was the core's.
    return {"gaussian_sampling": GaussianSampling, "ntk.gram_sampling": GramSampling}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec of each; `equation_1` runs under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    names = ("central", "digits", "equation_1", "promised", "regression")
    return {f"ntk.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The paper's statements, printed and proved."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """What stands for Figure 1."""
    folder = Path(__file__).parent / "experiments"
    return {"ntk/figure_1_substitute": folder / "figure_1_substitute.yaml"}


@hookimpl
def dpcore_methods() -> Mapping[str, Callable[..., Any]]:
    """Methods that the experiment's file names."""
    return {"ntk.digits": digits, "ntk.fit_kernel": fit_kernel}


@hookimpl
def dpcore_estimators() -> Mapping[str, type[Estimator]]:
    """The estimator for scikit-learn, loaded when it is asked for."""
    return LazyMapping(
        {
            "NTKClassifier": ("dpcore_ntk.estimators", "NTKClassifier"),
        }
    )
