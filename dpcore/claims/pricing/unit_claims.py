r"""Claims about units: what theorems about one record say of the unit that a run protects.

A record, or a place, is what a theorem speaks of. For a person one of two more is needed: a path
over their records, or a sum that clips persons. A row that may be left out is a person of at most
one record: replaced, it is one step of either kind, and the larger bound counts.

Bounds of persons: what a theorem about one record says of one person with at most k records.

Add/remove of a person. Their j <= k used records are taken away one after the other; each step is a
pair of neighbours under add/remove, and norms obey the triangle inequality, so that the statistic
moves by at most k times the bound. The premises of the path: the bound holds at every dataset on
it, so that it may not read the exact number of records (it is not given one) nor assume anything of
the records; an upper bound on their number holds all along, since the path only removes.

Replacement of a person: at most k records by at most k others. They are taken away and then put
there, 2k steps. Or as many as both have are replaced one by one, and the rest added or removed: at
most k steps, none longer than the larger of the two bounds. The smaller result counts.

Where a bound says that no output is farther from 0 than it (`covers_fallback`), no two outputs are
farther apart than twice that, whatever a person has; and none are farther apart than the `diameter`
that it states.

A solver's error is of the two ends only and stays what it is. The changes of scores add up like
any norm, and so does their range. A distribution over orders or samples of records, a bound that is
a probability over public randomness or rests on assumptions, and distances that are no norm of the
difference are refused: no path is proved for them.

Persons whose records are clipped together: what one of them moves a sum by, whatever they have.

Theorem: let the statistic be :math:`\sum_p a_p` over persons, with :math:`\|a_p\|\le L`, a function
of that person's records only, added exactly. A person who comes or goes moves it by at most L, one
who is replaced by 2L; where no entry of :math:`a_p` is negative, by :math:`\sqrt2 L` in l2 and L in
linf, and by L if it is one number; and where also none exceeds E, by at most the length of the
vector whose d entries are all E, such as :math:`\sqrt dE` in l2. Here L is the clip P of a person's
sum, or k C where k records, each at most C long, add up to less than that. Where a learner turns
the sum into another vector before it is clipped, L is P, and nothing is proved of E.

One number that is cut off at P moves no farther than it would if it were not: of integers x and y,
:math:`|\mathrm{cut}(x)-\mathrm{cut}(y)|\le|x-y|`. So what a path over records says of a replaced
person holds too. Of values in [-b, a], with both ends above 0, a replaced person moves the sum by
min(P, ka) + min(P, kb); the smaller of 2 P and of k (a + b) is claimed, less than twice as much: a
query declares neither end. Where b is 0 both are P, which is claimed of `non_negative`.

Premise: `dpcore.learners.by_person` makes the sum, so that it is a theorem about learners
whose sums the core adds. What their bound rests on next to that stays a premise.

Bands: when one sum may enter the answers of several queries, and what that costs.

Theorem T16: every record draws one of :math:`b'\ge b` groups by randomness of its own, is seen in
the asks t of its group's turns only (:math:`t\equiv g` modulo :math:`b'`), there with probability
q', and adds a vector :math:`r_t(z;y_{<t})` of length at most L to the sum :math:`x_t`, which is
exact on the release's grid. Ask t releases :math:`y_t=\sum_{i<b}k_ix_{t-i}+Z_t` with spherical
Gaussian noise. Then T asks cost at most :math:`\lceil T/b'\rceil` Poisson samples, with probability
q', of a Gaussian mechanism of sensitivity :math:`\kappa L`, :math:`\kappa=\sqrt{\sum_ik_i^2}`.

Proof: fix all groups (joint convexity) and cut time before each turn of the differing record's
group. In such a block it is seen in the first ask only, and no sum of an earlier block enters a
later one's answers with it, as :math:`b\le b'`. Given the answers before the block its vector u is
fixed. Subtract from each answer its mean without the record, which the earlier answers determine:
one bijection, the same on both sides, since no rounding or clamping lies between sum and noise. The
block becomes Z on one side, and Z + (k_0 u, k_1 u, ...) with probability q' on the other: a shift
of length at most :math:`\kappa L`. Randomness of different turns are independent and the bound
holds for every past, so that blocks compose. []

A person whose records share group and randomness adds one such vector. A replaced record has the
group and the randomness of its place, and u is the difference of two vectors. Where the noise is
not spherical, or a record is seen again while its sum still counts, the theorem is false.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeGuard

import attrs

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.bound import Refused
from dpcore.claims.events.relation_text import write_number
from dpcore.errors import UndeclaredError
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.query import Query, Sum, SumQuery
from dpcore.rounding import up
from dpcore.sampling import Cyclic
from dpcore.sensitivity import AnySensitivity, Distance, Sensitivity, WorstCase
from dpcore.summing import MOST_RECORDS, ROW_WISE, SummingLearner, proves_partial, sums_exactly

_NORMS = (Distance.L1, Distance.L2, Distance.LINF, Distance.RKHS)
_MARGIN = 1.01  # times a person's longest sum: it is not clipped, in spite of any rounding

PERSON_WISE = (
    "what a person adds to a sum depends on the sum of that person's records alone, as the learner "
    "says"
)

Claim = AnySensitivity | Refused


def bound_relation(adjacency: Adjacency) -> Adjacency:
    """Return the relation of a theorem's own step; for a person's records, add/remove."""
    return ADD_REMOVE if adjacency.varies else adjacency


def unit_claim(
    query: Query, learner: AnyLearner, adjacency: Adjacency, claim: Callable[[Adjacency], Claim]
) -> Claim:
    """Return a bound's claim about the unit of a relation, or why it makes none.

    Args:
        query: As planned.
        adjacency: The run's.
        claim: The bound's answer under a relation; it may raise `UndeclaredError`.
    """
    if clips_persons(query):
        return of_clipped_persons(query, learner, adjacency, claim)
    return of_persons(query, adjacency, claim) if adjacency.varies else claim(adjacency)


def explain_unpriced(adjacency: Adjacency, mechanism: AnyMechanism) -> str:
    """Explain why a mechanism's event does not hold for the unit; empty if it does."""
    if mechanism.needs.persons or not adjacency.varies:
        return ""
    return (
        f"no claim about {_many(adjacency)} is proved for mechanism {type(mechanism).__name__}, "
        f"which counts on what one record changes"
    )


def of_persons(query: Query, adjacency: Adjacency, claim: Callable[[Adjacency], Claim]) -> Claim:
    """Return the claim about persons that follows from a bound about records.

    Args:
        query: As planned.
        adjacency: The run's, of a person or of a row.
        claim: The bound's answer under a relation about one record; it may raise `UndeclaredError`.
    """
    if query.sampling is not None and not query.sampling.by_person:
        return Refused(
            f"{type(query.sampling).__name__} draws records, and no claim is proved for a person "
            f"who has several of them"
            if adjacency.of_person
            else f"{type(query.sampling).__name__} draws records, and no claim is proved for one "
            f"that may be left out: under add_remove there may be one"
        )
    # Every path starts with records that are taken away, one by one.
    many = _many(adjacency)
    removal = _check_step(_ask_bound(claim, ADD_REMOVE, adjacency), ADD_REMOVE, many)
    if isinstance(removal, Refused):
        return removal
    steps = adjacency.records
    if adjacency.membership:
        return _take_steps(removal, steps, adjacency, removal.tree)
    replacement = _check_step(_ask_bound(claim, REPLACE_ONE, adjacency), REPLACE_ONE, many)
    # One rule for both kinds of steps derives the path; of two theorems the result is a third.
    same = isinstance(replacement, Sensitivity) and removal.tree == replacement.tree
    tree = removal.tree if same else None
    # k records are taken away and k others put there.
    by_removal = _take_steps(removal, 2 * steps, adjacency, tree)
    if isinstance(replacement, Refused):
        return by_removal
    # Or pairs are replaced, and the rest comes or goes: no step is longer than the larger bound.
    larger_step = attrs.evolve(
        replacement,
        value=max(removal.value, replacement.value),
        range=_larger_range(removal, replacement),
        solver_error=max(removal.solver_error, replacement.solver_error),
        # The smaller one that is stated: both are about the same outputs.
        diameter=min(
            (d for d in (removal.diameter, replacement.diameter) if d is not None), default=None
        ),
        covers_fallback=removal.covers_fallback and replacement.covers_fallback,
        premises=tuple(dict.fromkeys((*removal.premises, *replacement.premises))),
    )
    by_replacement = _take_steps(larger_step, steps, adjacency, tree)
    # Taken only if it is no larger in both: a mechanism may calibrate to either figure.
    return (
        by_replacement
        if by_replacement.unit <= by_removal.unit
        and by_replacement.range_sensitivity <= by_removal.range_sensitivity
        else by_removal
    )


def _many(adjacency: Adjacency) -> str:
    return "persons" if adjacency.of_person else "rows that may be left out"


def _ask_bound(
    claim: Callable[[Adjacency], Claim], relation: Adjacency, adjacency: Adjacency
) -> Claim:
    try:
        return claim(relation)
    except UndeclaredError as error:
        reason = "a person is the unit" if adjacency.of_person else "rows are left out"
        return Refused(
            f"{error.message}; where {reason} it is private, and no bound that needs it holds"
        )


def _check_step(claim: Claim, relation: Adjacency, many: str) -> Sensitivity | Refused:
    """Return a claim about one record of which several steps can be made."""
    if isinstance(claim, Refused):
        return Refused(f"{claim.reason} (of one record, {relation}; {many} need that)")
    if not claim.adjacency.covers(relation):
        return Refused(f"it holds for {claim.adjacency}; {many} need {relation}")
    if not isinstance(claim, Sensitivity):
        return Refused(
            "a distribution over the order of records says nothing of several records at once"
        )
    # The datasets between the ends are no one's data: no assumption about data holds of them.
    if not isinstance(claim.validity, WorstCase):
        return Refused(
            f"{many} need a worst case: what is between their records' steps need not satisfy "
            "what this bound rests on"
        )
    if claim.distance not in _NORMS:
        return Refused(f"no path of several records is proved in the distance {claim.distance}")
    return claim


def _larger_range(first: Sensitivity, second: Sensitivity) -> float | None:
    """Return the larger range of two claims; None where both are twice the value, as is implied."""
    if first.range is None and second.range is None:
        return None
    return max(2 * step.value if step.range is None else step.range for step in (first, second))


def _take_steps(
    claim: Sensitivity, steps: int, adjacency: Adjacency, tree: Mapping[str, Any] | None
) -> Sensitivity:
    """Return the claim of a path of so many steps, rounded up; derive it if one rule does."""
    full_path = times(claim.value, steps)
    # Any two outputs are within twice the bound, by way of 0, whatever lies between them.
    if claim.covers_fallback and claim.range is None:
        steps = min(steps, 2)
    of_unit = "of one person" if adjacency.of_person else "before and after"
    path = f"{steps} times, a path over the records {of_unit}" if steps > 1 else "one record"
    value = times(claim.value, steps)
    if claim.diameter is not None and claim.diameter < value:
        value, path = claim.diameter, "the diameter of all outputs, whatever a person has"
    result = attrs.evolve(
        claim,
        value=value,
        range=None if claim.range is None else times(claim.range, steps),
        adjacency=adjacency,
        source=f"{path}: {claim.source}",
    )
    if tree is None or value != full_path:
        return result
    rule = (
        {"rule": "persons", "of": tree} if adjacency.of_person else {"rule": "larger", "of": [tree]}
    )
    return result.derived(rule)


def times(value: float, steps: int) -> float:
    """Return `steps * value` as a float, rounded up unless exact."""
    product = steps * value
    # Fractions decide whether the float fell short of the product, however little.
    exact = Fraction(product) >= steps * Fraction(value)
    return product if exact else math.nextafter(product, math.inf)


def clips_persons(query: Query) -> TypeGuard[SumQuery]:
    """Return whether what a person adds is clipped."""
    return isinstance(query, SumQuery) and query.sum.person is not None


def of_clipped_persons(
    query: SumQuery, learner: AnyLearner, adjacency: Adjacency, claim: Callable[[Adjacency], Claim]
) -> Claim:
    """Return the sensitivity of a query that clips persons; refuse it if the theorem does not hold.

    Args:
        query: As planned.
        adjacency: The run's.
        claim: The bound's answer under a relation about one record.
    """
    # The theorem needs persons as the unit, and a sum that the core itself clips and adds.
    if not adjacency.of_person:
        return Refused(f"{query.name!r} clips persons, and a record is the unit: declare people")
    if not sums_exactly(learner):
        return Refused(f"{query.name!r} clips persons, which only the core's sums do")
    if adjacency.records > MOST_RECORDS:
        return Refused(f"{query.name!r} takes at most {MOST_RECORDS} records of a person")
    if learner.turns_persons and query.sum.each is not None:
        return Refused(f"{query.name!r} cuts off numbers of sums that are turned into others")
    # The bound's own path gives premises and solver error; its value is replaced below.
    path = of_persons(query, ADD_REMOVE.of_persons(adjacency.records), claim)
    if not isinstance(path, Sensitivity):
        return path
    value, origin = _bound_length(query.sum, adjacency.records, learner.turns_persons)
    # L is for one who comes or goes. A replacement is one of each.
    if not adjacency.membership:
        value = _bound_replacement(value, query)
        if query.real_size == 1 and not learner.turns_persons:
            whole = of_persons(query, adjacency, claim)
            if isinstance(whole, Sensitivity) and whole.largest < value:
                return attrs.evolve(
                    whole, premises=_premises(learner, whole), covers_fallback=False
                )
    result = attrs.evolve(
        path,
        value=value,
        range=None,
        adjacency=adjacency,
        premises=_premises(learner, path),
        source=f"an exact sum over persons, of whom each adds at most {origin}",
        covers_fallback=False,
    )
    # A theorem of the learner's about any two persons is none of the rules.
    is_derived = adjacency.membership or query.sum.diameter is None
    return result.derived(_clipped_tree(query, adjacency, learner)) if is_derived else result


def _clipped_tree(query: SumQuery, adjacency: Adjacency, learner: SummingLearner) -> dict[str, Any]:
    """Return the theorem about clipped persons as a rule of `dpcore-verify`."""
    declaration = query.sum
    assert declaration.person is not None, "the query clips persons"
    # Of a sum that is turned into another vector, the clip by itself is a bound.
    contribution = declaration.person if learner.turns_persons else declaration.clip
    return {
        "rule": "clipped",
        "clip": write_number(declaration.person),
        "contribution": write_number(contribution),
        "records": adjacency.records,
        "sign": "any" if declaration.sign == "acute" else declaration.sign,
        "size": query.real_size,
        "each": None if declaration.each is None else write_number(declaration.each),
    }


def _premises(learner: SummingLearner, path: Sensitivity) -> tuple[str, ...]:
    """Return the path's premises; for a bound on `partial`, also row-by-row contributions."""
    is_row_wise = not learner.isolate and proves_partial(learner)
    return tuple(
        dict.fromkeys(
            [*path.premises, *[ROW_WISE] * is_row_wise, *[PERSON_WISE] * learner.turns_persons]
        )
    )


def _bound_length(clipped_sum: Sum, records: int, is_turned: bool) -> tuple[float, str]:
    """Return L, the most that one person adds, and its origin, in words."""
    assert clipped_sum.person is not None, "the query clips persons"
    full_length = times(clipped_sum.clip, records)
    # A clip that no person reaches changes nothing, so that the guarantee does not name it.
    # Of a sum that is turned into another vector, the clip by itself is a bound.
    if is_turned or clipped_sum.person < _MARGIN * full_length:
        return clipped_sum.person, f"{clipped_sum.person!r} (clipped)"
    return full_length, f"{records} times {clipped_sum.clip!r}"


def _bound_replacement(length: float, query: SumQuery) -> float:
    """Bound the change by a replaced person if none adds more than `length`, rounded up."""
    # No entry of either vector is negative and none exceeds L: nor does any difference of them.
    if query.sum.sign == "non_negative" and (
        query.distance is Distance.LINF or query.real_size == 1
    ):
        return length
    # |a - b|^2 = |a|^2 + |b|^2 - 2 ab, where ab is not negative: at most 2 L^2.
    if query.sum.sign == "non_negative" and query.distance is Distance.L2:
        diameter = up(math.sqrt(2.0) * length, roundings=2)
    else:
        diameter = 2 * length
    # Entries in [0, E] differ by at most E.
    if query.sum.sign == "non_negative" and query.sum.each is not None:
        entries = query.real_size ** (1.0 if query.distance is Distance.L1 else 0.5)
        diameter = min(diameter, up(query.sum.each * entries, roundings=3))
    # The learner's own theorem, where it proves one about any two persons. A person may have no
    # record that is used, so that no such theorem goes below the longest vector.
    return min(diameter, max(length, query.sum.diameter or diameter))


def explain_unbanded(
    query: Query,
    learner: AnyLearner,
    sensitivity: AnySensitivity,
    mechanism: AnyMechanism,
    *,
    single: bool,
) -> str:
    """Explain why the theorem does not cover a query with bands; empty if it does.

    Args:
        single: Whether the release asks nothing else: another query in a block is not covered.
    """
    if not isinstance(query, SumQuery) or query.bands is None:
        return ""
    cutoff, name = len(query.bands), repr(query.name)
    groups = query.sampling.groups if type(query.sampling) is Cyclic else 1
    if cutoff > groups:
        return (
            f"{name} has {cutoff} bands, and a record may be seen again after {groups} asks: take "
            f"Cyclic sampling with {cutoff} groups or more, or {groups} bands"
        )
    is_plain = (
        isinstance(sensitivity, Sensitivity)
        and isinstance(sensitivity.validity, WorstCase)
        and not (sensitivity.solver_error or sensitivity.covers_fallback)
    )
    # Each condition is one that the proof uses; none has a version that costs more instead.
    conditions = {
        "spherical Gaussian noise: take mechanism gaussian": mechanism.needs.bands
        and mechanism.needs.integers,
        "a learner whose sums the core adds (SummingLearner)": sums_exactly(learner),
        "a release that asks nothing else: make it two releases": single,
        f"Sum(sign='any'), not {query.sum.sign!r}": query.sum.sign == "any",
        "a worst case of exact sums, such as `sum`": is_plain,
    }
    unmet = (way for way, is_met in conditions.items() if not is_met)
    return next((f"the bands of {name} need {way}" for way in unmet), "")
