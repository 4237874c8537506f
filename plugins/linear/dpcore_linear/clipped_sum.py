r"""The sum of clipped gradients: what one record can move it by, at any weights.

Lemma: let record i contribute
:math:`\mathrm{clip}(\phi_i\cdot w-y_i,\ \pm C/\|\phi_i\|)\,\phi_i`, a vector of norm at most C.
Adding or removing a record moves the sum by at most C, and replacing one by at most 2C, whatever w.
If features are fixed and a label moves within an interval of length 2M, by at most
:math:`\min(2C,2M\kappa)`, as clipping is 1-Lipschitz. Nothing is assumed of w, of the step size or
of convexity. The same holds with any function of :math:`\phi_i\cdot w` in place of the score
itself, such as :math:`\tanh(\phi_i\cdot w/2)`, whose gradient is that of the logistic loss.
`linear.clipped_gradient` computes it in integers; the rest of this module is about floats.

Floating point. Rows and labels are taken as the floats they are; what follows errs as below,
by Higham's bounds (`dpcore.learning.solvers.sums`), for any order of summation. The learner's
`w` is at most `LONGEST` long, which projection enforces on the public side.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.learning.solvers.sums import depth, norm, pull
from dpcore.rounding import gamma, up

LONGEST = 1000.0
"""Weights are projected on a ball of this radius: a thousand times what labels in [-1, 1] need."""


class Prepared(NamedTuple):
    """PRIVATE: feature rows, labels, and how far each residual may be from 0."""

    features: NDArray[np.float64]
    labels: NDArray[np.float64]
    limits: NDArray[np.float64]


def prepare(features: NDArray[np.float64], labels: NDArray[np.float64], clip: float) -> Prepared:
    """PRIVATE: what stays the same from one gradient to the next.

    Args:
        features: Shape (n, d). labels: Shape (n,). clip: C.
    """
    lengths = np.linalg.norm(features, axis=1)
    limits = np.full(lengths.shape, np.inf)
    with np.errstate(over="ignore"):  # no limit at all
        np.divide(clip, lengths, out=limits, where=lengths > 0)
    return Prepared(features, labels, limits)


def clipped_sum(prepared: Prepared, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: the sum over records, shape (d,)."""
    residuals = prepared.features @ weights - prepared.labels
    np.clip(residuals, -prepared.limits, prepared.limits, out=residuals)
    return pull(prepared.features, residuals)


def clipped_sum_error(
    records: int, width: int, clip: float, *, kappa: float = 1.0, label_bound: float = 1.0
) -> float:
    r"""How far a computed sum may be from the lemma's, in l2.

    A residual errs by gamma_{d+1} (kappa |w| + M), clipping does not stretch that, and a limit errs
    by gamma_{d+2} of itself; the row's rescaling to norm 1 errs by gamma_{d+4} of the row, which
    counts once more in the residual. The sum adds gamma_depth n C.
    """
    one = 4 * gamma(width + 10) * (kappa * (kappa * LONGEST + label_bound) + clip)
    return up(records * (one + gamma(depth(records) + 4) * clip), roundings=5000)


def row_sum(rows: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """PRIVATE: the sum of the rows, each scaled down to at most `limit` in l2; shape (k,)."""
    lengths = np.linalg.norm(rows, axis=1)
    scale = np.ones(lengths.shape)
    np.divide(limit, lengths, out=scale, where=lengths > limit)
    return pull(rows, scale)


def row_sum_error(records: int, width: int, limit: float) -> float:
    """How far a computed sum of rows may be from the exact one, in l2."""
    return up(records * (gamma(width + 6) + gamma(depth(records) + 4)) * limit, roundings=5000)


def shortened(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Public: the weights, on the ball of radius `LONGEST`."""
    length = norm(weights)
    return weights if length <= LONGEST else weights * (LONGEST / length)
