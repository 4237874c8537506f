"""Which texts reach a database: one query, of functions that only compute."""

import pytest

from dpcore.errors import SpecError
from dpcore.sources import query_text as texts
from dpcore.sources.opening import read_sql

from sources.queries import BOTH, CALLS, NO_QUERIES, POSTGRESQL, SQLITE

RIGHT = [
    *((query, texts.POSTGRESQL) for query in (*BOTH, *POSTGRESQL)),
    *((query, texts.SQLITE) for query in (*BOTH, *SQLITE)),
]


@pytest.mark.parametrize(("query", "dialect"), RIGHT)
def test_a_query_is_sent_without_the_semicolons_at_its_end(query, dialect):
    sql, *_ = texts.query_text(query, dialect)
    assert query.startswith(sql)
    assert {*query[len(sql) :]} <= {" ", ";"}


@pytest.mark.parametrize("text", [*NO_QUERIES["sqlite"], *NO_QUERIES["postgresql"]])
def test_what_is_no_query_is_refused_by_its_text_for_every_server(text):
    for dialect in (texts.POSTGRESQL, texts.SQLITE):
        with pytest.raises(SpecError, match=r"needs one query|may mean two|calls"):
            texts.query_text(text, dialect)


@pytest.mark.parametrize("text", CALLS)
def test_what_does_more_than_compute_is_refused_by_its_text(text):
    with pytest.raises(SpecError, match=r"calls|the server's own|may mean two"):
        texts.query_text(text, texts.POSTGRESQL)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "select 1 as age) union (select 2 as age",
        "((select 1 as age)",
        "select 'age",
        'select "age',
        "select /* age",
        "select 1 as age\0",
        "select 1\v as age",
        "select \ud800 as age",
        "select '\ud800' as age",
        'select 1 as "\udfff"',
        "select 1 as age -- \ud800",
        "select $a as age",
        "select \u212aower(city) as age from people",  # no K: servers fold ASCII only
    ],
)
def test_what_is_left_open_is_refused(text):
    for dialect in (texts.POSTGRESQL, texts.SQLITE):
        with pytest.raises(SpecError):
            texts.query_text(text, dialect)


def test_functions_are_named_and_members_of_rows():
    sql = 'select LOWER(p.city), "Upper", pg_catalog.abs(p.age) from people p'
    _, called, members = texts.query_text(sql, texts.POSTGRESQL)
    assert called == {"lower", "abs"}
    assert members == {"city", "age", "abs"}


def test_a_query_is_refused_where_it_is_made():
    with pytest.raises(SpecError, match="one query") as caught:
        read_sql("delete from people", "nobody")
    assert caught.value.path == "sql"
