"""The page of learners and mechanisms says what the plan says, and every refusal what would fit."""

from typing import Any

import attrs
import pytest

from dpcore import Registry, SensitivityBound
from dpcore.bound import Refused
from dpcore.errors import DpcoreError
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.mechanisms.laplace import Laplace
from dpcore.registry.kinds import LEARNER
from dpcore.sensitivity import Sensitivity
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort

from whole import matrix

pytestmark = pytest.mark.slow  # every learner is priced with every mechanism

BEFORE = 57
"""Pairs with a price before bounds were converted."""


@pytest.fixture(scope="module")
def rows():
    return list(matrix.rows(Registry.default()))  # what is no DpcoreError ends here


def test_the_page_is_what_the_plan_answers(rows):
    assert matrix.PAGE.read_text() == matrix.page(rows), "run python tests/whole/matrix.py"


def test_twice_as_many_pairs_have_a_price_as_before_bounds_were_converted(rows):
    assert sum(bool(mark) for _, marks, _ in rows for name, mark in marks.items() if name) >= (
        2 * BEFORE
    )


def test_every_learner_but_the_printed_one_has_a_price_without_a_mechanism(rows):
    assert {name for name, marks, _ in rows if not marks[""]} == {"ntk.printed"}


def test_every_refusal_of_a_mechanism_says_what_would_fit(rows):
    for _, _, reasons in rows:
        for reason in reasons.values():
            if reason.startswith("mechanism "):
                assert any(word in reason for word in (" fit", "choose among", "answer", "take "))


@attrs.frozen(eq=False)
class AsPriced(SensitivityBound):
    """What a plan says of each query, in the norm of its mechanism."""

    asks: Any

    def sensitivity(self, query, learner, public, adjacency):
        claim = self.asks[query.name].sensitivity
        return claim if isinstance(claim, Sensitivity) else Refused("a law is never converted")


@pytest.mark.parametrize("relation", matrix.RELATIONS, ids=str)
@pytest.mark.parametrize("name", sorted({*Registry.default().names(LEARNER)} - matrix.OF_A_MODEL))
def test_no_pair_of_neighbours_moves_a_statistic_farther_than_its_converted_claim(name, relation):
    registry, attacked = Registry.default(), 0
    for mechanism in (Laplace(), Gaussian()):
        try:
            plan = matrix.plan_of(name, mechanism, relation, registry)
        except DpcoreError:
            continue
        for scheduled in plan.schedule.releases:
            asks = scheduled.asks
            if all(ask.sensitivity.distance is ask.query.distance for ask in asks.values()):
                continue
            case = attrs.evolve(Case.of(plan, scheduled), bound=AsPriced(asks))
            findings = [f for f in falsify(case, Effort(pairs=300)) if not f.reason]
            assert not [f for f in findings if f.broken or f.fallback_broken]
            attacked += len(findings)
    if not attacked:
        pytest.skip("no bound of it is converted")
