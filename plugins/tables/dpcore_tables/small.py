r"""Rules for small tables of numbers: dictionaries, clips and steps, from public facts and answers.

Small is a :math:`N\mu` below 1300 (2N under add/remove). All is in units of the released spread of
labels: a table whose labels fill a tenth of their declared range is fitted as one whose labels fill
all of it. The constants were chosen on tables that `docs/records/choosing-measured.md` names.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout, Term
from dpcore_tables.ranks import Ranks

SIGNAL = 1300.0
LIMIT = 0.25
"""Absolute residuals, at the mean label, are clipped here when their mean is released."""

EVEN = 400.0
"""From this signal on, the screen sees of numbers what rises at both ends, too."""

REPLAYED = 900.0
"""Up to this signal the noise of the screen moves the fit about as much as its own."""

USUAL_DEVIATION = 0.12
SCREEN_FRACTION, MOMENTS_FRACTION, DEVIATION_FRACTION, EVALUATION_FRACTION = 0.3, 0.04, 0.02, 0.01
_NOISE_DISTRIBUTIONS = 4.0  # of the clip, so that constants are those of labels that spread by 1/4
_NARROWEST, _WIDEST = 24, 130
_STEPS, _FEWEST_STEPS, _FASTEST = 500, 40, 1.5
_LOAD = 1.2
_FLOOR = 0.2
_NUMBER, _LEVELS, _PAIR = 0.7, (1.0, 0.7, 0.5, 0.35), 1.4
RESIDUAL = 0.6
"""Of the dispersion of labels, what a fit usually leaves."""


class Schedule(NamedTuple):
    """Of a round: number of steps, and the rate of each."""

    steps: int
    rate: float


def schedule(signal: float, proportion: float, width: int) -> Schedule:
    """More signal, more steps; more functions, fewer.

    Args:
        signal: N mu. share: Of the round. width: d.
    """
    # An empirical law: the time eta T that small tables need, by their signal.
    usual = float(0.14 * min(1.0, signal / 200) ** 0.35)
    time = usual * signal * math.sqrt(proportion) / relative_clip(signal) * (15 / width) ** 0.25
    time = min(max(time, 5.0), _FASTEST * _STEPS)
    steps = min(max(math.ceil(time), _FEWEST_STEPS), _STEPS)
    return Schedule(steps, min(time, _FASTEST * steps) / steps)


def widest(signal: float, most: int = _WIDEST) -> int:
    """Functions of the second round at most; the first has all the simple ones."""
    return max(min(int(signal / 5), most), _NARROWEST)


def relative_clip(signal: float) -> float:
    """C, where labels spread by 1/4 of their range."""
    return float(min(1.0, 0.04 * (signal / 300) ** 0.75))


def clip_of(signal: float, deviation: float) -> float:
    """C in units of the label's range."""
    return min(1.0, _NOISE_DISTRIBUTIONS * deviation * relative_clip(signal))


def below_clip(signal: float) -> float:
    """The proportion of normal residuals below the clip, were they so large as usual."""
    return math.erf(_NOISE_DISTRIBUTIONS * relative_clip(signal) / (RESIDUAL * math.sqrt(2)))


def deviation_of(total: float, noise: float, records: float) -> float:
    """Return the labels' standard deviation from a noisy sum of clipped absolute residuals, each
    less half their clip; shrunk to the usual where noise is large."""
    to_deviation = 1.25 / records
    # For a normal distribution the deviation is 1.25 mean absolute deviations.
    deviation = min(max((total + records * LIMIT / 2) * to_deviation, 0.03), 0.3)
    trust = 1 / (1 + (noise * to_deviation / (USUAL_DEVIATION / 2)) ** 2)
    return float(deviation**trust * USUAL_DEVIATION ** (1 - trust))


def screen_terms(layout: Layout, signal: float) -> list[Term]:
    """Return the simplest functions of all columns; where there is signal for it, an even one of
    numbers, as squares of numbers look like noise to a straight line."""
    even = [Term(column, 2) for column in layout.numeric] if signal >= EVEN else []
    return layout.once() + even


def first_dictionary(layout: Layout, ranks: Ranks, signal: float) -> Dictionary:
    """Return what is screened, columns alike."""
    terms = screen_terms(layout, signal)
    sizes = np.array([_usual(layout, term.column) for term in terms])
    return Dictionary.sized(layout, ranks, terms, sizes * math.sqrt(_LOAD / layout.columns))


def second_dictionary(
    screened: Dictionary, weights: NDArray[np.float64], width: int, highest: int = 1
) -> Dictionary:
    """Return the largest of all functions and pairs, sized by what the screen found of their
    columns.

    Args:
        weights: After the screen, shape (d, m). highest: Cosine of a number in a product.
    """
    layout, terms = screened.layout, [Term(*term) for term in screened.terms.tolist()]
    effects = np.sqrt(np.mean(weights[1:] ** 2, axis=1))
    typical = math.sqrt(float(np.mean(effects**2)))
    # Sizes are a prior: larger for columns whose functions the screen found larger.
    relative = effects / typical if typical > 0 else np.ones(effects.shape)
    amounts = np.sqrt(relative) + _FLOOR
    of_columns = np.zeros(layout.columns)
    np.maximum.at(of_columns, screened.terms[:, 0], amounts)
    unit = math.sqrt(_LOAD / float(np.sum(of_columns**2)))
    size_by_term = {
        term: unit * float(amount) * _usual(layout, term.column)
        for term, amount in zip(terms, amounts, strict=True)
    }
    entries = [(term, size_by_term[term]) for term in layout.once()]
    # Numbers get further cosines, each believed less than the one before.
    for column in layout.numeric:
        main = unit * float(of_columns[column]) * _NUMBER
        entries += [(Term(column, k), main * part) for k, part in enumerate(_LEVELS, start=1)]
    # A pair is as large as the product of its two columns' functions.
    for pair, _ in layout.pairs(highest):
        sides = [(pair.column, pair.level), (pair.second, pair.second_level)]
        sides_sizes = [
            size_by_term[Term(j, level)]
            if layout.levels[j]
            else size_by_term[Term(j, 0)] * _LEVELS[level - 1]
            for j, level in sides
        ]
        entries.append((pair, _PAIR * sides_sizes[0] * sides_sizes[1]))
    # The largest ones, as many as the second round has room for.
    order = sorted(range(len(entries)), key=lambda index: -entries[index][1])[:width]
    largest = [entries[index] for index in order]
    return Dictionary.sized(
        layout, screened.ranks, [t for t, _ in largest], np.array([s for _, s in largest])
    )


def _usual(layout: Layout, column: int) -> float:
    """Return the size of a column's simplest function, before what is known of it."""
    levels = layout.levels[column]
    if levels == 0:
        return _NUMBER
    return 1.0 if levels <= 2 else 1 / math.sqrt(levels - 1)
