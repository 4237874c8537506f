"""Moments as days: the last microsecond of a day stays in its day, however far from 1970."""

import math
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from dpcore.domain import Dates
from dpcore.domain.bins import Binned
from dpcore.domain.cell import day
from dpcore.encoding.columns import find_misfits, read_codes

LAST = timedelta(days=1) - timedelta(microseconds=1)


@pytest.mark.parametrize("year", [1, 1000, 1600, 1970, 2020, 2400, 9999])
def test_a_last_microsecond_stays_in_its_day(year):
    begin = (date(year, 1, 31) - date(1970, 1, 1)).days
    moment = datetime(year, 1, 31) + LAST
    cells = [moment, moment.isoformat(), np.datetime64(moment, "us")]
    for cell in cells:
        assert begin < day(cell) < begin + 1
        assert math.floor(day(cell)) == begin


def test_a_last_microsecond_counts_in_the_month_that_it_ends():
    dates = Dates.between(date(2400, 1, 1), date(2400, 2, 28))
    moments = [datetime(2400, 1, 31) + LAST, datetime(2400, 2, 28) + LAST]
    assert read_codes(Binned.by_month(dates), moments).tolist() == [0, 1]
    assert not find_misfits(dates, moments).any()


def test_the_last_month_of_the_calendar_is_a_bin():
    dates = Dates.between(date(9999, 11, 1), date(9999, 12, 31))
    moments = ["9999-11-30", datetime(9999, 12, 31) + LAST]
    assert Binned.by_month(dates).values == ("9999-11", "9999-12")
    assert read_codes(Binned.by_month(dates), moments).tolist() == [0, 1]
