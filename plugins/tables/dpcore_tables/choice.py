r"""Which terms a round fits, and how much each is trusted: from earlier answers only."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, NONE, RAMP, Layout, Term
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks
from dpcore_tables.survey import Survey

_PAIR = 0.3
_SCREENED = 6
_LEVELS, _CLASS_LEVELS = 8, 4
_LOOKED, _FEW, _BENT = 2, 60, 20
_ABSENT, _KEPT = 0.05, 0.05
_HEIRS, _UNSEEN_HEIRS = 0.35, 0.5

Weighed = Sequence[tuple[Term, float]]


def first_terms(plan: Plan, strengths: Mapping[Term, float], ramps: Sequence[Term] = ()) -> Weighed:
    """Return every column's simplest functions, pairs if all of them fit, further levels, and
    ramps.

    Args:
        strengths: Of the curves, of which the strongest come in, where they were looked at.
        ramps: Of the tails that were released.
    """
    layout, width = plan.layout, plan.rounds()[0].width
    terms = [(term, 1.0 / max(layout.levels[term.column] - 1, 1)) for term in layout.once()]
    # Higher cosines fill what the simplest functions leave of the width, low levels first.
    higher = [
        (Term(column, level), 1.0 / level**2)
        for level in range(1, _SCREENED + 1)
        for column in layout.numeric
    ]
    if plan.has_evaluations:
        strongest = sorted(strengths, key=lambda term: -strengths[term])
        higher = [(term, 1.0 / term.level**2) for term in strongest]
    pairs = [term for term, _ in layout.pairs(1)]
    terms += higher[: max(width - len(terms), 0)]
    # Pairs come all or not at all: a choice among them would need an answer that is not there.
    if len(terms) + len(pairs) <= width:
        terms += [(term, _PAIR) for term in pairs]
    # Ramps stand where there is room for them next to the simplest functions.
    ramps = ramps[: max(width - layout.simple, 0)]
    return terms[: width - len(ramps)] + [(ramp, 1.0) for ramp in ramps]


def ramps_of(plan: Plan, ranks: Ranks, noise: float) -> list[Term]:
    """Return one for each tail that released shares show beyond their noise, but of no monotone
    column.
    """
    columns, tails = plan.layout.numeric, ranks.tails(noise)
    ramps = [Term(columns[number], RAMP if above else RAMP + 1) for number, above in tails]
    return [ramp for ramp in ramps if ramp.column not in plan.monotone]


def survey_terms(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64], jumps: Sequence[Term]
) -> Weighed:
    """Return the screen's terms, then products of jumps, then simple pairs, of columns that it
    found first, as many as there is room for."""
    layout, screen_terms = plan.layout, {Term(*term) for term in screened.terms.tolist()}
    # Only columns that explained something are worth a pair; none is excluded for good.
    effects = of_columns(plan, screened, weights) + _ABSENT
    jumping = [
        Term(i.column, i.level, j.column, j.level)
        for i in jumps
        for j in jumps
        if i.column < j.column and layout.has_pair(i.column, j.column)
    ]
    # Products of first cosines come before wavy ones, then by what both columns explained.
    ranked = []
    for term, divisor in layout.pairs(_LOOKED if layout.columns <= _FEW else 1):
        size = effects[term.column] * effects[term.second] / divisor
        ranked.append((_wavy(layout, term), -size, term))
    pairs = jumping + [term for *_, term in sorted(ranked) if term not in screen_terms]
    # The survey's width is planned: a gradient has the same size whatever was found.
    room = max(plan.candidates - len(screened.terms), 0)
    weighed_terms = [(Term(*term), _KEPT) for term in screened.terms.tolist()]
    return weighed_terms + [(term, 1.0) for term in pairs[:room]]


def _wavy(layout: Layout, term: Term) -> bool:
    """Return whether a number enters a pair with more than its first cosine."""
    sides = ((term.column, term.level), (term.second, term.second_level))
    return any(layout.levels[column] == 0 and level > 1 for column, level in sides)


def of_columns(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the proportion of every column in what the screen's functions of single columns
    explain.
    """
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2 * screened.squares
    is_single = screened.terms[:, 2] == NONE
    effect_sums = np.bincount(screened.terms[is_single, 0], effects[is_single], plan.layout.columns)
    total = float(effect_sums.sum())
    # Also where the total is no number: then all columns count alike.
    if not total > 0:
        return np.full(plan.layout.columns, 1.0 / plan.layout.columns)
    return np.asarray(effect_sums / total)


def second_terms(
    plan: Plan, screened: Dictionary, weights: NDArray[np.float64], survey: Survey
) -> Weighed:
    """Return the best by what was found of columns and pairs, and by simplicity."""
    layout, width = plan.layout, plan.rounds()[1].width
    proportions = of_columns(plan, screened, weights)
    highest = _LEVELS if plan.kind == "number" else _CLASS_LEVELS
    of_pairs, surveyed = strengths_of_pairs(screened, weights, survey)
    terms: list[tuple[Term, float]] = []
    # A column's levels share its weight: less for the higher ones, which fit noise first.
    for column, effect in enumerate(proportions.tolist()):
        base = 2 * (effect + 0.01 / layout.columns)
        levels = layout.levels[column]
        if levels == 0:
            terms += [(Term(column, k), base / max(k, 1) ** 2) for k in range(HIGHEST + 1)]
        else:
            divisor = max(levels - 1, 1) ** 0.5 if levels > 2 else 1.0
            terms += [(term, base / divisor) for term in layout.simplest(column)]
    terms += [(term, 2 * (proportions[term.column] + 0.01)) for term in survey.jumps]
    # A ramp stays: it is of a tail that was released.
    terms += [(Term(*term), 1.0) for term in screened.terms[screened.is_ramp].tolist()]
    # A pair inherits from its columns, and gets more where the screen or the survey saw it.
    heirs = _HEIRS if survey.strengths else _UNSEEN_HEIRS
    # Of many columns those that explain most have products of higher levels, too.
    bent = np.argsort(-proportions, kind="stable")[: _BENT if plan.has_evaluations else 0].tolist()
    for term, divisor in layout.pairs(highest, None if layout.columns <= _FEW else bent):
        i, j = term.column, term.second
        weight = 0.25 * (proportions[i] + 0.01) * (proportions[j] + 0.01)
        if of_pairs:
            weight = heirs * weight + 0.5 * of_pairs.get((i, j), 0.0)
        terms.append((term, weight / divisor + 0.5 * surveyed.pop(term, 0.0)))
    # Surveyed terms that the loop above did not pop: products with a jump, and wavy ones.
    terms += [(term, strength) for term, strength in surveyed.items() if strength > 0]
    # Stable: equal weights keep the order above, so that equal answers give equal plans.
    order = sorted(range(len(terms)), key=lambda index: -terms[index][1])
    return [terms[index] for index in order[:width]]


def strengths_of_pairs(
    screened: Dictionary, weights: NDArray[np.float64], survey: Survey
) -> tuple[dict[tuple[int, int], float], dict[Term, float]]:
    """By pair of columns and by surveyed term, what they explain, relative to single columns."""
    effects = np.mean(weights[1:] ** 2, axis=1) * screened.sizes**2 * screened.squares
    is_single = screened.terms[:, 2] == NONE
    total = float(effects[is_single].sum())
    total = total if total > 0 else 1.0
    terms = [Term(*term) for term in screened.terms.tolist()]
    strengths: dict[tuple[int, int], float] = {}
    # First from the screen's own pairs, then from the survey's candidates.
    for term, effect in zip(terms, effects.tolist(), strict=True):
        if term.second != NONE:
            owner = (term.column, term.second)
            strengths[owner] = strengths.get(owner, 0.0) + effect / total
    screen_terms, fresh = set(terms), dict[tuple[int, int], float]()
    single: dict[Term, float] = {}
    for term, strength in survey.strengths.items():
        if term.second != NONE and term not in screen_terms:
            owner = (term.column, term.second)
            fresh[owner] = fresh.get(owner, 0.0) + strength / total
            single[term] = max(strength, 0.0) / total
    for owner, strength in fresh.items():
        strengths[owner] = strengths.get(owner, 0.0) + max(strength, 0.0)
    return strengths, single


def kept(old: Dictionary, weights: NDArray[np.float64], new: Dictionary) -> NDArray[np.float64]:
    """Return the old model's coefficients where a term is kept, as weights of the new; shape (d,
    m).
    """
    start = np.zeros((new.width, weights.shape[1]))
    start[0] = weights[0]
    positions = {tuple(term): index for index, term in enumerate(old.terms.tolist())}
    for index, term in enumerate(new.terms.tolist()):
        old_index = positions.get(tuple(term))
        if old_index is not None:
            # The same shape under another size needs another weight.
            start[index + 1] = weights[old_index + 1] * old.sizes[old_index] / new.sizes[index]
    return start
