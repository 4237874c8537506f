"""A ledger on PostgreSQL: the promises of a file, for everybody who reaches the server."""

import contextlib
import json
import random
import sqlite3
import time

import pytest
from click.testing import CliRunner
from postgresql_server import tcp_server

from dpcore import REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.console.app import app
from dpcore.errors import LedgerError, ParameterError, SpecError
from dpcore.ledger import Charge
from dpcore.ledger.book import CREATED, REFUSED, RESERVED, SPENT
from dpcore.ledger.file_journal import Counter
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.locations import UnknownLedgerError
from dpcore.runs.run_spec import ledger_of
from dpcore.specs.spec import load_spec

from sources.people import configure

ONE = Charge.of(GaussianEvent(mu=0.06, adjacency=REPLACE_ONE))
TABLE = '"dpcore_study".journal'
OFF = f"ALTER TABLE {TABLE} DISABLE TRIGGER USER"
ON = f"ALTER TABLE {TABLE} ENABLE TRIGGER USER"
BUDGET = {"epsilon": 1.0, "delta": 1e-5, "adjacency": REPLACE_ONE}


@pytest.fixture(scope="module")
def server():
    with tcp_server() as started:
        started.execute("CREATE ROLE spender LOGIN", "CREATE ROLE stranger LOGIN")
        yield started


@pytest.fixture
def place(tmp_path, monkeypatch, server):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    server.execute('DROP SCHEMA IF EXISTS "dpcore_study" CASCADE')
    connect(monkeypatch, tmp_path, server)
    return "study@postgresql"


def connect(monkeypatch, tmp_path, server, role="owner"):
    address = server.address(role)
    entries = [f'{name}: {{postgresql: "{address}"}}' for name in ("study", "people")]
    configure(monkeypatch, tmp_path, "\n".join(entries))


def test_a_budget_on_a_server_is_that_of_a_file(tmp_path, place):
    """The same charges are let through and refused, with the same sums and the same rows."""
    local = Ledger.create(tmp_path / "study.ledger", **BUDGET)
    remote = Ledger.create(place, **BUDGET)
    assert (remote.name, remote.total) == (local.name, local.total)
    large = Charge.of(GaussianEvent(mu=0.18, adjacency=REPLACE_ONE))
    for number in range(3):
        outcomes = []
        for ledger in (local, remote):
            try:
                outcomes.append(ledger.reserve(large, f"release {number}").recorded.left)
            except BudgetExceededError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
    kinds = [row.kind for row in remote.iterate_rows()]
    assert kinds == [CREATED, *[RESERVED] * 2, REFUSED]
    report = ("time", "id")
    plain = [
        [(r.number, r.kind, {k: v for k, v in r.body.items() if k not in report}) for r in rows]
        for rows in (local.rows(), remote.rows())
    ]
    assert plain[0] == plain[1]
    assert Ledger.open(place) == remote
    assert remote.verified().rows == 4


def test_limits_of_analysts_on_a_server_are_those_of_a_file(tmp_path, place):
    """The same charges are let through and refused, with the same sums of study and analysts."""
    places = tmp_path / "study.ledger", place
    for where in places:
        ledger = Ledger.create(where, **BUDGET)
        for name, epsilon in [("ann", 0.3), ("ben", 0.9)]:
            ledger.limit(name, epsilon=epsilon, delta=5e-6)
        with pytest.raises(LedgerError, match="names an analyst"):
            ledger.spend(ONE)
        for name, count in [("ann", 2), ("ben", 3), ("ann", 1)]:
            for _ in range(count):
                with contextlib.suppress(BudgetExceededError):
                    Ledger.open(where, analyst=name).spend(ONE)
    local, remote = map(Ledger.open, places)
    kinds = [row.kind for row in remote.rows()]
    assert kinds[:3] == [CREATED, "limited", "limited"]
    assert kinds[3] == SPENT
    assert kinds[-1] == REFUSED
    names = ("kind", "after", "analyst", "analysts", "analyst_charge")
    rows = [
        [{"kind": row.kind, **row.body, "time": "", "id": ""} for row in book.rows()]
        for book in (local, remote)
    ]
    assert [[row.get(n) for n in names] for row in rows[0]] == [
        [row.get(n) for n in names] for row in rows[1]
    ]
    assert local.limits() == remote.limits()
    assert remote.faults() == []


def test_rows_go_from_a_server_to_a_file_and_back_unchanged(tmp_path, place, server):
    """The chain is of the rows only: where they lie is no part of it."""
    remote = Ledger.create(place, **BUDGET)
    for number in range(2):
        remote.spend(ONE, f"{number}: 'quoted', ?, $1, \\, \u00e9")
    Ledger.create(tmp_path / "study.ledger", **BUDGET)
    (tmp_path / ".study.ledger.seen").unlink()
    rows = server.execute(f"SELECT * FROM {TABLE} ORDER BY number")
    with sqlite3.connect(tmp_path / "study.ledger") as file:
        file.executescript("DROP TRIGGER no_removal; DELETE FROM journal;")
        file.executemany("INSERT INTO journal VALUES (?, ?, ?, ?)", rows)
        file.execute(
            "CREATE TRIGGER no_removal BEFORE DELETE ON journal "
            "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        )
    file.close()
    local = Ledger.open(tmp_path / "study.ledger")
    assert local.verified() == remote.verified()
    assert b"".join(local.export()) == b"".join(remote.export())


def test_many_rows_come_page_by_page_and_readings_do_not_disturb_one_another(place):
    ledger = Ledger.create(place, **{**BUDGET, "epsilon": 100.0})
    with ledger.writing() as transaction:
        for number in range(100):
            transaction.append("uncovered", {"time": "", "what": str(number)})
    assert [row.number for row in ledger.iterate_rows()] == [*range(1, 102)]
    with ledger.writing() as transaction:
        open_readings = [transaction.rows(), transaction.of_kind("uncovered", "9")]
        firsts = [next(reading) for reading in open_readings]
        row = transaction.append("uncovered", {"time": "", "what": "amid"})
        seconds = [next(reading) for reading in open_readings]
    assert [r.number for r in firsts + seconds] == [1, 11, 2, 21]
    assert row.number == 102
    assert ledger.faults() == []


def test_a_transaction_that_fails_leaves_nothing_and_lets_others_write(place):
    ledger = Ledger.create(place, **BUDGET)

    def fail():
        with ledger.writing() as transaction:
            transaction.append("uncovered", {"time": "", "what": "lost"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    ledger.spend(ONE)
    assert [row.kind for row in ledger.rows()] == [CREATED, SPENT]


def test_a_lock_that_does_not_hold_costs_an_error_and_never_a_row(place, monkeypatch):
    """As behind a pooler: two writers at once, with one snapshot; one of them fails."""
    from dpcore_engines import postgresql_journal

    ledger = Ledger.create(place, **BUDGET)
    execute = postgresql_journal._Session.execute

    def without_lock(self, query, parameters=()):
        query = query.replace("pg_advisory_lock($1)", "$1::bigint")
        return execute(self, query, parameters)

    monkeypatch.setattr(postgresql_journal._Session, "execute", without_lock)

    def write_late():
        with ledger.writing() as transaction:
            assert transaction.last().number == 1
            ledger.spend(ONE)
            transaction.append("uncovered", {"time": "", "what": "late"})

    with pytest.raises(LedgerError, match="another process came between"):
        write_late()
    assert [row.kind for row in ledger.rows()] == [CREATED, SPENT]


def test_a_role_that_adds_and_reads_suffices_and_can_take_nothing_back(
    tmp_path, monkeypatch, place, server
):
    Ledger.create(place, **BUDGET)
    connect(monkeypatch, tmp_path, server, "stranger")
    with pytest.raises(LedgerError, match=r"SQLSTATE 42501.*USAGE on schema"):
        Ledger.open(place)
    server.execute('DROP SCHEMA "dpcore_study" CASCADE')
    with pytest.raises(LedgerError, match="CREATE on the database"):
        Ledger.create(place, **BUDGET)
    connect(monkeypatch, tmp_path, server)
    Ledger.create(place, **BUDGET)
    server.execute(
        'GRANT USAGE ON SCHEMA "dpcore_study" TO spender',
        f"GRANT SELECT, INSERT ON {TABLE} TO spender",
    )
    connect(monkeypatch, tmp_path, server, "spender")
    ledger = Ledger.open(place)
    ledger.reserve(ONE)
    assert ledger.faults() == []
    for statement in ("DELETE FROM", "TRUNCATE", "DROP TABLE", "UPDATE"):
        change = f"{statement} {TABLE}" + (" SET kind = 'x'" if statement == "UPDATE" else "")
        with pytest.raises(Exception, match=r"denied|owner"):
            server.execute(change, role="spender")
    for change in (f"DELETE FROM {TABLE}", f"UPDATE {TABLE} SET kind = 'x'", f"TRUNCATE {TABLE}"):
        with pytest.raises(Exception, match="append-only"):
            server.execute(change)


def test_what_is_missing_says_what_to_do(tmp_path, monkeypatch, place, server):
    with pytest.raises(UnknownLedgerError, match="dpcore ledger create study@postgresql"):
        Ledger.open(place)
    with pytest.raises(LedgerError, match="GRANT USAGE"):
        Ledger.create(place, **BUDGET, shared=True)
    Ledger.create(place, **BUDGET)
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(place, **BUDGET)
    with pytest.raises(ParameterError, match="at most 56"):
        Ledger.open(f"{'x' * 57}@postgresql")
    with pytest.raises(LedgerError, match=r"no connection 'other'"):
        Ledger.open("other@postgresql")
    configure(monkeypatch, tmp_path, "study: {postgresql: 'postgresql://a:secret@127.0.0.1:1/b'}\n")
    with pytest.raises(LedgerError, match="does not answer") as refusal:
        Ledger.open(place)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_a_server_that_may_lose_what_it_confirms_is_not_written_to(place, server):
    ledger = Ledger.create(place, **BUDGET)
    server.execute("ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
    try:
        wait_for(server, "full_page_writes", "off")
        with pytest.raises(LedgerError, match="could take back what was spent"):
            ledger.spend(ONE)
        assert len(ledger.rows()) == 1
    finally:
        server.execute("ALTER SYSTEM RESET full_page_writes", "SELECT pg_reload_conf()")
        wait_for(server, "full_page_writes", "on")


def wait_for(server, setting, value):
    for _ in range(100):
        if server.execute(f"SELECT current_setting('{setting}')") == [(value,)]:
            return
        time.sleep(0.05)
    pytest.fail(f"{setting} is not {value}")


@pytest.mark.slow
def test_a_role_cannot_make_its_commits_careless(place, server):
    """What a role or a database sets for its sessions, a ledger's session sets again."""
    server.execute("ALTER ROLE owner SET synchronous_commit = off")
    try:
        ledger = Ledger.create(place, **BUDGET)
        with ledger.writing() as transaction:
            session = transaction._connection
            setting = session.execute("SELECT current_setting('synchronous_commit')").fetchone()
            level = session.execute("SELECT current_setting('transaction_isolation')").fetchone()
        assert (setting, level) == (("on",), ("serializable",))
    finally:
        server.execute("ALTER ROLE owner RESET synchronous_commit")


def test_an_older_copy_or_another_ledger_in_its_place_is_noticed(place, server):
    ledger = Ledger.create(place, **BUDGET)
    for _ in range(3):
        ledger.note("an evaluation")
    server.execute(OFF, f"CREATE TABLE backup AS TABLE {TABLE}")
    server.execute(f"DELETE FROM {TABLE} WHERE number = 4", ON)
    for use in (ledger.left, lambda: ledger.spend(ONE), lambda: Ledger.open(place)):
        with pytest.raises(LedgerError, match="row 4 was written"):
            use()
    assert "row 4 was written" in ledger.faults()[0]
    server.execute(
        f"INSERT INTO {TABLE} SELECT * FROM backup WHERE number = 4", "DROP TABLE backup"
    )
    ledger.spend(ONE)
    server.execute('DROP SCHEMA "dpcore_study" CASCADE')
    Ledger.create(place, **BUDGET)
    with pytest.raises(LedgerError, match="another ledger was put in its place"):
        ledger.spend(ONE)


@pytest.mark.slow
def test_a_ledger_under_another_name_is_no_second_budget(place, server):
    Ledger.create(place, **BUDGET)
    server.execute('CREATE SCHEMA "dpcore_people"')
    try:
        server.execute(
            f'CREATE TABLE "dpcore_people".journal AS TABLE {TABLE}',
            "COMMENT ON TABLE \"dpcore_people\".journal IS 'dpcore ledger 1'",
        )
        with pytest.raises(LedgerError, match="created as 'study'; a copy would be a second"):
            Ledger.open("people@postgresql")
        server.execute("COMMENT ON TABLE \"dpcore_people\".journal IS 'dpcore ledger 2'")
        with pytest.raises(LedgerError, match="a newer dpcore's"):
            Ledger.open("people@postgresql")
    finally:
        server.execute('DROP SCHEMA "dpcore_people" CASCADE')


def flip_bits(server, ledger, trials, seed):
    """Bits of rows flipped one by one by anyone who owns the server; how many `verify` finds."""
    randomness, count = random.Random(seed), 0
    rows = server.execute(f"SELECT number, kind, body, digest FROM {TABLE} ORDER BY number")
    server.execute(OFF)
    for _ in range(trials):
        number, *cells = randomness.choice(rows)
        column = randomness.choice(["number", "kind", "body", "digest"])
        if column == "number":
            old, new = str(number), str(number ^ 1 << randomness.randrange(31))
            if int(new) in {row[0] for row in rows}:  # the key itself refuses it
                new = str(number + 2**31)
        else:
            text = cells[["kind", "body", "digest"].index(column)]
            spot, bit = randomness.randrange(len(text)), 1 << randomness.randrange(7)
            flipped = chr(ord(text[spot]) ^ bit)
            # The server stores no NUL.
            flipped = flipped if flipped != "\0" else chr(ord(text[spot]) ^ 2)
            old, new = (quoted(t) for t in (text, text[:spot] + flipped + text[spot + 1 :]))
        place = number
        server.execute(f"UPDATE {TABLE} SET {column} = {new} WHERE number = {place}")
        try:
            count += bool(ledger.faults())
        except LedgerError:
            count += 1
        place = new if column == "number" else number
        server.execute(f"UPDATE {TABLE} SET {column} = {old} WHERE number = {place}")
    server.execute(ON)
    return count


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def test_a_flipped_bit_and_a_guard_that_is_gone_are_found(place, server):
    ledger = Ledger.create(place, **BUDGET)
    ledger.reserve(ONE)
    assert flip_bits(server, ledger, 1, seed=1) == 1
    assert ledger.faults() == []
    server.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER no_change")
    assert ledger.faults() == ["the guard no_change against changes is gone"]
    server.execute(f"DROP TRIGGER no_removal ON {TABLE}", ON)
    assert ledger.faults() == ["the guard no_removal against changes is gone"]


@pytest.mark.slow
def test_250_flipped_bits_are_found(place, server):
    ledger = Ledger.create(place, **BUDGET)
    for _ in range(25):
        try:
            ledger.reserve(ONE)
        except BudgetExceededError:
            continue
    assert flip_bits(server, ledger, 250, seed=2) == 250
    assert ledger.faults() == []


SPEC = """
dpcore: 1
data:
  source: {{csv: people.csv}}
  domain:
    columns: {{age: {{range: [0, 100]}}}}
    records: 100
adjacency: replace_one
budget: {{epsilon: 1.0, delta: 1e-5}}
release: {{learner: statistics.count}}
ledger: {ledger}
"""


def test_a_spec_names_the_ledger_and_its_place(tmp_path, place):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(ledger="{name: study, place: postgresql}"))
    spec = load_spec(path)
    ledger = Ledger.create(place, **BUDGET)
    assert ledger_of(spec) == ledger
    assert ledger_of(spec, ledger) is ledger
    local = Ledger.create("study", **BUDGET)
    with pytest.raises(SpecError, match="is charged to 'study@postgresql', not to 'study'"):
        ledger_of(spec, local)
    path.write_text(SPEC.format(ledger="study"))
    assert ledger_of(load_spec(path), local) is local
    with pytest.raises(SpecError, match="is charged to 'study', not to 'study@postgresql'"):
        ledger_of(load_spec(path), ledger)


@pytest.mark.slow
def test_the_command_line_takes_the_place_with_the_name(place):
    def command(*words):
        return CliRunner().invoke(app, ["ledger", *words])

    budget = ["--epsilon", "1", "--delta", "1e-5", "--adjacency", "replace_one"]
    done = command("create", place, *budget)
    assert done.exit_code == 0, done.output
    assert "Created study@postgresql" in done.output
    Ledger.open(place).spend(ONE, "by hand")
    assert "by hand" in command("show", place).output
    assert "2 rows, chained and recomputed" in command("verify", place).output
    assert len(json.loads(command("export", place).output)["rows"]) == 2
    assert command("create", place, *budget).exit_code == 4
    assert command("show", "study@nowhere").exit_code != 0


def test_a_row_that_comes_while_a_reading_begins_is_no_fault(place, monkeypatch):
    """Another process of this machine writes a row and counts it, right before the snapshot."""
    ledger = Ledger.create(place, **BUDGET)
    load, nested = Counter._load, []

    def spend_before(self):
        if not nested:
            nested.append(True)
            ledger.spend(ONE)
        return load(self)

    monkeypatch.setattr(Counter, "_load", spend_before)
    assert len(ledger.rows()) == 2
