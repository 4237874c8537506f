"""Private random feature models: after Liao, Needell, Schaeffer & Xue (2025).

Differentially private random feature model; the sound forms rest on T3-T6 of docs/theorems.md.
"""

from collections.abc import Mapping

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """Learners of the paper, in sound form."""
    return {"random_features.ridge": Ridge}


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return {"random_features.ridge_replace_one": RidgeReplaceOne}
