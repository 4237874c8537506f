"""Every type of a column in PostgreSQL, DuckDB and SQLite: read right, or refused by its name.

These tests write docs/records/column-types-sql.md: `python -m pytest THIS_FILE --co` lists
them, and `DPCORE_WRITE_PAGES=1 python -m pytest THIS_FILE` writes it anew.
"""

import contextlib
import datetime
import functools
import math
import os
import sqlite3
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hostile_rows import part_of as sum_part

from dpcore import Categories, Domain, Range
from dpcore.domain.columns import Dates, Texts
from dpcore.domain.domain import kind_of_cells
from dpcore.encoding.blocks import Encoding
from dpcore.encoding.columns import (
    decode_text,
    encode_column,
    find_misfits,
    read_codes,
    read_numbers,
)
from dpcore.errors import RequestError, SourceError
from dpcore.exact import Exact
from dpcore.private.engines.base import Workload
from dpcore.private.engines.records import EngineRecords
from dpcore.source import Reading
from dpcore.sources.connections import Postgresql, Sqlite
from dpcore.sources.sql import PostgresqlPart, SqlitePart, SqlQuery, SqlSource
from dpcore_engines.duckdb_file import DuckDbPart
from dpcore_statistics.count import Count
from dpcore_statistics.total import Total

from sources.test_postgresql import connected, server  # noqa: F401

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

from dpcore_engines.sql.engine import Sql  # noqa: E402

OWN = ("mood", "pair", "ages", "euros")  # types that this file makes
PAGE = Path(__file__).parents[3] / "docs" / "records" / "column-types-sql.md"
DATES = Dates.between(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
DECLARED = {"range": Range(-1e40, 1e40), "dates": DATES, "texts": Texts(60)}
DAY = 18292  # 2020-01-31, by hand: 50 years of 365 days, 12 leap days, and 30 days
HALF = DAY + 12.5 / 24  # half past twelve of it

# A literal of each type that is read, and the number, the day or the characters that it is.
POSTGRESQL = {
    "boolean": ("true", 1.0),
    "smallint": ("'-32768'", -32768.0),
    "integer": ("'-2147483648'", -(2.0**31)),
    "bigint": ("'9223372036854775807'", 2.0**63),
    "real": ("'0.1'", 13421773 / 2**27),
    "double precision": ("'0.1'", 0.1),
    "numeric": ("'12345678901234567890.125'", float(Decimal("12345678901234567890.125"))),
    "text": ("'é 01'", "é 01"),
    "character varying": ("'é 01'", "é 01"),
    "character": ("'é'", "é"),
    "name": ("'é 01'", "é 01"),
    "date": ("'2020-01-31'", "day", DAY),
    "timestamp without time zone": ("'2020-01-31 12:30'", "day", HALF),
    "timestamp with time zone": ("'2020-01-31 14:30+02'", "day", HALF),
}
DUCKDB = {
    "BOOLEAN": ("true", 1.0),
    "TINYINT": ("-128", -128.0),
    "SMALLINT": ("-32768", -32768.0),
    "INTEGER": ("-2147483648", -(2.0**31)),
    "BIGINT": ("9223372036854775807", 2.0**63),
    "HUGEINT": ("170141183460469231731687303715884105727", 2.0**127),
    "UTINYINT": ("255", 255.0),
    "USMALLINT": ("65535", 65535.0),
    "UINTEGER": ("4294967295", 2.0**32 - 1),
    "UBIGINT": ("18446744073709551615", 2.0**64),
    "FLOAT": ("0.1", 13421773 / 2**27),
    "DOUBLE": ("0.1", 0.1),
    "DECIMAL(4,1)": ("-1.5", -1.5),
    "DECIMAL(9,2)": ("1234567.89", 1234567.89),
    "DECIMAL(18,3)": ("123456789012345.678", 123456789012345.678),
    "DECIMAL(38,10)": ("1234567890123456789.5", 1234567890123456789.5),
    "VARCHAR": ("'é 01'", "é 01"),
    "UUID": (f"'{'0' * 8}-0000-0000-0000-{'0' * 11}1'", f"{'0' * 8}-0000-0000-0000-{'0' * 11}1"),
    "JSON": ("'[1, 2]'", "[1, 2]"),
    "ENUM('a', 'b')": ("'b'", "b"),
    "DATE": ("'2020-01-31'", "day", DAY),
    "TIMESTAMP": ("'2020-01-31 12:30'", "day", HALF),
    "TIMESTAMP_S": ("'2020-01-31 12:30'", "day", HALF),
    "TIMESTAMP_MS": ("'2020-01-31 12:30'", "day", HALF),
    "TIMESTAMP_NS": ("'2020-01-31 12:30'", "day", HALF),
    "TIMESTAMP WITH TIME ZONE": ("'2020-01-31 14:30+02'", "day", HALF),
    "TIMESTAMPTZ_NS": ("'2020-01-31 14:30+02'", "day", HALF),
}
DUCKDB_REFUSED = {
    "UHUGEINT": "uhugeint", "BIGNUM": "bignum", "BIT": "bit", "BLOB": "blob", "TIME": "time",
    "TIME_NS": "time_ns", "TIMETZ": "time with time zone", "INTERVAL": "interval",
    "INTEGER[]": "list", "INTEGER[2]": "array", "STRUCT(a INTEGER)": "struct",
    "MAP(INTEGER, INTEGER)": "map", "UNION(a INTEGER)": "union", "VARIANT": "variant",
    "GEOMETRY": "geometry",
}  # fmt: skip
DUCKDB_ELSEWHERE = {"DECIMAL", "ENUM", "MAP", "STRUCT", "UNION", "TIMESTAMPTZ", "PARQUET_VARIANT"}
SQLITE = {
    "INTEGER": ("-9223372036854775808", -(2.0**63)),
    "REAL": ("0.1", 0.1),
    "REAL, infinite": ("9e999", math.inf),
    "TEXT": ("'é 01'", "é 01"),
    "TEXT of a number": ("'1.5'", "1.5"),
    "TEXT that is no UTF-8": ("cast(x'ff41' as text)", None),
    "BLOB": ("x'c3a9'", "é"),
    "BLOB that is no UTF-8": ("x'ff41'", None),
    "NULL": ("null", None),
}


def outcome(source_of, expected, name):
    """What each declaration reads; a value that is not the expected one fails the test."""
    words = []
    kind, value = expected if isinstance(expected, tuple) else ("", expected)
    for declared, rule in (*DECLARED.items(), ("categories", None)):
        if rule is None:
            rule = Categories((value if isinstance(value, float | str) else "é", "another"))
            if kind == "day" or (isinstance(value, float) and not math.isfinite(value)):
                rule = Categories(("é", "another"))
        source = source_of(Reading(columns={"a": kind_of_cells(rule)}))
        try:
            source.require_schema()
        except SourceError as error:
            words.append(f"refused: {name_in(error)}")
            continue
        columns = [batch["a"] for part in source.parts() for batch in part.batches()]
        cells = [cell for column in columns for cell in _list(column)]
        assert len(cells) == 1
        words.append(_word(declared, rule, columns[0], kind, value, name))
    return [words[0], words[3], words[1], words[2]]


def _list(column):
    return (
        column.to_pylist()
        if hasattr(column, "to_pylist")
        and "date" not in str(column.type)
        and "time" not in str(column.type)
        else list(column)
    )


def name_in(error):
    """The type that a refusal names, and the cast."""
    message = str(error).split("has the type ")[1]
    return message.split(",")[0].split(";")[0]


def _word(declared, rule, column, kind, value, name):
    if declared == "categories":
        (code,) = read_codes(rule, column).tolist()
        assert code in (0, -1), (name, declared, code)
        return "its value" if code == 0 else "none"
    if declared == "texts":
        (misfit,) = find_misfits(rule, column)
        text = decode_text(encode_column(rule, column)[0])
        if misfit or not text:
            return "none"
        if isinstance(value, str):
            assert text == value, (name, text)
            return "its characters"
        return "its digits" if kind != "day" else "its days"
    (number,) = read_numbers(rule, column).tolist()
    if math.isnan(number):
        return "none"
    if isinstance(value, str):
        expected = float(value) if declared == "range" else DAY
        assert number == expected, (name, number)
        return "the number in it" if declared == "range" else "the date in it"
    assert number == value, (name, declared, number)
    return "its day" if kind == "day" else "its number"


def postgresql_source(address, sql, reading):
    query = SqlQuery(sql=sql, connection="clinic")
    database = Postgresql(postgresql=address)
    return SqlSource(rows=PostgresqlPart(query=query, database=database, reading=reading))


@pytest.fixture(scope="module")
def typed(server):  # noqa: F811
    """A role's address, and every type of a column that this server has, by its own names."""
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("create role typist login")
        cursor.execute("create type mood as enum ('sad', 'ok')")
        cursor.execute("create type pair as (a int, b text)")
        cursor.execute("create domain years as int")
        cursor.execute("create domain ages as years check (value > 0)")
        cursor.execute("create domain euros as money")
        cursor.execute(
            "select t.oid::regtype::text from pg_type t where typtype in ('b', 'r', 'm') and "
            "typnamespace = 'pg_catalog'::regnamespace and typcategory <> 'A' order by 1"
        )
        names = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            "select t.oid::regtype::text from pg_type t join pg_type e on e.oid = t.typelem where "
            "t.typcategory = 'A' and t.typtype = 'b' and e.typtype in ('b', 'r', 'm') and "
            "t.typnamespace = 'pg_catalog'::regnamespace"
        )
        names += [row[0] for row in cursor.fetchall()]
        names += [*OWN, "euros[]", "pair[]"]
        columns = ", ".join(f"c{number} {name}" for number, name in enumerate(names))
        cursor.execute(f"create table every_type ({columns})")
        cursor.execute("insert into every_type default values")
        cursor.execute("grant select on every_type to typist")
    return server.replace("user=reader", "user=typist"), names


def read_postgresql(address, kind, expected):
    literal, *rest = expected
    value = tuple(rest) if len(rest) > 1 else rest[0]
    sql = f"select cast({literal} as {kind}) as a"
    return outcome(functools.partial(postgresql_source, address, sql), value, kind)


@pytest.mark.parametrize("kind", POSTGRESQL)
def test_a_type_of_postgresql_is_read_right(typed, kind):
    words = read_postgresql(typed[0], kind, POSTGRESQL[kind])
    # A type of numbers is no type of dates.
    assert not [
        word
        for word in (*words[:2], words[3])
        if word.startswith("refused") and "timestamp" not in kind and kind != "date"
    ]


def refusal(address, expression, table="(values (1)) as one"):
    source = postgresql_source(
        address,
        f"select {expression} as a from {table}",
        Reading(columns={"a": kind_of_cells(DECLARED["range"])}),
    )
    with pytest.raises(SourceError, match="has the type") as caught:
        source.require_schema()
    return str(caught.value)


def test_every_other_type_of_postgresql_is_refused_by_its_name(typed):
    address, names = typed
    assert {*POSTGRESQL} <= {*names}
    for number, kind in enumerate(names):
        if kind not in (*POSTGRESQL, "ages"):
            report = refusal(address, f"c{number}", "every_type")
            assert f"has the type {'money' if kind == 'euros' else kind}," in report
            assert "cast it, CAST(a AS " in report
    assert "AS numeric)" in refusal(address, "cast(12.34 as money)")
    assert "AS numeric)" in refusal(address, "cast(12.34 as euros)")
    assert "AS bigint)" in refusal(address, "cast(4294967295 as oid)")
    assert "type record," in refusal(address, "row(1, 2)")


def test_the_cast_that_a_refusal_names_gives_the_value(typed):
    for sql, value in [
        ("cast(cast('$12.34' as money) as numeric)", 12.34),
        ("cast(cast('4294967295' as oid) as bigint)", 4294967295.0),
        ("cast(cast('ok' as mood) as text)", "ok"),
        ("cast(cast('10.0.0.1' as inet) as text)", "10.0.0.1/32"),
        ("cast(7 as ages)", 7.0),
        ("null", None),
    ]:
        words = outcome(
            functools.partial(postgresql_source, typed[0], f"select {sql} as a"), value, sql
        )
        assert not any(word.startswith("refused") for word in (*words[:2], words[3]))


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("'NaN'::numeric", math.nan), ("'Infinity'::numeric", math.inf),
        ("'-Infinity'::numeric", -math.inf), ("'1e-400'::numeric", 0.0),
        ("'1e400'::numeric", math.inf), ("'NaN'::float8", math.nan),
        ("'-Infinity'::float4", -math.inf), ("'-0.0'::float8", 0.0),
        ("9007199254740993::bigint", 9007199254740992.0),
        ("9007199254740993::numeric", 9007199254740992.0),
        ("0.1::numeric(30, 20)", 0.1),
    ],
)  # fmt: skip
def test_the_ends_of_numbers_are_read_as_postgresql_has_them(typed, sql, number):
    source = postgresql_source(
        typed[0], f"select {sql} as a", Reading(columns={"a": kind_of_cells(DECLARED["range"])})
    )
    (batch,) = source.rows.batches()
    np.testing.assert_equal(read_numbers(DECLARED["range"], batch["a"]).tolist(), [number])


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_days_outside_the_calendar_are_no_dates_and_the_others_are(typed, kind):
    days = ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'0001-01-01'", "'9999-12-31'", "null"]
    days += ["'5874897-12-31'"] if kind == "date" else ["'294276-12-31'"]
    query = " union all ".join(f"select cast({day} as {kind}) as a" for day in days)
    source = postgresql_source(
        f"{typed[0]}&options=-c%20timezone%3DUTC",
        query,
        Reading(columns={"a": kind_of_cells(DATES)}),
    )
    found = [x for batch in source.rows.batches() for x in read_numbers(DATES, batch["a"]).tolist()]
    first, last = -719162.0, 2932896.0  # by hand: days from 0001-01-01, and to 9999-12-31
    np.testing.assert_equal(found, [math.nan, math.nan, math.nan, first, last, math.nan, math.nan])


def duckdb_source(path, table, reading):
    return SqlSource(rows=DuckDbPart(path=path, table=table, reading=reading))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A file with a table of one row for every type; its name is the type's."""
    path = tmp_path_factory.mktemp("types") / "types.db"
    with duckdb.connect(str(path)) as opened:
        opened.execute("SET TimeZone = 'UTC'")
        for kind, (literal, *_) in DUCKDB.items():
            opened.execute(f"""CREATE TABLE "{kind}" AS SELECT CAST({literal} AS {kind}) AS a""")
        for kind in DUCKDB_REFUSED:
            opened.execute(f"""CREATE TABLE "{kind}" AS SELECT CAST(NULL AS {kind}) AS a""")
        opened.execute(
            "CREATE TABLE days AS SELECT unnest([CAST(d AS DATE) for d in "
            "['infinity', '-infinity', '0044-03-15 (BC)', '9999-12-31']]) AS a"
        )
        listed = opened.execute("SELECT DISTINCT type_name FROM duckdb_types() WHERE internal")
        names = {name for (name,) in listed.fetchall() if name.isupper()}
    bases = {kind.partition("(")[0] for kind in (*DUCKDB, *DUCKDB_REFUSED)}
    assert names - bases <= DUCKDB_ELSEWHERE
    return path


def read_duckdb(path, kind):
    _, *rest = DUCKDB[kind]
    value = tuple(rest) if len(rest) > 1 else rest[0]
    return outcome(functools.partial(duckdb_source, path, kind), value, kind)


@pytest.mark.parametrize("kind", DUCKDB)
def test_a_type_of_duckdb_is_read_right(tables, kind):
    read_duckdb(tables, kind)


@pytest.mark.parametrize("kind", DUCKDB_REFUSED)
def test_every_other_type_of_duckdb_is_refused_by_its_name(tables, kind):
    for rule in DECLARED.values():
        source = duckdb_source(tables, kind, Reading(columns={"a": kind_of_cells(rule)}))
        with pytest.raises(SourceError, match=f"type {DUCKDB_REFUSED[kind]}, .*CAST"):
            source.require_schema()
        with pytest.raises(SourceError, match="has the type"):
            list(source.parts()[0].batches())


def test_days_outside_the_calendar_of_duckdb_are_no_dates(tables):
    source = duckdb_source(tables, "days", Reading(columns={"a": kind_of_cells(DATES)}))
    (part,) = source.parts()
    found = [x for batch in part.batches() for x in read_numbers(DATES, batch["a"]).tolist()]
    np.testing.assert_equal(found, [math.nan, math.nan, math.nan, 2932896.0])


def read_sqlite(folder, kind):
    literal, value = SQLITE[kind]
    path = folder / "empty.db"
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("create table if not exists one (a)")

    def source_of(reading):
        query = SqlQuery(sql=f"select {literal} as a", connection="here")
        database = Sqlite(sqlite=str(path))
        return SqlSource(rows=SqlitePart(query=query, database=database, reading=reading))

    return outcome(source_of, value, kind)


@pytest.mark.parametrize("kind", SQLITE)
def test_a_cell_of_sqlite_is_read_by_what_it_was_stored_as(tmp_path, kind):
    words = read_sqlite(tmp_path, kind)
    assert not any(word.startswith("refused") for word in words)


def rendered(address, names, path, folder):
    """The three tables of the page, with the types that have no row in them."""
    lines = []
    heads = "| {} | a range | categories | dates | texts |\n|---|---|---|---|---|"
    rows = {
        "PostgreSQL": {k: read_postgresql(address, k, v) for k, v in POSTGRESQL.items()},
        "DuckDB": {k: read_duckdb(path, k) for k in DUCKDB},
        "SQLite": {k: read_sqlite(folder, k) for k in SQLITE},
    }
    others = sorted({*names} - {*POSTGRESQL})
    plain = [f"`{name}`" for name in others if not name.endswith("]") and name not in OWN]
    ways = "write `numeric` for `money`, `bigint` for `oid`, else `text`"
    refused = {
        "PostgreSQL": [
            "A domain is read as the type below it. Refused, whatever is declared: enumerations, "
            "composite types, arrays of any type, "
            f"{', '.join(plain)}. Cast them in the query: {ways}.",
            "",
        ],
        "DuckDB": [
            f"Refused, whatever is declared: {', '.join(f'`{kind}`' for kind in DUCKDB_REFUSED)}, "
            "and others that DuckDB gets. Cast them in a view of the file: to `DOUBLE` where they "
            "are numbers, else to `VARCHAR`.",
            "",
        ],
        "SQLite": [],
    }
    for title, found in rows.items():
        lines += [f"## {title}", "", heads.format("type" if title != "SQLite" else "cell")]
        for kind, words in found.items():
            report = ["refused" if word.startswith("refused") else word for word in words]
            lines.append(f"| `{kind}` | " + " | ".join(report) + " |")
        lines += ["", *refused[title]]
    return "\n".join(lines)


def test_the_page_says_what_is_found(typed, tables, tmp_path):
    before, begin, rest = PAGE.read_text().partition("<!-- made by a test -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    page = f"{before}{begin}{rendered(*typed, tables, tmp_path)}{end}{after}"
    if os.environ.get("DPCORE_WRITE_PAGES"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def added(source_of, rule, sums):
    """The totals of the sql engine and of the core, or the engine's refusal."""
    domain = Domain(columns={"a": rule}, limit=10)
    source = source_of(Reading(columns={"a": kind_of_cells(rule)}, limit=10))
    parts = {name: sum_part(learner, domain) for name, learner in sums.items()}
    workload = Workload(
        source=source, domain=domain, encode=Encoding(domain=domain, refuse=False),
        refuse=False, holdout=0.0, sums=tuple(parts.items()), others=False, sealed=False,
    )  # fmt: skip
    found = []
    with Sql() as engine:
        engine.accept(lambda: workload)
        (count,) = engine.load(source.parts(), workload.encode)
        for part in parts.values():
            records = EngineRecords(engine=engine, places=count, count=count)
            ours = Exact.zeros(part.query.shape, part.query.sum.unit)
            for piece in source.parts():
                for batch in piece.batches():
                    ours += part.learner.total_of(part.query, workload.encode(batch), part.public)
            found.append((part.learner.total_of(part.query, records, part.public), ours))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("server_name", ["postgresql", "duckdb"])
def test_the_sql_engine_reads_each_type_as_the_core_does_or_refuses_it(
    typed,
    tables,
    server,  # noqa: F811
    server_name,
):
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("grant temporary on database postgres to typist")
    types = POSTGRESQL if server_name == "postgresql" else DUCKDB
    agreed = 0
    for kind, (literal, *rest) in types.items():
        sql = f"select cast({literal} as {kind}) as a"
        source_of = functools.partial(
            *(
                (postgresql_source, typed[0], sql)
                if types is POSTGRESQL
                else (duckdb_source, tables, kind)
            )
        )
        if len(rest) > 1:
            rules = {"total": (DATES, Total(column="a"))}
        elif isinstance(rest[0], str):
            rules = {"count": (Categories((rest[0], "another")), Count(by=("a",)))}
        else:
            low, high = min(rest[0], 0.0) * 2, max(rest[0], 0.0) * 2 + 1
            rules = {"total": (Range(low, high), Total(column="a"))}
        for name, (rule, learner) in rules.items():
            try:
                pairs = added(source_of, rule, {name: learner})
            except (RequestError, SourceError):
                continue
            assert all(theirs == ours for theirs, ours in pairs), kind
            agreed += 1
    assert agreed >= 10


def test_the_sql_engine_refuses_what_the_core_does_by_name(typed, tables):
    for source_of, kind in [
        (functools.partial(postgresql_source, typed[0], "select 1::money as a"), "money"),
        (functools.partial(postgresql_source, typed[0], "select 1::oid as a"), "oid"),
        (functools.partial(duckdb_source, tables, "UHUGEINT"), "uhugeint"),
    ]:
        with pytest.raises(SourceError, match=f"has the type {kind}"):
            added(source_of, Range(0, 9), {"total": Total(column="a")})
