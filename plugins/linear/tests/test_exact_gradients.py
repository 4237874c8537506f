"""Sums of clipped gradients and rows are exact: the conformance suite's laws, and what a plan then
claims.
"""

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Public,
    PublicRandomness,
    SecretRandomness,
)
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table, project_table
from dpcore.exact import Exact
from dpcore.models.features.base import Features, row_by_row
from dpcore.models.features.identity import Identity
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import LAWS, sum_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_linear.affine import Affine
from dpcore_linear.chosen_ridge import ChosenRidge, ChosenRidgeBound
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.staged_gradient import StagedGradient, StagedGradientBound
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.features.cosines import Cosines
from dpcore_models.learners.best_of import BestOf

from doubles import domain, table

PLAIN = ClippedGradient(features=Identity(), clip=0.4, steps=3)
SUMS = SufficientStatistics(features=Identity())
FACTS = domain(norm=1.0)
TWO = attrs.evolve(FACTS, labels=Classes(values=("no", "yes")))


def public(facts=FACTS):
    return Public(domain=facts, randomness=PublicRandomness(1), mu=0.5)


@pytest.mark.parametrize(
    ("learner", "bound", "facts"),
    [
        (PLAIN, ClippedGradientBound(), FACTS),
        (attrs.evolve(PLAIN, features=Affine(features=Identity())), ClippedGradientBound(), FACTS),
        (attrs.evolve(PLAIN, features=CosSin(count=20)), ClippedGradientBound(), FACTS),
        (attrs.evolve(PLAIN, loss="logistic"), ClippedGradientBound(), TWO),
        (attrs.evolve(PLAIN, isolate=True), ClippedGradientBound(), FACTS),
        (SUMS, SufficientStatisticsBound(), FACTS),
        (attrs.evolve(SUMS, features=CosSin(count=6), gram_weight=3.0),
         SufficientStatisticsBound(), FACTS),
        (ChosenRidge(features=Identity()), ChosenRidgeBound(), FACTS),
        pytest.param(StagedGradient(), StagedGradientBound(), FACTS, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_laws_of_sums_hold(learner, bound, facts):
    case = Case(learner=learner, bound=bound, domain=facts, adjacency=REPLACE_ONE)
    verdicts = sum_verdicts(case)
    outcomes = {verdict.law.id: verdict.outcome for verdict in verdicts}
    # None of them cuts a column into cells.
    assert outcomes.pop("sum.cells-at-edges") is Outcome.NOT_APPLICABLE
    assert {*outcomes.values()} == {Outcome.PASSED}
    assert len(outcomes) == len(LAWS) - 1


class Product(Features):
    """Rows of a matrix product of floats."""

    def __call__(self, encoded):
        wide = np.cos(np.outer(encoded.sum(axis=1), np.arange(80)))
        return wide @ np.random.default_rng(3).normal(size=(80, 40))


def test_a_feature_map_by_a_matrix_product_is_taken_row_by_row():
    """As a block, its last bits depend on a row's place."""
    rows = encode_table(FACTS, table(records=60))
    single = np.vstack([Product()(rows[i : i + 1]) for i in range(len(rows))])
    assert not np.array_equal(Product()(rows), single)
    assert np.array_equal(row_by_row(Product(), rows, 40), single)


@pytest.mark.parametrize("features", [Identity(), CosSin(count=20), Cosines(count=20)])
def test_maps_that_say_so_are_functions_of_one_row(features):
    drawn = features.draw(FACTS, PublicRandomness(1))
    rows = encode_table(FACTS, table(records=60))
    assert drawn.row_wise
    single = np.vstack([drawn(rows[i : i + 1]) for i in range(len(rows))])
    assert np.array_equal(drawn(rows), single)


@pytest.mark.parametrize("count", [10, 10**6, 10**12])
def test_claims_do_not_grow_with_the_records(count):
    facts = public(domain(records=count, norm=1.0))
    (query,) = PLAIN.queries(facts)
    claims = [
        ClippedGradientBound().sensitivity(query, PLAIN, facts, relation)
        for relation in (ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL)
    ]
    clip = PLAIN.scaled_clip(facts.domain)
    assert [claim.value for claim in claims] == [clip, 2 * clip, 2 * clip]
    assert [claim.solver_error for claim in claims] == [0, 0, 0]
    loose = attrs.evolve(PLAIN, clip=50.0)
    (query,) = loose.queries(facts)
    label = ClippedGradientBound().sensitivity(query, loose, facts, REPLACE_LABEL)
    assert 2 < label.value < 2.0001


def test_a_chosen_candidate_keeps_its_exact_sum():
    learner = BestOf(candidates=(PLAIN, attrs.evolve(PLAIN, clip=0.2)))
    facts = public()
    query = attrs.evolve(learner.queries(facts)[0], args={"weights": np.array([0.3, -0.2])})
    records = project_table(FACTS, table())
    randomness = SecretRandomness.rehearsal(0).learner(0, "q", 1)
    assert isinstance(learner.statistic(query, records, facts, randomness), Exact)
