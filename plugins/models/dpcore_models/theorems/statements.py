"""The core's own theorems as statements."""

from dpcore.learners.statement import Statement
from dpcore_models.theorems.ridge import ridge_add_remove, ridge_norm, ridge_replace_one
from dpcore_models.theorems.supremum import ridge_add_remove_exact

_SYMBOLS = {"M": "label_bound", "lam": "regularization", "m": "records"}

STATEMENTS = {
    "dpcore/t3": Statement(
        title="How long ridge coefficients are",
        source="T3 in docs/theorems-ridge.md",
        corrected=ridge_norm,
        symbols={"M": "label_bound", "lam": "regularization"},
    ),
    "dpcore/t4": Statement(
        title="How far replacing one record moves ridge coefficients",
        source="T4 in docs/theorems-ridge.md",
        corrected=ridge_replace_one,
        symbols=_SYMBOLS,
    ),
    "dpcore/t5": Statement(
        title="How far one more record moves sum-form ridge",
        source="T5 in docs/theorems-ridge.md",
        printed=ridge_add_remove,
        corrected=ridge_add_remove_exact,
        labels=("closed form", "supremum"),
        wrong="the closed form is certified and somewhat above the supremum, which is attained",
        symbols={"M": "label_bound", "Lam": "total_regularization", "n": "records"},
    ),
}
