"""Whose a record is, from its own cell; and which of a person's records are kept."""

import datetime
import math
import uuid
from collections import defaultdict

import numpy as np
import pytest

from dpcore import SecretRandomness
from dpcore.domain.cell import person
from dpcore.encoding.cells import persons
from dpcore.private.bounding import NO_PERSON, Bounding, smallest

SAME = [17, 17.0, "17", " 17\t", np.int8(17), np.float32(17), b"17"]
NOBODYS = [
    None, "", "  ", math.nan, math.inf, 7.5, True, np.bool_(False), 2.0**53, np.float32(2.0**24),
    np.float16(2.0**11), datetime.date(2020, 1, 1), np.datetime64("2020-01-01"), b"\xff", [1],
    object(), 1j, 10**5000, np.longdouble(3),
]  # fmt: skip
OWN = ["017", "17.0", "x17", "X17", "+17", "1 7", 18, -17, 2**53, 2**53 + 1, "true"]


def test_one_id_is_one_person_whatever_holds_it():
    assert {person(cell) for cell in SAME} == {"17"}
    assert person(uuid.UUID(int=5)) == str(uuid.UUID(int=5))


@pytest.mark.parametrize("cell", NOBODYS, ids=lambda cell: type(cell).__name__)
def test_what_is_no_id_is_nobodys(cell):
    assert person(cell) is None


def test_ids_that_differ_are_different_persons():
    found = [person(cell) for cell in [*OWN, "17"]]
    assert len(set(found)) == len(found)
    assert None not in found


def test_a_cell_is_the_same_person_alone_and_beside_any_other():
    column = [*SAME, *NOBODYS, *OWN]
    covered = np.empty(len(column), dtype=object)
    covered[:] = column
    assert persons(column) == persons(covered) == [person(cell) for cell in column]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.array([3, 3, 2**53 + 1]), ["3", "3", str(2**53 + 1)]),
        (np.array([3.0, math.nan, 2.0**53]), ["3", None, None]),
        (np.array([True, False]), [None, None]),
        (np.array(["a", " a"]), ["a", "a"]),
        (np.array(["2020-01-01"], dtype="M8[D]"), [None]),
        (np.zeros(0), []),
    ],
)
def test_typed_columns_read_as_their_cells_do(column, expected):
    assert persons(column) == expected


def kept_by_definition(ids, tags, most):
    """Sort each person's records by tag, one person after the other."""
    own = defaultdict(list)
    for place, one in enumerate(ids):
        if one is not None:
            own[one].append((tags[place], place))
    return sorted(place for found in own.values() for _, place in sorted(found)[:most])


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("cuts", [(), (0, 0, 7), (1, 2, 3, 150), (299,)])
def test_the_k_smallest_tags_of_each_person_stay_however_blocks_are_cut(most, cuts):
    rng = np.random.default_rng(3)
    ids = [None if n == 0 else f"p{n}" for n in rng.integers(0, 60, 300)]
    tags = SecretRandomness.rehearsal(4).runtime("people").by_place
    bounding = Bounding(most, tags)
    for first, last in zip((0, *cuts), (*cuts, 300), strict=True):
        bounding.add(ids[first:last])
        bounding._merge()  # as it happens in between with many records
    used = bounding.person_codes(300)
    assert used.rows.tolist() == kept_by_definition(ids, tags.at(0, 300).tolist(), most)
    owners = {ids[row]: used.codes[row] for row in used.rows}
    assert len(set(owners.values())) == len(owners) == used.persons
    assert all(used.codes[row] == owners[ids[row]] for row in used.rows)


def test_equal_tags_are_told_apart_by_place():
    codes = np.array([0, 0, 0, NO_PERSON, 1], dtype=np.int32)
    tags = np.array([5, 5, 5, 0, 9], dtype=np.uint64)
    assert smallest(codes, tags, np.arange(5), 2).tolist() == [0, 1, 4]
    assert smallest(codes[:0], tags[:0], np.arange(0), 2).tolist() == []


def test_each_different_number_is_read_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "dpcore.encoding.cells.person", lambda cell: calls.append(cell) or str(cell)
    )
    owners = persons(np.repeat(np.arange(50), 20))
    assert owners == [str(number) for number in range(50) for _ in range(20)]
    assert len(calls) == 50
