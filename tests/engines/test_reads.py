"""How learners read the records: what plans say, refuse and need."""

import attrs
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, BestOf, Engine, PublicCoins, Reads
from dpcore.errors import RequestError, ResourceError
from dpcore.learning.features.identity import Identity
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.pricing.price import price
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry
from dpcore_linear import ClippedGradient, StagedGradient
from dpcore_random_features import Ridge
from dpcore_sgd import Regression

from doubles import domain, table


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
    return price(
        adjacency=adjacency,
        learner=learner,
        mechanism=mechanism or Gaussian(),
        budget=dpcore.PrivacyBudget(epsilon=1.0, delta=1e-6),
        coins=PublicCoins(1),
        **fields,
    )


def clipped(**fields):
    return ClippedGradient(features=Identity(), clip=0.3, **fields)


def test_every_learner_that_is_offered_says_how_it_reads():
    offered = Registry.default()
    for name in offered.names(LEARNER):
        learner = offered.component(LEARNER, name)
        assert isinstance(learner.reads, property), name


def test_sums_orders_and_rows():
    assert StagedGradient().reads is clipped().reads is Reads.SUMS
    assert Regression(features=Identity()).reads is Reads.ORDER
    assert BestOf(candidates=(clipped(), clipped(steps=9))).reads is Reads.SUMS
    ridge = Ridge(features=Identity(), regularization=0.5)
    assert BestOf(candidates=(clipped(), ridge)).reads is ridge.reads
    assert Reads.most([]) is Reads.SUMS
    assert Reads.most([Reads.LOOPS, Reads.ORDER, Reads.SUMS]) is Reads.ORDER
    assert [one.in_blocks for one in Reads] == [True, True, True, False, False]


def test_an_engine_in_several_places_refuses_what_needs_one_before_anything_is_opened():
    made = plan(Regression(features=Identity(), passes=2))
    with pytest.raises(RequestError, match="Regression reads order, which needs all records"):
        made.run(table(400), engine=Several())


def test_blocks_need_no_memory_for_all_records():
    few, many = (plan(clipped(), domain=domain(records), blocks=True) for records in (10**5, 10**9))
    assert few.resources.memory == many.resources.memory < 2 * 10**8
    assert few.resources.disk * 10**4 == many.resources.disk
    assert many.resources.passes == 101
    assert "101 passes over the records" in many.resources.describe()
    with pytest.raises(ResourceError, match="of memory, the limit is 1 GB"):
        plan(clipped(), domain=domain(10**9), memory=10**9)
    with pytest.raises(ResourceError, match="of memory, the limit is 1 GB"):
        plan(Ridge(features=Identity(), regularization=0.5), domain=domain(10**9), blocks=True,
             memory=10**9)  # fmt: skip


def test_a_sealed_run_of_a_private_count_rests_on_room_for_every_count():
    private = attrs.evolve(domain(), exact=None, limit=400)
    room = "memory, disk and time suffice for every admissible number of records"
    sealed = plan(clipped(), adjacency=ADD_REMOVE, domain=private, sealed=True)
    assert room in sealed.guarantee.premises
    assert room not in plan(clipped(), adjacency=ADD_REMOVE, domain=private).guarantee.premises
    assert room not in plan(clipped(), sealed=True).guarantee.premises
