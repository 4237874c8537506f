r"""How far scores of classes are shrunk towards the released shares: by their known noise alone.

With w the fitted weights, A the covariance of their functions over made-up records, and S that of
the noise in one output's weights, noise alone gives scores of variance :math:`\mathrm{tr}AS`. So

.. math:: \gamma=\min\bigl(1,\ \max(0.05,\ 1.5\,(1-1.2\,\mathrm{tr}AS/w^TAw))\bigr)

multiplies the weights. That is James and Stein's factor, but for three things: the descent's prior
has shrunk what is signal, too; noise chose what was fitted, which S leaves out; and a small rest
costs nothing and keeps the order of the scores. Constants are then shifted until made-up records
have, on average, :math:`\gamma` times the shares of the fit and :math:`1-\gamma` times the released
ones. Where noise explains little of the scores the fit is left as it is; where it explains all of
them, the model says nearly the released shares. A function of answers alone.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.classes import RAREST, probabilities
from dpcore_tables.conversation import State
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.synthetic_records import simulated_rows

_SHRUNK, _CHOSEN, _LEAST = 1.5, 1.2, 0.05  # chosen on tables that `docs/tables.md` names
_DRAWS, _ROUNDS = 200, 50
_TINY = 1e-9


@attrs.frozen(kw_only=True, eq=False)
class ShrunkScores:
    """What is published of a fit of classes.

    Args:
        factor: gamma, from 0 to 1.
        weights: Shrunk, shape (d, m). offset: Of the scores, shape (m,).
        spread: Covariance of the noise in one output's shrunk weights, shape (d, d).
    """

    factor: float
    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def of_state(
        cls, state: State, weights: NDArray[np.float64], offset: NDArray[np.float64]
    ) -> "ShrunkScores | None":
        """After the last answer; None of numbers, and of classes by the first edition's rules.

        Args:
            weights: Centred, shape (d, m). offset: Shape (m,).
        """
        if state.plan.kind == "number" or state.plan.edition < 2:
            return None
        noise, spread = state.noises["label"] / state.records, state.noise_covariance()
        return cls.of(state.descent.dictionary, weights, offset, state.label, noise, spread)

    @classmethod
    def of(
        cls,
        dictionary: Dictionary,
        weights: NDArray[np.float64],
        offset: NDArray[np.float64],
        shares: NDArray[np.float64],
        noise: float,
        spread: NDArray[np.float64],
    ) -> "ShrunkScores":
        """From a fit and the shares that were released.

        Args:
            weights: Shape (d, m). offset: Shape (m,). spread: Of one output's weights, (d, d).
            shares: Released, of the classes, or of two the second's, shape (m,).
            noise: Standard deviation of each share.
        """
        rows = simulated_rows(dictionary)
        covariance = np.cov(rows, bias=True)
        factor = float(_factors(weights[None], covariance, spread)[0])
        shrunk = factor * weights
        # At a factor of 1 the offset is left to the last bit.
        if factor < 1:
            offset = _shifted(rows, weights, offset, shares, factor)
        return cls(
            factor=factor,
            weights=shrunk,
            offset=offset,
            spread=_shrunk_spread(weights, covariance, spread)
            + _offset_spread(shares, (1 - factor) * noise, len(weights)),
        )


def _factors(
    weights: NDArray[np.float64], covariance: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """gamma of many fits, shapes (k, d, m) to (k,)."""
    # Per output: the variance of its scores, and what noise alone makes of it.
    variances = np.mean(np.sum(weights * (covariance @ weights), axis=1), axis=1)
    noise = float(np.sum(covariance * spread))
    factors = _SHRUNK * (1 - _CHOSEN * noise / np.maximum(variances, _TINY))
    return np.asarray(np.clip(factors, _LEAST, 1.0))


def _shifted(
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    shares: NDArray[np.float64],
    factor: float,
) -> NDArray[np.float64]:
    """The offset with which made-up records have both shares' mixture, shape (m,)."""
    released = np.clip(shares, RAREST, 1 - RAREST)
    if len(released) == 1:
        released = np.array([1 - released[0], released[0]])
    scores = rows.T @ weights
    fitted = probabilities(scores + offset).mean(axis=0)
    goal = factor * fitted + (1 - factor) * released / released.sum()
    # The mean score stays, and what scores differ by is shrunk.
    offset = offset + (1 - factor) * scores.mean(axis=0)
    for _ in range(_ROUNDS):
        means = np.maximum(probabilities(factor * scores + offset).mean(axis=0), _TINY)
        step = np.log(np.maximum(goal, _TINY) / means)
        offset = offset + (step if len(offset) > 1 else step[1] - step[0])
    return offset


def _shrunk_spread(
    weights: NDArray[np.float64], covariance: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of one output's shrunk weights, shape (d, d): noise moves the factor, too, so the weights are
    drawn with their noise again and again, and shrunk."""
    generator = np.random.Generator(np.random.PCG64(0))
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    fits = weights + root @ generator.standard_normal((_DRAWS, *weights.shape))
    factors = _factors(fits, covariance, spread)
    # No draw is shrunk: the covariance is known without them.
    if factors.min() == 1:
        return spread
    fits *= factors[:, None, None]
    fits -= fits.mean(axis=0)
    return np.asarray(np.einsum("kim,kjm->ij", fits, fits) / (_DRAWS * weights.shape[1]))


def _offset_spread(shares: NDArray[np.float64], noise: float, width: int) -> NDArray[np.float64]:
    """What the noise of released shares adds, as a movement of the intercept; shape (d, d)."""
    likely = np.clip(shares, RAREST, 1 - RAREST)
    # The derivative of an offset by its share.
    slopes = 1 / likely if len(likely) > 1 else 1 / (likely * (1 - likely))
    added = np.zeros((width, width))
    added[0, 0] = (noise * math.sqrt(float(np.mean(slopes**2))) / INTERCEPT) ** 2
    return added
