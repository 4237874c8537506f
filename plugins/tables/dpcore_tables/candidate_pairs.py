"""Which pairs are tried as tables: from earlier answers only."""

import collections
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.choice import of_columns, strengths_of_pairs
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Term
from dpcore_tables.pairs.cells import MOST_TABLES, Pair, first_that_fit, possible_pairs
from dpcore_tables.pairs.tables import PairTable, Tables
from dpcore_tables.plan import Plan
from dpcore_tables.survey import Survey

_SURE, _CLEAR = 4.0, 0.01  # standard deviations, and of what single columns explain
_LIKELY = 0.1  # of the strongest pair


def tried_tables(
    plan: Plan,
    screened: Descent,
    survey: Survey,
    levels: Sequence[NDArray[np.float64]],
    records: float,
) -> Tables:
    """Tables of the pairs that may pay, of which nothing is known yet.

    Args:
        screened: The first round's descent. records: n, or what is known of it.
        levels: The released proportions of every declared column's categories; empty for numbers.
    """
    pairs = likely_pairs(plan, screened.dictionary, screened.weights, survey)
    tables = (PairTable.expected(plan.layout, pair, levels, records) for pair in pairs)
    return Tables(tables=tuple(tables))


def counted_pairs(plan: Plan, tables: Tables) -> NDArray[np.intp]:
    """Pairs whose records are counted, shape (J, 2): where none may pay, the first possible one, of
    which nothing is made."""
    possible = np.array(possible_pairs(plan.layout, plan.signal)[:1], dtype=np.intp)
    return tables.pairs if len(tables) else possible


def likely_pairs(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64], survey: Survey
) -> list[Pair]:
    """Pairs that may pay as tables, the most important first: all where few are declared; else
    those that the survey is sure of, and those of which it could not ask all simple products."""
    layout, noise = plan.layout, survey.noise
    proportions = of_columns(plan, screened, weights)
    strengths, _ = strengths_of_pairs(screened, weights, survey)
    screen_terms = {Term(*term) for term in screened.terms.tolist()}
    in_screen = collections.Counter((term.column, term.second) for term in screen_terms)
    fresh: dict[Pair, list[float]] = {}
    for term, strength in survey.strengths.items():
        if term not in screen_terms:
            # An unbiased square: strengths are less by twice the noise's variance.
            fresh.setdefault((term.column, term.second), []).append(strength + noise**2)
    scores, possible = dict[Pair, float](), possible_pairs(layout, plan.signal)
    are_few = layout.products is not None and len(possible) <= MOST_TABLES
    for pair in possible:
        squares, (i, j) = fresh.get(pair, []), pair
        products = len(layout.levelled(i, 1)) * len(layout.levelled(j, 1))
        # Noise only: a sum of squares with this standard deviation.
        is_clear = math.fsum(squares) > _SURE * noise**2 * math.sqrt(2 * len(squares))
        is_clear |= in_screen[pair] > 0 and strengths.get(pair, 0.0) > _CLEAR
        if is_clear or are_few:
            scores[pair] = strengths.get(pair, 0.0)
        elif len(squares) + in_screen[pair] < products:
            scores[pair] = float(proportions[i] * proportions[j])
    least = -math.inf if are_few else _LIKELY * max(scores.values(), default=0.0)
    likely = [pair for pair, score in scores.items() if score >= least]
    return first_that_fit(layout, sorted(likely, key=lambda pair: -scores[pair]))
