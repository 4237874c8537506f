"""Private kernel ridge regression: after Nie & Wang (2017).

Error Analysis and Variable Selection for Differential Private Learning Algorithm; the sound forms
rest on T3, T4, T6, T10 and T11 of the docs.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import AnyLearner, AnyMechanism, Kernel, SensitivityBound, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.learning.statement import Statement
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne, Lemma2, Proposition1
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.huber_ridge import KernelHuberRidge, KernelHuberRidgeBound
from dpcore_kernel_ridge.matern import ExponentialKernel, Matern32Kernel, Matern52Kernel
from dpcore_kernel_ridge.one_scalar import OneScalar
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_kernel_ridge.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[AnyLearner]]:
    """Functions: with the exact number of records, and without it."""
    return {"kernel_ridge.huber_ridge": KernelHuberRidge, "kernel_ridge.ridge": KernelRidge}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move, and what the paper prints."""
    return {
        "kernel_ridge.huber_ridge": KernelHuberRidgeBound,
        "kernel_ridge.lemma_2": Lemma2,
        "kernel_ridge.proposition_1": Proposition1,
        "kernel_ridge.replace_one": KernelRidgeReplaceOne,
    }


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[AnyMechanism]]:
    """Answers about a private function: two sound releases, and one as the paper prints it."""
    # Specs name the sound ones without a dot, as they did when these were the core's.
    return {
        "gaussian_process": GaussianProcess,
        "kernel_ridge.one_scalar": OneScalar,
        "per_query": PerQuery,
    }


@hookimpl
def dpcore_kernels() -> Mapping[str, type[Kernel]]:
    """Kernels that are rougher than the core's Gaussian one; specs name them without a dot."""
    return {
        "exponential": ExponentialKernel,
        "matern_3_2": Matern32Kernel,
        "matern_5_2": Matern52Kernel,
    }


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec of each release; `printed` runs under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    names = ("function", "huber_ridge", "per_query", "printed")
    return {f"kernel_ridge.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The paper's statements, printed and corrected."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """The paper's constants: it has no experiments."""
    folder = Path(__file__).parent / "experiments"
    return {"kernel_ridge/constants": folder / "constants.yaml"}


@hookimpl
def dpcore_estimators() -> Mapping[str, type[Estimator]]:
    """The estimator for scikit-learn, loaded when it is asked for."""
    return LazyMapping(
        {
            "KernelRidge": ("dpcore_kernel_ridge.estimators", "KernelRidge"),
        }
    )
