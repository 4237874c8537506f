r"""Which terms a round fits, and how much each is trusted: from earlier answers alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, NONE, Term
from dpcore_tables.plan import Plan

_PAIR = 0.3
_SCREENED = 6
_LEVELS = 4

Weighed = Sequence[tuple[Term, float]]


def first_terms(plan: Plan) -> Weighed:
    """Every column's simplest functions, pairs if all of them fit, and further levels."""
    layout, width = plan.layout, plan.rounds()[0].width
    found = [(term, 1.0 / max(layout.levels[term.column] - 1, 1)) for term in layout.once()]
    higher = [
        (Term(column, level), 1.0 / level**2)
        for level in range(1, _SCREENED + 1)
        for column in layout.numeric
    ]
    pairs = [term for term, _ in layout.pairs(1)]
    found += higher[: max(width - len(found), 0)]
    if len(found) + len(pairs) <= width:
        found += [(term, _PAIR) for term in pairs]
    return found


def second_terms(plan: Plan, screened: Dictionary, weights: NDArray[np.float64]) -> Weighed:
    """The best by what the screen found of columns and pairs, and by simplicity."""
    layout, width = plan.layout, plan.rounds()[1].width
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2
    of_columns = np.zeros(layout.columns)
    of_pairs: dict[tuple[int, int], float] = {}
    for (column, _, second, _), effect in zip(screened.terms.tolist(), effects, strict=True):
        if second == NONE:
            of_columns[column] += effect
        else:
            of_pairs[column, second] = of_pairs.get((column, second), 0.0) + float(effect)
    total = float(of_columns.sum())
    if not total > 0:
        of_columns, total = np.ones(layout.columns), float(layout.columns)
    of_columns /= total
    found: list[tuple[Term, float]] = []
    for column, effect in enumerate(of_columns.tolist()):
        base = 2 * (effect + 0.01 / layout.columns)
        levels = layout.levels[column]
        if levels == 0:
            found += [(Term(column, k), base / max(k, 1) ** 2) for k in range(HIGHEST + 1)]
        else:
            divisor = max(levels - 1, 1) ** 0.5 if levels > 2 else 1.0
            found += [(term, base / divisor) for term in layout.simplest(column)]
    for term, divisor in layout.pairs(_LEVELS if layout.columns <= 60 else 1):
        i, j = term.column, term.second
        weight = 0.25 * (of_columns[i] + 0.01) * (of_columns[j] + 0.01)
        if of_pairs:
            weight = 0.5 * weight + 0.5 * of_pairs.get((i, j), 0.0) / total
        found.append((term, weight / divisor))
    order = sorted(range(len(found)), key=lambda at: -found[at][1])
    return [found[at] for at in order[:width]]


def kept(old: Dictionary, weights: NDArray[np.float64], new: Dictionary) -> NDArray[np.float64]:
    """The old model's coefficients where a term is kept, as weights of the new; shape (d, m)."""
    start = np.zeros((new.width, weights.shape[1]))
    start[0] = weights[0]
    known = {tuple(term): at for at, term in enumerate(old.terms.tolist())}
    for at, term in enumerate(new.terms.tolist()):
        before = known.get(tuple(term))
        if before is not None:
            start[at + 1] = weights[before + 1] * old.sizes[before] / new.sizes[at]
    return start
