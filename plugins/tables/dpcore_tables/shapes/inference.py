r"""What is out of chance: shapes with their bands, and which of them are found.

A column that says nothing of the labels still gets a shape: the noise makes one, and so does chance
in the choice of records. Both move the weights by nearly Gaussian amounts of a covariance S that
answers only fix, so of a shape :math:`Fw` that is null

* the mean square :math:`Q=w^TAw`, with :math:`A=F^T\mathrm{diag}(p)F`, has mean
  :math:`\mathrm{tr}AS` and variance :math:`2\,\mathrm{tr}(AS)^2`: a chi-square law of those moments
  gives the tail beyond what came out;
* the largest :math:`|Fw|/\sqrt{\mathrm{diag}FSF^T}` over all points has a quantile at 95 %, which
  draws of that law give: as wide a band holds 0 everywhere at once.

S takes as fixed which terms were chosen and how far each was shrunk, which moves Q and its mean
alike. Where pairs were surveyed, those of the fit are the best of many. So the rule of Benjamini
and Hochberg counts every candidate as a test, and one that was not fitted as not found. Columns
and pairs are two families. No null shape is found where its tail is above 5 %.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.models.shapes import Shape
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.normal import gaussian_below
from dpcore_tables.pairs.tables import Tables
from dpcore_tables.shapes.covariance import Covariance
from dpcore_tables.shapes.effects import Effect, effects_of, encode_points, rare_points
from dpcore_tables.synthetic_records import usual_shortening
from dpcore_tables.tails.replay import TailPaths

FALSE_DISCOVERIES = 0.1
"""Of what is found, the share that is null, at most and on average."""

_EACH = 0.05
_DRAWS = 1000
_WIDER = 1.25  # of tables where nothing is: which pairs became some is in no law of their cells
_NOTHING = 1e-12  # of the largest standard deviation: rounding, no noise


def shapes_of(
    domain: Domain,
    dictionary: Dictionary,
    levels: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
    covariance: NDArray[np.float64],
    errors: NDArray[np.float64],
    unit: float,
    candidates: int,
    tails: TailPaths | None = None,
    tables: Tables | None = None,
) -> tuple[Shape, ...]:
    """Return every column's and pair's shape, the most important first.

    Args:
        levels: The released proportions of every declared column's categories; empty for numbers.
        weights: Shape (d, m). spread: Covariance of their noise, shape (d, d).
        errors: Of noise and chance together, where a column says nothing.
        unit: Of the label for each unit of a score. candidates: How many pairs were looked at.
        tails: What else the noise does to numbers with a long tail.
        tables: Every cell is a function with a weight of its own.
    """
    tables = tables or Tables()
    coefficients = weights[1:]
    if len(tables):
        coefficients = np.concatenate([coefficients, tables.values[:, None]])
    noise_distribution = Covariance(terms=covariance[1:, 1:], curves=tables.roots())
    null_distribution = Covariance(
        terms=errors[1:, 1:], curves=tables.roots(chance=True, wider=_WIDER)
    )
    effects = effects_of(domain, dictionary, levels, [table.pair for table in tables.tables])
    beyond = [np.zeros(len(effect.frequencies)) for effect in effects]
    if tails is not None:
        factor = usual_shortening(dictionary)
        for place, effect in enumerate(effects):
            column = effect.owner[0]
            if len(effect.owner) == 1 and column in tails.columns:
                points = encode_points(domain, column, effect.at[0])
                functions = np.zeros((len(coefficients), len(points)))
                functions[effect.active] = effect.functions
                distributions = (effect.frequencies, functions, covariance[1:, 1:])
                beyond[place] = tails.of_column(column, points, factor, *distributions)
    p_values = [
        p_value_of(effect, coefficients, null_distribution, variances)
        for effect, variances in zip(effects, beyond, strict=True)
    ]
    found = set[int]()
    for size in (1, 2):
        family = [place for place, effect in enumerate(effects) if len(effect.owner) == size]
        count = max(len(family), len(domain.columns) if size == 1 else candidates)
        found |= {family[place] for place in discoveries([p_values[i] for i in family], count)}
    shapes, names = [], [*domain.columns]
    tests = zip(effects, p_values, beyond, strict=True)
    for place, (effect, p_value, variances) in enumerate(tests):
        shape = tuple(len(points) for points in effect.at)
        values = unit * effect.values(coefficients)
        noise = unit * _widen(_deviations(noise_distribution.along(effect)), variances)
        joint = unit * joint_band_of(effect, null_distribution, weights.shape[1], variances)
        frequencies, first = effect.frequencies, effect.owner[0]
        single_output = weights.shape[1] == 1
        shapes.append(
            Shape(
                columns=tuple(names[column] for column in effect.owner),
                at=effect.at,
                values=values[:, 0].reshape(shape) if single_output else values.reshape(*shape, -1),
                band=2 * noise.reshape(shape),
                joint_band=joint.reshape(shape),
                rare=rare_points(domain, dictionary, first, effect.at[0], levels[first]),
                importance=math.sqrt(frequencies @ (values**2).sum(axis=1)),
                # What noise by itself would make of the importance.
                floor=math.sqrt(weights.shape[1] * (frequencies @ noise**2)),
                p_value=p_value,
                found=place in found,
            )
        )
    return tuple(sorted(shapes, key=lambda shape: -shape.importance))


def discoveries(
    p_values: Sequence[float], tests: int, rate: float = FALSE_DISCOVERIES
) -> NDArray[np.intp]:
    """Places of those p_values that are small enough, by the rule of Benjamini and Hochberg.

    Args:
        p_values: Probabilities under the null. tests: How many there were, those left out as well.
    """
    order = np.argsort(p_values, kind="stable")
    limits = rate * np.arange(1, len(order) + 1) / max(tests, 1)
    passing = np.flatnonzero(np.array(p_values)[order] <= limits)
    count = int(passing[-1]) + 1 if len(passing) else 0
    return np.array([place for place in order[:count] if p_values[place] <= _EACH], dtype=np.intp)


def _deviations(roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of an effect at its points, shape (k,); of `Covariance.along`."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", roots, roots)))


def _widen(
    deviations: NDArray[np.float64], beyond: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """With a variance added; the same bits where it is 0."""
    return np.where(np.asarray(beyond) > 0, np.sqrt(deviations**2 + beyond), deviations)


def p_value_of(
    effect: Effect,
    coefficients: NDArray[np.float64],
    covariance: Covariance,
    beyond: NDArray[np.float64] | float = 0.0,
) -> float:
    """Return the probability of an importance so large, where there is nothing but noise and
    chance.

    Args:
        beyond: A variance to add at every point, shape (k,): the law is wider by its mean.
    """
    outputs = coefficients.shape[1]
    square = float(effect.frequencies @ (effect.values(coefficients) ** 2).sum(axis=1))
    weighted = covariance.along(effect)
    weighted *= np.sqrt(effect.frequencies)
    # Traces of AS and its square, of the smaller one of two matrices.
    is_wide = len(weighted) > weighted.shape[1]
    form = weighted.T @ weighted if is_wide else weighted @ weighted.T
    mean = outputs * float(np.trace(form))
    # Scores of several classes add up to 0, so one of them follows from the others.
    variance = 2 * outputs**2 / max(outputs - 1, 1) * float(np.vdot(form, form))
    if not (mean > 0 and variance > 0):
        return 1.0
    square /= 1 + outputs * float(np.sum(effect.frequencies * beyond)) / mean
    # The cube root of a chi-square is nearly normal (Wilson and Hilferty).
    freedom = 2 * mean**2 / variance
    bend = 2 / (9 * freedom)
    score = ((square / mean) ** (1 / 3) - (1 - bend)) / math.sqrt(bend)
    return float(gaussian_below([-score])[0])


def joint_band_of(
    effect: Effect,
    covariance: Covariance,
    outputs: int,
    beyond: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """Half the width of a band that holds 0 everywhere in 95 of 100 null shapes, shape (k,).

    Args:
        beyond: A variance to add at every point, shape (k,).
    """
    roots = covariance.along(effect)
    deviations = _deviations(roots)
    is_moved = deviations > _NOTHING * max(float(deviations.max(initial=0.0)), _NOTHING)
    if not is_moved.any():
        return deviations
    roots /= np.where(
        is_moved, deviations, math.inf
    )  # what nothing moves is never the most distant
    # A fixed seed: the same answers give the same band.
    generator = np.random.Generator(np.random.PCG64(0))
    draws = generator.standard_normal((outputs, len(roots), _DRAWS))
    if outputs > 1:
        draws = (draws - draws.mean(axis=0)) * math.sqrt(outputs / (outputs - 1))
    diameter = np.max([np.abs(roots.T @ draw).max(axis=0) for draw in draws], axis=0)
    return np.asarray(float(np.quantile(diameter, 1 - _EACH)) * _widen(deviations, beyond))
