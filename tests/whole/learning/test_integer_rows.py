"""Rows of integers that a learner proposes: the core adds the short ones, and nothing else."""

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from dpcore import (
    ADD_REMOVE,
    Distance,
    OneShot,
    Public,
    PublicRandomness,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError
from dpcore.learners.bounds.sum import SumBound
from dpcore.learners.clipping import LONGEST_PROPOSAL, IntegerRows
from dpcore.summing import ROW_WISE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts

from doubles import domain, table

UNIT = -10
LONGEST = 1 << 10  # units in a clip of 1


def row_of(integers: list[int]) -> IntegerRows:
    return IntegerRows(np.array([integers], dtype=np.int32))


@attrs.frozen(kw_only=True)
class Proposing(SummingLearner, OneShot):
    """Publishes the sum of what a proposer makes of the rows of a block."""

    proposer: Any = None
    options: dict[str, Any] = attrs.field(factory=dict)
    person: float | None = None

    def queries(self, public):
        declared = Sum(clip=1.0, exponent=UNIT, person=self.person)
        fields = {"distance": Distance.L2, "sum": declared, **self.options}
        return (SumQuery(name="sum", shape=(2,), **fields),)

    def contributions(self, query, block, public):
        return (self.proposer or honest)(block.features)

    def assemble(self, answers, public):
        raise NotImplementedError


def honest(rows):
    return IntegerRows(np.rint(rows * (LONGEST / 2)).astype(np.int32))


def total(proposer, **fields):
    learner = Proposing(proposer=proposer, **fields)
    public = Public(domain=domain(), randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    return learner.total_of(query, project_table(public.domain, table(9)), public).integers()


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=6),
    st.integers(-3, 3),
    st.integers(0, 2**26),
)
@example([-(2**31)], 0, 2**26)
@example([2**26], 1, 2**26)
@example([2**26, 1], 0, 2**26)
@example([2**26 - 1, 2**13], 0, 2**26)
def test_a_row_counts_if_and_only_if_its_integers_are_short(integers, more, limit):
    near = math.isqrt(sum(n * n for n in integers)) + more  # limits about its own length
    for longest in (limit, max(0, min(near, 2**26))):
        expected = integers if sum(n * n for n in integers) <= longest**2 else [0] * len(integers)
        assert row_of(integers).accepted(float(longest), 0).tolist() == [expected]


def test_squares_in_floats_of_32_bits_would_let_a_longer_row_pass():
    # Why the check is made in doubles: next to a large square, small ones are rounded away.
    row = np.array([5000] + [1] * 20_000, dtype=np.int32)
    squares = row.astype(np.float32) ** 2
    in_floats, limit = np.add.accumulate(squares, dtype=np.float32)[-1], 5001
    assert in_floats <= limit**2 < 5000**2 + 20_000
    assert not IntegerRows(row[None]).accepted(float(limit), 0).any()


def test_the_clip_is_rounded_down_to_units_and_no_longer_than_2_to_26():
    assert row_of([3, 0]).accepted(math.nextafter(3.0, 0.0), 0).tolist() == [[0, 0]]
    assert row_of([3, 0]).accepted(3.0, 0).tolist() == [[3, 0]]
    with pytest.raises(ContractError, match="exponent"):
        row_of([3, 0]).accepted(float(LONGEST_PROPOSAL + 1), 0)
    with pytest.raises(ContractError, match="32-bit"):
        IntegerRows(np.array([[1.0]])).accepted(1.0, 0)


def doubled(rows):
    return IntegerRows(2 * LONGEST * np.ones(rows.shape, dtype=np.int32))


def of_floats(rows):
    return IntegerRows(np.full(rows.shape, np.nan))


def of_one_row(rows):
    return IntegerRows(np.ones((1, 2), dtype=np.int32)) if len(rows) > 1 else 3


def of_64_bits(rows):
    return IntegerRows(np.full(rows.shape, 2**62))


@pytest.mark.parametrize("liar", [doubled, of_floats, of_one_row, of_64_bits])
@pytest.mark.parametrize("fields", [{}, {"isolate": True}, {"person": 2.0}])
def test_what_a_lying_proposer_returns_adds_nothing(liar, fields):
    if fields.get("person"):
        learner = Proposing(proposer=liar, **fields)
        public = Public(domain=domain(), randomness=PublicRandomness(1))
        records = project_table(public.domain, table(9))
        records = attrs.evolve(records, persons=np.arange(9, dtype=np.int32))
        (query,) = learner.queries(public)
        assert learner.total_of(query, records, public).integers() == [0, 0]
    else:
        assert total(liar, **fields) == [0, 0]


def test_a_long_row_adds_zeros_and_the_others_stay():
    def one_long(rows):
        integers = honest(rows).integers
        integers[0] = 2 * LONGEST
        return IntegerRows(integers)

    whole = np.array(honest(project_table(domain(), table(9)).features))
    assert total(honest) == whole.sum(axis=0).tolist()
    assert total(one_long) == whole[1:].sum(axis=0).tolist()


def test_other_norms_and_signs_are_refused():
    assert total(honest, options={"distance": Distance.L1}) == [0, 0]
    declared = Sum(clip=1.0, exponent=UNIT, sign="non_negative")
    assert total(honest, options={"sum": declared}) == [0, 0]


def centred(rows):
    return honest(rows - rows.mean(axis=0))


@pytest.mark.parametrize(("proposer", "is_honest"), [(honest, True), (centred, False)])
def test_the_laws_of_sums_see_rows_that_look_at_each_other(proposer, is_honest):
    learner = Proposing(proposer=proposer)
    case = Case(learner=learner, bound=SumBound(), domain=domain(), adjacency=ADD_REMOVE)
    broken = {verdict.law.id for verdict in sum_verdicts(case) if verdict.failed}
    assert not broken if is_honest else broken


def test_that_rows_depend_on_their_record_alone_is_a_premise():
    learner, public = Proposing(), Public(domain=domain(), randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    assert SumBound().sensitivity(query, learner, public, ADD_REMOVE).premises == (ROW_WISE,)


def test_rows_never_show_themselves():
    assert repr(row_of([7])) == "IntegerRows(private)"
