"""How learners read the records: what plans say, refuse and need."""

import attrs
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Engine, Public, PublicRandomness, Query, Sum, SumQuery
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.errors import RequestError, ResourceError
from dpcore.models.features.identity import Identity
from dpcore.query import Reads
from dpcore.sampling import Order
from dpcore_linear import ClippedGradient, StagedGradient
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.learners.best_of import BestOf
from dpcore_random_features.huber_ridge import HuberRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm
from dpcore_random_features.ridge import Ridge
from dpcore_sgd.regression import Regression

from builders import price_learner
from doubles import domain, table

# Budgets of a few records, for very many.
pytestmark = pytest.mark.filterwarnings("ignore:delta = ")


class Several(Engine):
    """An engine whose records lie in other processes."""

    def load(self, parts, encode):
        raise AssertionError("nothing is opened")

    def total(self, task):
        raise AssertionError("nothing is opened")

    def close(self):
        pass


def plan(learner, mechanism=None, adjacency=REPLACE_ONE, **fields):
    fields = {"domain": domain(400), **fields}
    return price_learner(
        learner,
        adjacency=adjacency,
        mechanism=mechanism or Gaussian(),
        randomness=PublicRandomness(1),
        delta=1e-6,
        **fields,
    )


def clipped(**fields):
    return ClippedGradient(features=Identity(), clip=0.3, **fields)


def reads(learner, **facts):
    public = Public(domain=domain(**facts), randomness=PublicRandomness(1), mu=1.0)
    return Reads.most(query.reads for query in learner.queries(public))


def test_sums_orders_and_rows():
    assert reads(StagedGradient()) is reads(clipped()) is Reads.SUMS
    assert reads(Regression(features=Identity())) is Reads.ORDER
    assert reads(BestOf(candidates=(clipped(), clipped(steps=9)))) is Reads.SUMS
    ridge = Ridge(features=Identity(), regularization=0.5)
    assert reads(BestOf(candidates=(clipped(), ridge))) is reads(ridge) is Reads.FOLDS
    assert Reads.most([]) is Reads.SUMS
    assert Reads.most([Reads.LOOPS, Reads.ORDER, Reads.SUMS]) is Reads.ORDER
    assert [one.in_blocks for one in Reads] == [True, True, True, False, False]


def test_a_query_says_how_it_is_read_by_what_it_is():
    plain = Query(name="q", shape=(1,), distance="l2")
    assert plain.reads is Reads.ROWS
    assert attrs.evolve(plain, reads=Reads.LOOPS, at_most=2).reads is Reads.LOOPS
    order = Order(kind="shuffled", steps=3)
    assert Query(name="q", shape=(1,), distance="l2", sampling=order).reads is Reads.ORDER
    one = SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0))
    assert one.reads is Reads.SUMS
    assert attrs.evolve(one, sampling=order).reads is Reads.ORDER
    assert attrs.evolve(one, sum=Sum(clip=1.0, person=2.0)).reads is Reads.ROWS
    assert plain != attrs.evolve(plain, reads=Reads.FOLDS)


def test_room_is_refused_before_queries_are_planned_only_if_no_way_of_reading_has_it():
    one = ProjectedMinNorm(features=Identity(), radius=0.5)
    unbounded = attrs.evolve(domain(), exact=None, limit=None)
    facts = {"adjacency": ADD_REMOVE, "blocks": True, "memory": 86 * 10**6}
    # Of no declared number, memory counts no records, and blocks count as many as one may hold.
    assert plan(one, domain=unbounded, **facts).resources.memory < 86 * 10**6
    with pytest.raises(ResourceError, match="of memory, the limit is 86 MB"):
        plan(huber(), domain=unbounded, **facts)


def test_an_engine_in_several_places_refuses_what_needs_one_before_anything_is_opened():
    made = plan(Regression(features=Identity(), passes=2))
    with pytest.raises(RequestError, match="Regression reads order, which needs all records"):
        made.run(table(400), engine=Several())


def test_blocks_need_no_memory_for_all_records():
    few, many = (plan(clipped(), domain=domain(records), blocks=True) for records in (10**5, 10**9))
    assert few.resources.memory == many.resources.memory < 3 * 10**8
    assert few.resources.disk * 10**4 == many.resources.disk
    assert many.resources.passes == 101
    assert "101 passes over the records" in many.resources.describe()
    with pytest.raises(ResourceError, match="of memory, the limit is 1 GB"):
        plan(clipped(), domain=domain(10**9), memory=10**9)
    with pytest.raises(ResourceError, match="of memory, the limit is 1 GB"):
        plan(ProjectedMinNorm(features=Identity(), radius=0.5), domain=domain(10**9), blocks=True,
             memory=10**9)  # fmt: skip


def test_minimisers_read_sums_unless_there_are_more_features_than_records():
    ridge = Ridge(features=CosSin(count=20), regularization=0.5)
    assert reads(ridge) is Reads.FOLDS
    assert reads(huber()) is Reads.LOOPS
    for learner in (ridge, BestOf(candidates=(ridge, clipped()))):
        assert plan(learner, {"fits": Gaussian(), "choice": PermuteAndFlip()}
                    if learner is not ridge else None).schedule.reads is Reads.FOLDS  # fmt: skip
        assert reads(learner, records=40) is Reads.FOLDS
        assert reads(learner, records=39) is Reads.ROWS
    few = plan(ridge, domain=domain(39), blocks=True)
    assert not few.schedule.in_blocks
    with pytest.raises(RequestError, match="Ridge reads rows, which needs all records"):
        few.run(table(39), engine=Several())


def test_a_loop_states_the_room_of_what_it_derives():
    once, often = (
        plan(one, domain=domain(10**6), blocks=True)
        for one in (Ridge(features=Identity(), regularization=0.5), huber())
    )
    assert often.resources.disk - once.resources.disk == 10**6 * (4 * 2 + 16)
    assert once.resources.passes == 2
    assert often.resources.passes == 21


def huber():
    return HuberRidgeLearner(features=Identity(), total_regularization=50.0, clip=0.3)


def test_a_sealed_run_of_a_private_count_rests_on_room_for_every_count():
    private = attrs.evolve(domain(), exact=None, limit=400)
    room = "memory, disk and time suffice for every admissible number of records"
    sealed = plan(clipped(), adjacency=ADD_REMOVE, domain=private, sealed=True)
    assert room in sealed.guarantee.basis.premises
    unsealed = plan(clipped(), adjacency=ADD_REMOVE, domain=private)
    assert room not in unsealed.guarantee.basis.premises
    assert room not in plan(clipped(), sealed=True).guarantee.basis.premises
