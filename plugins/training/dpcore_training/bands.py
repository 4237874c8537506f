r"""Which sums an answer weighs, and a certificate of the noise that running totals then carry.

Weights of a descent are running totals of gradients, :math:`Ax` with A lower triangular ones. With
bands k the totals of what answers are solved for (`dpcore_models.solvers.banded`) carry
:math:`AK^{-1}Z` (theorem T16). Bands here are the first coefficients of :math:`(1-x)^{-a}`, in
whole units: a = 1/2 is the square root of running totals, which is nearly best where all steps have
a band (Fichtenberger, Henzinger & Upadhyay 2023, arXiv:2202.11205). Of few bands and many steps a
larger power loses less noise: it is searched.

Integers only decide, so that a replay comes to the same bands on every machine. No claim rests on
which bands they are, nor on the certificate.
"""

import functools
import math
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.rounding import down, up

_BITS = 6  # the first band is 2^6: finer units gain less than a part in a thousand
_FINE = 40  # bits after the point of what is computed in whole numbers
_POWERS = 32  # a is a multiple of 1/32
_HORIZON = 1 << 11  # steps that the search looks at: beyond, the best power hardly moves


@attrs.frozen(kw_only=True)
class Certificate:
    """How much noise running totals carry, for noise of standard deviation 1 on every answer.

    Args:
        error: The root mean square over all totals of the noise's standard deviation; rounded up.
        least: Below it no lower triangular strategy comes whose columns are at most as long;
            rounded down.
        independent: The error of noise that is new at every step, at the same shift.
    """

    error: float
    least: float
    independent: float


@functools.lru_cache(maxsize=64)  # a pure function, asked for with every query
def best_bands(count: int, steps: int, bits: int = _BITS) -> tuple[int, ...]:
    """Return the bands, `count` of them, that leave the least noise on running totals, of all
    powers.

    Integers in units of 2^-bits, the first of them 2^bits.
    """
    candidates = [_power_bands(count, power, bits) for power in range(_POWERS // 4, _POWERS)]
    horizon = min(steps, max(count, _HORIZON))
    return min(candidates, key=lambda bands: _excess(bands, horizon))


def certificate(bands: Sequence[int], steps: int) -> Certificate:
    r"""Return what running totals of `steps` estimates carry, each record in one of the steps.

    With e = K^-1 1 the total after t steps has the variance :math:`\sum_{j\le t}e_j^2`. And for
    every strategy C whose columns are at most kappa long,
    :math:`\lVert A\rVert_*\le\lVert AC^{-1}\rVert_F\lVert C\rVert_F\le
    \lVert AC^{-1}\rVert_F\sqrt T\kappa`, with the singular values of A in closed form.
    """
    residues = _unit_response(bands, steps)
    # Floored entries miss K e = 1 by less than a unit each, so that e is wrong by K^-1 of that.
    unit = math.ldexp(1.0, -_FINE)
    turns = float(np.abs(np.diff(residues, prepend=0)).sum()) * unit
    miss = up(unit * turns / (1 - 2 * steps * unit), roundings=steps)
    squares = np.cumsum((residues * unit) ** 2)
    error = up(math.sqrt(float(squares.mean())), roundings=2 * steps)
    independent = math.sqrt((steps + 1) / 2)
    length = math.sqrt(sum(weight * weight for weight in bands))
    places = np.arange(1, 2 * steps, 2) * (math.pi / (4 * steps + 2))
    nuclear = float((0.5 / np.sin(places)).sum())
    return Certificate(
        error=up((error + miss * independent) / bands[0], roundings=4),
        least=down(nuclear / (steps * length), roundings=4 * steps + 100),
        independent=independent / length,
    )


def _power_bands(count: int, power: int, bits: int) -> tuple[int, ...]:
    """Return the coefficients of (1 - x)^-a, a = power / 32, each to the nearest unit."""
    bands, exact = [], 1 << (_FINE + bits)
    for number in range(1, count + 1):
        bands.append((exact + (1 << (_FINE - 1))) >> _FINE)
        exact = exact * (_POWERS * (number - 1) + power) // (_POWERS * number)
    return tuple(bands)


def _unit_response(bands: Sequence[int], steps: int) -> NDArray[np.int64]:
    """k_0 K^-1 1 in units of 2^-40, each entry floored: shape (steps,)."""
    later = np.array(bands[:0:-1], dtype=np.int64)
    response = np.zeros(len(later) + steps, dtype=np.int64)
    for step in range(len(later), len(response)):
        earlier = int(later @ response[step - len(later) : step])
        response[step] = (1 << _FINE) - -(-earlier // bands[0])
    return response[len(later) :]


def _excess(bands: Sequence[int], steps: int) -> int:
    """Return the squared error of running totals at the same guarantee, up to a common factor."""
    response: list[int] = _unit_response(bands, steps).tolist()
    total = sum((steps - step) * entry * entry for step, entry in enumerate(response))
    return total * sum(weight * weight for weight in bands) // (bands[0] * bands[0])
