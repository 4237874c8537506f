r"""A last look at a fit of classes: how its scores are mixed, along a few directions of them.

A descent gives all scores one metric, so that what one score says of several classes arrives late:
of classes that are cut from one score, the slopes of the outer and the constants of the inner ones
grow together. Along the scores themselves that is cheap to mend. With u the principal directions of
the scores s of synthetic records, and l their variances, a record has
:math:`\xi=[1,\,u^T(s-\bar s)/\sqrt l]` and :math:`\chi=[0.5,\,\sqrt{0.75/k}\,\xi_{1..k}]`,
shortened to length at most 1. Released is :math:`\sum\mathrm{clip}(p-e)\,\chi`, of probabilities p
that are corrected for clipping, and clipped to 1 in length: a gradient as of every round, with its
bound, whatever s, u and l are. As :math:`p-e` is hardly clipped, this is the slope of the log loss.
Scores become :math:`s+A^T\xi`, with A the posterior mean given

.. math:: g=-MA+N(0,\,s^2I+\Sigma),\qquad M=n\,\mathrm E[\chi\xi^T\otimes\partial p/\partial s]

over synthetic records, and a prior of relative size. How wide it is the answer says, too: means of
several widths are averaged by how likely each makes it, so that what is chance moves little.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_models.solvers.elementary import half_tanh
from dpcore_tables.classes import CLIP, probabilities
from dpcore_tables.dictionary import INTERCEPT
from dpcore_tables.sums import Rows, integer_rows, scores, softmax_residual

FRACTION = 0.03
MOST = 8
"""Directions of scores at most."""

WIDEST = 1.0
"""The clip: of two classes nothing is clipped."""

_SHIFT = 2.0  # deviation of constants, where that of scores over their size is 1
_DEVIATIONS = (0.03, 0.1, 0.3, 1.0)  # of which the answer says how likely each is
_TINY, _STEP = 1e-9, 1e-4


def shortened(xi: NDArray[np.float64]) -> NDArray[np.float64]:
    """chi of xi less its 1, at most 1 long and row-wise in the records; (k, n) to (1 + k, n)."""
    chi = np.empty((1 + len(xi), xi.shape[1]))
    chi[0] = INTERCEPT
    squares, size = np.full(xi.shape[1], INTERCEPT**2), math.sqrt((1 - INTERCEPT**2) / len(xi))
    for row, values in zip(chi[1:], xi, strict=True):
        np.multiply(values, size, out=row)
        squares += row * row
    longest = np.maximum(np.sqrt(squares), 1.0)
    for row in chi:
        row /= longest
    return chi


def direction_rows(
    rows: Rows, directions: NDArray[np.float64], middles: NDArray[np.float64]
) -> Rows:
    """PRIVATE: chi of records.

    Args:
        directions: Weights of xi, shape (d, k). middles: What is taken away, shape (k,).
    """
    return integer_rows(shortened(scores(rows, directions) - middles[:, None]))


def corrected_residual(
    outputs: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PRIVATE: probabilities as they are published, less labels; shapes (m, n).

    The same formulas as `classes.probabilities`, row by row: the same bits in every block.
    """
    if len(outputs) == 1:
        likely = 0.5 + 0.5 * half_tanh(outputs)
        up, down = np.minimum(likely, CLIP), np.minimum(1 - likely, CLIP)
        return np.asarray(up / (up + down) - labels)
    likely = softmax_residual(outputs, np.zeros(outputs.shape))
    squares, total = np.ones(likely.shape[1]), np.zeros(likely.shape[1])
    for row in likely:
        squares += row * row
    amounts = likely * np.maximum(np.sqrt(np.maximum(squares - 2 * likely, 0.0)), CLIP)
    for row in amounts:
        total += row
    return np.asarray(amounts / total - labels)


@attrs.frozen(kw_only=True, eq=False)
class Directions:
    """u and l of a fit.

    Args:
        weights: Of xi, shape (d, k). middles: Shape (k,).
        mixtures: By which xi mixes scores, u over the root of l, shape (m, k).
        sizes: The root of l, shape (k,).
    """

    weights: NDArray[np.float64]
    middles: NDArray[np.float64]
    mixtures: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @classmethod
    def of(
        cls, rows: NDArray[np.float64], weights: NDArray[np.float64], count: int
    ) -> "Directions":
        """Of published weights.

        Args:
            rows: phi of synthetic records, shape (d, n). weights: Shape (d, m). count: k.
        """
        made_up = weights.T @ rows
        variances, basis = np.linalg.eigh(np.cov(made_up, bias=True).reshape(len(made_up), -1))
        sizes = np.sqrt(np.maximum(variances[::-1][:count], _TINY))
        mixtures = basis[:, ::-1][:, :count] / sizes
        return cls(
            weights=weights @ mixtures,
            middles=made_up.mean(axis=1) @ mixtures,
            mixtures=mixtures,
            sizes=sizes,
        )


@attrs.frozen(kw_only=True, eq=False)
class ScoreMap:
    """By what scores change: s + A' xi.

    Args:
        change: A, shape (1 + k, m). noise_covariances: Of its noise, over outputs; shape (1 + k, 1
            + k).
    """

    directions: Directions
    change: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        directions: Directions,
        rows: NDArray[np.float64],
        weights: NDArray[np.float64],
        offset: NDArray[np.float64],
        gradient: NDArray[np.float64],
        noise: float,
        records: float,
    ) -> "ScoreMap":
        """From the last answer.

        Args:
            rows: phi of synthetic records, shape (d, n). weights, offset: Published, (d, m) and
                (m,).
            gradient: Released, shape (1 + k, m). noise: Its standard deviation.
        """
        outputs = weights.shape[1]
        xi = directions.weights.T @ rows - directions.middles[:, None]
        chi = shortened(xi)
        xi = np.vstack([np.ones(xi.shape[1]), xi])
        made_up, scale = rows.T @ weights + offset, records / rows.shape[1]
        likely = _likely(made_up)
        # p less its product, and dp/ds by central differences: shapes (n, m, m).
        model = likely[:, :, None] * (np.eye(outputs) - likely[:, None, :])
        slopes = np.stack(
            [_likely(made_up + move) - _likely(made_up - move) for move in _STEP * np.eye(outputs)],
            axis=2,
        ) / (2 * _STEP)
        curvature = _crossed(chi, xi, slopes) * scale
        prior = np.concatenate([[_SHIFT], directions.sizes]).repeat(outputs) ** 2
        deviation = noise**2 * np.eye(len(prior)) + _crossed(chi, chi, model) * scale
        gains, evidence, flat = [], [], gradient.reshape(-1)
        for width in _DEVIATIONS:
            variances = width**2 * prior
            covariance = (curvature * variances) @ curvature.T + deviation
            inverse = np.linalg.inv(covariance)
            gains.append((variances[:, None] * curvature.T) @ inverse)
            evidence.append(-(np.linalg.slogdet(covariance)[1] + flat @ inverse @ flat) / 2)
        chances = np.exp(np.array(evidence) - max(evidence))
        gain = np.tensordot(chances / chances.sum(), np.array(gains), axes=1)
        change = -(gain @ gradient.reshape(-1)).reshape(gradient.shape)
        if outputs > 1:  # what moves all scores alike says nothing
            change -= change.mean(axis=1, keepdims=True)
        by_output = gain.reshape(len(chi), outputs, -1)
        noise_covariances = noise**2 * np.einsum("iav,jav->ij", by_output, by_output) / outputs
        return cls(directions=directions, change=change, deviation=noise_covariances)

    @property
    def ratio(self) -> float:
        """By what the variance of one output's noise is multiplied, on average: of several classes
        in all directions but the one in which scores move alike."""
        outputs = len(self.directions.mixtures)
        mixture = np.eye(outputs) + self.directions.mixtures @ self.change[1:]
        if outputs == 1:
            return float(mixture[0, 0]) ** 2
        return (float(np.sum(mixture**2)) - 1) / (outputs - 1)

    def weights(self, fitted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of changed scores, shape (d, m)."""
        return np.asarray(fitted + self.directions.weights @ self.change[1:])

    def offset(self, fitted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the constants then, shape (m,)."""
        return np.asarray(fitted + self.change[0] - self.directions.middles @ self.change[1:])

    def moved(self, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much the noise moved one output's weights: that of the fit, and of the map.
        That the map takes back some of the former is not counted; shape (d, d)."""
        steps = np.column_stack([np.zeros(len(covariance)), self.directions.weights])
        steps[0] += np.concatenate([[1.0], -self.directions.middles]) / INTERCEPT
        return np.asarray(self.ratio * covariance + steps @ self.deviation @ steps.T)


def _likely(made_up: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every output: the second class only of two."""
    likely = probabilities(made_up)
    return likely[:, 1:] if made_up.shape[1] == 1 else likely


def _crossed(
    left: NDArray[np.float64], right: NDArray[np.float64], changes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum of left right' x changes over synthetic records, a matrix by directions and
    outputs.
    """
    pairs = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
    sums = (pairs @ changes.reshape(left.shape[1], -1)).reshape(
        len(left), len(right), *changes.shape[1:]
    )
    return sums.transpose(0, 2, 1, 3).reshape(len(left) * changes.shape[1], -1)
