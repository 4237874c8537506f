r"""Clipping a gradient of several classes breaks contraction: an example, from public facts.

The gradient of one record of several classes is :math:`g\otimes x` with :math:`g=p-e_y`, p the
softmax of the scores. Clipped to a norm C it is :math:`C\,\frac g{|g|}\otimes\frac x{|x|}` wherever
:math:`|g||x|>C`, whose derivative along :math:`v\otimes x/|x|` is

.. math:: C|x|\,\frac1{|g|}\Big(I-\frac{gg^\top}{|g|^2}\Big)\big(\mathrm{diag}(p)-pp^\top\big)v,

which is not symmetric, and its symmetric part has a negative eigenvalue: the clipped gradient is
not that of a convex loss. A step on a batch of equal rows then moves two states *apart*, where the
theorem is given a factor below 1. In two classes, as for every score that is a single number, the
clipped gradient is that of a convex loss with a derivative cut at :math:`\pm C/|x|`, and nothing
breaks.
"""

import numpy as np

# The true class, the likeliest one, and the chance that the rest share.
_TRUE, _LIKELIEST = 0.03, 0.65


def softmax_contraction(
    rate: float, regularization: float, length: float, classes: int = 10
) -> float:
    """max(|1 - eta lam|, |1 - eta M|), M = |x|^2/2 + lam: what the theorem is given for softmax."""
    smoothness = length**2 / 2 + regularization
    return max(abs(1 - rate * regularization), abs(1 - rate * smoothness))


def softmax_expansion(
    rate: float, clip: float, regularization: float, length: float, classes: int = 10
) -> float:
    """By how much one clipped step stretches a distance at the example, on a batch of equal rows.

    A lower bound on the Lipschitz constant of the step.

    Args:
        rate: eta, the step. clip: C, of each record's gradient. length: |x| of the row.
        regularization: lam, outside the clip.
        classes: At least 3; their chances are .03 for the true one, .65 for another, and the rest.
    """
    chances = np.full(int(classes), (1 - _TRUE - _LIKELIEST) / (classes - 2))
    chances[:2] = _TRUE, _LIKELIEST
    gradient = chances.copy()
    gradient[0] -= 1
    norm = float(np.linalg.norm(gradient))
    # How the gradient in the scores changes with the scores; the row's length enters twice.
    slope = length**2 * (np.diag(chances) - np.outer(chances, chances))
    if norm * length > clip:
        unit = gradient / norm
        slope = clip / (norm * length) * (slope - np.outer(unit, unit @ slope))
    shrunk = (1 - rate * regularization) * np.eye(int(classes))
    return float(np.linalg.norm(shrunk - rate * slope, 2))
