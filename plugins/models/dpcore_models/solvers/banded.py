r"""Strategies of bands, and what everyone may compute from answers with bands.

A query with bands k releases :math:`y_t=\sum_{i<b}k_ix_{t-i}+Z_t` (`dpcore.query.SumQuery`). What
is wanted is rarely y: `Solved` gives :math:`\hat x=K^{-1}y=x+K^{-1}Z`, whose noise is correlated so
that running totals lose most of it. It is post-processing: floats cost accuracy here, no privacy.

Never the other way round: integer noise that was multiplied by :math:`K^{-1}` before it is added to
integers shows the parity of the first sum whatever its width, because :math:`K\hat x` is off the
lattice by an amount that depends on x.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need


@attrs.frozen(eq=False)
class Solved:
    """Estimates of single sums from answers with bands, one after the other.

    Args:
        bands: Of the query.
        recent: The last estimates, newest first; empty before the first answer.
    """

    bands: tuple[int, ...]
    recent: tuple[NDArray[Any], ...] = ()

    def after(self, value: NDArray[Any]) -> "Solved":
        """Append the estimate that the next answer gives, as `recent[0]`, of its shape."""
        earlier = zip(self.bands[1:], self.recent, strict=False)
        remainder = np.asarray(value) - sum(weight * estimate for weight, estimate in earlier)
        estimates = (remainder / self.bands[0], *self.recent)
        return attrs.evolve(self, recent=estimates[: max(1, len(self.bands) - 1)])


def solved(bands: Sequence[int], values: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Solve K x = y: estimate all sums from all answers, in order. Shape (asks, *shape)."""
    state, estimates = Solved(tuple(bands)), []
    for value in values:
        state = state.after(value)
        estimates.append(state.recent[0])
    return np.array(estimates, dtype=np.float64)


def square_root_bands(count: int, bits: int = 6) -> tuple[int, ...]:
    r"""Return bands of the square root of prefix sums: :math:`\binom{2i}i/4^i` in 2^-bits.

    Integers only decide, so that every machine has the same. Source: Fichtenberger, Henzinger &
    Upadhyay (2023), arXiv:2202.11205; with bands Kalinin & Lampert (2024), arXiv:2405.13763.

    Raises:
        ValueError: there are fewer than 1.
    """
    need(count >= 1, ValueError, f"a strategy has at least one band, not {count}")
    bands, top, bottom = [], 1, 1
    # c_i = c_{i-1} (2i - 1) / (2i), rounded to the nearest unit.
    for number in range(1, count + 1):
        bands.append(((top << bits + 1) + bottom) // (2 * bottom))
        top, bottom = top * (2 * number - 1), bottom * 2 * number
    return tuple(bands)
