"""Learners of exact sums: what the core proves of any contributions, and what the laws catch."""

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpcore
import dpcore.guarantee
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Distance,
    OneShot,
    Public,
    PublicRandomness,
    Query,
    Records,
    SecretRandomness,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.errors import ContractError, ParameterError, SpecError
from dpcore.exact import Exact
from dpcore.guarantee import Noise
from dpcore.learners.bounds.sum import SumBound, moved_by_sum
from dpcore.learners.clipping import clipped_integers
from dpcore.summing import ROW_WISE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts

from doubles import domain, table

NORMS = (Distance.L1, Distance.L2, Distance.LINF)


@attrs.frozen(kw_only=True)
class Rows(SummingLearner, OneShot):
    """Publishes the sum of labels and columns."""

    clip: float = 1.0
    distance: Any = Distance.L2
    sign: Any = "any"
    exponent: Any = None

    def queries(self, public):
        declared = Sum(clip=self.clip, sign=self.sign, exponent=self.exponent)
        return (SumQuery(name="sum", shape=(3,), distance=self.distance, sum=declared),)

    def contributions(self, query, block, public):
        return np.column_stack([block.features, block.labels])

    def assemble(self, answers, public):
        return Stated(value=answers["sum"])


@attrs.frozen(kw_only=True, eq=False)
class Stated:
    """Predicts nothing and says the sum."""

    value: Any

    def predict(self, rows):
        return np.zeros(len(rows["a"]))

    def arrays(self):
        return {"sum": self.value}


def public(**options):
    return Public(domain=domain(records=None, **options), randomness=PublicRandomness(1))


def records(count=40, seed=0):
    rng = np.random.default_rng(seed)
    return Records(features=rng.uniform(-1, 1, (count, 2)), labels=rng.uniform(-1, 1, count))


def total(learner, of, facts=None):
    facts = facts or public()
    (query,) = learner.queries(facts)
    return learner.total_of(query, of, facts)


def length(whole, distance):
    """The exact l1 or linf length, or the square of the l2 one."""
    sizes = [abs(n) for n in whole]
    if distance is Distance.L2:
        return sum(n * n for n in sizes)
    return max(sizes) if distance is Distance.LINF else sum(sizes)


@settings(max_examples=300)
@given(
    st.integers(1, 9).flatmap(
        lambda width: st.lists(st.floats(width=64), min_size=width, max_size=width)
    ),
    st.floats(1e-6, 1e6),
    st.integers(0, 42),
    st.sampled_from(NORMS),
    st.booleans(),
)
def test_no_row_is_longer_than_the_clip_whatever_comes(row, clip, coarser, distance, positive):
    exponent = Sum(clip=clip).unit + coarser
    found = clipped_integers(np.array([row]), clip, exponent, distance, positive=positive)
    limit = Fraction(clip) / Fraction(2) ** exponent
    assert length(found[0].tolist(), distance) <= (limit**2 if distance is Distance.L2 else limit)
    if positive:
        assert (found >= 0).all()
    if not np.isfinite(row).all():
        assert not found.any()


@pytest.mark.parametrize("distance", NORMS)
@pytest.mark.parametrize("width", [1, 2, 7, 64, 1001])
def test_long_rows_keep_their_direction_and_nearly_all_of_the_clip(distance, width):
    rng = np.random.default_rng(width)
    rows = rng.normal(size=(50, width)) * 10.0 ** rng.integers(-2, 200, (50, 1))
    exponent = Sum(clip=1e-3).unit
    found = clipped_integers(rows, 1e-3, exponent, distance, positive=False)
    limit = Fraction(1e-3) / Fraction(2) ** exponent
    for row, whole in zip(rows, found, strict=True):
        tail = length(whole.tolist(), distance)
        assert tail <= (limit**2 if distance is Distance.L2 else limit)
        assert tail >= (limit**2 if distance is Distance.L2 else limit) * Fraction(1 - 1e-8)
        scaled = row / np.abs(row).max()
        assert np.allclose(whole / np.abs(whole).max(), scaled, atol=1e-7)


def test_rows_that_fit_are_taken_as_they_are():
    counts = np.eye(5)
    for distance in NORMS:
        assert (clipped_integers(counts, 1.0, 0, distance, positive=True) == counts).all()
    for distance in (Distance.L1, Distance.LINF):  # in l2, 2^41 squared is no longer exact
        fine = clipped_integers(counts, 1.0, -41, distance, positive=False)
        assert (fine == counts * 2**41).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.integers(1, 50))
@settings(max_examples=30)
def test_a_sum_is_the_same_in_any_order_and_any_blocks(seed, count, cut):
    people, learner = records(count, seed), Rows(clip=0.7)
    whole = total(learner, people)
    order = np.random.default_rng(seed).permutation(count)
    assert total(learner, people.take(order)) == whole
    assert total(learner, people.take(order[:cut])) + total(learner, people.take(order[cut:])) == (
        whole
    )
    assert total(attrs.evolve(learner, isolate=True), people) == whole


def test_many_blocks_add_up():
    people = records(3000)
    exact = sum(np.array(total(Rows(), one).integers(), dtype=object) for one in people.singles())
    assert total(Rows(), people).integers() == exact.tolist()
    assert total(Rows(), records(0)) == Exact.zeros((3,), Sum(clip=1.0).unit)


@attrs.frozen(kw_only=True)
class Troubled(Rows):
    """Fails, or answers in another shape or with no number, where a label is above 0.9."""

    trouble: str = "raises"

    def contributions(self, query, block, public):
        found = super().contributions(query, block, public)
        tail = block.labels > 0.9
        if tail.any() and self.trouble == "raises":
            raise KeyError("a record")
        if tail.any() and self.trouble == "exits":
            raise SystemExit
        if tail.any() and self.trouble == "shape":
            return found[:, :2]
        if tail.any() and self.trouble == "kind":
            return found.astype(str)
        if self.trouble == "nan":
            found[tail] = np.nan
        return found


@pytest.mark.parametrize("trouble", ["raises", "exits", "shape", "kind", "nan"])
def test_a_failing_record_contributes_nothing_and_changes_no_other(trouble):
    people = records(200)
    fine = people.take(np.flatnonzero(people.labels <= 0.9))
    assert 0 < len(fine) < len(people)
    assert total(Troubled(trouble=trouble), people) == total(Rows(), fine)


@pytest.mark.parametrize(
    ("distance", "sign", "removed", "replaced"),
    [
        (Distance.L2, "any", 1, 2),
        (Distance.L2, "non_negative", 1, math.sqrt(2)),
        (Distance.L2, "acute", 1, math.sqrt(2)),
        (Distance.L1, "non_negative", 1, 2),
        (Distance.L1, "acute", 1, 2),
        (Distance.LINF, "any", 1, 2),
        (Distance.LINF, "non_negative", 1, 1),
        (Distance.LINF, "acute", 1, 2),
    ],
)
def test_what_follows_from_the_declaration(distance, sign, removed, replaced):
    learner = Rows(clip=0.3, distance=distance, sign=sign)
    (query,) = learner.queries(public())
    moved = {ADD_REMOVE: removed, REPLACE_ONE: replaced, REPLACE_LABEL: replaced}
    for relation, tail in moved.items():
        claim = SumBound().sensitivity(query, learner, public(), relation)
        assert claim.adjacency.covers(relation)
        assert 0.3 * tail * (1 - 1e-15) <= claim.value <= 0.3 * tail * (1 + 1e-9)
        assert claim.solver_error == 0
        assert claim.premises == (ROW_WISE,)
    single = attrs.evolve(learner, isolate=True)
    assert SumBound().sensitivity(query, single, public(), ADD_REMOVE).premises == ()


def test_one_entry_that_is_not_negative_moves_by_its_length():
    """Both ends of [0, C], which two records attain; two entries may be at a right angle."""
    learner = Rows(clip=0.3, sign="non_negative")
    (query,) = learner.queries(public())
    one = attrs.evolve(query, shape=(1,))
    assert moved_by_sum(one).replace_one == 0.3
    assert moved_by_sum(attrs.evolve(query, shape=(2,))).replace_one > 0.42
    assert moved_by_sum(attrs.evolve(one, sum=attrs.evolve(one.sum, sign="any"))).replace_one == 0.6


def test_acute_contributions_may_be_rounded_apart():
    """Two at a right angle, on a coarse unit: rounded, they are more than sqrt(2) C apart."""
    learner = Rows(clip=2.0, sign="acute", exponent=0)
    (query,) = learner.queries(public())
    claim = SumBound().sensitivity(query, learner, public(), REPLACE_ONE)
    first, second = np.array([[0.6, 0.6, 1.3]]), np.array([[-0.6, 1.5, -0.41]])
    assert (first @ second.T).item() > 0
    moved = np.subtract(
        *(clipped_integers(r, 2.0, 0, Distance.L2, positive=False) for r in (first, second))
    )
    assert np.linalg.norm(moved) <= claim.value


def test_the_bound_is_about_sums_that_the_core_adds():
    @attrs.frozen(kw_only=True)
    class Own(Rows):
        def statistic(self, query, records, public, secret):
            return np.full(3, 1e9)

    assert SumBound().is_about(Rows())
    assert not SumBound().is_about(Own())
    (query,) = Own().queries(public())
    randomness = SecretRandomness.rehearsal(0).learner(0, "sum", 1)
    assert Own().statistic(query, records(), public(), randomness).tolist() == [1e9] * 3
    undeclared = Query(name=query.name, shape=query.shape, distance=query.distance)
    assert isinstance(
        SumBound().sensitivity(undeclared, Rows(), public(), ADD_REMOVE), dpcore.Refused
    )


def test_what_answers_plain_queries_answers_sums_and_no_kind_of_query_that_it_does_not_know():
    @attrs.frozen(kw_only=True)
    class Keyed(SumQuery):
        pass

    @attrs.frozen(kw_only=True)
    class Other(Rows):
        def queries(self, public):
            (query,) = super().queries(public)
            fields = ("name", "shape", "distance", "sum")
            return (Keyed(**{name: getattr(query, name) for name in fields}),)

    fields = {
        "domain": domain(records=None),
        "adjacency": ADD_REMOVE,
        "budget": dpcore.PrivacyBudget(epsilon=1.0, delta=1e-6),
        "mechanism": Gaussian(),
    }
    assert dpcore.price(learner=Rows(), **fields).guarantee.status is dpcore.guarantee.Status.PROVED
    with pytest.raises(SpecError, match="do not fit"):
        dpcore.price(learner=Other(), **fields)
    with pytest.raises(TypeError, match="sum"):
        Query(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0))
    with pytest.raises(ContractError, match="declares no sum"):
        moved_by_sum(Query(name="q", shape=(1,), distance="l2"))


def test_declarations_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="exponent"):
        Sum(clip=1.0, exponent=-60)
    with pytest.raises(ParameterError, match="exponent"):
        Sum(clip=1.0, exponent=5)
    with pytest.raises(ParameterError, match="l1, l2 or linf"):
        SumQuery(name="q", shape=(1,), distance=Distance.HAMMING, sum=Sum(clip=1.0))
    with pytest.raises(ParameterError, match="exponent"):
        SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0), values="integers")
    with pytest.raises(ParameterError, match="within"):
        SumQuery(name="q", shape=(1,), distance="l2", sum=Sum(clip=1.0), within=(0.0, 1.0))
    with pytest.raises(ParameterError, match="sign"):
        Sum(clip=1.0, sign="positive")


# --- liars


@attrs.frozen(kw_only=True)
class Centred(Rows):
    """Centres by the block's mean."""

    def contributions(self, query, block, public):
        found = super().contributions(query, block, public)
        return found - found.mean(axis=0)


@attrs.frozen(kw_only=True)
class Multiplied(Rows):
    """Rows of a matrix product: they depend on their place, in their last bits."""

    clip: float = 10.0

    def contributions(self, query, block, public):
        found = super().contributions(query, block, public)
        wide = np.cos(np.outer(found.sum(axis=1), np.arange(80)))
        return wide @ np.random.default_rng(3).normal(size=(80, 3))


@attrs.frozen(kw_only=True)
class TwiceTooLong(Rows):
    """Writes its own sum, and scales it by two."""

    def partial(self, query, block, public):
        found = super().partial(query, block, public)
        return found + found


@attrs.frozen(kw_only=True)
class Remembering(Rows):
    """Adds the number of records of its block to each of them, in its own sum."""

    def partial(self, query, block, public):
        found = super().partial(query, block, public)
        return found + Exact.of(np.full(3, len(block) ** 2), found.exponent)


@pytest.mark.parametrize(
    ("liar", "distributions"),
    [
        (Rows(), set()),
        (Rows(clip=0.1, distance=Distance.L1, sign="non_negative"), set()),
        (Centred(), {"sum.row-wise", "sum.additive"}),
        (Multiplied(), {"sum.row-wise"}),
        (TwiceTooLong(), {"sum.clipped", "sum.small-universe"}),
        (Remembering(), {"sum.additive"}),
    ],
)
def test_liars_are_found(liar, distributions):
    case = Case(learner=liar, bound=SumBound(), domain=public().domain, adjacency=ADD_REMOVE)
    broken = {verdict.law.id for verdict in sum_verdicts(case) if verdict.failed}
    assert distributions <= broken
    if not distributions:
        assert not broken


# --- runs


def plan(learner, mechanism=None, adjacency=ADD_REMOVE, **fields):
    facts = domain() if adjacency.replaces else domain(records=None)
    return dpcore.price(
        dpcore.Request.of(
            domain=facts,
            adjacency=adjacency,
            releases=(
                dpcore.Release(learner=learner, mechanism=mechanism or Gaussian(), name="sum"),
            ),
            budget=dpcore.PrivacyBudget(epsilon=1.0, delta=1e-5),
            **fields,
        )
    )


def test_a_run_sums_exactly_and_says_so():
    for adjacency in (ADD_REMOVE, REPLACE_ONE):
        made = plan(Rows(), adjacency=adjacency)
        text = " ".join(made.guarantee.paragraph().split())
        assert "the statistic is summed exactly" in text
        assert ROW_WISE in text
        assert ROW_WISE not in str(plan(Rows(isolate=True)).guarantee.basis.premises)
        assert np.isfinite(made.run(table()).model.arrays()["sum"]).all()


def test_floats_that_a_mechanism_takes_are_no_exact_sampling():
    assert Noise.FLOATS not in {query.noise for query in plan(Rows()).guarantee.basis.queries}
    assert {
        query.noise for query in plan(Rows(), Gaussian(noise="float")).guarantee.basis.queries
    } == {Noise.FLOATS}
    assert Noise.FLOATS not in {
        query.noise for query in plan(Rows(distance=Distance.L1), Laplace()).guarantee.basis.queries
    }


def test_counts_go_through_discrete_noise():
    made = plan(Counting(), DiscreteGaussian(noise_width=9.0))
    value = made.run(table()).model.arrays()["sum"]
    assert (value == np.rint(value)).all()


@attrs.frozen(kw_only=True)
class Counting(Rows):
    """How many records have labels below, at, and above 0, in whole records."""

    exponent: Any = 0

    def queries(self, public):
        (query,) = super().queries(public)
        return (attrs.evolve(query, values="integers"),)

    def contributions(self, query, block, public):
        signs = np.sign(block.labels)
        return np.column_stack([signs < 0, signs == 0, signs > 0])
