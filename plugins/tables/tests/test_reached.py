"""The pairs of neighbours that the proof names: every query moves as far as its bound, no further.

A person's records are copies of one record, which add up; others cancel, as sums are exact. What a
record can be at its most distant is in the comment of each pair; where records have weights, theirs
are at the end of the range, and the others' are far below it.
"""

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Records
from dpcore.domain import Classes
from dpcore.encoding.columns import centre_labels
from dpcore_attacks.attacks.given_pair import misfit
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_tables import shape_functions
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout

from shape_cases import BUDGETS, case_of, queries_of

OTHERS = 50
USUAL = [0.2, 1.0, 0.0, 0.0, -0.3]  # an encoded row: a, c, b


def labels_of(case):
    """The two that are most distant apart."""
    known = case.domain.labels
    ends = known.values[:2] if isinstance(known, Classes) else (known.low, known.high)
    return [float(one) for one in centre_labels(case.domain.labels, np.array(ends))]


def rows_of(query, case):
    """Encoded rows of the two records, and their labels."""
    low, high = labels_of(case)
    first, second = USUAL.copy(), USUAL.copy()
    if query.name == "means":  # opposite corners, both longer than c
        first[0], first[4], second[0], second[4] = 1.0, 1.0, -1.0, -1.0
    elif query.name == "squares":  # orthogonal, each longer than c2
        first[0], first[4], second[0], second[4] = 1.0, 0.0, 0.0, 1.0
    elif query.name == "bins":  # no histogram counts both in one bin
        first[0], first[4], second[0], second[4] = 0.5, 0.5, -0.5, -0.5
    elif query.name in ("table.counts", "categories"):  # others: none counts both in one
        second[1:4] = [0.0, 1.0, 0.0]
    elif query.name == "slope.directions":  # on either side of the constant: orthogonal, 1 long
        first[0], second[0] = -1.0, 1.0
    elif query.name.endswith("metric"):  # orthogonal, 1 long
        first, second = orthogonal(query, case)
    elif query.name.endswith("residuals"):  # one residual is 0, the other is not
        return first, second, limit(0.5 * (low + high), low, high, case)
    elif query.name == "spread":  # at the mean, and farther from it than 1/4
        return first, second, (0.5 * (low + high), high)
    elif query.name == "scores.pulls":  # a class is certain, and the record is of the other one
        first[0], second[0] = 1.0, -1.0
    elif query.name.endswith("balance"):  # one prediction is 0, the other eight means or more
        first[0], second[0] = -1.0, 1.0
    return first, second, (low, high)  # gradients: the same row, opposite residuals


def limit(middle, low, high, case):
    return (low, high) if case.domain.classes else (middle, high)


def rising(query):
    """With weights that no answer of 0 leads to: predictions rise steeply with the first column."""
    weights, terms = np.zeros(query.args["weights"].shape), query.args["terms"]
    weights[1:, 0] = 1e3 * ((terms[:, 0] == 0) & (terms[:, 1] == 0) & (terms[:, 2] == -1))
    return query.with_args({**query.args, "weights": weights})


def certain(query):
    """With scores of which the first column by itself makes either class certain, and a direction
    that is the same for all records and far longer than the constant."""
    weights, terms = np.zeros(query.args["weights"].shape), query.args["terms"]
    slopes = 1e3 * ((terms[:, 0] == 0) & (terms[:, 1] == 0) & (terms[:, 2] == -1))
    weights[1:, -1 if weights.shape[1] == 1 else 1] = slopes
    if weights.shape[1] > 1:
        weights[1:, 0] = -slopes
    directions = np.zeros(query.args["directions"].shape)
    directions[0, 0] = 1e3
    return query.with_args({**query.args, "weights": weights, "directions": directions})


def orthogonal(query, case):
    """Of 500 drawn rows that are 1 long, the two whose product is nearest to 0: one of 0.03 leaves
    0.9995 of the bound."""
    rng = np.random.default_rng(0)
    drawn = np.zeros((500, 5))
    drawn[:, [0, 4]] = rng.uniform(-1, 1, (500, 2))
    drawn[np.arange(500), 1 + rng.integers(3, size=500)] = 1.0
    layout = Layout.of(case.domain, case.learner.weight)
    rows = Dictionary.from_args(layout, query.args).rows(drawn)
    long = np.linalg.norm(rows, axis=0) > 1 - 1e-9
    drawn, products = drawn[long], np.abs(rows[:, long].T @ rows[:, long])
    return drawn[list(np.unravel_index(np.argmin(products), products.shape))]


def table(case, rows, labels, weight=1.0):
    """Sixty records at most: the others are alike."""
    others = OTHERS if case.domain.exact is None else 60 - 1
    features = np.array([USUAL] * others + rows, dtype=np.float64)
    if case.learner.weight is not None:  # the others have a tenth of the weight
        weights = np.array([[-0.8]] * others + [[weight]] * len(rows))
        features = np.hstack([features, weights])
    return Records(
        features=features,
        labels=np.array([labels_of(case)[0]] * others + labels, dtype=np.float64),
    )


def pair_of(query, case):
    first, second, (one, other) = rows_of(query, case)
    times = max(case.domain.people.records if case.domain.people else 1, 1)
    after = table(case, [list(second)] * times, [other] * times)
    counted = query.name == "count"
    gone = case.adjacency.membership or (counted and case.domain.exact is None)
    # Where the number is public, a count is of weights: one record has none.
    light = -1.0 if counted else 1.0
    old = ([], []) if gone else ([list(first)] * times, [one] * times, light)
    before = table(case, *old)
    return Pair(before=before, after=after, changed=len(after) - times, count=times)


@pytest.mark.parametrize("records", [0, 3], ids=lambda k: f"{k} records" if k else "one")
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("kind", BUDGETS)
def test_the_pair_of_the_proof_reaches_every_bound(kind, relation, records):
    require_reached(kind, relation, records)


@pytest.mark.parametrize("records", [0, 3], ids=lambda k: f"{k} records" if k else "one")
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("kind", ["number, tables", "several", "number, gamma, weighted"])
def test_so_does_it_where_rows_are_kept_in_two_bytes(kind, relation, records, monkeypatch):
    monkeypatch.setattr(shape_functions, "_WIDE", 0)
    require_reached(kind, relation, records)


def require_reached(kind, relation, records):
    case = case_of(kind, relation, records)
    asked, public = queries_of(case), case.public
    plain = {"small", "shifted"} & {*kind.split(", ")}
    assert any(name.endswith("metric") for name in asked) is (not plain)
    assert ("categories" in asked) is kind.startswith("two, small")
    for query, claim in case.claims():
        planned_query = asked[query.name]
        if query.name.endswith("balance"):
            planned_query = rising(planned_query)
        if query.name == "scores.pulls":
            planned_query = certain(planned_query)
        pair = pair_of(planned_query, case)
        assert misfit(pair, case) == "", query.name
        before, after = (
            case.learner.total_of(planned_query, one, public).floats()
            for one in (pair.before, pair.after)
        )
        moved = float(np.linalg.norm(after - before)) / claim.value
        assert 0.999 < moved <= 1.0, (query.name, moved)
