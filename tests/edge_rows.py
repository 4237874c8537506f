"""Rows on edges of equal cells and next to them, and how many of them every cell holds."""

import datetime
import math
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow

from dpcore import Domain, Range
from dpcore.domain.columns import Dates
from dpcore_statistics.count import Count
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean

EPOCH = datetime.date(1970, 1, 1)
FIRST, LAST = datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)
BINS = {"whole": 10, "tenths": 6, "wide": 7, "paid": 3, "day": 73, "y": 11}
ENDS = {
    "whole": (0, 10),
    "tenths": (Fraction(1, 10), Fraction(7, 10)),
    "wide": (-5, 995),
    "paid": (0, Fraction(3, 10)),
    "day": ((FIRST - EPOCH).days, (LAST - EPOCH).days),
    "y": (0, 110),
}


def edge_domain():
    """A column of every type that holds numbers."""
    return Domain(
        columns={
            "whole": Range(0, 10),
            "tenths": Range(0.1, 0.7),
            "wide": Range(-5, 995, missing=True),
            "paid": Range(0, 0.3),
            "day": Dates.between(FIRST, LAST),
        },
        target="y",
        labels=Range(0, 110),
        limit=10**6,
    )


def edges_of(name):
    """The nearest doubles, by fractions."""
    low, high = map(Fraction, ENDS[name])
    return [float(low + i * (high - low) / BINS[name]) for i in range(BINS[name] + 1)]


def edge_table():
    """As many rows for every column: its edges and the doubles next to them, or whole numbers."""
    adjacent = {
        name: [
            x
            for edge in edges_of(name)
            for x in (math.nextafter(edge, -math.inf), edge, math.nextafter(edge, math.inf))
            if edges_of(name)[0] <= x <= edges_of(name)[-1]
        ]
        for name in ("tenths", "wide", "y")
    }
    rows = 400
    paid = [Decimal(k).scaleb(-3) for k in range(301)]
    cells = {
        "whole": pyarrow.array(np.resize(np.arange(11), rows), pyarrow.int16()),
        "tenths": pyarrow.array(np.resize(adjacent["tenths"], rows)),
        "wide": pyarrow.array([*adjacent["wide"], *[None] * (rows - len(adjacent["wide"]))]),
        "paid": pyarrow.array([paid[k % 301] for k in range(rows)], pyarrow.decimal128(9, 3)),
        "day": pyarrow.array([FIRST + datetime.timedelta(k % 366) for k in range(rows)]),
        "y": pyarrow.array(np.resize(adjacent["y"], rows)),
    }
    return pyarrow.table(cells)


def numbers_in(table, name):
    """The double that each cell of a column is, None where there is none."""
    cells = table[name].to_pylist()
    if name == "day":
        return [(cell - EPOCH).days for cell in cells]
    return [None if cell is None else float(cell) for cell in cells]


def expected_counts(table, name):
    """How many rows every cell holds, by bisection among the edges."""
    edges, counts = edges_of(name), [0] * BINS[name]
    for number in numbers_in(table, name):
        if number is not None:
            counts[min(bisect_right(edges, number), BINS[name]) - 1] += 1
    return counts


def edge_learners():
    """Statistics of the cells of every column, by name."""
    histograms = {name: Histogram(column=name, bins=bins) for name, bins in BINS.items()}
    return {
        **histograms,
        "from": Count(where={"tenths": {"from": 0.3}, "wide": {"below": 281}}),
        "means": Mean(column="whole", by=("wide",), bins={"wide": 7}),
    }


def expected_from(table):
    """How many rows meet the conditions of the count."""
    pairs = zip(numbers_in(table, "tenths"), numbers_in(table, "wide"), strict=True)
    return [sum(b is not None and a >= 0.3 and b < 281 for a, b in pairs)]
