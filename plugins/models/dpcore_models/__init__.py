"""What several plugins share and the core never imports: solvers, theorems, frames of learners.

Beside them the choice among learners and the random features, which specs name without a dot: they
were the core's before.
"""

from collections.abc import Mapping

from dpcore import AnyLearner, FeatureMap, SensitivityBound, hookimpl
from dpcore.learning.statement import Statement
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_learners() -> Mapping[str, type[AnyLearner]]:
    """Learners made of other learners."""
    return LazyMapping({"best_of": ("dpcore_models.learners.best_of", "BestOf")})


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """The bounds of learners made of others."""
    return LazyMapping({"best_of": ("dpcore_models.bounds.best_of", "BestOfBound")})


@hookimpl
def dpcore_features() -> Mapping[str, type[FeatureMap]]:
    """Random features, each with its lengths."""
    return LazyMapping(
        {
            "cos_sin": ("dpcore_models.features.cos_sin", "CosSin"),
            "cosines": ("dpcore_models.features.cosines", "Cosines"),
        }
    )


@hookimpl
def dpcore_theory() -> Mapping[str, Statement]:
    """The theorems of docs/theorems.md, as statements to evaluate."""
    from dpcore_models.theorems.statements import STATEMENTS

    return STATEMENTS
