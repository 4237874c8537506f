"""Parquet files, frames and databases give the same records as a CSV file of them."""

import os
import sqlite3
import stat

import pytest

from dpcore import Domain, Range
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore.sources.opening import location, open_source, reading
from dpcore.sources.parquet import ParquetFiles
from dpcore.sources.sql import SqlQuery
from dpcore.sources.text import read_columns
from dpcore.specs.grammar import Csv

from sources.people import DOMAIN, SECRET, as_csv, configure, people, records_of, same


def test_parquet_files_and_folders_read_like_csv(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = people()
    expected = records_of(str(as_csv(tmp_path, table)))
    made = pa.table(table)
    parquet.write_table(made, tmp_path / "people.parquet", row_group_size=77)
    assert same(records_of("people.parquet", tmp_path), expected)
    for column, kind in (
        ("age", pa.float32()),
        ("age", pa.decimal128(21, 2)),
        ("age", pa.string()),
        ("city", pa.dictionary(pa.int32(), pa.string())),
        ("city", pa.large_string()),
    ):
        at = made.column_names.index(column)
        typed = made.set_column(at, column, made.column(column).cast(kind))
        parquet.write_table(typed, tmp_path / "typed.pq", row_group_size=200)
        assert same(records_of("typed.pq", tmp_path), expected), kind
    folder = tmp_path / "parts"
    (folder / "b").mkdir(parents=True)
    parquet.write_table(made.slice(0, 123), folder / "a.parquet")
    parquet.write_table(made.slice(123), folder / "b" / "a.parquet")
    (folder / "_SUCCESS").write_text("")
    found = ParquetFiles(parquet="parts").open(reading(DOMAIN, tmp_path, Csv()))
    assert same(
        project_table(DOMAIN, read_columns(found, reading(DOMAIN, tmp_path, Csv()), "parts")),
        expected,
    )


@pytest.mark.parametrize("kind", ["binary", "list", "time", "date", "twice", "missing", "text"])
def test_what_parquet_refuses_is_named_without_a_cell(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "people.parquet"
    ages = {
        "binary": pa.array([b"4567.891"]),
        "list": pa.array([[4567.891]]),
        "time": pa.array([1], pa.time32("s")),
        "date": pa.array([1], pa.date32()),
    }.get(kind, pa.array([1.0]))
    columns = [ages, pa.array(["Bern"]), pa.array([4567.891])]
    names = ["age", "city", "paid"]
    if kind == "missing":
        names[0] = "4567.891"
    if kind == "twice":
        columns, names = [*columns, ages], [*names, "age"]
    parquet.write_table(pa.Table.from_arrays(columns, names), path)
    if kind == "text":
        path.write_text("age,city,paid\n4567.891,Bern,1\n")
    with pytest.raises(SourceError) as caught:
        records_of("people.parquet", tmp_path)
    assert SECRET not in str(caught.value)
    assert ("'age'" in str(caught.value)) == (kind != "text")


def test_dates_of_parquet_are_read_where_dates_are_declared(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import datetime as dt

    from pyarrow import parquet

    from dpcore.domain.columns import Dates

    days = [dt.date(2020, 1, 1), None, dt.date(2020, 7, 2)]
    year = Dates.between(dt.date(2020, 1, 1), dt.date(2021, 1, 1))
    domain = Domain(columns={"day": year}, target="y", labels=Range(0, 1), limit=9)
    expected = project_table(domain, {"day": ["2020-01-01", "", "2020-07-02"], "y": [0, 1, 0]})
    for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("ns", "Europe/Rome"), pa.string()):
        column = pa.array(days, pa.date32())
        column = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else column
        column = column.cast(pa.timestamp("us", "UTC")) if getattr(kind, "tz", None) else column
        parquet.write_table(pa.table({"day": column.cast(kind), "y": [0, 1, 0]}), tmp_path / "d.pq")
        assert same(records_of("d.pq", tmp_path, domain), expected), kind


def database(folder, table):
    path = folder / "people.db"
    with sqlite3.connect(path) as opened:
        opened.execute("create table people (age, city, other, paid)")
        opened.executemany(
            "insert into people values (?, ?, ?, ?)", zip(*table.values(), strict=True)
        )
    opened.close()
    return path


def test_sqlite_reads_like_csv_cell_by_cell(tmp_path, monkeypatch):
    table = people()
    expected = records_of(str(as_csv(tmp_path, table)))
    database(tmp_path, table)
    configure(monkeypatch, tmp_path, f"here: {{sqlite: {tmp_path / 'people.db'}}}\n")
    query = SqlQuery(sql="select paid, city, age from people order by rowid", connection="here")
    assert same(records_of(query), expected)
    mixed = {**table, "age": [*map(str, table["age"][:250]), *table["age"][250:]]}
    (tmp_path / "people.db").unlink()
    database(tmp_path, mixed)
    assert same(records_of(query), expected)


@pytest.mark.parametrize(
    ("sql", "error_info"),
    [
        ("select age, city from people", "'paid' is missing"),
        ("select age, age, city, paid from people", "'age' is in the header twice"),
        ("select 4567.891 frm people", "the query failed"),
        ("select age, city, paid from no one", "the query failed"),
        ("select cast(x'ff4567891e' as text) age, city, paid from people", None),
    ],
)
def test_a_query_that_fails_shows_no_cell(tmp_path, monkeypatch, sql, error_info):
    path = database(tmp_path, people(5))
    configure(monkeypatch, tmp_path, f"here: {{sqlite: {path}}}\n")
    query = SqlQuery(sql=sql, connection="here")
    if error_info is None:
        assert len(records_of(query)) == 5  # a text that is no UTF-8 is a missing cell
        return
    with pytest.raises(SourceError, match=error_info) as caught:
        records_of(query)
    assert SECRET not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_connections_are_the_operators_alone(tmp_path, monkeypatch):
    query = SqlQuery(sql="select 1", connection="here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(SourceError, match="'here' is not configured"):
        records_of(query)
    hidden = 'here: {postgresql: "postgresql://me:hunter2@db/x", sqlite: 5}\n'
    for text, mode, error_info in (
        ("here: {sqlite: a.db}\n", 0o644, "chmod 600"),
        ("there: {sqlite: a.db}\n", 0o600, "no connection 'here'"),
        ("[1]\n", 0o600, "needs a mapping"),
        ("here: {postgresql: hunter2: 3}\n", 0o600, "needs {sqlite"),
        (hidden, 0o600, "needs {sqlite"),
    ):
        configure(monkeypatch, tmp_path, text, mode)
        with pytest.raises(SourceError, match=error_info) as caught:
            records_of(query)
        assert "hunter2" not in str(caught.value)


def test_what_lacks_its_extra_names_it(tmp_path, monkeypatch):
    path = tmp_path / "dpcore" / "connections.yaml"
    configure(monkeypatch, tmp_path, 'here: {postgresql: "postgresql://db/x"}\n')
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for module in ("dpcore.sources.arrow_columns", "dpcore.sources.sql"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    for source, extra in (
        ("people.parquet", "pyarrow"),
        (SqlQuery(sql="select 1", connection="here"), "adbc-driver-postgresql pyarrow"),
    ):
        with pytest.raises(SourceError, match=f"pip install {extra}"):
            open_source(source, None, Csv(), DOMAIN)


def test_a_text_means_a_kind_of_source_by_its_form():
    assert location("a/b.parquet") == ParquetFiles(parquet="a/b.parquet")
    assert location("a/b.csv").csv == "a/b.csv"
    assert location("sklearn:iris").sklearn == "iris"


def test_small_row_groups_are_read_several_a_part(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = people()
    path = tmp_path / "people.parquet"
    parquet.write_table(pa.table(table), path, row_group_size=3)
    groups = parquet.ParquetFile(path).num_row_groups
    source = ParquetFiles(parquet="people.parquet").open(reading(DOMAIN, tmp_path, Csv()))
    whole_file = records_of("people.parquet", tmp_path)
    assert len(source.parts()) == 1
    monkeypatch.setattr("dpcore.sources.parquet.RECORDS", 10)
    monkeypatch.setattr("dpcore.sources.parquet._OPENING", 0)
    parts = source.parts()
    assert [part.end - part.first for part in parts[:-1]] == [4] * (len(parts) - 1)
    assert [part.first for part in parts] == list(range(0, groups, 4))
    assert parts[-1].end == groups
    assert same(records_of("people.parquet", tmp_path), whole_file)
