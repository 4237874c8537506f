"""Hostile rows: cells of every sort, and the learners that the sql engine adds for."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow

from dpcore import Categories, Domain, Public, Range
from dpcore.domain.columns import Dates
from dpcore.learners.sums import SumPart
from dpcore.randomness import PublicRandomness
from dpcore_statistics.count import Count
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.marginals.learner import Marginals
from dpcore_statistics.mean import Mean
from dpcore_statistics.pairs.covariance import Covariance
from dpcore_statistics.tables import Table
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance

WARDS = ("cardiology", "emergency", "général", "maternity's", "surgery")


def hostile_domain():
    """Declared columns of every kind that is pushed."""
    return Domain(
        columns={
            "age": Range(0, 110),
            "visited": Dates.between(datetime.date(2023, 1, 1), datetime.date(2024, 12, 31)),
            "sex": Categories(("F", "M"), default="F"),
            "ward": Categories(WARDS, spellings={"er": "emergency"}),
            "systolic": Range(60, 240, missing=True),
            "cost": Range(0, 20000, default=3.5),
            "paid": Range(-1.5, 12.25),
            "smoker": Categories((0, 1)),
        },
        target="score",
        labels=Range(-1, 3),
        limit=10**8,
    )


def hostile_table(count, seed=0):
    """So many records, of which about one cell in ten is none that anybody declared."""
    rng = np.random.default_rng(seed)

    def sprinkled(numbers, *odd):
        numbers = np.array(numbers, dtype=np.float64)
        places = rng.random(count) < 0.1
        numbers[places] = rng.choice(np.array(odd, dtype=np.float64), places.sum())
        return numbers

    def texts(values):
        return pyarrow.array(np.array(values, dtype=object)[rng.integers(len(values), size=count)])

    small = (np.nan, -0.0, 1e-45, 3e38, -np.inf, np.inf)
    odd = (np.nan, -0.0, 5e-324, -5e-324, 1e300, -1e300, 1e-310)
    infinite = (*odd, np.inf, -np.inf)
    days = rng.integers(19_000, 20_400, size=count).astype("datetime64[D]")
    pool = [Decimal("0.005"), Decimal("12.25"), Decimal("-1.50"), Decimal("99.99"), None]
    pool += [Decimal(k).scaleb(-3) for k in range(-1600, 12300, 7)]
    return pyarrow.table(
        {
            "age": pyarrow.array(
                rng.integers(-5, 120, size=count),
                mask=rng.random(count) < 0.02,
                type=pyarrow.int16(),
            ),
            "visited": pyarrow.array(days, mask=rng.random(count) < 0.02, type=pyarrow.date32()),
            "sex": texts(["F", "M", " F", "M\t", "f", "", None, "FM", "\u00a0F"]),
            "ward": texts([*WARDS, "er", "ER", " er ", "gene\u0301ral", None, "1", "x"]),
            "systolic": pyarrow.array(
                sprinkled(rng.normal(130, 30, count), *odd),
                mask=rng.random(count) < 0.05,
                from_pandas=False,
            ),
            "cost": pyarrow.array(
                sprinkled(rng.gamma(2, 800, count), *small).astype(np.float32), from_pandas=False
            ),
            "paid": pyarrow.array(pool, pyarrow.decimal128(9, 3)).take(
                pyarrow.array(rng.integers(len(pool), size=count))
            ),
            "smoker": pyarrow.array(
                rng.random(count) < 0.3, mask=rng.random(count) < 0.1, type=pyarrow.bool_()
            ),
            "score": pyarrow.array(
                sprinkled(rng.normal(1, 1, count), *infinite, 1.0, 3.0), from_pandas=False
            ),
        }
    )


def learners():
    """Learners whose sums are added where the records are, by name."""
    where = {"age": {"from": 18, "below": 65}, "ward": ["surgery", "emergency"]}
    ages = {"age": (0, 18, 40, 65, 80, 110)}
    tables = {"smokers": ("smoker",), "by_age": ("smoker", "age")}
    return {
        "count": Count(),
        "count where": Count(where=where),
        "count below": Count(where={"systolic": {"below": 120}}),
        "count by": Count(by=("ward", "smoker")),
        "count in l1": Count(by=("smoker",), distance="l1"),
        "total by": Total(column="cost", by=("sex",)),
        "total": Total(column="paid"),
        "mean": Mean(column="score", where=where),
        "mean in l1": Mean(column="paid", distance="l1"),
        "mean of dates": Mean(column="visited"),
        "variance": Variance(column="systolic"),
        "variance by": Variance(column="paid", by=("ward",)),
        "covariance": Covariance(column="systolic", other="score"),
        "histogram": Histogram(column="age", edges=ages["age"], by=("sex",)),
        "bins of the target": Histogram(column="score", bins=64),
        "group_by": GroupBy(by=("ward", "sex"), column="age"),
        "groups of dates": GroupBy(by=("visited",), bins={"visited": 24}),
        "residuals of tables": Table(marginals=tables, edges=ages),
        "cells of tables": Table(marginals=tables, edges=ages, strategy="cells"),
        "marginals": Marginals(columns=("ward", "sex", "systolic"), bins={"systolic": 9}),
    }


def part_of(learner, domain):
    """A learner's one sum."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    return SumPart(learner=learner, query=query, public=public)
