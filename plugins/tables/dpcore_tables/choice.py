r"""Which terms a round fits, and how much each is trusted: from earlier answers alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, NONE, Layout, Term
from dpcore_tables.plan import Plan
from dpcore_tables.survey import Survey

_PAIR = 0.3
_SCREENED = 6
_LEVELS, _CLASS_LEVELS = 8, 4
_LOOKED, _FEW = 2, 60
_ABSENT, _KEPT = 0.05, 0.05
_HEIRS, _UNSEEN_HEIRS = 0.35, 0.5

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
    """The screen's terms, then products of jumps, then simple pairs, of columns that it found
    first, as many as there is room for."""
    layout, known = plan.layout, {Term(*term) for term in screened.terms.tolist()}
    effects = of_columns(plan, screened, weights) + _ABSENT
    jumping = [
        Term(i.column, i.level, j.column, j.level)
        for i in jumps
        for j in jumps
        if i.column < j.column
    ]
    ranked = []
    for term, divisor in layout.pairs(_LOOKED if layout.columns <= _FEW else 1):
        size = effects[term.column] * effects[term.second] / divisor
        ranked.append((_wavy(layout, term), -size, term))
    pairs = jumping + [term for *_, term in sorted(ranked) if term not in known]
    room = max(plan.candidates - len(screened.terms), 0)
    own = [(Term(*term), _KEPT) for term in screened.terms.tolist()]
    return own + [(term, 1.0) for term in pairs[:room]]


def _wavy(layout: Layout, term: Term) -> bool:
    """Whether a number enters a pair with more than its first cosine."""
    sides = ((term.column, term.level), (term.second, term.second_level))
    return any(layout.levels[column] == 0 and level > 1 for column, level in sides)


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


def second_terms(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64], survey: Survey
) -> Weighed:
    """The best by what was found of columns and pairs, and by simplicity."""
    layout, width = plan.layout, plan.rounds()[1].width
    shares = of_columns(plan, screened, weights)
    highest = _LEVELS if plan.kind == "number" else _CLASS_LEVELS
    of_pairs, surveyed = _of_pairs(screened, weights, survey)
    found: list[tuple[Term, float]] = []
    for column, effect in enumerate(shares.tolist()):
        base = 2 * (effect + 0.01 / layout.columns)
        levels = layout.levels[column]
        if levels == 0:
            found += [(Term(column, k), base / max(k, 1) ** 2) for k in range(HIGHEST + 1)]
        else:
            divisor = max(levels - 1, 1) ** 0.5 if levels > 2 else 1.0
            found += [(term, base / divisor) for term in layout.simplest(column)]
    found += [(term, 2 * (shares[term.column] + 0.01)) for term in survey.jumps]
    heirs = _HEIRS if survey.strengths else _UNSEEN_HEIRS
    for term, divisor in layout.pairs(highest if layout.columns <= _FEW else 1):
        i, j = term.column, term.second
        weight = 0.25 * (shares[i] + 0.01) * (shares[j] + 0.01)
        if of_pairs:
            weight = heirs * weight + 0.5 * of_pairs.get((i, j), 0.0)
        found.append((term, weight / divisor + 0.5 * surveyed.pop(term, 0.0)))
    found += [(term, strength) for term, strength in surveyed.items() if strength > 0]
    order = sorted(range(len(found)), key=lambda at: -found[at][1])
    return [found[at] for at in order[:width]]


def _of_pairs(
    screened: Dictionary, weights: NDArray[np.float64], survey: Survey
) -> tuple[dict[tuple[int, int], float], dict[Term, float]]:
    """By pair of columns and by surveyed term, what they explain, relative to single columns."""
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2
    alone = screened.terms[:, 2] == NONE
    total = float(effects[alone].sum())
    total = total if total > 0 else 1.0
    terms = [Term(*term) for term in screened.terms.tolist()]
    found: dict[tuple[int, int], float] = {}
    for term, effect in zip(terms, effects.tolist(), strict=True):
        if term.second != NONE:
            owner = (term.column, term.second)
            found[owner] = found.get(owner, 0.0) + effect / total
    known, fresh = set(terms), dict[tuple[int, int], float]()
    single: dict[Term, float] = {}
    for term, strength in survey.strengths.items():
        if term.second != NONE and term not in known:
            owner = (term.column, term.second)
            fresh[owner] = fresh.get(owner, 0.0) + strength / total
            single[term] = max(strength, 0.0) / total
    for owner, strength in fresh.items():
        found[owner] = found.get(owner, 0.0) + max(strength, 0.0)
    return found, single


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
