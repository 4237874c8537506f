"""Norms: what a bound in one says in another, and which claim a mechanism takes."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Distance,
    Domain,
    Needs,
    PrivacyBudget,
    Query,
    Range,
    Refused,
    Registry,
    Release,
    Sensitivity,
    SensitivityBound,
    Sum,
    SumQuery,
    price,
)
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.planned_query import PlannedQuery, cost
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, DpcoreError, SpecError
from dpcore.learner import Public, Published
from dpcore.learners.conversation import OneShot
from dpcore.randomness import PublicRandomness
from dpcore.registry.kinds import LEARNER
from dpcore.sampling import Poisson
from dpcore.sensitivity import HitDistribution, OverRandomness, SensitivityDistribution, conversion
from dpcore.specs.spec import spec_of_text
from dpcore.summing import SummingLearner

from builders import price_learner
from doubles import Numbers

NORMS = (Distance.L1, Distance.L2, Distance.LINF)
ORDERS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: math.inf}
FACTS = Domain(columns={"a": Range(0, 1)}, exact=50)
WITH_DELTA, PURE = PrivacyBudget(epsilon=1, delta=1e-6), PrivacyBudget(epsilon=1)


def square(vector, norm):
    """The square of a vector's length, exactly."""
    entries = [abs(Fraction(entry)) for entry in vector]
    if norm is Distance.L2:
        return sum(entry**2 for entry in entries)
    return (max(entries) if norm is Distance.LINF else sum(entries)) ** 2


@pytest.mark.parametrize(("norm", "target"), [*itertools.product(NORMS, NORMS)])
def test_no_vector_is_longer_than_the_conversion_says_and_one_is_as_long(norm, target):
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 4, 7):
        factor = Fraction(conversion(norm, target, size))
        vectors = [np.ones(size), np.eye(size)[0], *rng.normal(size=(50, size))]
        ratios = [square(v, target) / square(v, norm) for v in vectors]
        assert max(ratios) <= factor**2
        assert factor**2 <= max(ratios) * (1 + Fraction(1, 10**14))


def test_nothing_converts_between_other_distances():
    others = set(Distance) - {*NORMS}
    for norm, target in itertools.product(Distance, Distance):
        if norm is not target and {norm, target} & others:
            assert conversion(norm, target, 1) is None


def sensitivity(value, norm, **more):
    return Sensitivity(value=value, distance=norm, adjacency=REPLACE_ONE, source="made up", **more)


def test_a_claim_converts_all_its_lengths_and_keeps_its_range():
    claim = sensitivity(3.0, "l2", solver_error=0.5, diameter=10.0, range=2.0, covers_fallback=True)
    there = claim.in_norm(Distance.L1, 4)
    for before, after in ((3, there.value), (0.5, there.solver_error), (10, there.diameter)):
        assert 2 * before <= after <= 2 * before * (1 + 1e-14)
    assert (there.distance, there.range, there.covers_fallback) == ("l1", 2.0, True)
    assert there.unit >= 8
    assert there.source == "made up (converted from l2 to l1: times 2)"
    assert claim.in_norm(Distance.LINF, 4).value == 3.0
    assert claim.in_norm(Distance.L2, 4) is claim
    assert claim.in_norm(Distance.RKHS, 4) is None


def test_a_law_over_orders_converts_to_nothing():
    distribution = HitDistribution(atoms=(1.0,), weights=(1.0,), uncovered=0.0)
    claim = SensitivityDistribution(
        distribution=distribution, distance="l2", adjacency=REPLACE_ONE, source="made up"
    )
    assert claim.in_norm(Distance.L2, 3) is claim
    assert claim.in_norm(Distance.L1, 3) is None


@attrs.frozen(kw_only=True)
class Vector(OneShot):
    """Four numbers that no one looks at."""

    bounds: ClassVar[Any] = ()
    total: ClassVar[bool] = True
    publishes: ClassVar[Any] = Published
    norms: tuple[str, ...] = ("l2",)

    def queries(self, public):
        return (Query(name="v", shape=(4,), distance=self.norms[0], norms=self.norms),)

    def statistic(self, query, records, public, secret):
        return np.zeros(4)

    def assemble(self, answers, public):
        return Numbers(answers["v"])


@attrs.frozen(kw_only=True)
class By(SensitivityBound):
    """A number for each norm; others are refused."""

    learner: ClassVar[Any] = Vector
    values: dict
    validities: dict = attrs.field(factory=dict)

    def sensitivity(self, query, learner, public, adjacency):
        if query.distance not in self.values:
            return Refused(f"nothing in {query.distance}")
        validity = {"validity": self.validities[query.distance]} if self.validities else {}
        return sensitivity(self.values[query.distance], query.distance, **validity)


def taken(values, mechanism, norms=("l2", "l1"), **more):
    release = Release(learner=Vector(norms=norms), bound=By(values=values, **more),
                      mechanism=mechanism)  # fmt: skip
    plan = price(domain=FACTS, adjacency=REPLACE_ONE, budget=WITH_DELTA, releases=[release])
    (planned_query,) = plan.schedule.queries
    assert (
        planned_query.query == Vector(norms=norms).queries(None)[0]
    )  # what the learner asks is unchanged
    assert planned_query.sensitivity.distance == planned_query.mechanism.needs.distance
    return planned_query.sensitivity.value


@pytest.mark.parametrize(
    ("mechanism", "values", "expected"),
    [
        (Gaussian(), {"l2": 1.0, "l1": 1.5}, 1.0),
        (Laplace(), {"l2": 1.0, "l1": 1.5}, 1.5),  # listed: less than 1 * sqrt(4)
        (Laplace(), {"l2": 1.0, "l1": 5.0}, 2.0),  # converted: less than what is listed
        (Gaussian(), {"l2": 1.0, "l1": 0.5}, 0.5),
        (Laplace(), {"l2": 1.0}, 2.0),  # the bound refuses l1
        (Gaussian(), {"l1": 3.0}, 3.0),
    ],
)
def test_a_mechanism_takes_the_claim_with_the_least_noise(mechanism, values, expected):
    assert expected <= taken(values, mechanism) <= expected * (1 + 1e-14)


def test_a_query_that_lists_one_norm_is_converted_to_others():
    assert 2 <= taken({"l2": 1.0, "l1": 1.1}, Laplace(), norms=("l2",)) <= 2.000000001
    assert taken({"l1": 1.0}, Gaussian(), norms=("l1",)) == 1.0


def test_what_is_proved_for_all_data_comes_before_a_smaller_number():
    validities = {"l2": OverRandomness(1e-9), "l1": attrs.NOTHING}
    validities["l1"] = Sensitivity(
        value=1.0, distance="l1", adjacency=REPLACE_ONE, source="x"
    ).validity
    assert taken({"l2": 0.5, "l1": 2.0}, Gaussian(), validities=validities) == 2.0


def test_scores_take_choices_only_and_vectors_take_none():
    with pytest.raises(SpecError, match="exponential and permute_and_flip choose among scores"):
        taken({"linf": 1.0}, Laplace(), norms=("linf",))
    with pytest.raises(SpecError, match="noise on every coordinate fit"):
        taken({"l2": 1.0}, Exponential())
    assert taken({"linf": 1.0, "l2": 9.0}, Gaussian(), norms=("linf", "l2")) <= 2.000000001


def test_norms_name_their_distance_and_are_of_coordinates():
    for distance, norms in (("l2", ("l1",)), ("rkhs", ("rkhs", "l2")), ("l2", ("l2", "hamming"))):
        with pytest.raises(DpcoreError, match="distance among them"):
            Query(name="q", shape=(1,), distance=distance, norms=norms)


def test_an_ask_states_its_sensitivity_in_its_mechanisms_norm():
    query = Query(name="q", shape=(2,), distance="l2")
    with pytest.raises(ContractError, match="needs a l1 bound"):
        PlannedQuery(
            query=query, sensitivity=sensitivity(1.0, "l2"), mechanism=Laplace(), share=1.0
        )


def test_a_mechanism_may_declare_its_norm_by_name(monkeypatch):
    monkeypatch.setattr(Laplace, "needs", Needs(distance="l1"))
    query, claim = Query(name="q", shape=(2,), distance="l1"), sensitivity(1.0, "l1")
    PlannedQuery(query=query, sensitivity=claim, mechanism=Laplace(), share=1.0)
    assert taken({"l1": 1.0}, Laplace(), norms=("l1",)) == 1.0


class Watched:
    """Notes what it is asked about a record that is not in the sample."""

    moves: ClassVar[list[float]] = []

    def event(self, query, sensitivity, moved=None):
        self.moves += [] if moved is None else [moved]
        return PureEvent(epsilon=1.0, adjacency=sensitivity.adjacency)


@pytest.mark.parametrize(("norm", "moved"), [("l1", 2.0), ("l2", 1.0), ("linf", 1.0)])
def test_what_an_absent_record_moves_is_stated_in_the_norm_of_the_mechanism(norm, moved):
    query = SumQuery(
        name="q", shape=(4,), distance="l2", sum=Sum(clip=1.0), sampling=Poisson(probability=0.5)
    )
    watched = Watched()
    watched.moves.clear()
    cost(watched, query, sensitivity(9.0, norm))
    assert watched.moves[0] == pytest.approx(moved, rel=1e-12)
    assert watched.moves[0] >= moved


@attrs.frozen(kw_only=True)
class Cells(SummingLearner, OneShot):
    """Two numbers of each record."""

    norms: tuple[str, ...] = ("l2",)

    def queries(self, public):
        return (
            SumQuery(
                name="s", shape=(2,), distance=self.norms[0], norms=self.norms, sum=Sum(clip=1.0)
            ),
        )

    def contributions(self, query, block, public):
        return np.ones((len(block), 2))

    def assemble(self, answers, public):
        raise NotImplementedError


@pytest.mark.parametrize(("norms", "norm"), [(("l2",), "l2"), (("l2", "l1"), "l1")])
def test_a_sum_is_clipped_in_every_norm_that_its_query_lists(norms, norm):
    learner, public = (
        Cells(norms=norms),
        Public(domain=FACTS, randomness=PublicRandomness(0), mu=1.0),
    )
    (query,) = learner.queries(public)
    record = project_table(FACTS, {"a": np.array([0.5])})
    total = learner.total_of(query, record, public).floats()
    assert np.linalg.norm(total, ord=ORDERS[Distance(norm)]) <= 1
    assert np.linalg.norm(total, ord=ORDERS[Distance(norm)]) > 0.999
    for further in norms:
        assert query.longest(Distance(further)) == 1.0


def statistic(name, **fields):
    return Registry.default().component(LEARNER, name)(**fields)


def only_query(learner, mechanism, budget=WITH_DELTA, adjacency=REPLACE_ONE):
    plan = price_learner(
        learner, domain=FACTS, adjacency=adjacency, budget=budget, mechanism=mechanism
    )
    (planned_query,) = plan.schedule.queries
    return planned_query


@pytest.mark.parametrize("mechanism", [Laplace(), DiscreteLaplace()])
def test_a_count_takes_laplace_noise_at_a_delta(mechanism):
    query = only_query(statistic("statistics.count", where={"a": {"from": 0.5}}), mechanism)
    assert (query.query.distance, query.sensitivity.distance) == ("l2", "l1")
    assert query.sensitivity.value == 1.0


def test_a_histogram_has_a_claim_of_its_own_in_either_norm():
    learner = statistic("statistics.histogram", column="a", bins=9)
    assert only_query(learner, Laplace()).sensitivity.value == 2.0
    assert only_query(learner, Gaussian()).sensitivity.value == pytest.approx(math.sqrt(2))
    assert only_query(learner, Gaussian(), WITH_DELTA).query.clip_norm == "l1"


def test_a_release_without_a_mechanism_has_the_usual_one_for_each_query():
    learner = statistic("statistics.bounded_mean", column="a")
    for budget, usual in (
        (WITH_DELTA, ["SparseVector", "Gaussian"]),
        (PURE, ["SparseVector", "Laplace"]),
    ):
        plan = price(domain=FACTS, adjacency=REPLACE_ONE, budget=budget, learner=learner)
        assert [
            type(planned_query.mechanism).__name__ for planned_query in plan.schedule.queries
        ] == usual


def test_one_mechanism_answers_what_it_fits_and_the_usual_ones_the_rest():
    learner = statistic("statistics.bounded_mean", column="a")
    plan = price_learner(learner, domain=FACTS, budget=WITH_DELTA, mechanism=Laplace())
    names = [type(planned_query.mechanism).__name__ for planned_query in plan.schedule.queries]
    assert names == ["SparseVector", "Laplace"]


SPEC = {
    "dpcore": 1,
    "data": {"source": "people.csv", "domain": {"records": 50, "columns": {"a": [0, 1]}}},
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-6},
}


@pytest.mark.parametrize("mechanism", [None, "laplace"])
def test_a_run_with_a_converted_bound_or_no_mechanism_replays(mechanism, tmp_path):
    import dpcore

    release = {"learner": {"name": "statistics.mean", "column": "a"}}
    if mechanism:
        release["mechanism"] = mechanism
    rows = np.random.default_rng(0).uniform(0, 1, 50)
    np.savetxt(tmp_path / "people.csv", rows, header="a", comments="")
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps({**SPEC, "release": release}))
    done = dpcore.run(path, runs=tmp_path / "runs")
    lock = json.loads((done.kept / "spec.lock.json").read_text())
    (entry,) = lock["plan"]["releases"]["release"]
    assert entry["distance"] == ("l1" if mechanism else "l2")
    dpcore.replay(done.folder)


def test_a_spec_may_leave_its_mechanism_out():
    release = {"learner": {"name": "statistics.count", "where": {"a": {"from": 0.5}}}}
    plan = spec_of_text(json.dumps({**SPEC, "release": release}), "s.yaml").price()
    (planned_query,) = plan.schedule.queries
    assert type(planned_query.mechanism).__name__ == "DiscreteGaussian"


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_a_whole_histogram_is_moved_no_farther_than_its_laplace_noise_hides(adjacency):
    domain = FACTS if adjacency is REPLACE_ONE else attrs.evolve(FACTS, exact=None, limit=50)
    learner = statistic("statistics.histogram", column="a", bins=3)
    plan = price_learner(
        learner, domain=domain, adjacency=adjacency, budget=WITH_DELTA, mechanism=Laplace()
    )
    (planned_query,) = plan.schedule.queries
    cells = np.eye(3)
    moves = [
        np.abs(a - b).sum()
        for a, b in itertools.product(cells, [*cells, np.zeros(3)])
        if adjacency is ADD_REMOVE or b.any()
    ]
    longest = 1.0 if adjacency is ADD_REMOVE else max(moves)
    assert planned_query.sensitivity.unit >= longest
