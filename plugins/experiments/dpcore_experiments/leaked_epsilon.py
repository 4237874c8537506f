r"""The epsilon that a printed run loses at least: an audit of its own output by changed labels.

A fit is repeated with the same randomness and one label changed. The run releases c + z in the one
world and c' + z in the other, and the law of z is known, so the least epsilon at the claim's delta
is a closed form of :math:`c'-c` (Gaussian: that of :math:`\mu=\|c'-c\|/\sigma`). It is exact for
these two worlds, has no chance of error and is rounded down. The largest one is what the run loses
at
least, before an attacker who knows the randomness of the fit: its features and the order of its
    steps.
"""

import copy
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Refit = Callable[[Floats, np.random.Generator], Floats]
"""Coefficients from labels and randomness."""

_AUDIT = 0x617564  # parts the randomness of audits from those of the run


@runtime_checkable
class KnownLoss(Protocol):
    """A method of noise that says what two outputs lose that are so far apart."""

    def loss(self, fit: Any, moved: Floats, **given: Any) -> float:
        """Return the least epsilon of (c + z, c' + z), rounded down.

        Args:
            moved: c' - c, shape (N,).
            given: The arguments of a draw, without randomness and count.
        """


def audit_randomness(seed: int, place: int) -> np.random.Generator:
    """Of the labels that are changed at one value of the sweep."""
    return np.random.default_rng([seed, place, _AUDIT])


def movements(
    refit: Refit,
    y: Floats,
    before: Floats,
    randomness: np.random.Generator,
    chosen: NDArray[np.intp],
) -> list[Floats]:
    """Return how far the coefficients move when one label goes to the farther end of all labels.

    Args:
        refit: Fits as the run did.
        before: What the run fitted, shape (N,).
        randomness: In the state in which the run's fit took them.
        chosen: The records whose labels are changed, one after the other.
    """
    low, high = float(y.min()), float(y.max())
    moves = []
    # The farther end: the largest change that keeps labels in their observed range.
    for record in chosen:
        labels = y.copy()
        labels[record] = low if y[record] - low > high - y[record] else high
        # The same randomness for both worlds, so that only the label makes the difference.
        moves.append(refit(labels, copy.deepcopy(randomness)) - before)
    return moves
