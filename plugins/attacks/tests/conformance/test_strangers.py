"""The attacks that the strangers' set led to: each sees what it is for, and right ones pass."""

import math

import attrs
import numpy as np
import pytest

import dpcore_models
from dpcore import REPLACE_ONE, Refused, Registry
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.event import Claims
from dpcore.models.features.identity import Identity
from dpcore.registry.kinds import LEARNER, MECHANISM
from dpcore_attacks.attacks.oracle_attack import attack
from dpcore_attacks.budget import BUDGET, allot
from dpcore_attacks.commands.test import adjacent
from dpcore_attacks.laboratory.betting_bounds import certified_by_bets
from dpcore_attacks.laboratory.step_statistics import jumps
from dpcore_attacks.laws.accountants.events import event_verdicts
from dpcore_attacks.laws.law import BrokenLawError, Outcome
from dpcore_attacks.laws.learners.features import feature_verdicts
from dpcore_attacks.laws.learners.variants import accepted
from dpcore_attacks.laws.mechanisms.laboratory import CHECKS
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases
from dpcore_attacks.laws.mechanisms.statistical_trial import SCALES, Trial
from dpcore_attacks.laws.oracles.interactive import interactive_cases
from dpcore_attacks.subjects import subjects_of
from dpcore_models.learners.best_of import BestOf

from doubles import domain
from gallery.core import examined
from gallery.strangers.maps import running_maximum
from gallery.strangers.narrow import (
    exact_where_noise_is_extreme,
    half_price_under_add_remove,
    louder_beyond_a_hundred_and_thirty_three,
    noise_for_sixty_four_answers,
    norm_of_up_to_four_columns,
    scale_in_whole_numbers,
)
from gallery.strangers.right import half_of_the_releases_are_louder, three_digits_are_published


def trial(single, effort=0.3):
    return Trial(case=next(mechanism_cases(single.component())), seed=0, effort=effort)


def check(law, of):
    (found,) = (one for known, one in CHECKS.items() if known.id == law)
    return found(of)


def test_bets_certify_no_more_than_there_is_more_often_than_they_may():
    """With P(E) = .3, Q(E) = .1 and a factor of 2 the truth is .1; 5 % of errors are allowed. The
    chance of 45 errors in 600 is below 1e-2 if each has 5 %; bets err far less often.
    """
    rng = np.random.default_rng(0)
    found = [
        certified_by_bets(rng.random(2000) < 0.3, rng.random(2000) < 0.1, 2.0, 0.05)
        for _ in range(600)
    ]
    assert sum(least > 0.1 for least in found) < 45
    assert np.median(found) > 0


@pytest.mark.parametrize(("p", "q", "factor"), [(0.3, 0.1, 2.0), (0.7, 0.3, 1.0), (0.1, 0.0, 7.0)])
def test_bets_come_near_the_truth_with_many_draws(p, q, factor):
    rng = np.random.default_rng(1)
    n = 200_000
    least = certified_by_bets(rng.random(n) < p, rng.random(n) < q, factor, 1e-6)
    deviation = math.sqrt((p * (1 - p) + factor**2 * q * (1 - q)) / n)
    assert p - factor * q - 9 * deviation < least <= p - factor * q + 5 * deviation


def test_a_jump_of_the_noise_is_found_to_the_last_digits():
    wrong, right = louder_beyond_a_hundred_and_thirty_three()
    for single, expected in ((wrong, {-133.3, 133.3}), (right, set())):
        bench = trial(single).bench(8, 1.0)
        assert {round(value, 6) for value in jumps(bench, 1.0, 3)} == expected


ANY_VALUE = "mechanism.event-at-any-value"
NOISE = [
    (
        louder_beyond_a_hundred_and_thirty_three,
        "mechanism.event-at-any-value",
        "around 133.3|-133.3",
    ),
    (half_price_under_add_remove, "mechanism.event-at-any-value", "under add_remove"),
    (scale_in_whole_numbers, "mechanism.event-at-any-value", f"at scale {SCALES[2]}"),
    (exact_where_noise_is_extreme, "mechanism.value-not-released", "hold a value as it is"),
]


# Each law errs with probability at most 1e-6; the rule for values as they are has no such number.
@pytest.mark.parametrize(
    ("make", "law", "caught"), NOISE, ids=[make.__name__ for make, _, _ in NOISE]
)
def test_noise_that_is_wrong_in_a_narrow_place_is_seen_there(make, law, caught):
    wrong, right = make()
    with pytest.raises(BrokenLawError, match=caught):
        check(law, trial(wrong, 1.0))
    check(law, trial(right))


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda: Gaussian(noise="float"),
        lambda: Laplace(noise="float"),
        lambda: three_digits_are_published().component(),
        lambda: half_of_the_releases_are_louder().component(),
        pytest.param(lambda: Gaussian(), marks=pytest.mark.slow),
        pytest.param(lambda: Laplace(), marks=pytest.mark.slow),
    ],
)
def test_right_noise_releases_no_value_as_it_is(mechanism):
    tried = Trial(case=next(mechanism_cases(mechanism())), seed=0, effort=0.3)
    assert check("mechanism.value-not-released", tried)


def outcomes(features, where):
    return {v.law.id: v.outcome for v in feature_verdicts(features, where) if v.failed}


def test_features_that_learn_as_they_go_are_not_pure():
    assert "features.pure" in outcomes(running_maximum().component(), domain(9, 3))
    assert not outcomes(Identity(), domain(9, 3))


def test_a_feature_map_is_tried_on_other_domains():
    features, where = norm_of_up_to_four_columns().component(), domain(9, 3)
    assert not outcomes(features, where)
    others = list(accepted(features, where))
    assert {len(other.columns) for other in others} >= {1, 3, 8}
    assert any("features.norm" in outcomes(features, other) for other in others)
    assert not any(outcomes(Identity(), other) for other in others)


@pytest.mark.slow
def test_the_last_answer_that_is_paid_for_has_noise():
    wrong, right = noise_for_sixty_four_answers()
    broken, whole = (
        attack(next(interactive_cases(single.component())).duel(), 0, 300)
        for single in (wrong, right)
    )
    assert broken.broken
    assert broken.game == "the last question that is paid for"
    assert not whole.broken


@pytest.mark.slow
def test_a_report_has_one_budget_whatever_it_checks(tmp_path):
    made = half_price_under_add_remove()[1].plugin("budgeted", tmp_path)
    report = examined(made, 0.03)
    said = [v for v in report.verdicts if v.outcome in (Outcome.PASSED, Outcome.FAILED)]
    statistical = [verdict for verdict in said if verdict.law.statistical]
    mechanism = half_price_under_add_remove()[1].component()
    each = allot(0, {}, {"it": (mechanism,)})
    assert report.passed
    assert 0 < len(statistical) * each <= BUDGET == report.error_rate


def test_every_check_of_a_report_gets_the_same_part():
    mechanism, other = Gaussian(), Laplace()
    single = allot(0, {}, {"a": (mechanism,)})
    assert allot(0, {}, {"a": (mechanism, mechanism)}) == pytest.approx(single / 2)
    assert allot(0, {}, {}) == BUDGET
    assert allot(3, {}, {"a": (other,)}) < allot(0, {}, {"a": (other,)})


def test_divergences_are_no_more_than_one_pair_of_many_attains():
    """Each point of the exponential mechanism's curve has a pair of its own, and epsilon^2/8 is the
    rho of every pair (Cesar & Rogers 2021, Lemma 3.2): the whole curve's integral would be more.
    """
    event = ExponentialMechanismEvent(epsilon=2 / 3, adjacency=REPLACE_ONE)
    assert not [v for v in event_verdicts(event, "it") if v.failed]

    @attrs.frozen
    class Cheaper(ExponentialMechanismEvent):
        @property
        def claims(self):
            return Claims(rho=1 / 18, renyi=lambda orders: 0.2 * orders / 18)

    cheaper = Cheaper(epsilon=2 / 3, adjacency=REPLACE_ONE)
    assert "event.renyi" in {v.law.id for v in event_verdicts(cheaper, "it") if v.failed}


def test_a_choice_among_plain_learners_stands_for_one_without_an_example():
    registry = Registry.default()
    for plugin, name in (("models", "best_of"), ("dpcore", "sum")):
        (case,) = subjects_of(registry.load(plugin), []).bounds[name]
        assert not isinstance(case.claims(), Refused)


def test_examples_of_a_folder_name_components_of_admitted_plugins():
    """A folder that is a plugin's own replaces it, and takes no one else's names away."""
    registry = adjacent(Registry.default(), dpcore_models)
    assert registry.component(LEARNER, "best_of") is BestOf
    assert registry.component(MECHANISM, "gaussian_process").__module__.startswith("dpcore_kernel")
