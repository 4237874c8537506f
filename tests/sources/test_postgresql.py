"""A query on a PostgreSQL server, which the test starts as a user of its own."""

import contextlib
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from dpcore.domain.columns import Holds
from dpcore.errors import SourceError, SpecError
from dpcore.source import Reading
from dpcore.sources import sql as module
from dpcore.sources.connections import Postgresql
from dpcore.sources.opening import read_sql
from dpcore.sources.sql import PostgresqlPart, SqlQuery

from sources.people import DOMAIN, SECRET, as_csv, configure, people, records_of, same
from sources.queries import BOTH, CALLS, NO_QUERIES, POSTGRESQL


def program(name):
    """Where a program of the server is; the newest, where several are installed."""
    adjacent = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return shutil.which(name) or (adjacent[-1] if adjacent else None)


def someone():
    """A user that is not root, which the server refuses; None for the present one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.skip("PostgreSQL does not run as root, and there is no other user")
    return None


@pytest.fixture(scope="module")
def server():
    """The address of a server that listens on a socket in a folder of its own."""
    if find_spec("adbc_driver_postgresql") is None:
        pytest.skip("adbc-driver-postgresql is not installed (extra sql)")
    if not (program("initdb") and program("postgres")):
        pytest.skip("PostgreSQL is not installed (initdb, postgres)")
    user = someone()
    folder = Path(tempfile.mkdtemp(prefix="dpcore-pg-"))
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    options = (
        {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    data = folder / "data"
    initial = [
        program("initdb"),
        "-D",
        data,
        "-U",
        "reader",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    ]
    subprocess.run(initial, check=True, timeout=120, **options, **quiet)
    started = [
        program("postgres"),
        "-D",
        data,
        "-k",
        folder,
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
    ]
    running = subprocess.Popen(list(map(str, started)), **options, **quiet)
    try:
        yield f"postgresql:///postgres?host={folder}&user=reader"
    finally:
        running.terminate()
        running.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def connected(address):
    """A connection, as soon as the server answers."""
    import time

    from adbc_driver_postgresql import dbapi

    for _ in range(200):
        try:
            return dbapi.connect(address, autocommit=True)
        except Exception:
            time.sleep(0.1)
    pytest.fail("the server does not answer")
    return None


@pytest.fixture(scope="module")
def filled(server):
    """Where a role of few rights reads a table of people in columns of the server's own types."""
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute(
            "create table people (place serial, age int2, city text, paid numeric, odd money)"
        )
        table = people()
        for age, city, paid in zip(table["age"], table["city"], table["paid"], strict=True):
            report = "null" if age is None else age
            cursor.execute(
                f"insert into people (age, city, paid) values ({report}, '{city}', {paid!r})"
            )
        cursor.execute("create role poor login")
        cursor.execute("grant select on people to poor")
    return server.replace("user=reader", "user=poor")


def test_a_query_reads_like_csv(tmp_path, monkeypatch, filled):
    expected = records_of(str(as_csv(tmp_path, people())))
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{filled}"}}\n')
    for age in ("age", "age::int8 as age", "age::float8 as age", "age::text as age"):
        for paid in ("paid", "paid::float8 as paid"):
            query = f"select {age}, city, {paid} from people order by place"
            assert same(records_of(SqlQuery(sql=query, connection="clinic")), expected), query


@pytest.mark.parametrize(
    ("sql", "error_info"),
    [
        ("select age, city from people", "'paid' is missing"),
        ("select 4567.891 frm people", "SQLSTATE 42"),
        ("select age, city, (paid / 0) as paid from people", "the query failed"),
        ("select age, '4567.891x'::float8 as paid, city from people", "SQLSTATE 22P02"),
        ("select array[4567.891] as age, city, paid from people", r"the type numeric\[\]"),
        ("select age, city, odd as paid from people", "type money.*AS numeric"),
    ],
)
def test_a_query_that_fails_shows_no_cell_and_no_address(
    tmp_path, monkeypatch, filled, sql, error_info
):
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{filled}"}}\n')
    with pytest.raises(SourceError, match=error_info) as caught:
        records_of(SqlQuery(sql=sql, connection="clinic"))
    assert SECRET not in str(caught.value)
    assert "postgresql:" not in str(caught.value)
    everybody = SqlQuery(sql="select * from people", connection="clinic")
    assert len(records_of(everybody)) == 500


READING = Reading(columns={"age": Holds.NUMBERS, "paid": Holds.NUMBERS})


def part_of(address, sql, **changes):
    query = SqlQuery(sql=sql, connection="clinic")
    reading = attrs.evolve(READING, **changes)
    return PostgresqlPart(query=query, database=Postgresql(postgresql=address), reading=reading)


def rows_of(part):
    return [
        (str(age), str(paid))
        for batch in part.batches()
        for age, paid in zip(batch["age"].to_pylist(), batch["paid"].to_pylist(), strict=True)
    ]


def asked(address, sql):
    with connected(address) as opened, opened.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


@pytest.mark.parametrize("sql", [*BOTH, *POSTGRESQL])
def test_a_right_query_gives_the_rows_that_the_server_gives(server, filled, sql):
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute(f"select * from (\n{sql.rstrip('; ')}\n) as x")
        table = cursor.fetch_arrow_table()
    columns = (table[name].to_pylist() for name in ("age", "paid"))
    expected = sorted((str(age), str(paid)) for age, paid in zip(*columns, strict=True))
    assert sorted(rows_of(part_of(filled, sql))) == expected
    assert expected


def unread(monkeypatch):
    """Take the first guard away: texts pass as they stand."""
    monkeypatch.setattr(module, "require_query", lambda sql: None)
    monkeypatch.setattr(module, "query_text", lambda sql, dialect: (sql, set(), set()))


def state(address):
    """What a statement of any kind would change."""
    return asked(
        address,
        "select (select count(*) || ' ' || sum(age) from people), (select count(*) from pg_class), "
        "(select string_agg(rolname || rolsuper, ',' order by 1) from pg_roles), "
        "(select string_agg(datname, ',' order by 1) from pg_database), "
        "(select count(*) from pg_proc), (select count(*) from pg_largeobject_metadata)",
    )


@pytest.fixture
def out(tmp_path, server):
    """A file that the server could write, in a folder that is empty."""
    folder = Path(server.split("host=")[1].split("&")[0]) / tmp_path.name
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    yield folder / "copy"
    assert not [*folder.iterdir()]


@pytest.mark.parametrize("sql", NO_QUERIES["postgresql"])
def test_what_is_no_query_writes_nothing_for_a_superuser_either(
    server, filled, out, monkeypatch, sql
):
    unread(monkeypatch)
    before = state(server)
    with pytest.raises(SourceError, match="the query failed"):
        rows_of(part_of(server, sql.replace("{out}", str(out)), rich_role=True))
    assert state(server) == before


@pytest.mark.parametrize("sql", CALLS)
def test_what_does_more_than_compute_is_refused_of_a_superuser_too(server, filled, out, sql):
    before = state(server)
    with pytest.raises(SpecError):
        rows_of(part_of(server, sql.replace("{out}", str(out)), rich_role=True))
    assert state(server) == before


def test_a_copy_would_be_written_if_the_text_were_sent_as_it_stands(server, filled, tmp_path):
    """The attack that the guards end: it works for anyone who sends it by hand."""
    folder = Path(server.split("host=")[1].split("&")[0])
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("set transaction read only")
        cursor.execute(f"copy (select 1) to '{folder / 'sent.txt'}'")
    assert (folder / "sent.txt").read_text() == "1\n"


ROLES = {
    "superuser": "superuser",
    "maker": "createrole",
    "copier": "replication",
    "writer": "in role pg_write_server_files",
    "scribe": "in role pg_read_server_files",
    "executor": "in role pg_execute_server_program",
    "heir": "in role writer noinherit",
    "heir_of_a_superuser": "in role superuser noinherit",
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_of_many_rights_needs_the_operators_word(
    tmp_path, monkeypatch, server, filled, role
):
    with connected(server) as opened, opened.cursor() as cursor:
        for name in ("writer", "superuser", role):
            if not asked(server, f"select 1 from pg_roles where rolname = '{name}'"):
                cursor.execute(f"create role {name} login {ROLES[name]}")
        cursor.execute(f"grant select on people to {role}")
    address = server.replace("user=reader", f"user={role}")
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{address}"}}\n')
    query = "select age, city, paid from people"
    with pytest.raises(SourceError, match="--rich-role"):
        records_of(SqlQuery(sql=query, connection="clinic"))
    source = read_sql(query, "clinic", rich_role=True).open(DOMAIN, refuse=False)
    source.require_schema()
    assert source.parts()[0].reading.rich_role


def test_a_role_that_was_set_hides_no_session_of_many_rights(server, filled):
    address = f"{server}&options=-c%20role%3Dpoor"
    assert asked(address, "select current_user::text") == [("poor",)]
    with pytest.raises(SourceError, match="--rich-role"):
        rows_of(part_of(address, "select age, paid from people"))


@pytest.mark.parametrize(
    ("made", "gone", "sql"),
    [
        ("function lower(varchar) returns text", "function lower(varchar)", "lower(city::varchar)"),
        ("function city(people) returns text", "function city(people)", "people.city"),
        ("function city(record) returns text", "function city(record)", "people.city"),
    ],
)
def test_a_name_that_somebody_gave_a_function_is_refused(server, filled, made, gone, sql):
    query = f"select age, paid from people where {sql} > ' '"
    assert rows_of(part_of(filled, query))
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute(f"create {made} language plpgsql as 'begin return 1; end'")
        try:
            with pytest.raises(SourceError, match=r"somebody added a function.*owner"):
                rows_of(part_of(filled, query))
            assert rows_of(part_of(filled, "select age, paid from people"))
        finally:
            cursor.execute(f"drop {gone}")


@pytest.mark.parametrize(
    ("made", "gone", "sql"),
    [
        ("domain few as int check (small(value))", "domain few", "age::few as age"),
        ("domain few as int check (small(value))", "domain few", "cast(age as FEW) as age"),
        ("cast (int as mood) with function mood(int)", "cast (int as mood)",
         "(age::mood).m as age"),
        ("cast (int as mood) with function mood(int) as implicit", "cast (int as mood)", "age"),
    ],
)  # fmt: skip
def test_a_cast_that_calls_what_somebody_added_is_refused(server, filled, made, gone, sql):
    query = f"select {sql}, paid from people where age > 1"
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("create type mood as (m int)")
        cursor.execute("create function small(int) returns bool language sql as 'select true'")
        cursor.execute("create function mood(int) returns mood language sql as 'select row(1)'")
        cursor.execute(f"create {made}")
        try:
            with pytest.raises(SourceError, match="somebody added"):
                rows_of(part_of(filled, query))
        finally:
            cursor.execute(f"drop {gone}")
            for name in ("function small(int)", "function mood(int)", "type mood"):
                cursor.execute(f"drop {name}")
    assert rows_of(part_of(filled, "select age::int8 as age, paid from people"))


def test_an_operator_that_somebody_made_is_refused_where_the_text_holds_it(server, filled):
    plain, strange = "select age, paid from people", "select age =# 3 as age, paid from people"
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("create function near(int, int) returns int language sql as 'select 1'")
        cursor.execute("create operator =# (leftarg = int, rightarg = int, procedure = near)")
        try:
            assert rows_of(part_of(filled, plain))
            with pytest.raises(SourceError, match="somebody added"):
                rows_of(part_of(filled, strange))
        finally:
            cursor.execute("drop operator =# (int, int)")
            cursor.execute("drop function near")


def test_nothing_is_executed_before_the_records_are_read(filled):
    failing = "select age, paid / (place - place) as paid from people order by 2 limit 3"
    part = part_of(filled, failing)
    with part.opened():
        pass
    with pytest.raises(SourceError, match="the query failed"):
        rows_of(part)


def test_texts_come_in_utf_8_from_a_database_of_another_encoding(server, filled):
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute("create database latin encoding 'LATIN1' template template0")
    address = server.replace("/postgres?", "/latin?")
    sql = "select chr(233) as age, 'a\\' as paid"
    assert rows_of(part_of(address, sql, rich_role=True)) == [("\u00e9", "a\\")]
