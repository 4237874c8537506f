"""Explainable boosting: additive shape functions by noisy sums of residuals.

After Nori, Caruana, Bu, Shen & Kulkarni (2021), Accuracy, interpretability, and differential
privacy via explainable boosting, ICML, arXiv:2106.09680: their public code, its errata, and a sound
form.
"""

provides = {
    # The sound form, and the printed one.
    "learners": {
        "explainable_boosting.cyclic": "dpcore_explainable_boosting.boosting:Cyclic",
        "explainable_boosting.printed": "dpcore_explainable_boosting.printed:Printed",
    },
    # The printed one; sums of `cyclic` need none of their own.
    "bounds": {"explainable_boosting.printed": "dpcore_explainable_boosting.printed:PrintedBound"},
    # Numbers and classes; the printed form under `dpcore reproduce` only.
    "examples": {"explainable_boosting.*": "examples/*.yaml"},
    # What the public code charges, and what it costs.
    "theory": "dpcore_explainable_boosting.statements:STATEMENTS",
    # What the public code charges, next to what it costs.
    "experiments": {"explainable_boosting/*": "experiments/*.yaml"},
}
