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
    came = _path(_asked(claim, ADD_REMOVE), ADD_REMOVE)
    if isinstance(came, Refused):
        return came
    steps = adjacency.records
    if adjacency.membership:
        return _steps(came, steps, adjacency)
    twice = _steps(came, 2 * steps, adjacency)
    replaced = _path(_asked(claim, REPLACE_ONE), REPLACE_ONE)
    if isinstance(replaced, Refused):
        return twice
    larger = attrs.evolve(
        replaced,
        value=max(came.value, replaced.value),
        range=_larger_range(came, replaced),
        solver_error=max(came.solver_error, replaced.solver_error),
        diameter=_narrower(came.diameter, replaced.diameter),
        covers_fallback=came.covers_fallback and replaced.covers_fallback,
        premises=tuple(dict.fromkeys((*came.premises, *replaced.premises))),
    )
    once = _steps(larger, steps, adjacency)
    return once if once.unit <= twice.unit and once.reach <= twice.reach else twice


def _asked(claim: Callable[[Adjacency], Found], relation: Adjacency) -> Found:
    try:
        return claim(relation)
    except UndeclaredError as error:
        return Refused(
            f"{error.message}; where a person is the unit it is private, and no bound that needs "
            f"it holds"
        )


def _path(found: Found, relation: Adjacency) -> Sensitivity | Refused:
    """A claim about one record of which several steps can be made."""
    if isinstance(found, Refused):
        return Refused(f"{found.reason} (of one record, {relation}; persons need that)")
    if not found.adjacency.covers(relation):
        return Refused(f"it holds for {found.adjacency}; persons need {relation}")
    if not isinstance(found, Sensitivity):
        return Refused("a law over the order of records says nothing of several records at once")
    if not isinstance(found.validity, WorstCase):
        return Refused(
            "persons need a worst case: what is between their records' steps need not satisfy "
            "what this bound rests on"
        )
    if found.distance not in _NORMS:
        return Refused(f"no path of several records is proved in the distance {found.distance}")
    return found


def _narrower(one: float | None, other: float | None) -> float | None:
    """Both are about the same outputs."""
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)


def _larger_range(one: Sensitivity, other: Sensitivity) -> float | None:
    """None where both are twice the value."""
    if one.range is None and other.range is None:
        return None
    return max(2 * each.value if each.range is None else each.range for each in (one, other))


def _steps(found: Sensitivity, steps: int, adjacency: Adjacency) -> Sensitivity:
    """So many times the claim, rounded up."""
    if found.covers_fallback and found.range is None:
        steps = min(steps, 2)
    path = f"{steps} times, a path over the records of one person" if steps > 1 else "one record"
    value = times(found.value, steps)
    if found.diameter is not None and found.diameter < value:
        value, path = found.diameter, "the diameter of all outputs, whatever a person has"
    return attrs.evolve(
        found,
        value=value,
        range=None if found.range is None else times(found.range, steps),
        adjacency=adjacency,
        source=f"{path}: {found.source}",
    )


def times(value: float, steps: int) -> float:
    """The product, rounded up."""
    product = steps * value
    exact = Fraction(product) >= steps * Fraction(value)
    return product if exact else math.nextafter(product, math.inf)
