r"""Private losses of models, for choices among them: a number in [0, 1] of each record only.

.. math:: \min\Big(1,\Big(\frac{\mathrm{clip}(f(x),\pm M)-y}{2Mc}\Big)^2\Big)
          \quad\text{or, of classes,}\quad 1[\text{wrong}]

Losses are rounded to multiples of 2^-30 and added as integers.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Records
from dpcore.checks import positive
from dpcore.errors import ParameterError
from dpcore.models import ScoringModel

LOSS_UNIT = -30
"""log2 of what losses are rounded to multiples of, so that their sums are exact."""


def require_clip(instance: Any, attribute: Any, value: float) -> None:
    """Validate a number in (0, 1]."""
    positive(instance, attribute, value)
    if value > 1:
        raise ParameterError("best_of", "a clip in (0, 1]", attribute.name, value)


def total_loss(model: ScoringModel, records: Records, domain: Domain, clip: float) -> int:
    """PRIVATE: sum a model's losses exactly, in units of 2^-30, each from its own record.

    A score that is no finite number, or that fails, is the largest loss.

    Args:
        clip: c: an error of that part of the label's range, or more, is a loss of 1.
    """
    row = np.empty((1, records.features.shape[1]))
    scores = np.empty(len(records))
    # Each row is scored by itself, so that a record's loss does not depend on its block.
    for number, features in enumerate(records.features):
        row[0] = features
        try:
            scores[number] = float(model.score(row)[0])
        except Exception:  # whatever a third party's model raises on some row
            scores[number] = math.nan
    # A failed score is NaN here and becomes the largest loss: no record can stop the run.
    losses = _losses(scores, records.labels, domain, clip)
    return int(np.rint(np.ldexp(losses, -LOSS_UNIT)).astype(np.int64).sum())


def _losses(
    scores: NDArray[np.float64], labels: NDArray[np.float64], domain: Domain, clip: float
) -> NDArray[np.float64]:
    is_number = np.isfinite(scores)
    # Of more classes than two a label is a code, and a score the code of the predicted class.
    if domain.classes > 2:
        return np.where((scores == labels) & is_number, 0.0, 1.0)
    if domain.classes:
        return np.where(((scores >= 0) == (labels >= 0)) & is_number, 0.0, 1.0)
    # A clipped error over 2Mc, cut off at 1 and squared.
    bound = domain.label_bound
    with np.errstate(invalid="ignore"):
        errors = np.abs(np.clip(scores, -bound, bound) - labels) / (2 * bound * clip)
    return np.where(is_number, np.minimum(1.0, errors) ** 2, 1.0)
