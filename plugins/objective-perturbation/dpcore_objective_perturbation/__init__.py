"""Objective perturbation for linear and logistic models, after three papers.

After Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12:1069-1109, and Kifer, Smith & Thakurta (2012),
COLT; features after Lee, Park & Ahn (2025), arXiv:2507.17544.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Event, FeatureMap, Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore_objective_perturbation.event import ObjectivePerturbationEvent
from dpcore_objective_perturbation.mechanism import ObjectivePerturbation
from dpcore_objective_perturbation.projection import RandomProjection
from dpcore_objective_perturbation.regression import Regression, RegressionBound
from dpcore_objective_perturbation.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Regression by objective perturbation, linear or logistic."""
    return {"objective_perturbation.regression": Regression}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What a minimiser moves by where a record changes."""
    return {"objective_perturbation.regression": RegressionBound}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """The linear term, and the noise on the minimiser."""
    return {"objective_perturbation.normal": ObjectivePerturbation}


@hookimpl
def dpcore_events() -> Mapping[str, type[Event]]:
    """The curve of the exact minimiser."""
    return {"objective_perturbation": ObjectivePerturbationEvent}


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """Random combinations of another map's features."""
    return {"objective_perturbation.random_projection": RandomProjection}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """Regression of numbers, of classes, and on projected features."""
    folder = Path(__file__).parent / "examples"
    names = ("classes", "projection", "regression")
    return {f"objective_perturbation.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """What the papers print, and what is derived here."""
    return STATEMENTS
