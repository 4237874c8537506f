r"""By what scores of classes are multiplied: shrunk by their known noise, widened by gradients.

With w the fitted weights, A the covariance of their functions over synthetic records, and S that of
the noise in one output's weights, noise by itself gives scores of variance :math:`\mathrm{tr}AS`.
So

.. math:: \gamma=\min\bigl(1,\ \max(0.05,\ 1.5\,(1-(c+\sqrt{2/f})\,\mathrm{tr}AS/w^TAw))\bigr)

is what the weights deserve by their size, with :math:`f=(\mathrm{tr}AS)^2/\mathrm{tr}(AS)^2` for
every free output, and c = 1.1, of several classes 1.3: so many squares of noise add up, and their
sum has that relative standard deviation. That is James and Stein's factor, but for four things: the
descent's prior has shrunk what is signal, too; noise chose what was fitted, which S leaves out; of
few functions noise is often larger than on average, so one standard deviation counts as noise, too;
and a small rest costs nothing and keeps the order of the scores. Of plain steps S in this factor is
that of noise and of chance in the choice of records (`Plain.error_covariance`).

The released gradients say more where there is more signal: by what weights would have to be
multiplied to balance them, t, with a known standard deviation s (`Descent.slope`, `Plain.slope`).
The factor is :math:`\gamma+(t-\gamma)\,0.09/(0.09+s^2)`, at least 0.05 and at most 3.

Constants are then shifted until synthetic records have, on average, the proportions of the fit,
mixed with the released ones by the part that gamma takes away. A function of answers only.
"""

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.classes import BELOW, RAREST, gain, probabilities
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.plain_descent import Plain
from dpcore_tables.shapes.fit_noise import fraction_of_outputs, noise_covariance, plain_of
from dpcore_tables.synthetic_records import simulated_rows

_SHRUNK, _TRUST = 1.5, 0.09  # chosen on tables that `docs/records/tables-measured.md` names
_CHOSEN, _CHOSEN_OF_SEVERAL = 1.1, 1.3
_LEAST, _WIDEST = 0.05, 3.0
_DRAWS, _FEWEST, _ROUNDS = 200, 50, 50
_TINY, _FLAT = 1e-9, 1e6


@attrs.frozen(kw_only=True, eq=False)
class ScaledScores:
    """What is published of a fit of classes.

    Args:
        factor: Of the weights, from 0.05 to 3.
        weights: Multiplied, shape (d, m). offset: Of the scores, shape (m,).
        deviation: Covariance of the noise in one output's weights then, shape (d, d).
    """

    factor: float
    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of_state(
        cls, state: Any, weights: NDArray[np.float64], offset: NDArray[np.float64]
    ) -> "ScaledScores | None":
        """Of a `conversation.State` after the last step; None of numbers, and of classes by the
        rules of the first edition.

        Args:
            weights: Centred, shape (d, m). offset: Shape (m,).
        """
        if state.plan.kind == "number" or state.plan.edition < 2:
            return None
        noise, deviation = state.noises["label"] / state.records, noise_covariance(state)
        dictionary, descent = state.descent.dictionary, state.descent
        levels: Sequence[NDArray[np.float64]] = ()
        if isinstance(descent, Plain):
            plain, proportion = plain_of(state), fraction_of_outputs(state.plan.outputs)
            errors = proportion * plain.error_covariance()
            slope, levels = plain.slope(), plain.levels
        else:
            model = (dictionary, descent.weights, state.offset, state.label)
            errors, slope = deviation, descent.slope(gain(*model) / BELOW)
        facts = (state.label, noise, deviation, slope, errors, levels)
        return cls.of(dictionary, weights, offset, *facts)

    @classmethod
    def of(
        cls,
        dictionary: Dictionary,
        weights: NDArray[np.float64],
        offset: NDArray[np.float64],
        proportions: NDArray[np.float64],
        noise: float,
        deviation: NDArray[np.float64],
        slope: tuple[float, float],
        errors: NDArray[np.float64] | None = None,
        levels: Sequence[NDArray[np.float64]] = (),
    ) -> "ScaledScores":
        """From a fit and the shares that were released.

        Args:
            weights: Shape (d, m). offset: Shape (m,). noise_covariances: Of one output's weights,
                (d, d).
            proportions: Released, of the classes, or of two the second's, shape (m,).
            noise: Standard deviation of each share.
            slope: Of the gradients, with its standard deviation.
            errors: Covariance of noise and chance, as far as it is known; `deviation` if None.
            levels: Proportions of the categories of synthetic records, equally frequent ones if
                empty.
        """
        errors = deviation if errors is None else errors
        rows = simulated_rows(dictionary, levels)
        covariance = np.cov(rows, bias=True)
        # The size of the weights says how much is signal, gradients how far they fall short.
        gamma = float(_gammas(weights[None], covariance, errors)[0])
        factor = float(_factors(np.array([gamma]), slope[0], slope[1])[0])
        return cls(
            factor=factor,
            weights=factor * weights,
            offset=_shifted(rows, weights, offset, proportions, factor, gamma),
            deviation=_scaled_covariance(weights, covariance, deviation, slope, errors)
            + _offset_covariance(proportions, (1 - gamma) * noise, len(weights)),
        )


def _factors(
    gammas: NDArray[np.float64], slopes: NDArray[np.float64] | float, deviation: float
) -> NDArray[np.float64]:
    """Of gammas and slopes, as far as the slopes' noise lets them count; shape (k,)."""
    trust = _TRUST / (_TRUST + deviation**2)
    return np.asarray(np.clip(gammas + trust * (slopes - gammas), _LEAST, _WIDEST))


def _gammas(
    weights: NDArray[np.float64], covariance: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """gamma of many fits, shapes (k, d, m) to (k,)."""
    # Per output: the variance of its scores, and what noise by itself makes of it.
    variances = np.mean(np.sum(weights * (covariance @ weights), axis=1), axis=1)
    model = covariance @ deviation
    noise, squares = float(np.trace(model)), float(np.sum(model * model.T))
    freedom = max(weights.shape[2] - 1, 1) * noise**2 / max(squares, _TINY**2)
    chosen = _CHOSEN if weights.shape[2] == 1 else _CHOSEN_OF_SEVERAL
    likely = (chosen + math.sqrt(2 / max(freedom, 1.0))) * noise
    gammas = _SHRUNK * (1 - likely / np.maximum(variances, _TINY))
    return np.asarray(np.clip(gammas, _LEAST, 1.0))


def _shifted(
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    proportions: NDArray[np.float64],
    factor: float,
    gamma: float,
) -> NDArray[np.float64]:
    """Return the offset with which synthetic records have both shares' mixture, shape (m,)."""
    released = np.clip(proportions, RAREST, 1 - RAREST)
    if len(released) == 1:
        released = np.array([1 - released[0], released[0]])
    scores = rows.T @ weights
    fitted = probabilities(scores + offset).mean(axis=0)
    goal = gamma * fitted + (1 - gamma) * released / released.sum()
    # The mean score stays, and what scores differ by is multiplied.
    offset = offset + (1 - factor) * scores.mean(axis=0)
    for _ in range(_ROUNDS):
        means = np.maximum(probabilities(factor * scores + offset).mean(axis=0), _TINY)
        step = np.log(np.maximum(goal, _TINY) / means)
        offset = offset + (step if len(offset) > 1 else step[1] - step[0])
    # Scores of several classes add up to 0, as those of the fit do.
    return offset if len(offset) == 1 else offset - offset.mean()


def _scaled_covariance(
    weights: NDArray[np.float64],
    covariance: NDArray[np.float64],
    noise_covariances: NDArray[np.float64],
    slope: tuple[float, float],
    errors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Of one output's multiplied weights, shape (d, d): noise moves the factor, too, so weights and
    slope are drawn with their noise again and again."""
    generator = np.random.Generator(np.random.PCG64(0))
    values, vectors = np.linalg.eigh(noise_covariances)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # Noise has made the weights longer: drawn around as many of them as are signal, fits are again
    # about as long as these.
    variance = float(np.mean(np.sum(weights * (covariance @ weights), axis=0)))
    signal = 1 - float(np.sum(covariance * noise_covariances)) / max(variance, _TINY)
    # Outputs are alike: of several, fewer draws say as much.
    count = max(_DRAWS // weights.shape[1], _FEWEST)
    noise = root @ generator.standard_normal((count, *weights.shape))
    fits = math.sqrt(max(signal, 0.0)) * weights + noise
    deviation = min(slope[1], _FLAT)
    slopes = slope[0] + deviation * generator.standard_normal(count)
    factors = _factors(_gammas(fits, covariance, errors), slopes, deviation)
    fits *= factors[:, None, None]
    fits -= fits.mean(axis=0)
    return np.asarray(np.einsum("kim,kjm->ij", fits, fits) / (count * weights.shape[1]))


def _offset_covariance(
    proportions: NDArray[np.float64], noise: float, width: int
) -> NDArray[np.float64]:
    """Return what the noise of released shares adds, as a movement of the intercept; shape (d,
    d).
    """
    likely = np.clip(proportions, RAREST, 1 - RAREST)
    # The derivative of an offset by its share.
    slopes = 1 / likely if len(likely) > 1 else 1 / (likely * (1 - likely))
    added = np.zeros((width, width))
    added[0, 0] = (noise * math.sqrt(float(np.mean(slopes**2))) / INTERCEPT) ** 2
    return added
