"""Moments: each counts by itself, in UTC, as it is, or in a declared zone."""

import datetime as dt
import json
import math
import zoneinfo
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpcore
from dpcore import Domain, Range
from dpcore.domain import moments
from dpcore.domain.bins import Binned
from dpcore.domain.columns import Dates
from dpcore.domain.derived import MONTH, WEEKDAY, Derived
from dpcore.domain.moments import zone_rules
from dpcore.encoding.cells import cells, days, empty
from dpcore.encoding.columns import encode_column, find_misfits, read_codes, read_numbers
from dpcore.encoding.tables import derive_columns
from dpcore.errors import ParameterError
from dpcore.published.lock import locked
from dpcore.specs.spec import spec_of_text

UTC, EPOCH = dt.UTC, dt.datetime(1970, 1, 1)
BERLIN = Dates.between(dt.date(1890, 1, 1), dt.date(2100, 12, 31), zone="Europe/Berlin")
# Around both changes of 2024, before standard time (an offset with seconds), and before 1970.
INSTANTS = [
    dt.datetime(2024, 3, 31, 0, 59, 59, 999_999, tzinfo=UTC),
    dt.datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
    dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
    dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    dt.datetime(2024, 3, 31, 22, 30, tzinfo=UTC),
    dt.datetime(1890, 6, 1, 12, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    dt.datetime(2050, 6, 30, 22, 30, tzinfo=UTC),
]


def defined(moment, zone=None):
    """Days since 1970-01-01, by the calendar's own arithmetic and one correct rounding."""
    if moment.utcoffset() is not None:
        moment = moment.astimezone(zone or UTC).replace(tzinfo=None)
    elapsed = moment - EPOCH
    microseconds = (elapsed.days * 86400 + elapsed.seconds) * 10**6 + elapsed.microseconds
    return elapsed.days + float(Fraction(microseconds % (86400 * 10**6), 86400 * 10**6))


def columns_of(instants):
    """The same instants in every container whose type has an offset, and in lists of cells."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    typed = arrow.array(instants, arrow.timestamp("us", "UTC"))
    return {
        "list": instants,
        "objects": np.array(instants, dtype=object),
        "texts": [moment.isoformat() for moment in instants],
        "elsewhere": [m.astimezone(zoneinfo.ZoneInfo("Asia/Kolkata")) for m in instants],
        "pandas": pandas.Series(instants),
        "pandas in New York": pandas.Series(instants).dt.tz_convert("America/New_York"),
        "polars": polars.Series(instants),
        "arrow": typed,
        "arrow in ns": arrow.array(instants, arrow.timestamp("ns", "Asia/Tokyo")),
        "chunks": arrow.chunked_array([typed[:3], typed[3:]]),
        "kept": cells(typed),
    }


@pytest.mark.parametrize("name", columns_of(INSTANTS))
def test_moments_with_an_offset_count_in_the_declared_zone_in_every_container(name):
    column, zone = columns_of(INSTANTS)[name], zoneinfo.ZoneInfo("Europe/Berlin")
    assert read_numbers(BERLIN, column).tolist() == [defined(m, zone) for m in INSTANTS]
    assert days(column).tolist() == [defined(m) for m in INSTANTS]
    required = Dates(BERLIN.low, BERLIN.high, offsets="required")
    assert read_numbers(required, column).tolist() == [defined(m) for m in INSTANTS]
    assert np.isnan(read_numbers(Dates(BERLIN.low, BERLIN.high, offsets="none"), column)).all()


@given(
    st.datetimes(
        dt.datetime(1, 1, 1),
        timezones=st.sampled_from(["UTC", "America/St_Johns", "Asia/Kathmandu"]).map(
            zoneinfo.ZoneInfo
        ),
    ),
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia"]),
)
def test_any_moment_counts_as_python_converts_it_or_is_no_date(moment, name):
    zone = zoneinfo.ZoneInfo(name)
    try:
        expected = defined(moment, zone)
    except OverflowError:  # out of the calendar
        expected = math.nan
    np.testing.assert_array_equal(days([moment], zone), [expected])


def test_moments_without_an_offset_stand_as_they_are():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    naive = [moment.replace(tzinfo=None) for moment in INSTANTS]
    for column in (
        naive,
        np.array(naive, "M8[us]"),
        pandas.Series(naive),
        arrow.array(naive, arrow.timestamp("us")),
    ):
        assert read_numbers(BERLIN, column).tolist() == [defined(moment) for moment in naive]
        assert np.isnan(read_numbers(Dates(0, 1, offsets="required"), column)).all()
    day = [dt.date(2024, 3, 31), "2024-03-31"]
    assert read_numbers(BERLIN, day).tolist() == [19813.0, 19813.0]
    assert np.isnan(read_numbers(Dates(0, 1, offsets="required"), day)).all()


def test_no_moment_near_the_ends_of_the_calendar_raises():
    arrow = pytest.importorskip("pyarrow")
    ends = ["9999-12-31T23:30-01:00", "0001-01-01T00:30+01:00", dt.datetime.max, dt.datetime.min]
    for hours in (-23, 23):
        ends += [e.replace(tzinfo=dt.timezone(dt.timedelta(hours=hours))) for e in ends[2:4]]
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):
        rule = Dates(-719162.0, 2932896.0, zone=zone)
        assert find_misfits(rule, ends).tolist()[:2] == [True, True]
        assert encode_column(rule, ends).shape == (8, 1)
    distance = arrow.array([2**60, -(2**60), None], arrow.timestamp("s", "UTC"))
    assert np.isnan(read_numbers(BERLIN, distance)).all()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_an_empty_moment_is_no_date_in_any_unit(unit):
    arrow = pytest.importorskip("pyarrow")
    for zone in (None, "UTC"):
        column = arrow.array([None, 0, -1], arrow.timestamp(unit, zone))
        assert np.isnan(days(column)).tolist() == [True, False, False]
        assert empty(column).tolist() == [True, False, False]


@pytest.mark.parametrize("declared", [{}, {"zone": "Europe/Berlin"}, {"offsets": "required"}])
def test_a_record_that_changes_its_kind_moves_no_other(declared):
    rule = Dates.between(dt.date(2024, 1, 1), dt.date(2024, 12, 31), **declared)
    before = [INSTANTS[0], "2024-03-31T23:30Z", "2024-03-31T23:30", dt.datetime(2024, 5, 1), None]
    for place in range(5):
        for cell in ("2024-04-01T00:30", "2024-04-01T00:30+02:00", dt.date(2024, 4, 1), 7, "x"):
            after = [*before[:place], cell, *before[place + 1 :]]
            others = np.arange(5) != place
            by_month = partial(read_codes, Binned.by_month(rule))
            for read in (partial(encode_column, rule), partial(find_misfits, rule), by_month):
                assert read(before)[others].tobytes() == read(after)[others].tobytes()


def test_prepared_columns_read_a_date_in_the_zone_of_its_own_column():
    came = Dates.between(dt.date(2024, 1, 1), dt.date(2024, 12, 31), zone="Europe/Berlin")
    domain = Domain(
        columns={"came": came, "month": Binned.by_month(came), "x": Range(0, 1)},
        derived={"m": Derived(MONTH, ("came",)), "w": Derived(WEEKDAY, ("came",))},
        groups={
            "m": dpcore.Categories(("March", "April")),
            "w": dpcore.Categories(("Sunday", "Monday")),
        },
    )
    table = derive_columns(domain, {"came": ["2024-03-31T22:30Z"], "month": [""], "x": [0]})
    assert (table["m"].tolist(), table["w"].tolist()) == (["April"], ["Monday"])


@pytest.mark.parametrize(
    "zone", ["Europe", "Mars/X", "localtime", "../x", "europe/berlin", "", "right/UTC", 3]
)
def test_a_zone_that_is_none_is_refused(zone):
    with pytest.raises(ParameterError) as caught:
        Dates(0, 10, zone=zone)
    assert caught.value.field == "zone"


def test_defaults_print_as_ever():
    assert repr(Dates(0, 10)) == "Dates(low=0, high=10, default=None)"
    assert repr(BERLIN).endswith("zone='Europe/Berlin')")
    with pytest.raises(ParameterError, match="offsets"):
        Dates(0, 10, zone="UTC", offsets="none")


SPEC = """
dpcore: 1
data:
  source: came.csv
  domain:
    records: private
    columns:
      came: {dates: [2024-01-01, 2024-12-31], bins: month, zone: Europe/Berlin}
      gone: {dates: [2024-01-01, 2024-12-31], offset: required}
adjacency: add_remove
budget: {epsilon: 200, delta: 1e-6}
on_invalid: project
releases:
  - {name: months, learner: {name: statistics.table, marginals: {months: [came]}}}
"""


def test_a_run_counts_in_its_zone_and_says_by_which_rules(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    # 00:30 on 1 April in Berlin, written in UTC; and the same wall clock without an offset.
    rows = ["2024-03-31T22:30Z,2024-01-01T00:00Z"] * 300 + ["2024-03-31T22:30,2024-01-01"] * 100
    (tmp_path / "came.csv").write_text("\n".join(["came,gone", *rows]) + "\n")
    outcome = dpcore.run(tmp_path / "spec.yaml")
    estimates = outcome.tables["months.months"]["estimate"]
    assert estimates[2] == pytest.approx(100, abs=20)
    assert estimates[3] == pytest.approx(300, abs=20)
    version = zone_rules("Europe/Berlin")
    lock = json.loads((outcome.folder / "public" / "spec.lock.json").read_text())
    assert lock["versions"]["tzdata Europe/Berlin"] == version
    came, gone = outcome.guarantee.provenance.boundary_premises[-2:]
    assert f"Europe/Berlin by the rules of {version}" in came
    assert "counts in UTC (00:30 at +02:00" in gone
    dpcore.replay(outcome.folder)


def test_other_rules_of_a_zone_make_another_lock(tmp_path, monkeypatch):
    spec = spec_of_text(SPEC, "spec.yaml")
    folder = tmp_path / "Europe"
    folder.mkdir()
    (folder / "Berlin").write_bytes(b"TZif")
    monkeypatch.setattr(moments, "TZPATH", (str(tmp_path),))
    assert zone_rules("Europe/Berlin").startswith("SHA-256 ")
    (tmp_path / "tzdata.zi").write_text("# version 1999z\n")
    lock = locked(spec, write=False).lock
    assert lock.versions["tzdata Europe/Berlin"] == "1999z"
    monkeypatch.undo()
    assert not lock.same_request(spec)
