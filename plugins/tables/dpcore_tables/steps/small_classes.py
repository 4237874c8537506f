r"""Rules for classes of small tables: where they differ from those of numbers, in `small`.

Small is a :math:`N\mu` below 3300 (2N under add/remove). There a noisy Gram matrix slows a descent
of classes down: it is damped by its noise, and steps by it end far from where they lead. Plain
steps need none, and its fraction of the budget goes to the gradients. Residuals of classes have a
clip of their own, and a loss whose curvature is at most 1/4, or of several classes 1/2. The
constants were chosen on tables that `docs/records/tables-measured.md` names.
"""

import math

from dpcore_tables.small import Schedule

SIGNAL = 3300.0
WIDEST = 200
"""Functions of the second round at most."""

HIGHEST, FEW = 4, 60
"""Cosine of a number in a product, and of how many columns at most: of more it is the first."""

BELOW = 0.15
"""By how much a clipped residual usually grows with its score: a public number."""

CURVATURES = {"two": 0.25, "several": 0.5}
"""Of the loss at most, by the kind of the target."""

_TIME, _CUTOFF = 1.75, 1.5
_STEPS, _FEWEST, _WORK = 500, 40, 250_000_000
_LEAST_TIME = 20.0
_STEPS_IN_RANGE = 3.0
_LARGEST_LABEL, _TWO_FRACTIONS, _FRACTIONS = 0.2, 1500.0, 100.0


def label_fraction(signal: float, outputs: int) -> float:
    """Of the budget, for the proportions of classes: of few records more, as a model that finds
    nothing says their shares. A share s costs about K^2/(s (n mu)^2 log K) of the log loss of K
    classes, and more of two of which one is rare.

    Args:
        signal: N mu. outputs: 1 of two classes, else K.
    """
    noise = _TWO_FRACTIONS if outputs == 1 else _FRACTIONS * outputs**2 / math.log(outputs)
    return min(noise / signal**2, _LARGEST_LABEL)


def schedule(
    signal: float, proportion: float, width: int, curvature: float, records: int
) -> Schedule:
    """Of a round: more signal, more and longer steps; more functions, fewer.

    Args:
        signal: N mu. share: Of the round. width: d. curvature: Of the loss at most.
        records: N: large and wide tables take fewer steps.
    """
    # An empirical law of the time eta T, as that of numbers.
    time = _TIME * math.sqrt(signal / 400) * signal * math.sqrt(proportion) * (15 / width) ** 0.25
    # Rows are at most 1 long: steps contract up to twice the inverse of the curvature.
    fastest = _CUTOFF / curvature
    time = min(max(time, _LEAST_TIME), fastest * _STEPS)
    most = min(max(_WORK // (records * width), _FEWEST), _STEPS)
    steps = min(max(math.ceil(_STEPS_IN_RANGE * time / fastest), _FEWEST), most)
    return Schedule(steps, min(time / steps, fastest))
