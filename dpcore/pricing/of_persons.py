r"""Bounds of persons: what a theorem about one record says of one person with at most k records.

Add/remove of a person. Their j <= k used records are taken away one after the other; each step is a
pair of neighbours under add/remove, and norms obey the triangle inequality, so that the statistic
moves by at most k times the bound. The premises of the path: the bound holds at every dataset on
it, so that it may not read the exact number of records (it is not told one) nor assume anything of
the records; an upper bound on their number holds all along, since the path only removes.

Replacement of a person: at most k records by at most k others. They are taken away and then put
there, 2k steps. Or as many as both have are replaced one by one, and the rest added or removed: at
most k steps, none longer than the larger of the two bounds. The smaller result counts.

Where a bound says that no output is farther from 0 than it (`covers_fallback`), no two outputs are
farther apart than twice that, whatever a person has; and none are farther apart than the `diameter`
that it states.

A solver's error is of the two ends alone and stays what it is. The changes of scores add up like
any norm, and so does their range. A law over orders or samples of records, a bound that is a
probability over public coins or rests on assumptions, and distances that are no norm of the
difference are refused: no path is proved for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import attrs

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.bound import Refused
from dpcore.distance import Distance
from dpcore.errors import UndeclaredError
from dpcore.query import Query
from dpcore.sensitivity import AnySensitivity, Sensitivity, WorstCase

_NORMS = (Distance.L1, Distance.L2, Distance.LINF, Distance.RKHS)

Found = AnySensitivity | Refused


def of_persons(query: Query, adjacency: Adjacency, claim: Callable[[Adjacency], Found]) -> Found:
    """What a bound about records claims about persons.

    Args:
        query: As planned.
        adjacency: The run's, of a person.
        claim: The bound's answer under a relation about one record; it may raise `UndeclaredError`.
    """
    if query.sampling is not None and not query.sampling.by_person:
        return Refused(
            f"{type(query.sampling).__name__} draws records, and no claim is proved for a person "
            f"who has several of them"
        )
    # Every path starts with records that are taken away, one by one.
    removal = _check_step(_ask_bound(claim, ADD_REMOVE), ADD_REMOVE)
    if isinstance(removal, Refused):
        return removal
    steps = adjacency.records
    if adjacency.membership:
        return _take_steps(removal, steps, adjacency)
    # k records are taken away and k others put there.
    by_removal = _take_steps(removal, 2 * steps, adjacency)
    replacement = _check_step(_ask_bound(claim, REPLACE_ONE), REPLACE_ONE)
    if isinstance(replacement, Refused):
        return by_removal
    # Or pairs are replaced, and the rest comes or goes: no step is longer than the larger bound.
    larger_step = attrs.evolve(
        replacement,
        value=max(removal.value, replacement.value),
        range=_larger_range(removal, replacement),
        solver_error=max(removal.solver_error, replacement.solver_error),
        diameter=_smaller_diameter(removal.diameter, replacement.diameter),
        covers_fallback=removal.covers_fallback and replacement.covers_fallback,
        premises=tuple(dict.fromkeys((*removal.premises, *replacement.premises))),
    )
    by_replacement = _take_steps(larger_step, steps, adjacency)
    # Taken only if it is no larger in both: a mechanism may calibrate to either figure.
    return (
        by_replacement
        if by_replacement.unit <= by_removal.unit and by_replacement.reach <= by_removal.reach
        else by_removal
    )


def _ask_bound(claim: Callable[[Adjacency], Found], relation: Adjacency) -> Found:
    try:
        return claim(relation)
    except UndeclaredError as error:
        return Refused(
            f"{error.message}; where a person is the unit it is private, and no bound that needs "
            f"it holds"
        )


def _check_step(claim: Found, relation: Adjacency) -> Sensitivity | Refused:
    """A claim about one record of which several steps can be made."""
    if isinstance(claim, Refused):
        return Refused(f"{claim.reason} (of one record, {relation}; persons need that)")
    if not claim.adjacency.covers(relation):
        return Refused(f"it holds for {claim.adjacency}; persons need {relation}")
    if not isinstance(claim, Sensitivity):
        return Refused("a law over the order of records says nothing of several records at once")
    # The datasets between the ends are nobody's data: no assumption about data holds of them.
    if not isinstance(claim.validity, WorstCase):
        return Refused(
            "persons need a worst case: what is between their records' steps need not satisfy "
            "what this bound rests on"
        )
    if claim.distance not in _NORMS:
        return Refused(f"no path of several records is proved in the distance {claim.distance}")
    return claim


def _smaller_diameter(first: float | None, second: float | None) -> float | None:
    """The smaller one that is stated: both are about the same outputs."""
    diameters = [diameter for diameter in (first, second) if diameter is not None]
    return min(diameters, default=None)


def _larger_range(first: Sensitivity, second: Sensitivity) -> float | None:
    """The larger range of two claims; None where both are twice the value, as is implied."""
    if first.range is None and second.range is None:
        return None
    return max(2 * step.value if step.range is None else step.range for step in (first, second))


def _take_steps(claim: Sensitivity, steps: int, adjacency: Adjacency) -> Sensitivity:
    """The claim of a path of so many steps, rounded up."""
    # Any two outputs are within twice the bound, by way of 0, whatever lies between them.
    if claim.covers_fallback and claim.range is None:
        steps = min(steps, 2)
    path = f"{steps} times, a path over the records of one person" if steps > 1 else "one record"
    value = times(claim.value, steps)
    if claim.diameter is not None and claim.diameter < value:
        value, path = claim.diameter, "the diameter of all outputs, whatever a person has"
    return attrs.evolve(
        claim,
        value=value,
        range=None if claim.range is None else times(claim.range, steps),
        adjacency=adjacency,
        source=f"{path}: {claim.source}",
    )


def times(value: float, steps: int) -> float:
    """`steps * value` as a float, rounded up where it is not exact."""
    product = steps * value
    # Fractions decide whether the float fell short of the product, however little.
    exact = Fraction(product) >= steps * Fraction(value)
    return product if exact else math.nextafter(product, math.inf)
