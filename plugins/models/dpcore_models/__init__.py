"""What several plugins share and the core never imports: solvers, theorems, frames of learners.

Next to them the choice among learners and the random features, which specs name without a dot: they
were the core's before.
"""

provides = {
    "learners": {"best_of": "dpcore_models.learners.best_of:BestOf"},
    "bounds": {"best_of": "dpcore_models.bounds.best_of:BestOfBound"},
    "features": {
        "cos_sin": "dpcore_models.features.cos_sin:CosSin",
        "cosines": "dpcore_models.features.cosines:Cosines",
    },
    # The theorems of docs/theorems-ridge.md, as statements to evaluate.
    "theory": "dpcore_models.theorems.statements:STATEMENTS",
}
