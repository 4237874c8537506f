"""Shifted interpolation: what the last iterate of noisy gradient descent costs.

After Bok, Su & Altschuler (2024), Shifted interpolation for differential privacy, arXiv:2403.00278,
read in the authors' public code: calculators, and descent whose last iterate alone is released.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, Mechanism, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore_shifted_interpolation.descent import Descent, DescentBound
from dpcore_shifted_interpolation.inner_gaussian import InnerGaussian
from dpcore_shifted_interpolation.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Descent with noise inside, for researchers."""
    return {"shifted_interpolation.descent": Descent}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What its steps move by and leave of a distance."""
    return {"shifted_interpolation.descent": DescentBound}


@hookimpl
def dpcore_mechanisms() -> Mapping[str, type[Mechanism]]:
    """Noise between the steps of a process."""
    return {"shifted_interpolation.inner_gaussian": InnerGaussian}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """Descent on a small table."""
    folder = Path(__file__).parent / "examples"
    return {"shifted_interpolation.descent": folder / "descent.yaml"}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """Statements of the paper, printed and derived."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """The paper's setting of cyclic descent, which needs no records."""
    folder = Path(__file__).parent / "experiments"
    return {"shifted_interpolation/table1": folder / "table1.yaml"}
