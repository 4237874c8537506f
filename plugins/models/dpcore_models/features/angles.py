r"""Angles that a matrix product computes without any rounding, whatever its order.

An encoded row x in [-1, 1]^p becomes integers :math:`X=\mathrm{rint}(2^P x)`, P = `ROW_BITS`, and a
wave's frequency w (in turns) integers :math:`V=\mathrm{rint}(2^Q (w 2^{-P} \bmod 1))`: as X is an
integer, whole turns of :math:`w 2^{-P}` change no wave. With a phase b and
:math:`B=\mathrm{rint}(2^Q (b \bmod 1))`, the angle is

.. math:: t = 2^{-Q}\Big(B+\sum_j X_j V_j\Big)\ \text{turns}.

Budget. Q is the largest integer with :math:`2^P\sum_j|V_j|+|B|\le 2^{53}` for every wave. Every
product and every partial sum, in any order and with or without fused multiply-add, is then an
integer of at most 2^53 times the unit 2^-Q, so a double: nothing is rounded. Q depends on public
frequencies only, and the budget is asserted on them. Entries beyond [-1, 1], which no encoded row
has, are clipped; NaN stays NaN.

This is the map's definition, not an approximation that a bound has to allow for. How far it is from
the wave at w and x: each x_j moves by at most 2^-(P+1), each w_j by 2^(P-Q-1), that is by a 2^-26th
of :math:`\sum_j|w_j|`.
"""

import math

import numpy as np
from numpy.typing import NDArray

ROW_BITS = 26
"""P: an entry of a row keeps 26 bits after the point."""

EXACT = 2.0**53
"""Integers up to here, and their sums up to here, are doubles."""


def integer_turns(
    frequencies: NDArray[np.float64], phases: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return V/B in whole multiples of 2^-Q; shape (p + 1, N).

    Args:
        frequencies: In turns, finite, shape (p, N). phases: In turns, shape (N,).
    """
    parts = np.vstack([frequencies * 2.0**-ROW_BITS, phases])  # scaling is exact
    parts -= np.rint(parts)  # and so is this
    weights = np.full((parts.shape[0], 1), 2.0**ROW_BITS)
    weights[-1] = 1.0
    unit = _unit(parts, weights)
    integers = np.rint(parts / unit)
    cutoff = (np.abs(integers) * weights).sum(axis=0)
    # The assertion is about public frequencies: it cannot depend on a record.
    assert integers.size == 0 or cutoff.max() <= EXACT * (1 - 2.0**-40), "the budget above"
    return np.asarray(integers * unit)


def _unit(parts: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return 2^-Q, with room for the rounding of each part to a whole number of it."""
    largest = float((np.abs(parts) * weights).sum(axis=0).max(initial=0.0))
    # each part may grow by half a unit: sum(weights)/2 units, less than 2^52 for p < 2^26
    room = (EXACT - 0.5 * float(weights.sum())) * (1 - 2.0**-30)
    # The logarithm below must not meet 0, as where all frequencies are 0.
    return 2.0**-1000 if largest < 2.0**-900 else 2.0 ** math.ceil(math.log2(largest / room))


def integer_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X of encoded rows next to a column of ones, shape (n, p + 1), in doubles."""
    integers = np.empty((rows.shape[0], rows.shape[1] + 1))
    np.multiply(rows, 2.0**ROW_BITS, out=integers[:, :-1])
    np.rint(integers[:, :-1], out=integers[:, :-1])
    # No encoded row reaches beyond [-1, 1]; a longer one would break the budget above.
    np.clip(integers[:, :-1], -(2.0**ROW_BITS), 2.0**ROW_BITS, out=integers[:, :-1])
    integers[:, -1] = 1.0
    return integers
