r"""Which terms a round fits, and how much each is trusted: from earlier answers alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, NONE, Term
from dpcore_tables.plan import Plan
from dpcore_tables.survey import Survey

_PAIR = 0.3
_SCREENED = 6
_LEVELS = 8
_KEPT = 0.05
_JUMP = 2.0
_HEIR = 0.35
_SINGLE = 0.5
_STEPS = 1.0

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


def survey_terms(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64], jumps: Sequence[Term]
) -> Weighed:
    """The screen's terms, its jumps, and as many pairs as fit: of columns that it found, first."""
    layout = plan.layout
    own = [Term(*term) for term in screened.terms.tolist()]
    effects = of_columns(plan, screened, weights)
    found = [(term, _KEPT) for term in own]
    known = set(own)
    more = [
        (Term(i.column, i.level, j.column, j.level), 4.0)
        for i in jumps
        for j in jumps
        if i.column < j.column
    ]
    highest = 2 if layout.columns <= 60 else 1
    pairs = [(t, (effects[t.column] + 0.05) * (effects[t.second] + 0.05) / d) for t, d in layout.pairs(highest)]
    simple = [(t, w) for t, w in pairs if max(t.level * (layout.levels[t.column]==0), t.second_level * (layout.levels[t.second]==0)) <= 1]
    rest = [(t, w) for t, w in pairs if max(t.level * (layout.levels[t.column]==0), t.second_level * (layout.levels[t.second]==0)) > 1]
    order = sorted(more, key=lambda one: -one[1]) + sorted(simple, key=lambda one: -one[1]) + sorted(rest, key=lambda one: -one[1])
    room = plan.surveyed - len(found)
    found += [(t, 1.0) for t, _ in order if t not in known][: max(room, 0)]
    return found


def of_columns(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share of every column in what the screen's functions of single columns explain."""
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2
    alone = screened.terms[:, 2] == NONE
    found = np.bincount(screened.terms[alone, 0], effects[alone], plan.layout.columns)
    total = float(found.sum())
    if not total > 0:
        return np.full(plan.layout.columns, 1.0 / plan.layout.columns)
    return np.asarray(found / total)


def second_terms(plan: Plan, screened: Dictionary, descent: Descent, survey: Survey) -> Weighed:
    """The best by what the screen found of columns and pairs, and by simplicity."""
    layout, width, weights = plan.layout, plan.rounds()[1].width, descent.weights
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2
    shares = of_columns(plan, screened, weights)
    alone = screened.terms[:, 2] == NONE
    total = float(effects[alone].sum())
    total = total if total > 0 else 1.0
    own: dict[tuple[int, int], float] = {}
    single: dict[Term, float] = {}
    for term, effect in zip(screened.terms[~alone].tolist(), effects[~alone], strict=True):
        own[term[0], term[2]] = own.get((term[0], term[2]), 0.0) + float(effect)
    if survey.strengths:
        own = {} if not own else own
        fresh: dict[tuple[int, int], float] = {}
        screened_terms = {Term(*t) for t in screened.terms.tolist()}
        for term, strength in survey.strengths.items():
            if term.second != NONE and term not in screened_terms:
                key = (term.column, term.second)
                fresh[key] = fresh.get(key, 0.0) + strength
                single[term] = max(strength, 0.0) / total
        for key, strength in fresh.items():
            own[key] = own.get(key, 0.0) + max(strength, 0.0)
    found: list[tuple[Term, float]] = []
    for column, effect in enumerate(shares.tolist()):
        base = 2 * (effect + 0.01 / layout.columns)
        levels = layout.levels[column]
        if levels == 0:
            found += [(Term(column, k), base / max(k, 1) ** 2) for k in range(HIGHEST + 1)]
        else:
            divisor = max(levels - 1, 1) ** 0.5 if levels > 2 else 1.0
            found += [(term, base / divisor) for term in layout.simplest(column)]
    found += [(term, _JUMP * (shares[term.column] + 0.01)) for term in survey.jumps]
    for term, divisor in layout.pairs(_LEVELS if layout.columns <= 60 else 1):
        i, j = term.column, term.second
        weight = 0.25 * (shares[i] + 0.01) * (shares[j] + 0.01)
        if own:
            weight = _HEIR * weight + 0.5 * own.get((i, j), 0.0) / total
        found.append((term, weight / divisor + _SINGLE * single.get(term, 0.0)))
    known = {term for term, _ in found}
    found += [(term, _STEPS * one) for term, one in single.items() if term not in known and one > 0]
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
