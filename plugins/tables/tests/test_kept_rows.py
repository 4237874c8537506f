"""Rows that are kept between steps, in eight, four or two bytes an entry: sums are exact, the same
from memory, from a spool and of single records, and no row is longer than its bound says."""

import math

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Records
from dpcore.exact import Exact
from dpcore.private.engines.local import BlockKeeper, DerivedBlocks
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.sums import gradients, gram, integer_rows, scores

from shape_cases import BUDGETS, case_of, queries_of


def records_of(case, count=60):
    """Any records of the case's columns, with weights from 0 to 4 where there are some."""
    rng = np.random.default_rng(1)
    features = np.zeros((count, case.domain.width))
    features[:, [0, 4]] = rng.uniform(-1, 1, (count, 2))
    features[np.arange(count), 1 + rng.integers(3, size=count)] = 1.0
    features[:, 5:] = rng.uniform(-1, 1, (count, features.shape[1] - 5))
    classes = case.domain.classes
    labels = rng.integers(3, size=count) if classes > 2 else rng.uniform(-5, 5, count)
    return Records(features=features, labels=np.asarray(labels, dtype=np.float64))


def of_any_weights(query):
    rng = np.random.default_rng(2)
    if "weights" not in query.args:
        return query
    weights = rng.normal(size=query.args["weights"].shape)
    return query.with_args({**query.args, "weights": weights})


QUICK = ("number, tables", "several")


@pytest.mark.parametrize("size", [8, 2])
@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in BUDGETS]
)
def test_sums_are_the_same_integers_from_kept_rows_and_of_single_records(
    kind, relation, size, monkeypatch
):
    monkeypatch.setattr(ShapeFunctions, "_size", lambda self, entries: size)
    case = case_of(kind, relation, 3 if relation is ADD_REMOVE else 0)
    learner, records, blocks = case.learner, records_of(case, 10), DerivedBlocks(None)
    with_spool = Records(
        features=records.features, labels=records.labels, keeper=BlockKeeper(blocks, 0)
    )
    for name, asked in queries_of(case).items():
        query = of_any_weights(asked)
        total = learner.total_of(query, records, case.public)
        # Once more from memory, then twice with a spool, which first makes rows and then has them.
        for again in (records, with_spool, with_spool):
            assert learner.total_of(query, again, case.public) == total, name
        single = [learner.total_of(query, one, case.public) for one in records.singles()]
        assert sum(single, Exact.zeros(query.shape, total.exponent)) == total, name
    blocks.close()


@pytest.mark.parametrize("kind", ["number, tables", "several", "number, jumps, weighted"])
def test_four_bytes_leave_every_bit_and_two_bytes_a_part_in_thousands(kind, monkeypatch):
    case = case_of(kind, REPLACE_ONE, 0)
    for name, asked in queries_of(case).items():
        query, sums = of_any_weights(asked), {}
        for size in (8, 4, 2):
            monkeypatch.setattr(ShapeFunctions, "_size", lambda self, entries, size=size: size)
            sums[size] = case.learner.total_of(query, records_of(case), case.public).floats()
        assert np.array_equal(sums[4], sums[8]), name
        assert np.abs(sums[2] - sums[8]).max() <= 1e-3 * max(np.abs(sums[8]).max(), 1.0), name


def test_rows_of_two_bytes_are_at_most_one_long_and_none_wraps_around():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(7, 300))
    features /= np.linalg.norm(features, axis=0)
    features[:, 0] = np.eye(7)[2]
    rows = integer_rows(features.copy(), 2)
    assert rows.whole.dtype == np.int16
    lengths = (rows.whole.astype(np.int64) ** 2).sum(axis=0)
    assert lengths.max() < 2**30
    assert lengths.min() > 2**30 * (1 - 2**-12)
    for row, phi in zip(rows.whole, features, strict=True):
        assert np.ldexp(row.astype(float), -15) == pytest.approx(phi, abs=2**-13)
    # An entry of 2^15 has no room in two bytes: such a row, and what is no number, becomes zeros.
    wild = integer_rows(np.array([[1.00002, -1.00002, math.nan, math.inf, 1.0]]), 2)
    assert wild.whole.tolist() == [[0, 0, 0, 0, 2**15 - 1]]


def test_products_of_two_bytes_are_those_of_the_same_rows_in_eight():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5, 200))
    features /= 1.1 * np.linalg.norm(features, axis=0)
    short = integer_rows(features, 2)
    wide = integer_rows(features.copy())._replace(whole=np.ldexp(short.floats, 5))
    weights, residuals = rng.normal(size=(5, 3)), rng.normal(size=(3, 200))
    assert np.array_equal(scores(short, weights), scores(wide, weights))
    assert gram(short, 6) == gram(wide, 6)
    assert gradients(short, residuals, 0.3, 6) == gradients(wide, residuals, 0.3, 6)


def test_large_tables_keep_few_bytes_as_their_edition_says():
    sizes = {edition: ShapeFunctions(edition=edition)._size(10**7) for edition in (1, 2)}
    assert sizes == {1: 4, 2: 2}
    assert {ShapeFunctions(edition=edition)._size(10**6) for edition in (1, 2)} == {8}
