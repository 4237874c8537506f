r"""Inputs of the kernel: encoded rows, behind a constant where it is to see means and slopes.

The kernel is even, K(-x, z) = K(x, z): of centred columns it sees products and squares only. With
:math:`x\mapsto(w_0B,\ \sqrt{1-w_0^2}\,x)`, which is no longer than B, it sees 1, x and their
products, and is the kernel of neurons with a bias.
"""

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.checks import component_name, non_negative
from dpcore.errors import ParameterError
from dpcore.rounding import down

_SHRINK = down(1.0, roundings=500)  # keeps a row inside the norm in spite of rounding


def below_one(instance: Any, attribute: Any, value: Any) -> None:
    """Validator: a number in [0, 1)."""
    non_negative(instance, attribute, value)
    if value >= 1:
        raise ParameterError(
            component_name(instance), f"{attribute.name} in [0, 1)", attribute.name, value
        )


@attrs.frozen(kw_only=True)
class Inputs:
    """What the kernel is a function of.

    Args:
        intercept: w0 in [0, 1): the constant's proportion of the norm; 0 for none.
    """

    domain: Domain
    intercept: float = 0.0

    @property
    def width(self) -> int:
        """How many coordinates an input has: the columns, and the constant if there is one."""
        return self.domain.width + (self.intercept > 0)

    @property
    def norm(self) -> float:
        """B: the domain's feature norm, which no input exceeds."""
        return self.domain.feature_norm

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inputs of encoded rows, shape (n, p) to (n, width)."""
        if self.intercept == 0:
            return encoded
        # w0^2 B^2 + (1 - w0^2) |x|^2 <= B^2, as |x| <= B.
        constant = np.full((len(encoded), 1), self.intercept * self.norm)
        slopes = math.sqrt(1 - self.intercept**2) * encoded
        return _SHRINK * np.hstack([constant, slopes])
