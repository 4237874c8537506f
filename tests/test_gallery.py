"""Every wrong component is caught, by the law it breaks; no right one raises an alarm."""

import time

import gallery_wrong as wrong
import pytest
from gallery_right import (
    Ball,
    BallRidge,
    BallRidgeBound,
    HuberRidge,
    HuberRidgeBound,
    ProjectedMinNorm,
    SumRidge,
    SumRidgeAddRemove,
)

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.accountants.auto import AutoAccountant
from dpcore.accountants.basic import BasicAccountant
from dpcore.accountants.gdp import GdpAccountant
from dpcore.conformance.accountant_laws import accountant_verdicts
from dpcore.conformance.bound_laws import bound_verdicts
from dpcore.conformance.case import Case
from dpcore.conformance.event_laws import event_verdicts
from dpcore.conformance.falsifier import Means
from dpcore.conformance.feature_laws import feature_verdicts
from dpcore.conformance.learner_laws import learner_verdicts
from dpcore.conformance.mechanism_laws import events_of, mechanism_cases, mechanism_verdicts
from dpcore.features.cos_sin import CosSin
from dpcore.features.cosines import Cosines
from dpcore.features.identity import Identity
from dpcore.mechanisms.gaussian import Gaussian
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne

from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, domain


def broken(verdicts):
    return {verdict.law.id for verdict in verdicts if verdict.failed}


def alarms(verdicts):
    return [(v.law.id, v.subject, v.detail) for v in verdicts if v.failed]


@pytest.mark.parametrize(
    ("make", "law"), wrong.LEARNERS_AND_BOUNDS, ids=lambda p: getattr(p, "__name__", p)
)
def test_every_wrong_learner_and_bound_is_caught_within_a_minute(make, law):
    started = time.monotonic()
    case = make()
    found = learner_verdicts(case) + bound_verdicts(case, Means(seconds=20, pairs=2000))[0]
    assert law in broken(found)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(("mechanism", "law"), wrong.MECHANISMS)
def test_every_wrong_mechanism_is_caught(mechanism, law):
    caught = (law in broken(mechanism_verdicts(case)) for case in mechanism_cases(mechanism))
    assert any(caught)


@pytest.mark.parametrize(("event", "law"), wrong.EVENTS)
def test_every_wrong_event_is_caught(event, law):
    assert law in broken(event_verdicts(event, "wrong"))


@pytest.mark.parametrize(("accountant", "law"), wrong.ACCOUNTANTS)
def test_every_wrong_accountant_is_caught(accountant, law):
    assert law in broken(accountant_verdicts(accountant))


@pytest.mark.parametrize(("features", "law"), wrong.FEATURES)
def test_every_wrong_feature_map_is_caught(features, law):
    assert law in broken(feature_verdicts(features, domain(10, 3)))


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


def right_cases():
    unit = domain(30, 2, norm=1.0)
    private = domain(30, 2, norm=1.0)
    private = type(private)(
        columns=private.columns, target="y", labels=private.labels, limit=30, norm=1.0
    )
    ridge = Ridge(features=Identity(), regularization=0.1)
    waves = Ridge(features=CosSin(count=4), regularization=0.05)
    return [
        Case(learner=LabelMean(), bound=LabelMeanBound(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=Staged(), bound=StagedBound(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=ridge, bound=RidgeReplaceOne(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=waves, bound=RidgeReplaceOne(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=ProjectedMinNorm(), bound=Ball(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=SumRidge(), bound=SumRidgeAddRemove(), domain=private, adjacency=ADD_REMOVE),
        Case(learner=BallRidge(), bound=BallRidgeBound(), domain=unit, adjacency=REPLACE_ONE),
        Case(learner=HuberRidge(), bound=HuberRidgeBound(), domain=private, adjacency=ADD_REMOVE),
    ]


@pytest.mark.parametrize("case", right_cases(), ids=lambda case: type(case.learner).__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_right_learner_or_bound_raises_an_alarm(case, seed):
    found = learner_verdicts(case, seed)
    found += bound_verdicts(case, Means(seconds=20, pairs=400), seed)[0]
    assert not alarms(found)


# Each statistical check errs with probability at most 1e-6: 20 seeds, 4 queries, 3 checks.
@pytest.mark.parametrize("seed", SEEDS)
def test_no_right_mechanism_event_or_accountant_raises_an_alarm(seed):
    found = []
    for case in mechanism_cases(Gaussian()):
        found += mechanism_verdicts(case, seed)
        if seed == 0:
            found += [v for _, event in events_of(case) for v in event_verdicts(event, case.name)]
    if seed == 0:
        for accountant in (AutoAccountant, BasicAccountant, GdpAccountant):
            found += accountant_verdicts(accountant)
    for features in (Identity(), CosSin(count=3), Cosines(count=3)):
        found += feature_verdicts(features, domain(10, 3), seed)
    assert not alarms(found)
