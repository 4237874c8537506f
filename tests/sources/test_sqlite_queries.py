"""SQLite runs what reads and computes, and nothing else: each guard only, and all together."""

import contextlib
import sqlite3

import pytest

from dpcore.domain.columns import Holds
from dpcore.errors import SourceError
from dpcore.source import Reading
from dpcore.sources import sql as module
from dpcore.sources.connections import Sqlite
from dpcore.sources.sql import SqlitePart, SqlQuery

from sources.queries import BOTH, NO_QUERIES, SQLITE

READING = Reading(columns={"age": Holds.NUMBERS, "paid": Holds.NUMBERS})


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of five synthetic rows, and nothing else."""
    with contextlib.closing(sqlite3.connect(tmp_path / "people.db")) as made, made:
        made.execute("create table people (place integer primary key, age int, city, paid real)")
        rows = [(31, "Bern", 1.5), (None, "Rom", 2.0), (7, "Z", 0.0), (7, "B", 1.0), (1, "", 3.0)]
        made.executemany("insert into people (age, city, paid) values (?, ?, ?)", rows)
        made.execute("create table sqlar (name text)")
        made.execute("create view ages as select age, paid from people")
    return tmp_path


def part_of(folder, sql):
    query = SqlQuery(sql=sql, connection="here")
    database = Sqlite(sqlite=str(folder / "people.db"))
    return SqlitePart(query=query, database=database, reading=READING)


def rows_of(folder, sql):
    return [
        row
        for batch in part_of(folder, sql).batches()
        for row in zip(batch["age"], batch["paid"], strict=True)
    ]


def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("sql", [*BOTH, *SQLITE])
def test_a_right_query_gives_the_rows_that_sqlite_gives(folder, sql):
    with contextlib.closing(sqlite3.connect(folder / "people.db")) as plain:
        expected = [row[:2] for row in plain.execute(sql.rstrip("; "))]
    found = rows_of(folder, sql)
    assert found == expected or {*found} == {*expected}
    assert found


@pytest.mark.parametrize(
    "sql", ["select age, paid from ages", "select count(*) age, 1 paid from ages"]
)
def test_a_view_of_the_owner_is_read(folder, sql):
    assert rows_of(folder, sql)


def unread(monkeypatch):
    """Take the first guard away: texts pass as they stand."""
    monkeypatch.setattr(module, "require_query", lambda sql: None)
    monkeypatch.setattr(module, "query_text", lambda sql, dialect: (sql, set(), set()))


@pytest.mark.parametrize("sql", NO_QUERIES["sqlite"])
def test_what_is_no_query_writes_nothing_where_its_text_is_not_read(folder, monkeypatch, sql):
    unread(monkeypatch)
    before = state(folder)
    with pytest.raises(SourceError):
        rows_of(folder, sql.format(out=folder / "copy"))
    assert state(folder) == before


@pytest.mark.parametrize("sql", NO_QUERIES["sqlite"])
def test_the_authorizer_alone_lets_nothing_be_written(folder, sql):
    before = state(folder)
    with part_of(folder, "select age, paid from people").opened() as handle:
        # What explains reads no record, and what has nothing to change does nothing.
        does_nothing = sql.startswith("explain") or sql in ("drop view if exists v", "reindex")
        refused = pytest.raises((sqlite3.Error, sqlite3.Warning))
        with contextlib.nullcontext() if does_nothing else refused:
            handle.execute(sql.format(out=folder / "copy")).fetchall()
    assert state(folder) == before


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("select load_extension('x') as age, paid from people", "load_extension"),
        ("select random() as age, paid from people", "random"),
        ("select randomblob(8) as age, paid from people", "randomblob"),
        ("select fts3_tokenizer('x') as age, paid from people", "fts3_tokenizer"),
        ("select sqlite_version() as age, paid from people", "sqlite_version"),
        ("select changes() as age, paid from people", "changes"),
        ("select age, paid from people where city match 'x'", "match"),
        ("select age, paid from people where load_extension('x')", "load_extension"),
        ("select rootpage as age, 1 as paid from sqlite_master", "sqlite_master"),
        ("select rootpage as age, 1 as paid from sqlite_schema", "sqlite_master"),
        ("select seq as age, 1 as paid from pragma_database_list", "sqlite_master"),
        ("select 1 as age, 1 as paid from dbstat", "sqlite_master"),
        ("select age, paid from people, fts3tokenize", "sqlite_master"),
        (
            "with x as (select load_extension('x')) select age, paid from people, x",
            "load_extension",
        ),
    ],
)
def test_functions_and_tables_of_sqlites_own_are_denied(folder, monkeypatch, sql, named):
    unread(monkeypatch)
    with pytest.raises(SourceError, match=f"uses '{named}'.*owner of the database"):
        rows_of(folder, sql)
