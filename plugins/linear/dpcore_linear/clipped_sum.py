r"""The sum of clipped gradients: what one record can move it by, at any weights.

Lemma: let record i contribute
:math:`\mathrm{clip}(\phi_i\cdot w-y_i,\ \pm C/\|\phi_i\|)\,\phi_i`, a vector of norm at most C.
Adding or removing a record moves the sum by at most C, and replacing one by at most 2C, whatever w.
If features are fixed and a label moves within an interval of length 2M, by at most
:math:`\min(2C,2M\kappa)`, as clipping is 1-Lipschitz. Nothing is assumed of w, of the step size or
of convexity. The same holds with any function of :math:`\phi_i\cdot w` in place of the score
itself, such as :math:`\tanh(\phi_i\cdot w/2)`, whose gradient is that of the logistic loss.

Sums are computed in integers, without any rounding (`dpcore_linear.integers`).
"""

import numpy as np
from numpy.typing import NDArray

from dpcore_models.solvers.sums import norm

LONGEST = 1000.0
"""Weights are projected on a ball of this radius: a thousand times what labels in [-1, 1] need."""


def shortened(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project public weights to the ball of radius `LONGEST`."""
    # Noise may carry the weights far off; this brings them back, and no claim rests on it.
    length = norm(weights)
    return weights if length <= LONGEST else weights * (LONGEST / length)
