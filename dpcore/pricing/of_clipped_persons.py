r"""Persons whose records are clipped together: what one of them moves a sum by, whatever they have.

Theorem: let the statistic be :math:`\sum_p a_p` over persons, with :math:`\|a_p\|\le L`, a function
of that person's records alone, added exactly. A person who comes or goes moves it by at most L, one
who is replaced by 2L; where no entry of :math:`a_p` is negative, by :math:`\sqrt2 L` in l2 and L in
linf, and by L if it is one number. Here L is the clip P of a person's sum, or k C where k records,
each at most C long, add up to less than that.

Premise: `dpcore.learning.learners.by_person` makes the sum, so that it is a theorem about learners
whose sums the core adds. What their bound rests on beside that stays a premise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

import attrs

from dpcore.adjacency import ADD_REMOVE, Adjacency
from dpcore.bound import Refused
from dpcore.distance import Distance
from dpcore.learner import AnyLearner
from dpcore.learning.bounds.sum import ROW_WISE, proves_partial
from dpcore.learning.learners.by_person import MOST_RECORDS
from dpcore.learning.learners.summing import SummingLearner, sums_exactly
from dpcore.pricing.of_persons import Found, of_persons, times
from dpcore.query import Query, Sum, SumQuery
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity

_MARGIN = 1.01  # times a person's longest sum: it is not clipped, in spite of any rounding


def clips_persons(query: Query) -> TypeGuard[SumQuery]:
    """Whether what a person adds is clipped."""
    return isinstance(query, SumQuery) and query.sum.person is not None


def of_clipped_persons(
    query: SumQuery, learner: AnyLearner, adjacency: Adjacency, claim: Callable[[Adjacency], Found]
) -> Found:
    """The sensitivity of a query that clips persons; refused where the theorem does not hold.

    Args:
        query: As planned.
        adjacency: The run's.
        claim: The bound's answer under a relation about one record.
    """
    # The theorem needs persons as the unit, and a sum that the core itself clips and adds.
    if not adjacency.of_person:
        return Refused(f"{query.name!r} clips persons, and a record is the unit: declare people")
    if not sums_exactly(learner):
        return Refused(f"{query.name!r} clips persons, which the sums of the core alone do")
    if adjacency.records > MOST_RECORDS:
        return Refused(f"{query.name!r} takes at most {MOST_RECORDS} records of a person")
    # The bound's own path gives premises and solver error; its value is replaced below.
    path = of_persons(query, ADD_REMOVE.of_persons(adjacency.records), claim)
    if not isinstance(path, Sensitivity):
        return path
    value, origin = _bound_length(query.sum, adjacency.records)
    # L is for one who comes or goes. A replacement is one of each.
    if not adjacency.membership:
        value = _bound_replacement(value, query)
    return attrs.evolve(
        path,
        value=value,
        range=None,
        adjacency=adjacency,
        premises=_premises(learner, path),
        source=f"an exact sum over persons, of whom each adds at most {origin}",
        covers_fallback=False,
    )


def _premises(learner: AnyLearner, path: Sensitivity) -> tuple[str, ...]:
    """Of the path; and that contributions are row by row, where a bound speaks of `partial`."""
    is_row_wise = (
        isinstance(learner, SummingLearner) and not learner.isolate and proves_partial(learner)
    )
    return tuple(dict.fromkeys((*path.premises, *((ROW_WISE,) if is_row_wise else ()))))


def _bound_length(clipped_sum: Sum, records: int) -> tuple[float, str]:
    """L, the most that one person adds, and where it comes from, in words."""
    assert clipped_sum.person is not None, "the query clips persons"
    full_length = times(clipped_sum.clip, records)
    # A clip that no person reaches changes nothing, so that the guarantee does not name it.
    if clipped_sum.person < _MARGIN * full_length:
        return clipped_sum.person, f"{clipped_sum.person!r} (clipped)"
    return full_length, f"{records} times {clipped_sum.clip!r}"


def _bound_replacement(longest: float, query: SumQuery) -> float:
    """What a replaced person moves; rounded up."""
    # No entry of either vector is negative and none exceeds L: nor does any difference of them.
    is_non_negative = query.sum.sign == "non_negative"
    if is_non_negative and (query.distance is Distance.LINF or query.real_size == 1):
        return longest
    # |a - b|^2 = |a|^2 + |b|^2 - 2 ab, where ab is not negative: at most 2 L^2.
    if is_non_negative and query.distance is Distance.L2:
        return up(math.sqrt(2.0) * longest, roundings=2)
    return 2 * longest
