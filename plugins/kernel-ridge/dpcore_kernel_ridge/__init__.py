"""Private kernel ridge regression: after Nie & Wang (2017).

Error Analysis and Variable Selection for Differential Private Learning Algorithm; the sound forms
rest on T3, T4, T6, T10 and T11 of the docs.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import AnyLearner, AnyMechanism, SensitivityBound, hookimpl
from dpcore.learning.estimator import Estimator
from dpcore.learning.statement import Statement
from dpcore.registry.lazy_mapping import LazyMapping
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne, Lemma2, Proposition1
from dpcore_kernel_ridge.huber_ridge import KernelHuberRidge, KernelHuberRidgeBound
from dpcore_kernel_ridge.one_scalar import OneScalar
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
    """The release as the paper prints it, for reproductions alone."""
    return {"kernel_ridge.one_scalar": OneScalar}


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
