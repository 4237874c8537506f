"""What travels between dpcore and PostgreSQL in a pushed run: no cell of any record."""

import contextlib
import os
import socket
import struct
import threading

import numpy as np
import pytest

from dpcore.private.engines.choice import Local
from dpcore.runs.run_spec import run

from sources.people import configure
from sources.test_postgresql import connected, server  # noqa: F401

pytest.importorskip("sqlglot")

from dpcore_engines.sql.choice import SqlChoice

RECORDS = 300
SPEC = """
dpcore: 1
data:
  source: {sql: "select * from visits_of_study", connection: clinic}
  domain:
    records: private
    columns: {age: [0, 110], cost: [0, 20000], paid: [0, 1000], sex: [F, M]}
on_invalid: project
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - {name: number, learner: {name: statistics.count, by: [sex]}, mechanism: discrete_gaussian}
  - {name: costs, learner: {name: statistics.variance, column: cost, by: [sex]}}
  - {name: paid, learner: {name: statistics.mean, column: paid}}
"""


@pytest.fixture(scope="module")
def visits(server):  # noqa: F811
    """The server's folder, and the cells of a table that nothing else could hold."""
    rng = np.random.default_rng(11)
    age, cost, paid = rng.uniform(10, 100, (3, RECORDS)) * np.array([[1.0], [150.0], [9.0]])
    notes = [rng.bytes(9).hex() for _ in range(RECORDS)]
    with connected(server) as opened, opened.cursor() as cursor:
        cursor.execute(
            "create table visits (age float8, cost float8, paid numeric, sex text, note text)"
        )
        for row in zip(age.tolist(), cost.tolist(), paid.tolist(), notes, strict=True):
            a, c, p, note = row
            cursor.execute(f"insert into visits values ({a!r}, {c!r}, {p!r}, 'F', '{note}')")
        # All that docs/engines.md has the operator grant.
        cursor.execute("create view visits_of_study as select * from visits")
        cursor.execute("create role study login")
        cursor.execute("revoke temporary on database postgres from public")
        cursor.execute("grant select on visits_of_study to study")
        cursor.execute("grant temporary on database postgres to study")
    cells = [repr(x).encode() for x in (*age.tolist(), *cost.tolist(), *paid.tolist())]
    cells += [struct.pack(order, x) for x in (*age, *cost, *paid) for order in (">d", "<d")]
    # A decimal travels as digits in base 10,000, in 16 bits each.
    cells += [_digits(repr(x)) for x in paid.tolist()]
    return server.split("host=")[1].split("&")[0], [*cells, *(note.encode() for note in notes)]


def _digits(text):
    """Three digits in base 10,000 behind the point, as the server's binary format has them."""
    fraction = text.split(".")[1].ljust(12, "0")
    return b"".join(struct.pack(">h", int(fraction[i : i + 4])) for i in range(0, 12, 4))


@contextlib.contextmanager
def recorded(folder):
    """A port in front of the server's socket, and all bytes that pass, both ways."""
    passed, stack = [], contextlib.ExitStack()

    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passed.append(data)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def end(opened):
        # A server that is to stop waits for its clients, and a close by itself wakes no thread.
        with contextlib.suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)
        opened.close()

    def serve(listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(os.path.join(folder, ".s.PGSQL.5432"))
            for opened in (client, upstream):
                stack.callback(end, opened)
            for pair in ((client, upstream), (upstream, client)):
                threading.Thread(target=copy, args=pair, daemon=True).start()

    with stack, socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        yield f"postgresql://study@127.0.0.1:{port}/postgres?sslmode=disable", passed
        # A thread that waits in `accept` holds the port until somebody calls.
        listener.shutdown(socket.SHUT_RDWR)


def run_recorded(tmp_path, monkeypatch, folder, choice):
    """The bytes that pass in a run."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    with recorded(folder) as (address, passed):
        configure(monkeypatch, tmp_path, f'clinic: {{postgresql: "{address}"}}\n')
        run(spec, runs=tmp_path / "runs", engine=choice)
    return b"".join(passed)


def test_no_cell_travels_in_a_pushed_run(tmp_path, monkeypatch, visits):
    folder, cells = visits
    passed = run_recorded(tmp_path, monkeypatch, folder, SqlChoice())
    assert b"REPEATABLE READ READ ONLY" in passed  # the capture sees what travels
    assert not [cell for cell in cells if cell in passed]


def test_the_capture_finds_the_cells_that_the_local_engine_reads(tmp_path, monkeypatch, visits):
    folder, cells = visits
    passed = run_recorded(tmp_path, monkeypatch, folder, Local())
    seen = sum(cell in passed for cell in cells)
    # Two columns of doubles and one of decimals, each in one of its forms; no undeclared column.
    assert 3 * RECORDS * 0.95 <= seen < 3.5 * RECORDS
