"""Hessian mixing: Newton's iteration for private linear models, and what two papers print.

After Lev et al. (2025), GaussMix, arXiv:2505.24603, and Lev et al. (2026), Iterative Hessian
Mixing, arXiv:2601.07545: their public code, its errata, and a sound iteration.
"""

provides = {
    # The sound iteration, and the step that the printed form adds.
    "learners": {
        "hessian_mixing.eigenvalue": "dpcore_hessian_mixing.printed:LeastEigenvalue",
        "hessian_mixing.newton": "dpcore_hessian_mixing.newton:Newton",
    },
    # The printed one; sums of `newton` need none of their own.
    "bounds": {"hessian_mixing.printed": "dpcore_hessian_mixing.printed:PrintedEigenvalueBound"},
    # The iteration for numbers and classes; the printed step under `dpcore reproduce` only.
    "examples": {"hessian_mixing.*": "examples/*.yaml"},
    "theory": "dpcore_hessian_mixing.statements:STATEMENTS",
    # What the papers' code charges, next to what it costs.
    "experiments": {"hessian_mixing/*": "experiments/*.yaml"},
}
