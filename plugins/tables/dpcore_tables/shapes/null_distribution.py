r"""How noise and chance move the weights of a column that says nothing: both descents, replayed.

Synthetic records have independent columns, the released ranks of numbers and the released
proportions of
categories: a column that says nothing is independent of all others, too. Noise moves the first
round, from whose weights the second one goes on; chance in the choice of records moves the
gradients of both rounds alike. All of that is linear in what moves it, once the functions and their
priors are chosen, but for the curvature L of the loss.

L is that of synthetic records, corrected by the released Gram matrix. A number of few values is
at few ranks t, so that its cosines are not orthogonal:

.. math:: \sum_i\cos(k\pi t_i)\cos(l\pi t_i)=\tfrac12(c_{k-l}+c_{k+l}),\qquad
          c_m=\sum_i\cos(m\pi t_i)

All entries of a column, among its cosines and with the intercept, follow from some thirty c. They
are fitted to the noisy entries by least squares, as far as these say more than noise: what is taken
of them has a Gaussian prior, of the variance that makes the released entries likeliest.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore_tables import classes
from dpcore_tables.choice import kept
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import HIGHEST, NONE
from dpcore_tables.plain_descent import Plain
from dpcore_tables.ranks import BINS, CELLS
from dpcore_tables.shapes.fit_noise import fraction_of_outputs, gains_of, plain_of
from dpcore_tables.synthetic_records import simulated_rows

_PATHS = 400
_WIDER, _WIDER_SMALL = 1.1, 1.3  # for what is in no replay: chosen on permuted columns
_SEVERAL = 1.1  # outputs differ in their curvature, and all have the mean one's law
_VARIANCES = 2.0 ** np.arange(-16, 1)  # of a c over the number of records


def error_covariance(state: Any, deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how noise, and chance in the choice of records, moved one output's weights where a
    column says nothing, shape (d, d); after the last answer.

    Args:
        deviation: `fit_noise.noise_covariance`.
    """
    descent = state.descent
    if isinstance(descent, Plain):
        # Of plain steps neither holds all: one redraws the choice of functions, the other follows
        # the noise from the screen on. Their sum is too large rather than too small.
        errors = plain_of(state).error_covariance()
        if state.plan.kind == "number":
            return _WIDER_SMALL**2 * (deviation + errors)
        wider = _WIDER_SMALL * (_SEVERAL if state.plan.outputs > 1 else 1.0)
        return wider**2 * errors + way_covariance(descent, state.levels)
    assert state.screened is not None, "a second round with a Gram matrix follows another"
    model = None if state.plan.kind == "number" else (state.offset, state.label)
    rounds = (state.screened, descent)
    gains = functools.partial(gains_of, state)
    covariance = null_covariance(rounds, state.levels, state.records, model, gains)
    wider = _WIDER if state.plan.outputs == 1 else _WIDER * _SEVERAL
    return covariance * (wider**2 * fraction_of_outputs(state.plan.outputs))


def way_covariance(descent: Plain, levels: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    r"""Return what the way of the intercept moves one output's weights of single columns by, as if
    it were by chance; shape (d, d).

    Of classes the intercept moves as scores spread, and a function of mean m goes along:
    :math:`dw_f=2mv_f\,dw_0`. Categories have the means of their released shares. Cosines of ranks
    have mean 0 if numbers lie evenly in their bins; if all of a bin stand at one place in it, no
    answer says where.

    Args:
        levels: The released proportions of every declared column's categories; empty for numbers.
    """
    dictionary, covariance = descent.dictionary, np.zeros((descent.dictionary.width,) * 2)
    way = float(np.max(descent.weights[0] ** 2)) / INTERCEPT**2
    # Of categories, and then of numbers, the means of single functions.
    for column in dictionary.layout.categorical:
        is_single = (dictionary.terms[:, 0] == column) & (dictionary.terms[:, 2] == NONE)
        places, codes = np.flatnonzero(is_single), dictionary.terms[is_single, 1]
        proportions, count = levels[column], len(levels[column])
        means = (
            np.array([proportions[1] - proportions[0]])
            if count == 2
            else count**0.5 * (proportions - 1 / count)
        )
        movement = means[codes] * dictionary.sizes[places]
        covariance[np.ix_(places + 1, places + 1)] = way * np.outer(movement, movement)
    for number, column in enumerate(dictionary.layout.numeric):
        terms = dictionary.terms
        is_cosine = (terms[:, 0] == column) & (terms[:, 2] == NONE)
        is_cosine &= (terms[:, 1] >= 1) & (terms[:, 1] <= HIGHEST)
        places, waves = np.flatnonzero(is_cosine), terms[is_cosine, 1]
        ranks = np.arccos(np.clip(dictionary.ranks.waves[number], -1, 1)).reshape(BINS, -1)
        cosines = math.sqrt(2) * np.cos(waves[:, None, None] * ranks)
        cosines -= cosines.mean(axis=2, keepdims=True)
        parts = cosines * dictionary.sizes[places][:, None, None]
        parts *= dictionary.ranks.plain_fractions[number][:, None] / math.sqrt(ranks.shape[1])
        block = parts.reshape(len(places), CELLS)
        covariance[np.ix_(places + 1, places + 1)] = way * block @ block.T
    return covariance


def null_covariance(
    descents: Sequence[Descent],
    levels: Sequence[NDArray[np.float64]],
    records: float,
    model: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    gains: Callable[[Descent, NDArray[np.float64]], NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """Of one output's weights, where a column says nothing, shape (d, d); a function of answers
    only, as the draws are fixed.

    Args:
        descents: Of both rounds, at their ends.
        levels: The released proportions of every declared column's categories; empty for numbers.
        records: n, or what is known of it.
        model: Of classes the offset of the scores, and the released shares; None of numbers.
        gains: Of numbers, what residuals of rows gain per unit of a round's score: 1 if None.
    """
    generator = np.random.Generator(np.random.PCG64(0))
    dictionary = descents[0].dictionary
    movements = np.zeros((dictionary.width, _PATHS))
    chance: NDArray[np.float64] | None = None
    # The second round goes on where the first one ended, with the same records.
    for descent in descents:
        rows = simulated_rows(descent.dictionary, levels)
        scale = records / rows.shape[1]
        if chance is None:
            chance = math.sqrt(scale) * generator.standard_normal((rows.shape[1], _PATHS))
        gram_matrix = scale * (rows @ rows.T)
        gain, curvature = 1.0, gram_matrix
        if model is None and gains is not None:
            slopes = gains(descent, rows)
            gain, curvature = float(slopes.mean()), scale * (rows * slopes) @ rows.T
        sizes = [step.scatter for step in descent.steps]
        if model is not None:
            facts = (descent.dictionary, descent.weights, *model)
            gain = classes.gain(*facts, levels) / classes.BELOW
            curvature = classes.curvature(*facts, records, levels)
            sizes = [classes.scatter(*facts, levels)] * descent.count
        curvature = curvature + gain * gram_correction(descent, gram_matrix)
        forces = rows @ chance
        movements = descent.movements(
            generator,
            kept(dictionary, movements, descent.dictionary),
            descent.contracting(curvature),
            [size * forces for size in sizes],
            metric_shifts(descent, generator),
        )
        dictionary = descent.dictionary
    return np.asarray(movements @ movements.T / _PATHS)


def metric_shifts(descent: Descent, generator: np.random.Generator) -> list[NDArray[np.float64]]:
    r"""Return what the noise E of the Gram matrix moves the mean of b by at every step, as long as
    weights move; shape (d, paths).

    The released path is :math:`w_{k+1}=K\,\mathrm{mean}(Hw_j-g_j/f)`, and E is in H and in K:
    :math:`E(\mathrm{mean}(w_j)-w_{k+1})` is what remains, nothing once weights rest.
    """
    weights = [descent.coordinates(step.weights) for step in descent.steps]
    weights.append(descent.coordinates(descent.weights))
    moves = []
    for last in range(len(descent.steps)):
        window = descent.window(last)
        amounts = np.array([1 / descent.steps[j].noise ** 2 for j in window])
        mean = np.tensordot(amounts, np.array([weights[j] for j in window]), axes=1)
        moves.append(mean / amounts.sum() - weights[last + 1])
    products = np.einsum("kdm,ldm->kl", moves, moves) / moves[0].shape[1]
    values, vectors = np.linalg.eigh(products)
    curvatures = np.array([step.curvature for step in descent.steps])
    root = curvatures[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    # Entries above the diagonal have less noise by a root.
    noise = math.sqrt(0.5) * descent.metric.noise
    draws = generator.standard_normal((len(root), len(weights[0]), _PATHS))
    return list(noise * np.tensordot(root, draws, axes=1))


def gram_correction(descent: Descent, gram_matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the released matrix says of cosines of numbers beyond that of synthetic records.

    Args:
        gram_matrix: Of synthetic records, shape (d, d), as the result.
    """
    dictionary, noise = descent.dictionary, descent.metric.noise
    correction, beyond = np.zeros_like(gram_matrix), descent.metric.released - gram_matrix
    for column in dictionary.layout.numeric:
        places, design = _cosines(dictionary, column)
        if not len(places):
            continue
        # Each entry once: the upper part has less noise by a root.
        upper, left = _entries(len(places))
        entries = beyond[places[upper], places[left]]
        deviations = noise * np.where(upper == left, 1.0, math.sqrt(0.5))
        equations = design / deviations[:, None]
        amounts = _likeliest(equations, entries / deviations, gram_matrix[0, 0] / INTERCEPT**2)
        fitted = design @ amounts
        correction[places[upper], places[left]] = fitted
        correction[places[left], places[upper]] = fitted
    return correction


def _cosines(dictionary: Dictionary, column: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Places of the intercept and of a number's cosines among the functions, and of every entry
    above the diagonal and on it, but the first, what it gains by each c; shapes (k,) and (e, c)."""
    terms = dictionary.terms
    is_cosine = (terms[:, 0] == column) & (terms[:, 2] == NONE)
    is_cosine &= (terms[:, 1] >= 1) & (terms[:, 1] <= HIGHEST)
    places = np.append(0, np.flatnonzero(is_cosine) + 1)
    if len(places) == 1:
        return places[:0], np.zeros((0, 0))
    waves = np.append(0, terms[is_cosine, 1])
    # sqrt(2) cos(k pi t) of every size; the intercept is a constant.
    sizes = np.append(INTERCEPT, math.sqrt(2) * dictionary.sizes[is_cosine])
    upper, left = _entries(len(places))
    design = np.zeros((len(upper), 2 * int(waves.max()) + 1))
    rows, amounts = np.arange(len(upper)), sizes[upper] * sizes[left] / 2
    np.add.at(design, (rows, np.abs(waves[upper] - waves[left])), amounts)
    np.add.at(design, (rows, waves[upper] + waves[left]), amounts)
    return places, design[:, 1:]  # c_0 is the number of records


def _entries(width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of a symmetric matrix each once, but for the intercept's own, which is nearly known."""
    upper, left = np.triu_indices(width)
    return upper[1:], left[1:]


def _likeliest(
    equations: NDArray[np.float64], values: NDArray[np.float64], records: float
) -> NDArray[np.float64]:
    """Return the mean of x, given values = equations x + N(0, I), of the prior N(0, v) whose
    variance v makes the values likeliest; 0 where that is none."""
    squares, turned = np.linalg.eigh(equations.T @ equations)
    squares = np.maximum(squares, 0.0)
    parts = turned.T @ (equations.T @ values)
    variances = np.append(0.0, _VARIANCES * records**2)[:, None]
    logs = parts**2 * variances / (1 + variances * squares) - np.log1p(variances * squares)
    variance = float(variances[np.argmax(logs.sum(axis=1)), 0])
    return np.asarray(turned @ (parts * variance / (1 + variance * squares)))
