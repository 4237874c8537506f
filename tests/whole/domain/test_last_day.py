"""A range of dates holds all moments of its last day, wherever records are counted or asked for."""

import datetime as dt

import numpy as np
import pytest

import dpcore
from dpcore import Domain, PrivacyBudget, Range, Session
from dpcore.domain.bins import Binned
from dpcore.domain.columns import Dates
from dpcore.domain.conditions import Condition
from dpcore.encoding.columns import encode_column, find_misfits, read_codes
from dpcore.errors import ParameterError, SourceError

FIRST, LAST = dt.date(2020, 1, 1), dt.date(2020, 12, 31)
YEAR = Dates.between(FIRST, LAST)
MIDNIGHT = float((LAST - dt.date(1970, 1, 1)).days)
NOON, END = "2020-12-31 12:00", "2020-12-31T23:59:59.999999"
MOMENTS = [dt.datetime(2020, 12, day, 12) for day in (1, 15, 30, 31)] * 250


def test_a_last_day_holds_its_moments_and_nothing_behind_them():
    cells = ["2020-12-31", NOON, END, "2021-01-01", "2020-01-01", "2019-12-31T23:59"]
    inside = [True, True, True, False, True, False]
    assert (~find_misfits(YEAR, cells)).tolist() == inside
    assert encode_column(YEAR, cells)[:3, 0].tolist() == [1.0, 1.0, 1.0]
    assert np.isin(read_codes(Binned.by_month(YEAR), cells), -1).tolist() == [not i for i in inside]
    assert read_codes(Binned.by_month(YEAR), [NOON, END]).tolist() == [11, 11]
    assert read_codes(Binned.by_week(YEAR), [END]).tolist() == [52]
    assert read_codes(
        Binned.by_year(Dates.between(FIRST, dt.date(2021, 6, 1))), ["2021-06-01T20:00"]
    )[0]


@pytest.mark.parametrize("last", ["2020-12-31", "2021-01-01", "2020-12-31 12:00"])
def test_bins_between_edges_hold_the_last_day(last):
    binned = Binned.between(YEAR, ["2020-01-01", "2020-12-30", last])
    assert read_codes(binned, ["2020-12-29T23:59", "2020-12-30T12:00", NOON, END]).tolist() == [
        0,
        1,
        1,
        1,
    ]


def test_an_end_with_a_time_of_day_is_that_moment():
    until_noon = Dates(YEAR.low, MIDNIGHT + 0.5)
    assert find_misfits(until_noon, [NOON, "2020-12-31 12:01", END]).tolist() == [False, True, True]


@pytest.mark.parametrize("date", [dt.date(2020, 1, 1), np.datetime64("2020-01-01")])
def test_dates_as_ends_lead_to_between(date):
    with pytest.raises(ParameterError, match=r"Dates\.between"):
        Dates(date, date)


def session(only=None, on_invalid="refuse"):
    domain = Domain(
        columns={"came": YEAR, "month": Binned.by_month(YEAR), "x": Range(0, 10)}, only=only or {}
    )
    table = {"came": MOMENTS, "month": MOMENTS, "x": [5.0] * len(MOMENTS)}
    budget = PrivacyBudget(epsilon=1e5, delta=1e-6)
    return Session(budget, domain, table, adjacency="add_remove", on_invalid=on_invalid)


CONDITIONS = [
    ({"from": "2020-12-31"}, 250),
    ({"from": LAST}, 250),
    ({"from": MIDNIGHT}, 250),
    ({"from": int(MIDNIGHT)}, 250),
    ({"from": np.datetime64("2020-12-30T13:00")}, 250),
    ({"from": dt.datetime(2020, 12, 15, 12)}, 750),
    ({"below": "2020-12-31"}, 750),
    ({"below": "2021-01-01"}, 1000),
    ({"from": "2020-12-01", "below": "2021-01-01"}, 1000),
    ({"from": "2020-12-15", "below": 18626}, 250),
]


@pytest.mark.parametrize(("condition", "count"), CONDITIONS, ids=str)
def test_conditions_take_dates_and_days(condition, count):
    assert session().count(where={"came": condition}, epsilon=100)["estimate"][0] == pytest.approx(
        count, abs=3
    )


@pytest.mark.parametrize("end", ["2020-12-31 12:00", END, "2021-01-02", 20201231, "18626", "x"])
def test_conditions_refuse_what_no_record_tells_apart(end):
    with pytest.raises(ParameterError, match="or the end of its last day"):
        session().count(where={"came": {"from": end}}, epsilon=1)


def test_rows_are_left_out_to_the_moment():
    for low, high, count in ((NOON, None, 250), ("2020-12-31 12:01", None, 0), (None, NOON, 750)):
        ends = [None if end is None else float(YEAR.declared([end])[0]) for end in (low, high)]
        only = {"came": Condition(*ends)}
        found = session(only).count(epsilon=100)["estimate"][0]
        assert found == pytest.approx(count, abs=3)


def test_every_learner_counts_the_last_day():
    asked = session()
    assert sum(asked.histogram("came", bins=3, epsilon=100)["estimate"]) == pytest.approx(
        1000, abs=9
    )
    edges = ("2020-12-15", "2020-12-30", "2020-12-31")
    assert asked.histogram("came", edges=edges, epsilon=100)["estimate"] == pytest.approx(
        [250, 500], abs=9
    )
    table = asked.histogram("month", epsilon=100)
    assert table["estimate"][-1] == pytest.approx(1000, abs=9)
    by_month = asked.learner("statistics.running", {"column": "came", "every": "month"})
    run = asked.release(by_month, epsilon=100)
    assert run.tables["periods"]["estimate"][-1] == pytest.approx(1000, abs=9)


SPEC = """
dpcore: 1
data:
  source: came.csv
  domain:
    records: private
    columns:
      month: {dates: [2020-01-01, 2020-12-31], bins: month, of: came}
      came: {dates: [2020-01-01, 2020-12-31]}
    ONLY
adjacency: add_remove
on_invalid: HOW
budget: {epsilon: 500, delta: 1e-6}
releases:
  - {name: months, learner: {name: statistics.table, marginals: {months: [month]}}}
  - {name: run, learner: {name: statistics.running, column: came, every: month}}
  - {name: late, learner: {name: statistics.count, where: {came: {from: 18627, below: 2021-01-01}}}}
"""


@pytest.mark.parametrize("how", ["refuse", "project"])
@pytest.mark.parametrize(
    ("only", "rest"), [("", 4000), ("only: {came: {from: 2020-12-15, below: 2021-01-01}}", 3000)]
)
def test_a_run_counts_the_last_day(how, only, rest, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("HOW", how).replace("ONLY", only))
    lines = [f"2020-12-{day:02d} 12:00:00" for day in (1, 15, 30, 31)] * 1000
    (tmp_path / "came.csv").write_text("\n".join(["came", *lines]) + "\n")
    tables = dpcore.run(tmp_path / "spec.yaml").tables
    for name in ("months.months", "run.periods"):
        assert tables[name]["estimate"][11] == pytest.approx(rest, abs=9)
    assert tables["late"]["estimate"][0] == pytest.approx(1000, abs=9)


def test_a_mean_of_dates_is_printed_as_a_date_with_its_interval():
    asked = session()
    noons = [18597.5, 18611.5, 18626.5, 18627.0]  # the last day counts as its beginning
    mean = asked.mean("came", epsilon=20_000)
    assert mean["estimate"][0] == pytest.approx(np.mean(noons), abs=0.05)
    _, estimate, low, high = mean.printed_rows()[0]
    expected = dt.datetime(1970, 1, 1) + dt.timedelta(days=float(mean["estimate"][0]))
    assert estimate == f"{expected:%Y-%m-%d %H:%M}"
    moments = [
        dt.datetime(1970, 1, 1) + dt.timedelta(days=float(mean[e][0])) for e in ("low", "high")
    ]
    assert (
        low
        <= f"{moments[0]:%Y-%m-%d %H:%M:%S}"
        <= f"{moments[1]:%Y-%m-%d %H:%M:%S}"
        <= f"{high}:00"
    )
    assert float(mean.printed_rows()[1][1]) == pytest.approx(mean["estimate"][1], abs=0.05)
    rough = session().mean("came", epsilon=0.5)
    assert {len(text) for text in rough.printed_rows()[0][1:]} == {len("2020-12-19")}


def test_every_table_prints_its_dates_as_dates():
    asked = session()
    for printed in (
        asked.quantiles("came", (0.25, 0.5), epsilon=100).printed_rows(),
        asked.mean("came", by=("month",), epsilon=100).printed_rows()[::2],
        [asked.variance("came", epsilon=100).printed_rows()[0]],
    ):
        assert all(cell.startswith("2020-") for row in printed for cell in row[-3:])


def test_a_date_behind_the_last_day_is_refused_still():
    table = {"came": [dt.datetime(2021, 1, 1)], "x": [1.0]}
    domain = Domain(columns={"came": YEAR, "x": Range(0, 10)})
    budget = PrivacyBudget(epsilon=1, delta=0)
    with pytest.raises(SourceError, match="2020-12-31"):
        Session(budget, domain, table, adjacency="add_remove").count(epsilon=0.5)
