"""Cells of Arrow's arrays: taken from buffers, whatever their width, offset, nulls and chunks."""

import math
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpcore.domain.cell import index
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain
from dpcore.encoding.blocks import require_fit
from dpcore.encoding.cells import cells, coded, days, empty, numbers
from dpcore.errors import SourceError

pa = pytest.importorskip("pyarrow")

KINDS = [("decimal32", 9), ("decimal64", 18), ("decimal128", 38), ("decimal256", 76)]


def nearest(integer, scale):
    """The double nearest to integer / 10^scale: by the division of fractions."""
    try:
        return float(Fraction(integer) * Fraction(10) ** -scale)
    except OverflowError:
        return math.inf if integer > 0 else -math.inf


def decimal_array(integers, kind):
    """An array of these unscaled integers, by its own buffers: no library rounds on the way."""
    width = kind.bit_width // 8
    content = b"".join((i or 0).to_bytes(width, "little", signed=True) for i in integers)
    bits = np.packbits([i is not None for i in integers], bitorder="little").tobytes()
    buffers = [pa.py_buffer(bits), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, len(integers), buffers)


@pytest.mark.parametrize(("name", "most"), KINDS)
def test_a_decimal_is_the_nearest_double_at_every_precision_and_scale(name, most):
    draw = random.Random(most)
    for precision in range(1, most + 1):
        limit = 10**precision - 1
        for scale in {-330, -23, -3, 0, 2, precision // 2, precision, 22, 23, 45, 330}:
            integers = [draw.randrange(-limit, limit + 1) >> draw.randrange(90) for _ in range(9)]
            integers += [0, 1, -1, limit, -limit, None]
            kind = getattr(pa, name)(precision, scale)
            whole = decimal_array(integers, kind)
            expected = [math.nan if i is None else nearest(i, scale) for i in integers]
            for start, stop in ((0, 15), (3, 15), (11, 13), (4, 4)):
                read = numbers(whole[start:stop])
                np.testing.assert_array_equal(read, expected[start:stop])
                assert not np.signbit(read[read == 0]).any()


@pytest.mark.parametrize(("name", "most"), KINDS)
def test_decimals_are_categories_and_are_read_in_chunks_and_dictionaries(name, most):
    kind = getattr(pa, name)(5, 2)
    amounts = pa.array([Decimal("1.25"), None, Decimal("2.50")], kind)
    chunked = pa.chunked_array([amounts, amounts[1:]])
    np.testing.assert_array_equal(numbers(chunked), [1.25, math.nan, 2.5, math.nan, 2.5])
    code = index(["1.25", 2.5])
    assert coded(chunked, code, -1).tolist() == [0, -1, 1, -1, 1]
    assert empty(chunked).tolist() == [False, True, False, True, False]
    indexed = pa.DictionaryArray.from_arrays(pa.array([2, 0, None]), amounts)
    np.testing.assert_array_equal(numbers(indexed), [2.5, 1.25, math.nan])
    assert coded(indexed, code, -1).tolist() == [1, 0, -1]


EPOCH = datetime(1970, 1, 1)
MOMENTS = [datetime(2020, 1, 31, 12), None, datetime(1969, 12, 31, 6)]
TYPED = {
    **{f"int{w}": [1, None, -7, 0, 100] for w in (8, 16, 32, 64)},
    **{f"uint{w}": [1, None, 7, 0, 200] for w in (8, 16, 32, 64)},
    "float32": [0.5, None, -0.0, math.inf, 3.25], "float64": [0.1, None, -0.0, math.inf, 1e300],
    "bool": [True, None, False, True, True],
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("filled", [False, True])
def test_numbers_and_truths_are_those_of_python_at_every_offset(name, filled):
    listed = [cell for cell in TYPED[name] * 7 if not (filled and cell is None)]
    array = pa.array(listed, pa.type_for_alias(name))
    for start in range(0, len(listed), 3):
        for stop in {start, start + 1, len(listed) - 2, len(listed)}:
            part = array[start:stop]
            expected = [math.nan if c is None else float(c) + 0.0 for c in listed[start:stop]]
            np.testing.assert_array_equal(numbers(part), expected)
            assert cells(part).tolist() == listed[start:stop]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_are_days_and_parts_of_a_day(unit):
    array = pa.array(MOMENTS * 3, pa.timestamp(unit))
    expected = [math.nan if m is None else (m - EPOCH) / timedelta(days=1) for m in MOMENTS * 3]
    for start in range(5):
        np.testing.assert_array_equal(days(array[start:]), expected[start:])


@pytest.mark.parametrize("name", ["date32", "date64"])
def test_dates_are_days_and_one_beyond_the_calendar_is_none(name):
    scale, width = (1, 4) if name == "date32" else (86_400_000, 8)
    first, last = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
    listed = [0, 18292, first, last, last + 1, first - 1]
    content = b"".join((day * scale).to_bytes(width, "little", signed=True) for day in listed)
    array = pa.Array.from_buffers(getattr(pa, name)(), len(listed), [None, pa.py_buffer(content)])
    expected = [0, 18292, first, last, math.nan, math.nan]
    np.testing.assert_array_equal(days(array), expected)
    assert days(array.cast(pa.date32()).dictionary_encode()[1:2]).tolist() == [18292]


def test_zeros_of_a_sas_file_are_refused_with_the_way_to_read_them():
    """SAS writes 0 as an exponent of zero, which pandas reads as 16^-65."""
    domain = Domain(columns={"arm": Categories((0, 1)), "age": Range(0, 100)})
    table = {"arm": np.array([1.0, 16.0**-65]), "age": np.array([1.0, 2.0])}
    with pytest.raises(SourceError, match=r"none of the categories; 5\.4e-79 .* pyreadstat"):
        require_fit(domain, table)
    with pytest.raises(SourceError, match=r"\(none of the categories\)"):
        require_fit(domain, {**table, "arm": np.array([1.0, 2.0])})
