"""What a learner of exact sums promises, checked by equality of bits on synthetic records."""

import copy
import itertools
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Distance,
    Domain,
    Range,
    Records,
    Refused,
    SummingLearner,
    SumQuery,
)
from dpcore.domain.bins import equal_edges
from dpcore.encoding.tables import project_table
from dpcore.exact import Exact
from dpcore.summing import require_sum, sums_exactly
from dpcore_attacks.attacks.movement import ALLOWANCE
from dpcore_attacks.attacks.rows import Rows, cells_of
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge_all, run_if_planned, skip_if

ADDITIVE = Law(
    "sum.additive",
    "A sum is that of its records one by one, of any split, and in any order: equal integers.",
)
ROW_WISE = Law(
    "sum.row-wise",
    "A record contributes the same bits only, in a block, and among other records, before "
    "anything is rounded.",
)
CLIPPED = Law(
    "sum.clipped",
    "No record's sum is longer than the clip, in exact rational arithmetic.",
)
SMALL_UNIVERSE = Law(
    "sum.small-universe",
    "Among all records of a small universe, none that comes or goes, and none that replaces "
    "another, moves a sum further than is claimed.",
)
CELLS_AT_EDGES = Law(
    "sum.cells-at-edges",
    "A number on an edge counts in the cell that begins there, and the next doubles on either side "
    "in theirs.",
)

LAWS = (ADDITIVE, ROW_WISE, CLIPPED, SMALL_UNIVERSE, CELLS_AT_EDGES)

_RECORDS = 60
_QUERIES = 4  # of each query
_UNIVERSE = 150  # records, of which every pair is compared
_JUMP = 1e-9  # of a contribution: between two doubles, nothing else moves it so far
_MOST_CELLS = 64


def sum_verdicts(case: Case, seed: int = 0) -> list[Verdict]:
    """Return the laws of one learner of exact sums; none of any other learner."""
    if not sums_exactly(case.learner):
        return []
    subject = f"{type(case.learner).__name__}, {case.adjacency}"
    return judge_all(
        {
            ADDITIVE: _additive,
            ROW_WISE: _row_wise,
            CLIPPED: _clipped,
            SMALL_UNIVERSE: _small_universe,
            CELLS_AT_EDGES: _cells_at_edges,
        },
        subject,
        _Sums(case, seed),
    )


class _Sums:
    """Synthetic records of one case, and sums over them by learners that have seen nothing else."""

    def __init__(self, case: Case, seed: int) -> None:
        assert isinstance(case.learner, SummingLearner)
        self.case, self.learner = case, case.learner
        self._seed = seed

    # A new generator with equal draws for each law: no law's records depend on another's.
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self._seed, 3])

    def records(self) -> Records:
        """Corners, anything, and some twice, with labels at the ends of their range and within."""
        rows, rng = Rows(self.case.domain), self.rng()
        third = _RECORDS // 3
        raw = np.vstack([rows.corners(rng, third), rows.anywhere(rng, third)])
        raw = np.vstack([raw, raw[rng.permutation(2 * third)[:third]]])
        labels = rng.choice([-1.0, 1.0, 0.3, -0.7], len(raw)) * rows.label_bound
        return one_each(rows.project(raw, labels))

    @cached_property
    def queries(self) -> list[SumQuery]:
        planned = run_if_planned(self.learner.queries, self.case.public)
        planned_by_query = [
            queries_of(self.case, query.name, self.rng())[:_QUERIES] for query in planned
        ]
        return [
            require_sum(planned_query, self.learner)
            for queries in planned_by_query
            for planned_query in queries
        ]

    def total(self, query: SumQuery, records: Records) -> Exact:
        # A fresh copy each time, so that no sum can lean on what an earlier one left behind.
        return copy.deepcopy(self.learner).total_of(query, records, self.case.public)

    def rows(self, query: SumQuery, records: Records) -> NDArray[Any] | None:
        """Return the contributions as the learner makes them; None where it fails."""
        try:
            contributions = copy.deepcopy(self.learner).contributions(
                query, records, self.case.public
            )
        except Exception:
            return None
        rows = np.asarray(contributions)
        return rows if rows.shape == (len(records), *query.shape) else None


def one_each(records: Records) -> Records:
    """Every record is another person's."""
    return attrs.evolve(records, persons=np.arange(len(records), dtype=np.int32))


def universe(domain: Domain, rng: np.random.Generator) -> Records:
    """Return all combinations of a few cells of every column, or as many of them as are
    compared.
    """
    cells = {name: cells_of(rule) for name, rule in domain.rules.items()}
    count = math.prod(len(values) for values in cells.values())
    if count <= _UNIVERSE:
        combinations = list(itertools.product(*cells.values()))
    else:
        combinations = [
            tuple(column[rng.integers(len(column))] for column in cells.values())
            for _ in range(_UNIVERSE)
        ]
    return one_each(
        project_table(domain, dict(zip(cells, zip(*combinations, strict=True), strict=True)))
    )


def _small_universe(trial: _Sums) -> str:
    """Of an exact sum, what a record moves it by does not depend on the others."""
    records, fractions = universe(trial.case.domain, trial.rng()), []
    for adjacency in (ADD_REMOVE, REPLACE_ONE):
        case = trial.case.under(adjacency)
        claims = case.safe_claims()
        if isinstance(claims, Refused):
            continue
        related = _Sums(case, 0)
        for query in related.queries:
            # A sum is additive, so that single records say what any neighbour moves it by.
            rows = [
                related.total(query, record).floats().reshape(-1) for record in records.singles()
            ]
            for claim in (claim for planned, claim in claims if planned.name == query.name):
                movement = _largest_distance(np.array(rows), claim.distance, adjacency.membership)
                limit = claim.largest
                # `ALLOWANCE` is for this comparison in floats; the claim itself has no slack.
                fail_if(
                    movement > limit * (1 + ALLOWANCE),
                    f"{query.name!r} moves by {movement:.9g} in {claim.distance} under "
                    f"{adjacency}, {limit:.9g} is claimed",
                )
                fractions.append(movement / limit)
    skip_if(not fractions, "it claims nothing of any relation")
    return f"{len(records)} records, up to {max(fractions):.4g} of the claim"


def _largest_distance(rows: NDArray[np.float64], distance: Distance, membership: bool) -> float:
    """Return the longest row, or the largest distance of two."""
    # A record that comes or goes moves the sum by its own row, a replaced one by two rows.
    if membership:
        return float(_lengths(rows, distance).max(initial=0.0))
    return max(float(_lengths(rows - row, distance).max(initial=0.0)) for row in rows)


def _lengths(rows: NDArray[np.float64], distance: Distance) -> NDArray[np.float64]:
    order = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}[distance]
    return np.asarray(np.linalg.norm(rows, ord=order, axis=1))


def _additive(trial: _Sums) -> str:
    records, rng, sums = trial.records(), trial.rng(), 0
    singles = [*records.singles()]
    for query in trial.queries:
        full_sum = trial.total(query, records)
        one_by_one = [trial.total(query, single) for single in singles]
        fail_if(
            sum(one_by_one[1:], one_by_one[0]) != full_sum,
            f"{query.name!r}: the whole is not the sum of single records",
        )
        # Engines sum parts in any order: only exact sums are then the same bits.
        order = rng.permutation(len(records))
        fail_if(
            trial.total(query, records.take(order)) != full_sum,
            f"{query.name!r}: another order gives another sum",
        )
        for cut in (1, int(rng.integers(2, len(records) - 1))):
            parts = [trial.total(query, records.take(rows)) for rows in (order[:cut], order[cut:])]
            fail_if(
                parts[0] + parts[1] != full_sum,
                f"{query.name!r}: two parts do not add up to the whole",
            )
        sums += 1
    return f"{sums} sums over {len(records)} records"


def _row_wise(trial: _Sums) -> str:
    records, compared = trial.records(), 0
    order = trial.rng().permutation(len(records))
    for query in trial.queries:
        expected = trial.rows(query, records)
        if expected is None:
            continue
        # The same record in other company: a matrix product may round its row differently.
        settings = {
            "in another order": (order, records.take(order)),
            "among half of them": (order[::2], records.take(order[::2])),
            **{
                f"alone ({n})": (np.array([n]), record)
                for n, record in enumerate(records.singles())
            },
        }
        for setting, (places, subset) in settings.items():
            contributions = trial.rows(query, subset)
            if contributions is None:
                continue
            # NaN equals NaN here: what fails to be a number is for another law.
            fail_if(
                not np.array_equal(
                    contributions, expected[places], equal_nan=contributions.dtype.kind in "fc"
                ),
                f"{query.name!r}: a record contributes something else {setting}: it depends on "
                f"others, or on its place (a matrix product's rows do)",
            )
            compared += len(places)
    skip_if(not compared, "contributions fail on synthetic records")
    return f"{compared} contributions"


def _clipped(trial: _Sums) -> str:
    longest = 0.0
    for query in trial.queries:
        limit = Fraction(query.sum.clip) / Fraction(2) ** query.sum.unit
        for record in trial.records().singles():
            integers = trial.total(query, record).integers()
            ratio = max(exact_ratio(integers, norm, limit) for norm in query.norms)
            fail_if(
                ratio > 1,
                f"{query.name!r}: a record's sum is longer than the clip ({float(ratio):.4g} "
                f"times, squared in l2)",
            )
            # A declared sign lowers the bound for replacement, so that it must be true.
            fail_if(
                query.sum.sign == "non_negative" and min(integers) < 0,
                f"{query.name!r}: a contribution is negative",
            )
            longest = max(longest, float(ratio))
    return f"longest: {longest:.6g} of the clip (squared in l2)"


def _cells_at_edges(trial: _Sums) -> str:
    """Near a simple fraction of a range, a contribution jumps there or nowhere; unless the learner
    is given numbers of so many digits that one may lie next to such a fraction."""
    domain, rng, rows = trial.case.domain, trial.rng(), Rows(trial.case.domain)
    cuts = trial.learner.cut_columns(domain)
    names = [name for name, rule in domain.rules.items() if type(rule) is Range and name in cuts]
    skip_if(not names, "it cuts no numbers")
    for query, name, count in itertools.product(trial.queries, names, range(2, _MOST_CELLS)):
        column = cast(Range, domain.rules[name])
        begins = np.array(equal_edges(column.low, column.high, count)[1:-1])
        # In a range that is narrow for where it lies, other edges are as near.
        near = min(16 * np.spacing(max(-column.low, column.high)), 1e-8 * column.half_width)
        cells = rows.table(rows.anywhere(rng, 1), rows.label_bound * rng.uniform(-1, 1, 1))
        table = {other: [*values] * (4 * begins.size) for other, values in cells.items()}
        table[name] = [*(begins - near), *np.nextafter(begins, -np.inf), *begins, *(begins + near)]
        vectors = trial.rows(query, one_each(project_table(domain, table)))
        skip_if(vectors is None, "contributions fail on synthetic records")
        moves = np.diff(np.reshape(np.asarray(vectors), (4, begins.size, -1)), axis=0)
        # Of the three moves the second by itself is over an edge.
        fail_if(
            np.abs(moves[::2]).max() > _JUMP and not re.search(r"\.[0-9]{14}", repr(trial.learner)),
            f"{query.name!r}: {name} is cut next to an edge of {count} cells",
        )
    return f"{len(names)} columns in up to {_MOST_CELLS - 1} cells"


def exact_ratio(integers: Sequence[int], distance: Distance, limit: Fraction) -> Fraction:
    """Return a vector's length over a limit; squared in l2, since the root of a fraction is not
    exact.
    """
    if distance is Distance.L2:
        return Fraction(sum(n * n for n in integers)) / limit**2
    sizes = [abs(n) for n in integers]
    return Fraction(max(sizes) if distance is Distance.LINF else sum(sizes)) / limit
