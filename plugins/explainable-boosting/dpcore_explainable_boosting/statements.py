"""What the public code of DP-EBM charges for an update, and what an update costs."""

import math

from dpcore.claims.events.gaussian import gaussian_epsilon, gaussian_mu
from dpcore.learners.statement import Statement

_CODE = "Nori et al. (2021), read in the public code of interpret-core 0.7.8"
_BINS = 0.1  # of epsilon, and half of delta: for the bins


def _training_mu(epsilon: float, delta: float) -> float:
    return gaussian_mu((1 - _BINS) * epsilon, delta / 2)


def charged_movement(low: float, high: float, epsilon: float, delta: float) -> dict[str, float]:
    """Return what one update is charged to move by, and the epsilon of all updates."""
    charged = gaussian_epsilon(delta / 2, _training_mu(epsilon, delta))
    return {"movement": high - low, "epsilon of one update": charged}


def first_movement(low: float, high: float, epsilon: float, delta: float) -> dict[str, float]:
    """Return what the first update moves by, and its epsilon where it is the only one.

    Args:
        low, high: Declared ends of the target, from 0 on which residuals are counted.
    """
    movement = max(abs(low), abs(high))
    mu = _training_mu(epsilon, delta) * movement / (high - low)
    return {"movement": movement, "epsilon of one update": gaussian_epsilon(delta / 2, mu)}


def printed_noise(epsilon: float, delta: float, updates: int) -> float:
    """Of an update over R: a tenth of epsilon and half of delta are added for the bins."""
    return math.sqrt(updates) / _training_mu(epsilon, delta)


def composed_noise(epsilon: float, delta: float, updates: int) -> float:
    """Return the same at the same noise on bins, where both compose to one Gaussian."""
    bins = gaussian_mu(_BINS * epsilon, delta / 2)
    return math.sqrt(updates / (gaussian_mu(epsilon, delta) ** 2 - bins**2))


STATEMENTS = {
    "explainable_boosting/first_update": Statement(
        title="What the first update moves by, for a target in a declared range",
        source=_CODE,
        printed=charged_movement,
        corrected=first_movement,
        labels=("as charged", "in truth"),
        wrong="noise is for the width of the range, and the first sums are of targets themselves",
    ),
    "explainable_boosting/noise": Statement(
        title="The noise of an update over R, at a budget for bins and updates together",
        source=_CODE,
        printed=printed_noise,
        corrected=composed_noise,
        labels=("two budgets added", "one Gaussian"),
        wrong="true, and larger than needed, as two epsilons and two deltas are added",
        symbols={"E K": "updates"},
    ),
}
