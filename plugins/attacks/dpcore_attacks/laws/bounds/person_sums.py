"""What sums that clip persons promise, by equality of bits on synthetic records of few persons."""

import copy
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
    Distance,
    DpcoreError,
    Public,
    Query,
    Records,
    Refused,
    SummingLearner,
    SumQuery,
)
from dpcore.claims.pricing.unit_claims import clips_persons
from dpcore.exact import Exact
from dpcore.summing import sums_exactly
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.laws.bounds.sums import exact_ratio, universe
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge, skip_if

WHOLE = Law(
    "sum.person-whole",
    "A sum that clips persons is that of its persons one by one, in any order: equal integers.",
)
CLIPPED = Law(
    "sum.person-clipped",
    "No person's sum is longer than the clip of a person, in exact rational arithmetic, however "
    "many records they have.",
)

APART = Law(
    "sum.person-apart",
    "No two persons, nor one and no one, add vectors that are farther apart than is claimed of a "
    "replaced person, in exact rational arithmetic.",
)

LAWS = (WHOLE, CLIPPED, APART)

Total = Callable[[SummingLearner, Query, Records, Public], Exact]
"""A sum over records that says whose they are."""

_PERSONS = 7
_MOST = 60  # records of one of them
_QUERIES = 2  # of each query
_PAIRS = 40  # persons that a search for two begins with
_STEPS = 200  # records that it tries to change


def by_core(learner: SummingLearner, query: Query, records: Records, public: Public) -> Exact:
    """Return the sum of every run."""
    return copy.deepcopy(learner).total_of(query, records, public)


def person_sum_verdicts(case: Case, total: Total = by_core, seed: int = 0) -> list[Verdict]:
    """Return the laws of one learner whose queries clip persons; none of any other."""
    queries = _sum_queries(case, seed)
    if not queries:
        return []
    subject = f"{type(case.learner).__name__}, {case.adjacency}"
    trial = _Trial(case, queries, total, _records(case, seed))
    return [
        judge(WHOLE, subject, partial(_persons_add_up, trial, seed)),
        judge(CLIPPED, subject, partial(_clipped, trial)),
        judge(APART, subject, partial(_apart, case, total, seed)),
    ]


@attrs.frozen(eq=False)
class _Trial:
    """A case with its queries, synthetic records and the sum that is put to the test."""

    case: Case
    queries: tuple[SumQuery, ...]
    total: Total
    records: Records

    def sum_of_rows(self, query: Query, rows: NDArray[Any]) -> Exact:
        learner = self.case.learner
        assert isinstance(learner, SummingLearner), "its sums are the core's"
        return self.total(learner, query, self.records.take(rows), self.case.public)

    @property
    def persons(self) -> NDArray[np.int32]:
        assert self.records.persons is not None, "they were made up with their persons"
        return self.records.persons


def _sum_queries(case: Case, seed: int) -> tuple[SumQuery, ...]:
    if not sums_exactly(case.learner):
        return ()
    try:
        planned = case.learner.queries(case.public)
    except DpcoreError:
        return ()
    clipping = [query for query in planned if clips_persons(query)]
    rng = np.random.default_rng([seed, 5])
    queries = [
        planned_query
        for query in clipping
        for planned_query in queries_of(case, query.name, rng)[:_QUERIES]
    ]
    return tuple(planned_query for planned_query in queries if clips_persons(planned_query))


def _records(case: Case, seed: int) -> Records:
    """Persons with 1 to many records, mixed; the first has one corner, over and over."""
    rows, rng = Rows(case.domain), np.random.default_rng([seed, 4])
    sizes = [_MOST, *rng.integers(1, _MOST, _PERSONS - 1).tolist()]
    owners = np.repeat(np.arange(_PERSONS, dtype=np.int32), sizes)
    blocks = [rows.corners(rng, size) for size in sizes]
    # Equal corners add up instead of cancelling: the longest sum a person can have.
    blocks[0] = np.repeat(blocks[0][:1], _MOST, axis=0)
    blocks[1::2] = [rows.anywhere(rng, size) for size in sizes[1::2]]
    # Persons are mixed, so that a sum over neighbouring rows would cut them apart.
    order = rng.permutation(owners.size)
    labels = rng.choice([-1.0, 1.0, 0.3], owners.size) * rows.label_bound
    labels[:_MOST] = rows.label_bound
    records = rows.project(np.vstack(blocks)[order], labels[order])
    return attrs.evolve(records, persons=owners[order])


def _persons_add_up(trial: _Trial, seed: int) -> str:
    rng = np.random.default_rng([seed, 6])
    for query in trial.queries:
        # Sums are exact integers: equality is to the last bit, whatever the order.
        full_sum = trial.sum_of_rows(query, np.arange(len(trial.records)))
        person_sums = [
            trial.sum_of_rows(query, np.flatnonzero(trial.persons == person))
            for person in range(_PERSONS)
        ]
        fail_if(
            sum(person_sums[1:], person_sums[0]) != full_sum,
            f"{query.name!r}: the whole is not the sum of single persons",
        )
        fail_if(
            trial.sum_of_rows(query, rng.permutation(len(trial.records))) != full_sum,
            f"{query.name!r}: another order gives another sum",
        )
    return f"{len(trial.queries)} sums over {len(trial.records)} records of {_PERSONS} persons"


def _clipped(trial: _Trial) -> str:
    longest = Fraction(0)
    for query in trial.queries:
        clip = query.sum.person
        assert clip is not None, "it clips persons"
        # In units of the grid, as a fraction: no rounding can hide an excess.
        limit = Fraction(clip) / Fraction(2) ** query.sum.unit
        for person in range(_PERSONS):
            integers = trial.sum_of_rows(query, np.flatnonzero(trial.persons == person)).integers()
            ratio = max(exact_ratio(integers, norm, limit) for norm in query.norms)
            fail_if(
                ratio > 1,
                f"{query.name!r}: a person's sum is longer than the clip ({float(ratio):.4g} "
                f"times, squared in l2)",
            )
            longest = max(longest, ratio)
    return f"up to {float(longest):.4g} of the clip (squared in l2)"


def _apart(case: Case, total: Total, seed: int) -> str:
    case = case.under(REPLACE_ONE.of_persons(case.adjacency.records))
    claims = case.safe_claims()
    skip_if(isinstance(claims, Refused), "it claims nothing of replaced persons")
    assert not isinstance(claims, Refused), "skipped above"
    rng, widest = np.random.default_rng([seed, 7]), Fraction(0)
    trial = _Trial(case, _sum_queries(case, seed), total, universe(case.domain, rng))
    for query in trial.queries:
        first, second = _distant_persons(trial, query, rng)
        for planned, claim in claims:
            if planned.name != query.name or claim.distance not in query.norms:
                continue
            limit = Fraction(claim.largest) / Fraction(2) ** query.sum.unit
            # No one's vector is 0, so that either person's length counts too.
            differences = (first, second, [a - b for a, b in zip(first, second, strict=True)])
            ratio = max(exact_ratio(integers, claim.distance, limit) for integers in differences)
            fail_if(
                ratio > 1,
                f"{query.name!r}: two persons are farther apart than is claimed "
                f"({float(ratio):.4g} times, squared in l2)",
            )
            widest = max(widest, ratio)
    return f"up to {float(widest):.4g} of what is claimed (squared in l2)"


def _distant_persons(
    trial: _Trial, query: SumQuery, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return what two persons add who are far apart: random ones, and then one record after
    another.
    """
    size, most = len(trial.records), trial.case.adjacency.records

    def vector(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.array(_integers(trial, query, rows), dtype=float)

    order = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}[query.distance]
    # One of all records, others of few different ones: what a clip or a first record distinguishes.
    persons = [rng.integers(0, size, 1 + number % most) for number in range(_PAIRS)]
    vectors = np.array([vector(rows) for rows in persons])
    distances = [np.linalg.norm(vectors - row, ord=order, axis=1) for row in vectors]
    pair = list(np.unravel_index(int(np.argmax(distances)), (_PAIRS, _PAIRS)))
    rows, sums = [persons[n] for n in pair], [vectors[n] for n in pair]
    best = float(np.max(distances))
    for step in range(_STEPS):
        side = step % 2
        changed = np.resize(rows[side], rng.integers(1, most + 1))
        # One record, or several at once where one by itself would not pay.
        places = rng.integers(changed.size, size=1 + step % 3)
        changed[places] = rng.integers(size, size=places.size)
        vector_after = vector(changed)
        distance = float(np.linalg.norm(vector_after - sums[1 - side], ord=order))
        # Equal ones are taken too, so that a search crosses plains.
        if distance >= best:
            best, rows[side], sums[side] = distance, changed, vector_after
    first, second = (_integers(trial, query, person) for person in rows)
    return first, second


def _integers(trial: _Trial, query: SumQuery, rows: NDArray[np.intp]) -> list[int]:
    """Return what one person of these records adds, in units of the grid."""
    owners = np.zeros(len(trial.records), dtype=np.int32)
    trial = attrs.evolve(trial, records=attrs.evolve(trial.records, persons=owners))
    return [*trial.sum_of_rows(query, rows).integers()]
