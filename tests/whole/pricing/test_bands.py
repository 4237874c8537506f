"""Noise across asks: what is charged covers every law that enumeration finds, and nothing else is.

Expected numbers are divergences of laws that `turns` adds up, term by term.
"""

import itertools
import math
from typing import ClassVar

import attrs
import numpy as np
import pytest
from turns import Steps, delta, distribution, sampled

from dpcore import ADD_REMOVE, REPLACE_ONE, SensitivityBound
from dpcore.checks import positive
from dpcore.claims.accounting.conversions import event_epsilon
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.planned_query import PlannedQuery, compose
from dpcore.domain.domain import People
from dpcore.errors import NoClaimError, ParameterError
from dpcore.mechanism import Mechanism, Needs, free
from dpcore.query import Sum, SumQuery
from dpcore.sampling import Cyclic, Poisson
from dpcore.sensitivity import Sensitivity

from builders import price_learner
from doubles import domain

BANDS = (4, 2)
DELTAS = (0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4)


@attrs.frozen(kw_only=True)
class OnIntegers(Mechanism):
    """A discrete Gaussian of s^2 = `square` on integers, priced by T13 as the Gaussian above it."""

    needs: ClassVar[Needs] = Needs(distance=Gaussian.needs.distance, integers=True, bands=True)
    source: ClassVar[str] = "T13"
    arithmetic: ClassVar[str] = "exact"
    square: float = free(validator=positive)

    def at(self, scale, query, sensitivity):
        return self

    def event(self, query, sensitivity, moved=None):
        shift = sensitivity.unit if moved is None else moved
        return GaussianEvent(mu=shift / (self.square - 9) ** 0.5, adjacency=sensitivity.adjacency)

    def release(self, value, query, sensitivity, noise):
        raise NotImplementedError


def charged(
    query_count, *, groups=2, chance=1.0, moved=1.0, adjacency=ADD_REMOVE, bands=BANDS, square=25
):
    """The accountant after all queries, as pricing composes them."""
    query = SumQuery(
        name="q",
        shape=(1,),
        distance="l2",
        at_most=query_count,
        sampling=Cyclic(groups=groups, probability=chance),
        sum=Sum(clip=1.0, exponent=0),
        bands=bands,
    )
    claim = Sensitivity(value=moved, distance="l2", adjacency=adjacency, source="here")
    mechanism = OnIntegers(square=square)
    planned_query = PlannedQuery(query=query, sensitivity=claim, mechanism=mechanism, share=1.0)
    return compose([planned_query], AutoAccountant(adjacency))


def worst_excess(accountant, first, second, allowances=DELTAS):
    """The largest ratio of an exact delta to the one that the claim allows at its epsilon."""
    ratios = []
    for allowed in allowances:
        epsilon = accountant.epsilon(allowed).upper
        ratios += [delta(epsilon, *pair) / allowed for pair in ((first, second), (second, first))]
    return max(ratios)


def turns_of(group, queries, groups=2):
    return [t for t in range(queries) if t % groups == group]


def test_the_enumerated_laws_of_two_steps_are_those_of_the_theory():
    """K = [[4, 0], [2, 4]], s^2 = 153, a record in both steps: the second one's sign by y_1."""
    none = distribution(2, BANDS, 153, 110, [0, 0])
    adaptive = distribution(2, BANDS, 153, 110, [1, 1])
    assert delta(0.5, adaptive, none) == pytest.approx(0.0712, abs=5e-5)
    assert delta(2.0, adaptive, none) == pytest.approx(1.169e-4, rel=1e-3)
    values = np.arange(-110, 111)
    normaliser = np.exp(-(np.arange(-400, 401) ** 2) / 306).sum()
    first, second = (np.exp(-((values - m) ** 2) / 306) / normaliser for m in (4, 6))
    assert delta(0.5, np.outer(first, second), none) == pytest.approx(0.0791, abs=5e-5)
    event = GaussianEvent(mu=math.sqrt(52 / 144), adjacency=ADD_REMOVE)
    assert event_epsilon(event, 0.0853).upper == pytest.approx(0.5, abs=2e-3)


@pytest.mark.parametrize(("allowed", "epsilon"), [(0.0297, 0.1), (0.00454, 0.3), (1.33e-4, 0.6)])
def test_sampled_blocks_cost_what_the_theory_says(allowed, epsilon):
    ends = charged(4, chance=0.3, square=153).epsilon(allowed)
    assert ends.upper == pytest.approx(epsilon, abs=3e-3)


def test_the_exact_law_of_two_sampled_blocks_is_the_theorys_and_below_the_claim():
    """delta(.1/.3/.6) = .0280/.00390/9.35e-5 where the record is there, .0219/3.48e-4 where not."""
    block = sampled(2, BANDS, 153, 110, turns=(0,), chance=0.3)
    none = distribution(2, BANDS, 153, 110, [0, 0])
    values = np.arange(-110, 111)
    # The losses of a block depend on 4 z_1 + 2 z_2 only, so that two blocks are two such sums.
    index = (2 * values[:, None] + values[None, :]).ravel() + 330
    first, second = (np.bincount(index, joint.ravel()) for joint in (block, none))
    first, second = np.outer(first, first), np.outer(second, second)
    for epsilon, present in ((0.1, 0.0280), (0.3, 0.00390), (0.6, 9.35e-5)):
        assert delta(epsilon, first, second) == pytest.approx(present, rel=5e-3)
    assert delta(0.1, second, first) == pytest.approx(0.0219, rel=5e-3)
    assert delta(0.3, second, first) == pytest.approx(3.48e-4, rel=5e-3)
    assert worst_excess(charged(4, chance=0.3, square=153), first, second) < 1


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("chance", [1.0, 0.3])
def test_three_adaptive_steps_cost_at_most_what_is_charged(group, chance):
    distributions = [
        sampled(3, BANDS, 25, 36, turns=turns_of(group, 3), chance=chance, length=length, others=1)
        for length in (0, 1, -1)
    ]
    none, present, replaced = distributions
    assert worst_excess(charged(3, chance=chance), present, none) < 1
    claim = charged(3, chance=chance, moved=2.0, adjacency=REPLACE_ONE)
    assert worst_excess(claim, present, replaced) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bands", "groups"), [((4, 2), 2), ((4, 2), 3), ((3, -2, 1), 3), ((2, 1, 1), 4)]
)
def test_four_adaptive_steps_cost_at_most_what_is_charged(bands, groups):
    for group, chance in itertools.product(range(groups), (1.0, 0.4)):
        turns, few = turns_of(group, 4, groups), (0.1, 0.01)
        shared = {"turns": turns, "chance": chance, "others": 1}
        none, present, replaced, person = (
            sampled(4, bands, 14, 20, length=length, **shared) for length in (0, 1, -1, 2)
        )
        claims = {"groups": groups, "chance": chance, "bands": bands, "square": 14}
        assert worst_excess(charged(4, **claims), present, none, few) < 1
        # A person's two records share group and randomness, so that they move a sum by 2.
        assert worst_excess(charged(4, moved=2.0, **claims), person, none, few) < 1
        claim = charged(4, moved=2.0, adjacency=REPLACE_ONE, **claims)
        assert worst_excess(claim, present, replaced, few) < 1


def test_attacks_find_a_record_that_is_seen_again_while_its_sum_counts():
    none, twice = distribution(2, BANDS, 25, 40, [0, 0]), distribution(2, BANDS, 25, 40, [1, 1])
    assert worst_excess(charged(2), twice, none) > 2


def test_attacks_find_the_records_of_a_person_in_groups_of_their_own():
    """A person is clipped to 1 in each answer, and has two records, in two groups."""
    both = sampled(3, BANDS, 25, 36, turns=(0, 1, 2), chance=1.0)
    assert worst_excess(charged(3), both, distribution(3, BANDS, 25, 36, [0] * 3)) > 2


def test_attacks_find_a_word_that_all_coins_of_a_record_share():
    """The record is in all of its eight turns, or in none: sums of turns say it all."""
    values, turns, chance = np.arange(-700, 701), 8, 0.3
    # Of independent noise on 4 y_1 + 2 y_2, turn after turn, the variance is 20 * 8 * s^2.
    densities = [np.exp(-((values - mean) ** 2) / (2 * turns * 153 / 20)) for mean in (0, turns)]
    none, always = (density / density.sum() for density in densities)
    shared = chance * always + (1 - chance) * none
    claim = charged(2 * turns, chance=chance, square=153)
    assert worst_excess(claim, shared, none) > 1.3


def test_attacks_find_a_replacement_that_is_priced_by_the_clip():
    present, replaced = (
        sampled(3, BANDS, 25, 36, turns=(0, 2), chance=1.0, length=length) for length in (1, -1)
    )
    assert worst_excess(charged(3, moved=1.0, adjacency=REPLACE_ONE), present, replaced) > 2


def planned(*, adjacency=ADD_REMOVE, mechanism=None, people=None, kind=Steps, **fields):
    count = {"exact": None, "limit": None} if adjacency.membership else {}
    if people is not None:
        count = {"exact": None, "limit": 100, "people": People(column="id", records=people)}
        adjacency = adjacency.of_persons(people)
    fields = {"sampling": Cyclic(groups=2, probability=0.5), **fields}
    return price_learner(
        kind(**fields),
        mechanism=mechanism or Gaussian(),
        domain=attrs.evolve(domain(), **count),
        adjacency=adjacency,
    )


def test_a_plan_charges_the_turns_of_a_record_and_hides_what_they_move():
    plan = planned(query_count=5, bands=(64, 32))
    (planned_query,) = plan.schedule.queries
    norm = math.sqrt(64**2 + 32**2)
    assert planned_query.charged == 3
    assert norm <= planned_query.taken.value <= norm * (1 + 1e-5)
    assert planned_query.sensitivity.value == 1.0
    assert plan.charge().events == ((planned_query.event(), 3),)
    # T13: a width of s steps hides a shift of so many as the Gaussian of the event.
    grid = planned_query.mechanism.grid(planned_query.query, planned_query.taken)
    hidden = math.sqrt(
        planned_query.mechanism.width(planned_query.query, planned_query.taken) ** 2 - 9
    )
    event = planned_query.mechanism.event(planned_query.query, planned_query.taken)
    assert norm / grid.step / hidden <= event.mu
    assert grid.wraps
    assert grid.exponent <= 0


def test_a_replacement_is_priced_at_twice_the_clip_and_an_absent_record_at_the_clip():
    (planned_query,) = planned(adjacency=REPLACE_ONE, bands=(64, 32)).schedule.queries
    norm = math.sqrt(64**2 + 32**2)
    event = planned_query.event()
    assert planned_query.taken.value >= 2 * norm
    full, half = event.event.mu, event.absent.mu
    assert full == 2 * half
    assert full * planned_query.mechanism.noise_multiplier >= 1


def test_persons_are_charged_for_all_their_records():
    for records in (1, 3):
        (planned_query,) = planned(people=records, bands=(64, 32)).schedule.queries
        assert planned_query.taken.value >= records * math.sqrt(64**2 + 32**2)
    clipped = Sum(clip=1.0, exponent=0, person=2.0)
    (planned_query,) = planned(people=5, bands=(64, 32), declared=clipped).schedule.queries
    assert 2 * 71.55 < planned_query.taken.value < 2 * 71.56


REFUSED = {
    "a record may be seen again after 2 asks": {"bands": (4, 2, 1)},
    "a record may be seen again after 1 asks": {"sampling": None},
    "seen again after 1 asks: take": {"sampling": Poisson(probability=0.5)},
    "spherical Gaussian noise: take mechanism gaussian": {
        "mechanism": DiscreteGaussian(),
        "values": "integers",
    },
    r"need Sum\(sign='any'\), not 'non_negative'": {
        "declared": Sum(clip=1.0, exponent=0, sign="non_negative")
    },
    "a release that asks nothing else": {"names": ("steps", "others")},
    "of_persons|draws records|add_remove": {"adjacency": REPLACE_ONE, "people": 2},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_theorem_covers_is_refused(message):
    with pytest.raises(NoClaimError, match=message):
        planned(**REFUSED[message])


def test_a_learner_that_adds_sums_of_its_own_is_refused():
    class Mine(SensitivityBound):
        def is_about(self, learner):
            return True

        def sensitivity(self, query, learner, public, adjacency):
            return Sensitivity(value=1.0, distance="l2", adjacency=ADD_REMOVE, source="mine")

    class Own(Steps):
        bounds = (Mine(),)

        def statistic(self, query, records, public, secret):
            return super().statistic(query, records, public, secret)

    with pytest.raises(NoClaimError, match="whose sums the core adds"):
        planned(kind=Own)


@pytest.mark.parametrize("bands", [(), (0, 1), (1.0,), (True,), (-1,), (1, 1 << 21), (1,) * 5000])
def test_bands_are_integers_that_begin_with_one_or_more(bands):
    with pytest.raises(ParameterError, match="bands"):
        SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0), bands=bands)


def test_the_norm_of_bands_is_rounded_up():
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 64):
        bands = tuple(map(int, rng.integers(1, 1 << 20, count)))
        query = SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0), bands=bands)
        squares = sum(k * k for k in bands)
        numerator, denominator = query.moved(1.0).as_integer_ratio()
        assert numerator**2 >= squares * denominator**2
        assert query.moved(1.0) <= math.sqrt(squares) * (1 + 1e-5)
