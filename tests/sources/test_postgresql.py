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

import pytest

from dpcore.errors import SourceError
from dpcore.sources.sql import SqlQuery

from sources.people import SECRET, as_csv, configure, people, records_of, same


def program(name):
    """Where a program of the server is; the newest, where several are installed."""
    beside = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return shutil.which(name) or (beside[-1] if beside else None)


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
            told = "null" if age is None else age
            cursor.execute(
                f"insert into people (age, city, paid) values ({told}, '{city}', {paid!r})"
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
    ("sql", "told"),
    [
        ("select age, city from people", "'paid' is missing"),
        ("select 4567.891 frm people", "SQLSTATE 42"),
        ("select age, city, (paid / 0) as paid from people", "the query failed"),
        ("select age, '4567.891x'::float8 as paid, city from people", "SQLSTATE 22P02"),
        ("select array[4567.891] as age, city, paid from people", r"the type numeric\[\]"),
        ("select age, city, odd as paid from people", "type money.*AS numeric"),
    ],
)
def test_a_query_that_fails_shows_no_cell_and_no_address(tmp_path, monkeypatch, filled, sql, told):
    configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{filled}"}}\n')
    with pytest.raises(SourceError, match=told) as caught:
        records_of(SqlQuery(sql=sql, connection="clinic"))
    assert SECRET not in str(caught.value)
    assert "postgresql:" not in str(caught.value)
    everybody = SqlQuery(sql="select * from people", connection="clinic")
    assert len(records_of(everybody)) == 500
