r"""How far computed descent may lie from the exact one, in l2.

Exact steps do not stretch distances, so that errors of steps add up. With b rows solved for at a
time, d features, W and r = kappa W + c bounds on iterates and residuals, a computed residual errs
by

.. math:: \gamma_{2d+2b+32}\,(\kappa W+2r+\tfrac\eta{b_s}\kappa^2 b r)

(products, entries of the Gram matrix, backward error of substitution; clipping does not stretch
it), and each block's sum by :math:`\gamma_{d+b+16}(W+\eta n_s\kappa r)`, n_s its number of steps.
Twice the latter covers the mean and projection.

Source: Higham (2002), Theorem 8.5 for substitution; `dpcore_models.solvers.sums` for the
rest.
"""

import numpy as np

from dpcore import Refused
from dpcore.rounding import gamma
from dpcore_models.solvers.sums import plain
from dpcore_sgd.descent import StepDiameter

_ROOM = 0.01  # an error of more than this proportion of W is refused; what it does to W is in _MORE
_MORE = 1.05


def descent_error(diameter: StepDiameter, width: int, block: int) -> float | Refused:
    """Return the bound above, summed over all steps and blocks.

    Args:
        width: d. block: b, rows solved for at a time, at least a batch.
    """
    if not plain(diameter.rate, diameter.kappa, diameter.label_bound):
        return Refused("rate, feature norm or label range are too far from 1 for float arithmetic")
    longest = float(diameter.norms(np.array([diameter.steps + 1]))[0])
    # Computed iterates may be a little longer than exact ones; 5 % covers what `_ROOM` lets pass.
    norm = _MORE * longest
    residual = diameter.kappa * norm + diameter.label_bound
    per_row = diameter.rate / diameter.batch * diameter.kappa
    residual_error = (
        diameter.kappa * norm + 2 * residual + per_row * diameter.kappa * block * residual
    )
    rows = diameter.steps * diameter.batch
    steps = max(1, block // diameter.batch)
    blocks = -(-diameter.steps // steps)
    # Errors of residuals reach the weights through eta/b times a row; each row is used once.
    error = rows * per_row * gamma(2 * width + 2 * block + 32) * residual_error
    block_norm = norm + diameter.rate * steps * diameter.kappa * residual
    error += 2 * blocks * gamma(width + block + 16) * block_norm
    error *= _MORE
    # Negated, so that an error that is no number is refused as well.
    if not error <= _ROOM * longest:
        return Refused("so many steps leave no accuracy in float arithmetic: take fewer")
    return error
