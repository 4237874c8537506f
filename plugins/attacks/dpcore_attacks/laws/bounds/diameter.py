"""The diameter that a bound states of all outputs, attacked by the outputs of many datasets."""

from functools import partial
from itertools import combinations, islice

import numpy as np

from dpcore import Refused, Sensitivity
from dpcore.functions import Process
from dpcore_attacks.attacks.claim import Target
from dpcore_attacks.attacks.constructions import starts
from dpcore_attacks.attacks.movement import ALLOWANCE, measurable, movement
from dpcore_attacks.attacks.neighbours import pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge, skip_if

DIAMETER = Law(
    "bound.diameter", "No two outputs lie farther apart than the stated diameter (attacked)."
)

_DATASETS, _RECORDS = 40, 20


def diameter_verdict(case: Case, subject: str, seed: int) -> Verdict:
    """Return the law of one bound, by the outputs of many datasets, neighbours or not."""
    return judge(DIAMETER, subject, partial(_diameter_holds, case, seed))


def _diameter_holds(case: Case, seed: int) -> str:
    claims = case.safe_claims()
    stated = [
        (query, claim)
        for query, claim in (() if isinstance(claims, Refused) else claims)
        if isinstance(claim, Sensitivity) and claim.diameter is not None and measurable(query)
    ]
    skip_if(not stated, "it states no diameter")
    rows, rng, widest = Rows(case.domain), np.random.default_rng(seed), 0.0
    size = case.domain.exact or min(case.domain.at_most or _RECORDS, _RECORDS)
    for query, claim in stated:
        target = Target(case=case, query=queries_of(case, query.name, rng)[0], claim=claim)
        pairs = (
            pair_of(configuration, rows, case.adjacency)
            for configuration in islice(starts(rows, size - 1, rng), _DATASETS)
        )
        drawn = (target.value(records)[0] for pair in pairs for records in target.drawn_pair(pair))
        values = [value for value in drawn if value is not None and not isinstance(value, Process)]
        # Computed statistics may err on either dataset.
        limit = (claim.diameter or 0.0) + 2 * claim.solver_error
        for first, second in combinations(values, 2):
            widest = max(widest, movement(claim.distance, first, second, 0) / limit)
        fail_if(
            widest > 1 + ALLOWANCE,
            f"{query.name!r}: two outputs lie {widest:.4g} times the stated diameter apart",
        )
    return f"{_DATASETS} pairs of datasets, up to {widest:.4g} of what is stated"
