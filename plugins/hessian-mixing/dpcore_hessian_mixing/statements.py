"""Statements of both papers for `dpcore theory`, from the authors' public code and as derived."""

import math

from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.learners.statement import Statement
from dpcore_hessian_mixing.mixing import (
    least_ridge,
    mixing_renyi,
    printed_gamma,
    replacement_renyi,
)

_PAPERS = "Lev et al. (2025, 2026), read in their public code"


def _samples(records: int, width: int, delta: float) -> int:
    """k = 2.5 max(d, log(2/rho)), rho a tenth of delta."""
    return round(2.5 * max(width, math.log(20 / delta)))


def _eigenvalue_charged(records: int, width: int, epsilon: float) -> dict[str, float]:
    return _eigenvalue(records, width, epsilon, drawn=False)


def _eigenvalue_drawn(records: int, width: int, epsilon: float) -> dict[str, float]:
    return _eigenvalue(records, width, epsilon, drawn=True)


def _eigenvalue(records: int, width: int, epsilon: float, *, drawn: bool) -> dict[str, float]:
    delta = 1 / records**2
    samples = _samples(records, width, delta)
    std = printed_gamma(epsilon, delta, samples, label_bound=1.0) / math.sqrt(samples)
    # Standard deviations of noise over what a record moves: 1 as charged, 2 in truth.
    multiplier = math.sqrt(std) / 2 if drawn else std
    return {"multiplier": multiplier, "epsilon": gaussian_epsilon(delta, 1 / multiplier)}


def _gamma(epsilon: float, delta: float, samples: int) -> float:
    # The printed form gives the sketch a third of delta; here all of it, to compare like with like.
    return printed_gamma(epsilon, 3 * delta, samples, pays_eigenvalue=False)


def _ridge(epsilon: float, delta: float, samples: int) -> float:
    return least_ridge(epsilon, delta, 1.0, samples)


def _step_noise(epsilon: float, delta: float) -> dict[str, float]:
    """Of three sketches and three gradients, from (eps/2, 3 delta/4) and (eps/2, delta/4)."""
    part = delta / 4
    classical = math.sqrt(2 * math.log(1.25 / part)) / (epsilon / 2)
    return {"gradients' noise over C": classical * math.sqrt(3)}


STATEMENTS = {
    "hessian_mixing/mixing": Statement(
        title="Rényi divergence of k mixed rows from the same without one record",
        source=_PAPERS,
        printed=mixing_renyi,
        corrected=replacement_renyi,
        labels=("one record comes or goes", "one record is replaced"),
        wrong="true where a record comes or goes; two orthogonal records are worse where one is "
        "replaced by another",
        symbols={"k": "samples", "alpha": "order", "gamma": "ridge"},
    ),
    "hessian_mixing/ridge": Statement(
        title="The ridge that makes k mixed rows private, records of length 1",
        source=_PAPERS,
        printed=_gamma,
        corrected=_ridge,
        labels=("by Rényi divergences", "exact"),
        wrong="true, and loose by 9 to 18 % for most budgets",
        symbols={"k": "samples"},
    ),
    "hessian_mixing/eigenvalue_step": Statement(
        title="What the private least eigenvalue costs in a run of GaussMix",
        source="Lev et al. (2025), public code",
        printed=_eigenvalue_charged,
        corrected=_eigenvalue_drawn,
        labels=("as charged", "as drawn"),
        wrong="the variance drawn is the standard deviation charged, and the number moves by 2",
        symbols={"n": "records", "d": "width"},
    ),
    "hessian_mixing/iteration_noise": Statement(
        title="Noise of the gradients of Iterative Hessian Mixing, three steps",
        source="Lev et al. (2026), public code",
        printed=_step_noise,
    ),
}
