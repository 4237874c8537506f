"""Edges of equal cells are the nearest doubles, and a number on one is in the cell above it."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpcore import Domain, Range
from dpcore.domain import Dates
from dpcore.domain.bins import cells_between, equal_edges
from dpcore.encoding.tables import project_table
from dpcore.records import Records

TINY = [(0, 0.3, 3), (0.1, 0.7, 6), (-0.7, 0.2, 9), (1e-5, 1e-4, 7), (0.0, 1e-150, 3)]
WIDE = [(0, 2**53 + 2, 7), (-(10**20), 10**20, 11), (1e15, 1e15 + 8, 4), (1900.5, 2000, 199)]
INTEGERS = [
    (low, high, count)
    for low, high in itertools.combinations(range(-4, 12), 2)
    for count in (1, 2, 3, 5, 7, 10, 11, 15)
]
DATES = [(18262.0, 18627.0, 12), (18262.0, 18627.0, 365), (-719162.0, 2932896.0, 1000)]


def nearest(low, high, count):
    """Edges by 60 digits, which `float` rounds to the nearest double."""
    with localcontext() as context:
        context.prec = 400
        first, last = Decimal(str(low)), Decimal(str(high))
        return [float(first + i * (last - first) / count) for i in range(count + 1)]


@pytest.mark.parametrize("rule", [*TINY, *WIDE, *DATES], ids=str)
def test_edges_are_the_nearest_doubles(rule):
    assert [*equal_edges(*rule)] == nearest(*rule)


def test_edges_of_small_integers_are_the_nearest_doubles():
    for rule in INTEGERS:
        edges = equal_edges(*rule)
        assert [*edges] == nearest(*rule)
        assert (edges[0], edges[-1]) == rule[:2]


def expected_cell(number, low, high, count):
    """By fractions: the last edge that is not above it, and the last cell for the end."""
    edges = [Fraction(edge) for edge in nearest(low, high, count)]
    if not edges[0] <= Fraction(number) <= edges[-1]:
        return -1
    return min(sum(edge <= Fraction(number) for edge in edges) - 1, count - 1)


def around(edges):
    """Every edge, and the doubles next to it."""
    return np.array(
        [x for e in edges for x in (math.nextafter(e, -math.inf), e, math.nextafter(e, math.inf))]
    )


@pytest.mark.parametrize("rule", [*TINY, (0, 10, 10), (-5, 5, 10), (1900, 2000, 100)], ids=str)
def test_a_number_on_an_edge_is_in_the_cell_that_begins_there(rule):
    numbers = around(equal_edges(*rule))
    expected = [expected_cell(number, *rule) for number in numbers.tolist()]
    assert cells_between(equal_edges(*rule), numbers).tolist() == expected
    assert cells_between(equal_edges(*rule), np.array([math.nan])).tolist() == [-1]


def test_records_have_the_numbers_that_the_file_has():
    domain = Domain(
        columns={
            "a": Range(0, 1000),
            "b": Range(0, 10, missing=True),
            "day": Dates(0.0, 10.0, default=3.0),
        },
        target="y",
        labels=Range(0, 7),
    )
    table = {
        "a": [3, Decimal("3.1"), math.nextafter(3, 0), -5],
        "b": [None, 2, math.inf, 11],
        "day": ["1970-01-02", "no date", "1970-01-01", "1971-01-01"],
        "y": [1, 9, "2", None],
    }
    records = project_table(domain, table)
    assert records.numbers_of("a").tolist() == [3.0, 3.1, math.nextafter(3, 0), 0.0]
    np.testing.assert_array_equal(records.numbers_of("b"), [math.nan, 2.0, 10.0, 10.0])
    assert records.numbers_of("day").tolist() == [1.0, 3.0, 0.0, 10.0]
    assert records.numbers_of("y").tolist() == [1.0, 7.0, 2.0, 3.5]
    assert records.numbers.shape == (4, 4)
    part = records.take(np.array([2, 0]))
    assert part.numbers_of("a").tolist() == [math.nextafter(3, 0), 3.0]
    assert records.blocks(3)[1].numbers_of("a").tolist() == [0.0]
    chosen = project_table(domain, table, ("a",))
    assert chosen.number_names == ("a",)
    assert chosen.numbers_of("b") is None


def test_records_made_by_hand_have_no_numbers():
    records = Records(features=np.zeros((2, 1)), labels=np.zeros(2))
    assert records.numbers_of("a") is None
    assert records.numbers.shape == (2, 0)
    with pytest.raises(ValueError, match="numbers"):
        Records(features=np.zeros((2, 1)), labels=np.zeros(2), number_names=("a",))
