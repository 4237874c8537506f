"""Hessian mixing: Newton's iteration for private linear models, and what two papers print.

After Lev et al. (2025), GaussMix, arXiv:2505.24603, and Lev et al. (2026), Iterative Hessian
Mixing, arXiv:2601.07545: their public code, its errata, and a sound iteration.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore_hessian_mixing.newton import Newton
from dpcore_hessian_mixing.printed import LeastEigenvalue, PrintedEigenvalueBound
from dpcore_hessian_mixing.statements import STATEMENTS


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """The sound iteration, and the step that the printed form adds."""
    return {"hessian_mixing.eigenvalue": LeastEigenvalue, "hessian_mixing.newton": Newton}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """The printed one; sums of `newton` need none of their own."""
    return {"hessian_mixing.printed": PrintedEigenvalueBound}


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The iteration for numbers and classes; the printed step under `dpcore reproduce` alone."""
    folder = Path(__file__).parent / "examples"
    names = ("classes", "newton", "printed")
    return {f"hessian_mixing.{name}": folder / f"{name}.yaml" for name in names}


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """Statements of both papers, printed and derived."""
    return STATEMENTS


@hookimpl
def dpcore_experiments() -> Mapping[str, Path]:
    """What the papers' code charges, beside what it costs."""
    folder = Path(__file__).parent / "experiments"
    return {"hessian_mixing/constants": folder / "constants.yaml"}
