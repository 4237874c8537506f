"""Types of columns that are handed over: the type decides, never whether cells could be read."""

import math
import uuid
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpcore import Categories, Domain, Range
from dpcore.domain.columns import Dates, Holds
from dpcore.domain.domain import People
from dpcore.encoding.admission import admit_to, require_type
from dpcore.encoding.pieces import Pieces
from dpcore.errors import SourceError
from dpcore.source import TableSource

SECRET = "4567.891"
DAY = date(2020, 1, 31)
PLAIN = {  # what each declaration accepts as an array, and as a list
    Holds.NUMBERS: [
        np.array([1]), np.array([1], np.uint8), np.array([0.5], np.float32), np.array([True]),
        np.ma.array([1.0, 2.0], mask=[True, False]), [], [None, math.nan, 1, 0.5, True],
        [Decimal("1.5"), Fraction(1, 3), np.float32(1), np.int8(2), np.bool_(True)], (1, 2),
        range(3), Pieces((np.array([1]), [2.5])),
    ],
    Holds.DATES: [
        np.array(["2020-01-31"], "datetime64[D]"), np.array(["2020-01-31T10"], "datetime64[ns]"),
        [DAY, None, datetime(2020, 1, 31), np.datetime64("2020"), math.nan],
        [np.datetime64("NaT", "s")],
    ],
    Holds.IDENTIFIERS: [
        np.array([1]), np.array(["a", "017"]), np.array([b"a"]), [1, np.int64(2), None],
        ["a", "", np.str_("b"), math.nan], [uuid.UUID(int=1)],
    ],
}  # fmt: skip
REFUSED = {
    Holds.NUMBERS: [
        np.array([SECRET]), np.array([1, 2], object), np.array([1j]), np.array(["2020"], "M8[D]"),
        np.array([1], "m8[s]"), np.array([b"1"]), [1, SECRET], [SECRET.encode()], [np.str_(SECRET)],
        [DAY], [[1.0]], [{}], [object()], ["nan"], Pieces((np.array([1]), [SECRET])),
    ],
    Holds.DATES: [
        np.array(["2020-01-31"]), np.array([DAY], object), np.array([1]), np.array([math.nan]),
        [DAY, "2020-01-31"], [DAY, 1], [DAY, 0.5], ["2020-01-31"],
    ],
    Holds.IDENTIFIERS: [
        np.array([1.0]), np.array([True]), np.array([1], object), np.array(["2020"], "M8[D]"),
        [1.0], [1, "017"], [True], [DAY], [1, math.nan, 2.0], [("a",)],
    ],
}  # fmt: skip
CASES = [(holds, column) for holds, columns in PLAIN.items() for column in columns]
MISFITS = [(holds, column) for holds, columns in REFUSED.items() for column in columns]


@pytest.mark.parametrize(("holds", "column"), CASES)
def test_columns_of_the_declared_type_pass(holds, column):
    require_type("v", column, holds)


@pytest.mark.parametrize(("holds", "column"), MISFITS)
def test_columns_of_another_type_are_refused_without_a_cell(holds, column):
    with pytest.raises(SourceError, match=r"column 'v' declares .* dpcore\.read_csv") as refusal:
        require_type("v", column, holds)
    assert SECRET not in str(refusal.value)
    assert "2020" not in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "name"), [("m8[s]", "timedelta64"), ("c16", "complex128"), ("V3", "void24")]
)
def test_a_type_none_of_whose_cells_is_a_category_is_refused_by_name(kind, name):
    with pytest.raises(SourceError, match=f"declares categories, .* arrives as {name}: "):
        require_type("v", np.zeros(2, kind), Holds.CATEGORIES)


def test_arrow_types_are_known_by_what_they_hold():
    pa = pytest.importorskip("pyarrow")
    texts = pa.array(["a"])
    fine = {
        Holds.NUMBERS: [
            pa.array([1]), pa.array([0.5], pa.float16()), pa.array([True]), pa.array([None]),
            pa.array([Decimal("1.5")]), pa.chunked_array([[1], [2]]),
            pa.array([1]).dictionary_encode(),
        ],
        Holds.DATES: [pa.array([DAY]), pa.array([datetime(2020, 1, 31)]), pa.array([None])],
        Holds.IDENTIFIERS: [
            texts, texts.dictionary_encode(), texts.cast(pa.large_string()),
            texts.cast(pa.string_view()), pa.array([2**60]),
        ],
    }  # fmt: skip
    odd = [pa.array([[1]]), pa.array([{"int64": 1}]), pa.array([b"1"]), texts.dictionary_encode()]
    for holds, columns in fine.items():
        for column in columns:
            require_type("v", column, holds)
        for column in odd[: 3 if holds is Holds.IDENTIFIERS else 4]:
            with pytest.raises(SourceError, match="column 'v' declares"):
                require_type("v", column, holds)


DOMAIN = Domain(
    columns={
        "age": Range(0, 100),
        "day": Dates.between(date(2000, 1, 1), date(2030, 1, 1)),
        "city": Categories(("Bern", "Rom")),
        "stage": Categories((1, 2)),
    },
    people=People(column="id", records=1),
    limit=100,
)
TABLE = {
    "age": [1.0, None], "day": [DAY, None], "city": np.array(["Bern", 7], object),
    "stage": [1, 2], "id": ["a", "b"],
}  # fmt: skip


def test_every_declared_column_is_looked_at_by_its_rule():
    for on_invalid in ("refuse", "project"):
        assert admit_to(DOMAIN, TABLE, on_invalid) == TABLE
        for name in ("age", "day", "stage", "id"):
            objects = {**TABLE, name: np.array(TABLE[name], object)}
            with pytest.raises(SourceError, match=f"column '{name}' declares .* as object"):
                admit_to(DOMAIN, objects, on_invalid)
            with pytest.raises(SourceError, match=f"column '{name}' declares"):
                admit_to(DOMAIN, TableSource(objects), on_invalid)
    with pytest.raises(SourceError, match="column 'id' is missing"):
        admit_to(DOMAIN, {name: TABLE[name] for name in TABLE if name != "id"}, "project")


@pytest.mark.parametrize(
    "column",
    [None, 0.5, (c for c in "ab"), np.ones((3, 2)), "0123", b"0123", {1.0, 2.0}, {"a": 1.0}],
)
def test_what_is_no_list_of_cells_is_refused_before_anything_is_charged(column):
    with pytest.raises(SourceError, match="no list of cells, one a record"):
        admit_to(Domain(columns={"v": Range(0, 1)}), {"v": column}, "project")
