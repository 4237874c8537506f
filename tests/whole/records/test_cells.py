"""What a cell is, alone and in any container; and that no one's cell moves another's."""

import datetime as dt
import math
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore import Categories, Domain, Range
from dpcore.domain.cell import day, key, number
from dpcore.domain.columns import Dates
from dpcore.encoding.cells import cells, days, numbers
from dpcore.encoding.columns import encode_column, find_misfits, read_codes
from dpcore.encoding.tables import encode_table, project_table
from dpcore.errors import ParameterError, SourceError
from dpcore_attacks.laws.learners.cells import cell_verdicts

COLUMNS = (
    Range(-3, 3),
    Range(-3, 3, default=1),
    Categories(("true", "false")),
    Categories((0, 1)),
    Categories(("a", "b", "2020-01-01", 2.5), default="b"),
    Dates.between(dt.date(2020, 1, 1), dt.date(2024, 12, 31)),
)


class Nasty:
    """Whose every method raises."""

    def _raise(self, *_):
        raise RuntimeError("called")

    __float__ = __str__ = __eq__ = __hash__ = __repr__ = __bool__ = __len__ = __iter__ = _raise
    __int__ = __index__ = __array__ = __getattr__ = __class__ = property(_raise)


PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF))[0]
HOSTILE = (
    Nasty(), 10**400, -(10**400), "9" * 100_000, "x" * 100_000, "\ud800", PAYLOAD, math.nan, None,
    [1, [2]], {"a": 1}, np.array([1, 2]), np.array(1.0), Decimal("sNaN"), Decimal("1e999999"),
    Fraction(10**400), b"\xff", b"1", 1j, np.datetime64("NaT", "D"), np.timedelta64(5, "s"),
    "1_000",
    "\uff11", "\u00a01", np.datetime64(10**15, "Y"), dt.time(1), type, np.longdouble("1e4000"),
)  # fmt: skip
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.floats(-4, 4, width=32).map(np.float32),
    st.sampled_from(
        ["a", " a\t", "b", "true", "True", "1", "1.0", "+.5e0", "1.", "2.5", "", "nan"]
    ),
    st.text(max_size=4),
    st.dates(dt.date(2019, 1, 1), dt.date(2025, 1, 1)),
    st.datetimes(dt.datetime(2019, 1, 1), dt.datetime(2025, 1, 1)),
    st.sampled_from(["2020-01-01", "2022-05-06T07:08", "2022-13-01", np.datetime64("2021-02-03")]),
)
DTYPES = (
    "?", "i1", "i8", "u1", "u8", "f2", "f4", "f8", "g", "U9", "S9", "M8[D]", "M8[ns]",
    "m8[s]", "c16", *(["T"] if hasattr(np.dtypes, "StringDType") else []),  # of NumPy 2
)  # fmt: skip
CELL = PLAIN | st.integers(0, len(HOSTILE) - 1).map(lambda i: HOSTILE[i])


def same(first, second):
    """Equal bits."""
    return np.asarray(first).tobytes() == np.asarray(second).tobytes()


def objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(st.lists(CELL, min_size=1, max_size=6), st.data())
def test_a_cell_encodes_alone_as_it_does_in_any_list(column, values, data):
    whole = encode_column(column, values)
    for contained in (tuple(values), objects(values)):
        assert same(encode_column(column, contained), whole)
    for i, value in enumerate(values):
        assert same(encode_column(column, [value])[0], whole[i])
        assert find_misfits(column, [value])[0] == find_misfits(column, values)[i]
    at = data.draw(st.integers(0, len(values) - 1))
    values[at] = data.draw(CELL)
    others = np.arange(len(values)) != at
    assert same(encode_column(column, values)[others], whole[others])


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_typed_array_encodes_like_its_entries(column, dtype):
    array = np.array([0, 1, 1, 2]).astype("i8").astype(dtype)
    if array.dtype.kind in "fM":
        array = np.append(array, np.array(["nan" if array.dtype.kind == "f" else "NaT"], dtype))
    whole = encode_column(column, array)
    for i in range(len(array)):
        assert same(encode_column(column, [array[i]])[0], whole[i])


def test_a_masked_entry_is_missing():
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    assert np.array_equal(numbers(masked), [1, math.nan, 3], equal_nan=True)
    moments = np.ma.masked_array(np.array(["1970-01-02"] * 2, "M8[ns]"), [False, True])
    assert np.array_equal(days(moments), [1, math.nan], equal_nan=True)


def test_one_true_made_missing_moves_one_row():
    """Of 500 records, in a boolean column: before, all of them moved."""
    column = Categories(("false", "true"))
    clean, hit = [True] * 500, [True] * 499 + [math.nan]
    for make in (list, objects, np.array):
        before, after = encode_column(column, make(clean)), encode_column(column, make(hit))
        assert before.sum() == 500
        assert after.sum() == 499


def test_ages_of_mixed_spellings_stay_when_one_becomes_a_word():
    column = Range(0, 1)
    before, after = (
        encode_column(column, [True, 1, 0, True]),
        encode_column(column, [True, 1, 0, "x"]),
    )
    assert same(before[:3], after[:3])
    assert same(before.ravel(), [1.0, 1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1), (" +1.5e1\t", 15), (".5", 0.5), ("-0", 0), ("1e400", math.inf), ("007", 7),
        ("-Infinity", -math.inf), ("inf", math.inf), ("0.1", 0.1), ("1e-5000", 0),
        ("1.", None), ("1_000", None), ("\uff11", None), ("\u00a01", None), ("1\n", None),
        ("nan", None), ("", None), ("e5", None), (".", None), ("0x10", None), ("1 2", None),
        ("\u0661", None), ("infinite", None), ("true", None),
    ],
)  # fmt: skip
def test_what_counts_as_a_number(text, expected):
    for found in (
        number(text),
        numbers([text])[0],
        numbers([text, "x"])[0],
        numbers(["1", text])[1],
    ):
        assert math.isnan(found) if expected is None else found == expected
        assert math.copysign(1, found) == 1 or found < 0


def test_numbers_of_other_types():
    assert number(np.float32(0.1)) == float(np.float32(0.1))
    assert number(2**53 + 1) == float(2**53 + 1)
    assert number(10**400) == math.inf == -number(-Fraction(10**400))
    assert number(Decimal("0.1")) == 0.1
    assert all(math.isnan(number(cell)) for cell in (None, dt.date(2020, 1, 1), 1j, [1], Nasty()))


def test_what_is_equal_as_a_category():
    assert key(1) == key(1.0) == key("1") == key(np.int8(1)) == key(Decimal(1)) == key(" 1.0 ")
    assert key(True) == key("True") == key("true") == key(np.True_) != key(1)
    assert key("2020-01-01") == key(dt.date(2020, 1, 1)) == key(np.datetime64("2020-01-01"))
    assert key(math.nan) is key(None) is key([1]) is None
    truths, counts = Categories(("no", "true")), Categories((0, 1))
    for cell in (True, "TRUE", 1, 1.0, "1", np.True_):
        assert read_codes(truths, [cell])[0] == read_codes(counts, [cell])[0] == 1
    both = Categories((1, "true"))
    assert read_codes(both, [1, True]).tolist() == [0, 1]
    with pytest.raises(ParameterError):
        Categories((True, "true"))
    with pytest.raises(ParameterError):
        Categories(("a", math.nan))


def test_dates_are_days_and_numbers_are_no_dates():
    assert day("1970-01-02") == 1
    assert day(dt.datetime(1970, 1, 1, 12)) == day("1970-01-01T12:00") == 0.5
    assert day("1970-01-01 12:00+12:00") == 0
    utc = dt.datetime(1970, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-6)))
    assert day(utc) == 0.25
    for unit in ("W", "D", "h", "s", "ms", "us", "ns"):
        assert day(np.datetime64("2020-01-02", unit)) == 18263
    assert day(np.datetime64("2020-02", "M")) == 18293
    assert day(np.datetime64("2020", "Y")) == 18262
    assert np.isnan(days([5, "5", 1e4, "2020-13-01", "2020-1-1", None])).all()
    assert np.isnan(numbers(np.array(["2020-01-01"], "M8[D]"))).all()
    column = Dates.between(dt.date(2020, 1, 1), dt.date(2020, 1, 3), dt.date(2020, 1, 1))
    assert encode_column(column, ["2020-01-02", "1900-01-01", "?"]).ravel().tolist() == [0, -1, -1]
    assert find_misfits(column, ["2020-01-02", "1900-01-01", "?"]).tolist() == [False, True, False]


def test_a_default_stands_under_refuse_too():
    assert find_misfits(Range(0, 1, default=0.5), ["?", None, 2, 0]).tolist() == [0, 0, 1, 0]
    assert not find_misfits(Categories(("a", "b"), default="a"), ["c", None]).any()
    assert find_misfits(Categories(("a", "b")), ["c", "b"]).tolist() == [True, False]


def test_one_long_text_does_not_widen_the_column():
    """np.asarray would take 400 kB for each of the others."""
    values = ["1"] * 100_000 + ["9" * 100_000]
    assert numbers(values)[-1] == math.inf
    assert read_codes(Categories(("1", "2")), values).sum() == -1


def test_what_is_no_column():
    for column in ("abc", 5, np.zeros((2, 2)), None):
        with pytest.raises(SourceError):
            cells(column)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=7, max_size=7), min_size=1, max_size=5))
def test_a_row_is_scaled_by_its_own_length(rows):
    domain = Domain(
        columns={f"x{i}": Range(-1, 1) for i in range(7)},
        target="y",
        labels=Range(0, 1),
        norm=0.7,
    )
    whole = encode_table(domain, {f"x{i}": [row[i] for row in rows] for i in range(7)})
    assert np.all(np.linalg.norm(whole, axis=1) <= 0.7)
    for row, found in zip(rows, whole, strict=True):
        assert same(encode_table(domain, {f"x{i}": [row[i]] for i in range(7)})[0], found)


def project_at_once(domain, table):
    """Converts a column at once, as numpy likes it."""
    return project_table(domain, {name: np.array(column) for name, column in table.items()})


@pytest.mark.parametrize("project", [project_table, project_at_once])
def test_the_kit_finds_a_projection_that_converts_columns_at_once(monkeypatch, project):
    monkeypatch.setattr("dpcore_attacks.laws.learners.cells.project_table", project)
    domain = Domain(
        columns={"a": Categories(("true", "false")), "b": Categories(("x", "y"))},
        target="y",
        labels=Range(0, 1),
    )
    (found,) = cell_verdicts(domain)
    assert found.failed is (project is project_at_once), found
