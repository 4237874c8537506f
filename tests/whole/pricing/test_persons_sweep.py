"""Every learner that accepts persons, attacked with one person's 1 to 5 records."""

import attrs
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.bound import Refused
from dpcore.domain.domain import People
from dpcore.models.features.identity import Identity
from dpcore.registry.kinds import BOUND, LEARNER
from dpcore.registry.registry import Registry
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort

from doubles import domain

RIDGE = {"features": Identity(), "total_regularization": 500.0}
COLUMN = {"column": "a"}
LEARNERS = {
    "explainable_boosting.cyclic": {"rounds": 2, "bins": 2},
    "hessian_mixing.newton": {},
    "kernel_ridge.huber_ridge": {"total_regularization": 50.0, "clip": 0.5},
    "kernel_ridge.ridge": {"regularization": 0.5},
    "linear.chosen_ridge": {"features": Identity()},
    "linear.clipped_gradient": {"features": Identity(), "clip": 0.3, "steps": 2},
    "linear.output_perturbation": {**RIDGE, "clip": 0.5},
    "linear.staged_gradient": {},
    "linear.sufficient_statistics": {"features": Identity()},
    "linear.sufficient_statistics, clip: person": {"features": Identity(), "clip": "person"},
    "ntk.central": {},
    "ntk.regression": {"regularization": 0.5},
    "random_features.ball_ridge": {**RIDGE, "radius": 0.02},
    "random_features.huber_ridge": {**RIDGE, "clip": 0.5},
    "random_features.projected_min_norm": {"features": Identity(), "radius": 0.1},
    "random_features.ridge": {"features": Identity(), "regularization": 0.5},
    "sgd.banded": {"steps": 6, "groups": 2, "bands": 2},
    "sgd.regression": {},
    "statistics.bounded_mean": COLUMN,
    "statistics.count": {},
    "statistics.count, some": {"where": {"a": {"from": 0}}},
    "statistics.count, of: persons": {"of": "persons"},
    "statistics.count, by": {"by": ("a",), "bins": {"a": 3}},
    "statistics.covariance": {**COLUMN, "other": "b"},
    "statistics.distinct": {"of": ("a",), "bins": {"a": 16}},
    "statistics.distinct, few": {"of": ("a",), "bins": {"a": 2}},
    "statistics.group_by": {"by": ("a",), "bins": {"a": 3}, "column": "b"},
    "statistics.histogram": {**COLUMN, "bins": 4},
    "statistics.histogram, of: persons": {**COLUMN, "bins": 4, "of": "persons"},
    "statistics.marginals": {"columns": ("a", "b"), "bins": {"a": 2, "b": 3}},
    "statistics.mean": COLUMN,
    "statistics.mean, by": {**COLUMN, "by": ("b",), "bins": {"b": 3}},
    "statistics.mean, clip: person": {**COLUMN, "clip": "person", "counts_for": 2.0},
    "statistics.quantiles": {**COLUMN, "quantiles": (0.5, 0.9), "points": 11},
    "statistics.running": {**COLUMN, "edges": (-1.0, 0.0, 1.0)},
    "statistics.running, of: persons": {**COLUMN, "edges": (-1.0, 0.0, 1.0), "of": "persons"},
    "statistics.running, sums, clip: person": {
        **COLUMN,
        "edges": (-1.0, 0.0, 1.0),
        "amount": "b",
        "clip": "person",
        "counts_for": 2.0,
    },
    "statistics.share": {"meets": {"a": {"from": 0}}},
    "statistics.sum": COLUMN,
    "statistics.table": {"marginals": {"one": ("a",), "other": ("b",)}, "bins": {"a": 2, "b": 3}},
    "statistics.table, of: persons": {
        "marginals": {"one": ("a",), "other": ("b",)},
        "bins": {"a": 2, "b": 3},
        "of": "persons",
    },
    "statistics.top": {**COLUMN, "bins": 4, "k": 2},
    "statistics.variance": COLUMN,
    "statistics.workload": {**COLUMN, "bins": 8, "ask_for": "prefixes"},
    "statistics.workload, of: persons": {**COLUMN, "bins": 8, "of": "persons"},
    "synthetic.rows": {"columns": ("a", "b"), "bins": {"a": 2, "b": 3}},
    "tables.shape_functions": {"expected_records": 100},
    "training.network": {"steps": 2},
}

APART = {
    "best_of": "a choice among other learners, which are here",
    "explainable_boosting.printed": "its only claim is refuted",
    "hessian_mixing.eigenvalue": "its only claim is refuted",
    "linear.logistic": "needs records that are independent draws",
    "linear.ols": "needs records that are independent draws",
    "ntk.printed": "needs an assumption",
    "objective_perturbation.regression": "its mechanism counts on one record",
    "random_features.min_norm": "needs an assumption",
    "shifted_interpolation.descent": "its mechanism counts on one record",
    "statistics.group_errors": "reads predictions of another release",
    "statistics.group_parity": "reads predictions of another release",
    "statistics.group_rates": "reads predictions of another release",
    "statistics.prediction_interval": "reads predictions of another release",
    "statistics.private_groups": "its mechanism counts on one record",
    "statistics.private_keys": "its mechanism counts on one record",
    "statistics.ratio": "needs a column of numbers not below 0",
    "training.best_run": "its mechanism counts on one record",
}
REFUSED = {
    "kernel_ridge.ridge": "reads the public number of records",
    "linear.staged_gradient": "reads the public number of records",
    "ntk.central": "reads the public number of records",
    "ntk.regression": "reads the public number of records",
    "random_features.ridge": "reads the public number of records",
    "sgd.regression": "a distribution over orders of records",
}
NOT_ATTAINED = {  # where fewer than 95 of 100 are reached: of which relation, how many, and why
    ("linear.chosen_ridge", "statistics"): (REPLACE_ONE, 0.94, "T9 for one record, too"),
    ("linear.sufficient_statistics", "statistics"): (REPLACE_ONE, 0.94, "T9 for one record, too"),
    ("linear.sufficient_statistics, clip: person", "statistics"): (
        REPLACE_ONE,
        0.8,
        "twice the clip: no two matrices of squares are opposite",
    ),
    ("statistics.histogram, of: persons", "counts"): (
        REPLACE_ONE,
        0.7,
        "the search meets no two persons in all different cells; brute force over persons does",
    ),
    ("statistics.table, of: persons", "cells"): (
        REPLACE_ONE,
        0.7,
        "the search meets no two persons in all different cells; brute force over persons does",
    ),
    ("statistics.mean, clip: person", "mean"): (
        REPLACE_ONE,
        0.81,
        "twice the clip: counts next to the sums cannot be opposite",
    ),
}


def cases(name, relation, records, limit=300):
    """Of one learner under each of its bounds that answers."""
    registry = Registry.default()
    learner = registry.component(LEARNER, name.split(",")[0])(**LEARNERS[name])
    facts = attrs.evolve(
        domain(), exact=None, limit=limit, people=People(column="id", records=records)
    )
    for bound in learner.bounds:
        made = registry.component(BOUND, bound)() if isinstance(bound, str) else bound
        found = Case(
            learner=learner, bound=made, domain=facts, adjacency=relation.of_persons(records)
        )
        if made.is_about(learner) and not isinstance(found.claims(), Refused):
            yield found


def test_every_learner_is_here_or_set_apart():
    named = {name.split(",")[0] for name in LEARNERS}
    assert {*Registry.default().names(LEARNER)} == named | {*APART}


@pytest.mark.parametrize("name", REFUSED)
def test_learners_without_a_claim_for_persons_are_refused(name):
    for relation in (ADD_REMOVE, REPLACE_ONE):
        assert [*cases(name, relation, 2)] == []


@pytest.mark.slow
@pytest.mark.parametrize("records", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in REFUSED])
def test_the_attack_reaches_every_bound_and_passes_none(name, relation, records):
    made = [*cases(name, relation, records)]
    assert made
    for case in made:
        lacking = {query.name for query, _ in case.claims()}
        for seed in range(4):  # that a bound is reached needs one search only
            for finding in falsify(case, Effort(pairs=200), seed=seed) if lacking else ():
                assert not finding.broken
                of, least, _ = NOT_ATTAINED.get((name, finding.query), (None, 0.95, ""))
                if finding.worst > (least if of is relation else 0.95):
                    lacking -= {finding.query}
        assert not lacking
