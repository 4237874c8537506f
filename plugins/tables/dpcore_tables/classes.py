r"""Classes: where residuals are clipped, what that does to probabilities, and how a loss is curved.

Residuals r = p - e of probabilities p are clipped to C in length. A step's gradient gains, of every
record and per unit of score, :math:`s\,(I-[s<1]\,rr^T/|r|^2)(\mathrm{diag}(p)-pp^T)` with
:math:`s=\min(1,C/|r|)`: far less than the 1/4 or 1/2 by which a descent is sure to contract.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.synthetic_records import simulated_rows

CLIP = 0.5
BELOW = 0.7
RAREST = 0.02
"""Proportions of classes are taken to be at least this, so that their logarithms are no noise."""

SCREENED = 1.1
"""By what the noise of the first round widens standard errors of several classes: measured."""

_ROUNDS = 20
_TINY = 1e-9
_FLATTEST = 0.02
_LIMIT = 500.0


def unclipped(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability p at which clipped residuals balance: p min(1-q, C) = (1-p) min(q,
    C).
    """
    up, down = np.minimum(found, CLIP), np.minimum(1 - found, CLIP)
    return np.asarray(up / (up + down))


def unclipped_several(found: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Probabilities at which clipped residuals of several classes balance, shapes (n, m).

    A record of class j adds (q - e_j) min(1, C/|q - e_j|), so the mean is 0 where p_j is in
    proportion to q_j max(|q - e_j|, C). Order stays: with s = q_1 + q_2, r = 1 - s and
    :math:`q_1>q_2`, the squares of q_1 |q - e_1| and q_2 |q - e_2| differ by at least
    :math:`(q_1-q_2)\,r\,(s-q_1^2-q_2^2)\geq 0`, and |q - e_1| is the shorter one.
    """
    squares = np.sum(found**2, axis=1, keepdims=True) - 2 * found + 1
    amounts = found * np.maximum(np.sqrt(np.maximum(squares, 0.0)), CLIP)
    return np.asarray(amounts / amounts.sum(axis=1, keepdims=True))


def probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of all classes, corrected for clipping; shape (n, m) to (n, classes)."""
    if scores.shape[1] > 1:
        return unclipped_several(softmax(scores))
    second = unclipped(0.5 + 0.5 * np.tanh(scores[:, 0] / 2))
    return np.stack([1 - second, second], axis=1)


def curvature(
    dictionary: Dictionary,
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
    records: float,
    levels: Sequence[NDArray[np.float64]] = (),
) -> NDArray[np.float64]:
    """Return what a gradient gains per weight, over `BELOW`; shape (d, d). A function of answers
    only.

    Of synthetic records, with scores shifted so that their classes have the released shares. Of
    several classes the mean of all directions but the one in which all scores move alike.

    Args:
        weights: Shape (d, m). offset: Shape (m,). shares: Of the classes, or of two the second's.
        levels: Proportions of the categories of synthetic records, equally frequent ones if empty.
    """
    rows = simulated_rows(dictionary, levels)
    shifted = _shifted_scores(rows, weights, offset, proportions)
    # The sum of gain phi phi' over the simulated records, scaled to n.
    gains = _of_two(shifted) if weights.shape[1] == 1 else _of_several(shifted)
    return np.asarray((rows * (gains / BELOW)) @ rows.T * (records / rows.shape[1]))


def gain(
    dictionary: Dictionary,
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
    levels: Sequence[NDArray[np.float64]] = (),
) -> float:
    """By how much a record's clipped residual grows with its score, on average; arguments of
    `curvature`."""
    shifted = _shifted_scores(simulated_rows(dictionary, levels), weights, offset, proportions)
    gains = _of_two(shifted) if weights.shape[1] == 1 else _of_several(shifted)
    return max(float(np.mean(gains)), _FLATTEST)


def step_curvature(
    dictionary: Dictionary,
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
) -> float:
    r"""Return what a Gram matrix is multiplied with for a step from here: the mean gain over
    `BELOW`, and at least half of that of any function; arguments of `curvature`.

    A descent by H contracts where H > L/2, with L what gradients gain. So records that are hard to
    say, in a table where most are easy, do not make it overshoot: of a function f and the scores'
    direction of most gain, L over the Gram matrix is the largest eigenvalue of
    :math:`\sum_i\phi_{if}^2J_i/\sum_i\phi_{if}^2`, with J of each synthetic record.
    """
    rows, count = simulated_rows(dictionary), weights.shape[1]
    shifted = _shifted_scores(rows, weights, offset, proportions)
    squares = rows**2 / np.maximum(np.sum(rows**2, axis=1, keepdims=True), _TINY)
    if count == 1:
        gains = _of_two(shifted)
        mean, largest = np.mean(gains), np.max(squares @ gains)
    else:
        changes = jacobians(softmax(shifted))
        # Of every function a matrix of scores by scores, whose symmetric part bounds its gain.
        by_function = (squares @ changes.reshape(rows.shape[1], -1)).reshape(-1, count, count)
        symmetric = (by_function + by_function.swapaxes(1, 2)) / 2
        mean = np.mean(np.trace(changes, axis1=1, axis2=2)) / (count - 1)
        largest = np.max(np.linalg.eigvalsh(symmetric)[:, -1])
    return max(float(mean), float(largest) / 2, _FLATTEST) / BELOW


def scatter(
    dictionary: Dictionary,
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
    levels: Sequence[NDArray[np.float64]] = (),
) -> float:
    """Root mean square of one output's clipped residuals over `BELOW`; arguments of `curvature`."""
    rows = simulated_rows(dictionary, levels)
    probabilities = softmax(_shifted_scores(rows, weights, offset, proportions))
    two_classes, square = weights.shape[1] == 1, 0.0
    likely = _likely(probabilities, two_classes)
    for label, proportion in enumerate(likely.T):
        residual = probabilities.copy()
        residual[:, label] -= 1
        # Two classes have one residual, here twice; of several the whole vector is clipped.
        squares = np.sum(residual**2, axis=1) / (2 if two_classes else 1)
        square += float(np.mean(proportion * np.minimum(squares, CLIP**2)))
    # Residuals of several classes add up to 0, which leaves one direction less.
    return math.sqrt(square / max(weights.shape[1] - 1, 1)) / BELOW


def _shifted_scores(
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Of synthetic records, so shifted that their classes have the released shares."""
    scores = rows.T @ weights + offset
    proportions = np.clip(proportions, RAREST, 1 - RAREST)
    two_classes = weights.shape[1] == 1
    # Two classes are a softmax over (0, score).
    if scores.shape[1] == 1:  # the first class's score is 0, and two residuals are one of it
        scores = np.concatenate([np.zeros(scores.shape), scores], axis=1)
        proportions = np.array([1 - proportions[0], proportions[0]])
    shifted = np.clip(scores, -_LIMIT, _LIMIT)
    # Shift the scores until the simulated records have the released proportions of classes.
    for _ in range(_ROUNDS):
        means = np.maximum(_likely(softmax(shifted), two_classes).mean(axis=0), _TINY)
        step = np.log(proportions / means)
        shifted = np.clip(shifted + step, -_LIMIT, _LIMIT)
    return shifted


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of classes from their scores; both of shape (n, classes)."""
    # Less the largest score: no exponential overflows.
    falling = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(falling / falling.sum(axis=1, keepdims=True))


def _likely(probabilities: NDArray[np.float64], two_classes: bool) -> NDArray[np.float64]:
    """Of two classes the correction for clipping is known."""
    if not two_classes:
        return probabilities
    second = unclipped(probabilities[:, 1])
    return np.stack([1 - second, second], axis=1)


def _of_two(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of q(1-q), which a clipped residual does not gain, by the class's probability."""
    probability = softmax(scores)[:, 1]
    second = unclipped(probability)
    # A record of class 1 has residual p - 1, one of class 0 has p; clipped ones gain nothing.
    unclipped_fraction = np.where(1 - probability < CLIP, second, 0.0) + np.where(
        probability < CLIP, 1 - second, 0.0
    )
    return np.asarray(probability * (1 - probability) * unclipped_fraction)


def jacobians(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return how clipped residuals of several classes change with the scores, averaged over the
    record's class; shape (n, m, m).

    .. math:: \Bigl(aI-\sum_jb_j(p-e_j)(p-e_j)^T\Bigr)(\mathrm{diag}(p)-pp^T),\quad
              a=\sum_jp_js_j,\quad b_j=[s_j<1]\,p_js_j/|p-e_j|^2
    """
    squares = np.sum(probabilities**2, axis=1, keepdims=True) - 2 * probabilities + 1
    lengths = np.sqrt(np.maximum(squares, _TINY))
    amounts = probabilities * np.minimum(1.0, CLIP / lengths)
    lost = np.where(lengths > CLIP, amounts / lengths**2, 0.0)
    row, column = probabilities[:, None, :], probabilities[:, :, None]
    identity = np.eye(probabilities.shape[1])
    kept = np.sum(amounts, axis=1)[:, None, None] * identity - lost[:, :, None] * identity
    kept += column * lost[:, None, :] + lost[:, :, None] * row
    kept -= np.sum(lost, axis=1)[:, None, None] * column * row
    return np.asarray(kept @ (column * identity - column * row))


def _of_several(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the trace over m - 1, averaged over the record's class."""
    probabilities = softmax(scores)
    trace, gains = np.sum(probabilities * (1 - probabilities), axis=1), np.zeros(len(probabilities))
    for label, proportion in enumerate(probabilities.T):
        residual = probabilities.copy()
        residual[:, label] -= 1
        square = np.maximum(np.sum(residual**2, axis=1), _TINY)
        # The part along the residual is lost where it is clipped: only its direction still moves.
        along = (
            np.sum(residual**2 * probabilities, axis=1)
            - np.sum(residual * probabilities, axis=1) ** 2
        )
        clipped = square > CLIP**2
        gain = np.where(clipped, (trace - along / square) * CLIP / np.sqrt(square), trace)
        gains += proportion * gain
    return np.asarray(gains / (probabilities.shape[1] - 1))
