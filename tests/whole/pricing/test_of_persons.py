"""What a bound about one record says of one person: constants, refusals, and the attack on them."""

import math

import attrs
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, PublicRandomness
from dpcore.bound import Refused
from dpcore.claims.pricing.unit_claims import of_persons
from dpcore.domain.domain import People
from dpcore.errors import UndeclaredError
from dpcore.learner import Public
from dpcore.learners.bounds.sum import SumBound
from dpcore.models.features.identity import Identity
from dpcore.query import Query, Sum, SumQuery
from dpcore.registry.kinds import BOUND
from dpcore.registry.registry import Registry
from dpcore.sampling import Order, Poisson
from dpcore.sensitivity import Conditional, OverRandomness, Refuted, Sensitivity
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_linear import ClippedGradient, StagedGradient, SufficientStatistics
from dpcore_random_features.ball_ridge import BallRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm
from dpcore_statistics.count import Count
from dpcore_statistics.distinct import Distinct
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.quantiles import Quantiles

from doubles import domain

QUERY = Query(name="q", shape=(3,), distance="l2")
CLIP = 0.3


def claimed(value=CLIP, **fields):
    return lambda relation: Sensitivity(
        **{"value": value, "distance": "l2", "adjacency": relation, "source": "here", **fields}
    )


def summed(sign, distance, adjacency):
    query = SumQuery(name="q", shape=(3,), distance=distance, sum=Sum(clip=CLIP, sign=sign))
    learner = ClippedGradient(features=Identity(), clip=CLIP, steps=1)
    public = Public(domain=attrs.evolve(domain(), exact=None), randomness=PublicRandomness(1))
    if not adjacency.of_person:
        return SumBound().sensitivity(query, learner, public, adjacency)
    return of_persons(
        query, adjacency, lambda one: SumBound().sensitivity(query, learner, public, one)
    )


@pytest.mark.parametrize("records", [1, 2, 5])
@pytest.mark.parametrize(
    ("sign", "distance", "replaced"),
    [("any", "l2", 2.0), ("non_negative", "l2", math.sqrt(2)), ("non_negative", "linf", 1.0)],
)
def test_sums_of_k_records_move_k_times_as_far(records, sign, distance, replaced):
    came = summed(sign, distance, ADD_REMOVE.of_persons(records))
    other = summed(sign, distance, REPLACE_ONE.of_persons(records))
    assert came.value == pytest.approx(records * CLIP, rel=1e-12)
    assert other.value == pytest.approx(records * replaced * CLIP, rel=1e-12)
    assert came.value >= records * CLIP
    assert other.value >= records * replaced * CLIP
    if records == 1:
        assert came.value == summed(sign, distance, ADD_REMOVE).value
        assert other.value == summed(sign, distance, REPLACE_ONE).value


def test_solver_errors_are_of_the_ends_alone_and_ranges_grow():
    claim = claimed(solver_error=0.01, range=0.4)
    found = of_persons(QUERY, ADD_REMOVE.of_persons(4), claim)
    assert (found.value, found.solver_error) == (pytest.approx(4 * CLIP), 0.01)
    assert found.range == pytest.approx(1.6)
    assert found.adjacency == ADD_REMOVE.of_persons(4)
    assert found.source == "4 times, a path over the records of one person: here"


def test_what_reaches_no_farther_than_from_0_is_taken_twice_at_most():
    claim = claimed(covers_fallback=True)
    assert of_persons(QUERY, ADD_REMOVE.of_persons(9), claim).value == pytest.approx(2 * CLIP)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_no_person_moves_a_statistic_farther_than_its_outputs_lie_apart(relation):
    claim = claimed(diameter=0.7)
    assert of_persons(QUERY, relation.of_persons(2), claim).value == pytest.approx(2 * CLIP)
    found = of_persons(QUERY, relation.of_persons(5), claim)
    assert found.value == 0.7
    assert found.source == "the diameter of all outputs, whatever a person has: here"


@pytest.mark.parametrize(
    ("learner", "diameter"),
    [
        (ProjectedMinNorm(features=Identity(), radius=0.1), 0.2),
        (BallRidgeLearner(features=Identity(), total_regularization=1.0, radius=0.1), 0.2),
        (Distinct(of=("a",), bins={"a": 3}), 3.0),
        (Count(), 5.0),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_five_records_move_no_farther_than_this(learner, diameter, relation):
    attacked = case(learner, relation, 5)
    ((_, claim),) = attacked.claims()
    assert claim.value == pytest.approx(diameter)
    (finding,) = falsify(attacked, Effort(pairs=60), seed=1)
    assert not finding.broken
    assert finding.worst > 0.95


def add_remove_only(value):
    def claim(relation):
        return claimed(value)(relation) if relation.membership else Refused("no replacement")

    return claim


def test_without_a_bound_for_replacements_a_person_goes_and_comes():
    found = of_persons(QUERY, REPLACE_ONE.of_persons(3), add_remove_only(CLIP))
    assert found.value == pytest.approx(6 * CLIP)


def public_count(relation):
    raise UndeclaredError("the exact number of records is needed")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (claimed(validity=Conditional((("named", "text"),))), "worst case"),
        (claimed(validity=OverRandomness(0.1)), "worst case"),
        (claimed(validity=Refuted("false")), "worst case"),
        (claimed(distance="hamming"), "no path"),
        (claimed(distance="psd_rows"), "no path"),
        (claimed(adjacency=REPLACE_ONE), "persons need add_remove"),
        (public_count, "it is private"),
        (lambda relation: Refused("no"), "persons need that"),
    ],
)
def test_what_no_path_is_proved_for_is_refused(claim, reason):
    for relation in (ADD_REMOVE, REPLACE_ONE):
        found = of_persons(QUERY, relation.of_persons(2), claim)
        assert isinstance(found, Refused)
        assert reason in found.reason


def test_only_what_draws_persons_may_sample():
    relation = ADD_REMOVE.of_persons(2)
    drawn = attrs.evolve(QUERY, sampling=Poisson(probability=0.1))
    assert not isinstance(of_persons(drawn, relation, claimed()), Refused)
    ordered = attrs.evolve(QUERY, sampling=Order(kind="shuffled", steps=4))
    assert "draws records" in of_persons(ordered, relation, claimed()).reason


LEARNERS = [
    ClippedGradient(features=Identity(), clip=CLIP, steps=2),
    SufficientStatistics(features=Identity()),
    Count(),
    Mean(column="a"),
    Histogram(column="a", edges=(-1, 0, 1)),
    Quantiles(column="a", points=11, quantiles=(0.5,)),
]


def case(learner, relation, records):
    facts = attrs.evolve(
        domain(), exact=None, limit=60, people=People(column="id", records=records)
    )
    for name in learner.bounds:
        bound = Registry.default().component(BOUND, name)() if isinstance(name, str) else name
        found = Case(
            learner=learner, bound=bound, domain=facts, adjacency=relation.of_persons(records)
        )
        if bound.is_about(learner) and not isinstance(found.claims(), Refused):
            return found
    return None


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_the_attack_reaches_a_persons_bound_and_never_passes_it(learner, relation):
    attacked = case(learner, relation, 3)
    for finding in falsify(attacked, Effort(pairs=80), seed=1):
        assert not finding.broken
        one = type(learner) is SufficientStatistics  # 0.943 for one record replaced, too
        assert finding.worst > (0.94 if one else 0.95)


def test_a_bound_of_one_record_is_broken_by_a_person(monkeypatch):
    """What a run without the unit would have claimed."""

    def once(query, adjacency, claim):
        return attrs.evolve(claim(ADD_REMOVE), adjacency=adjacency)

    monkeypatch.setattr("dpcore.claims.pricing.unit_claims.of_persons", once)
    for learner in LEARNERS[:3]:
        (finding,) = falsify(case(learner, ADD_REMOVE, 3), Effort(pairs=60), seed=1)
        assert finding.broken
        assert finding.worst > 2.8


def test_learners_that_need_a_public_number_are_refused():
    assert case(StagedGradient(), ADD_REMOVE, 2) is None
