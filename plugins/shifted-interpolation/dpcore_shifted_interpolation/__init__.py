"""Shifted interpolation: what the last iterate of noisy gradient descent costs, by calculators.

After Bok, Su & Altschuler (2024), Shifted interpolation for differential privacy, arXiv:2403.00278,
read in the authors' public code. No learner: nothing is claimed of a release.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import hookimpl
from dpcore.learning.statement import Statement
from dpcore_shifted_interpolation.statements import STATEMENTS


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """Statements of the paper, printed and derived."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """The paper's setting of cyclic descent, which needs no records."""
    folder = Path(__file__).parent / "experiments"
    return {"shifted_interpolation/table1": folder / "table1.yaml"}
