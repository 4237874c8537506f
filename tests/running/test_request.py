"""A request is all that a plan is priced from, however it is given."""

import pytest

from dpcore import REPLACE_ONE, PrivacyBudget, PublicRandomness, Release, Request, price
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.request import Accepted, Intake
from dpcore.errors import SpecError
from dpcore.published.formats import FORMAT, format_of
from dpcore.published.lock import describe

from doubles import LabelMean, LabelMeanBound, domain

FACTS = {
    "domain": domain(40),
    "adjacency": REPLACE_ONE,
    "budget": PrivacyBudget(epsilon=1, delta=1e-5),
}
STYLE = format_of(FORMAT)
ONE = {"learner": LabelMean(), "mechanism": Gaussian(), "bound": LabelMeanBound()}


def test_a_request_its_fields_and_one_release_give_one_plan():
    request = Request(**FACTS, releases=[Release(**ONE)], randomness=PublicRandomness(7))
    plans = [
        price(request),
        price(**FACTS, releases=(Release(**ONE),), randomness=PublicRandomness(7)),
        price(**FACTS, **ONE, randomness=PublicRandomness(7)),
    ]
    assert [describe(plan, STYLE) for plan in plans] == [describe(plans[0], STYLE)] * 3
    assert plans[0].request is not None
    assert {plan.randomness for plan in plans} == {PublicRandomness(7)}


def test_fields_change_a_request_and_leave_the_given_one_alone():
    request = Request(**FACTS, releases=[Release(**ONE)])
    other = price(request, budget=PrivacyBudget(epsilon=2, delta=1e-5))
    assert other.request.budget.epsilon == 2
    assert request.budget.epsilon == 1
    assert other.guarantee.epsilon > price(request).guarantee.epsilon


def test_flat_keywords_go_to_the_parts_of_a_request():
    flat = {"sealed": True, "holdout": 0.5, "accept_delta": True, "premises": ["p"]}
    request = Request.of(**FACTS, **ONE, **flat)
    assert request.records == Intake(sealed=True, holdout=0.5, on_invalid="project")
    assert request.accepted == Accepted(delta=True, premises=("p",))
    other = Request.of(request, holdout=0.25, reproduce=True)
    assert other.records == Intake(sealed=True, holdout=0.25)
    assert other.accepted == Accepted(delta=True, premises=("p",), reproduce=True)
    assert other.releases is request.releases


def test_neighbours_of_one_group_are_calibrated_together():
    numbers = (0, 0, 1)
    releases = [Release(**ONE, name=f"r{n}", group=group) for n, group in enumerate(numbers)]
    plan = price(**FACTS, releases=releases)
    assert [len(group) for group in plan.request.groups] == [2, 1]
    first, second, third = (
        planned_query.mechanism.noise_multiplier for planned_query in plan.schedule.queries
    )
    assert first == second
    assert first == pytest.approx(third * 2**0.5)
    assert plan.guarantee.epsilon > 1


def test_an_unknown_field_and_half_a_release_are_errors():
    for field in ("epsilon", "separate"):
        with pytest.raises(TypeError, match=field):
            price(**FACTS, **ONE, **{field: 1})
    with pytest.raises(TypeError, match="holdout"):
        Request(**FACTS, releases=[Release(**ONE)], holdout=0.5)
    with pytest.raises(SpecError, match="either releases, or a learner"):
        price(**FACTS)
    with pytest.raises(SpecError, match="either releases, or a learner"):
        price(**FACTS, **ONE, releases=[Release(**ONE)])
