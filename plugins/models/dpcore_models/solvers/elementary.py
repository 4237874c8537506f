r"""Functions by correctly rounded operations only, so that every entry has the same bits anywhere.

numpy's exp and tanh change their last bits with the processor and may with an entry's place in an
array. What a record contributes to an exact sum must not.
"""

import math

import numpy as np
from numpy.typing import NDArray

_TERMS = tuple(1.0 / math.factorial(k) for k in range(14))
_LN2 = (0.693147180369123816490, 1.90821492927058770002e-10)  # high part: 21 zero bits at the end


def falling_exp(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`e^{-t}` for t >= 0, to a few units in the last place; 0 from t = 740 on.

    t = k ln 2 - s with |s| <= ln(2)/2, and 14 terms of the series of e^s by Horner's scheme, whose
    rest is below 5e-18.
    """
    near = np.minimum(sizes, 740.0)
    doublings = np.rint(near * (1 / math.log(2)))
    # The high part of ln 2 ends in zero bits, so that this product and difference are exact.
    remainder = doublings * _LN2[0] - near
    remainder += doublings * _LN2[1]
    series = np.full(remainder.shape, _TERMS[-1])
    # Only * and + by entry from here on: the same bits on every processor.
    for term in _TERMS[-2::-1]:
        series *= remainder
        series += term
    with np.errstate(under="ignore"):
        values = np.ldexp(series, -doublings.astype(np.int64))
    return np.asarray(np.where(sizes < 740.0, values, 0.0))


def half_tanh(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\tanh(s/2)=(1-e^{-s})/(1+e^{-s})`, odd to the last bit."""
    decay = falling_exp(np.abs(scores))
    # Evaluated at |s|, so that the value at -s is exactly the negative.
    return np.asarray(np.copysign((1 - decay) / (1 + decay), scores))
