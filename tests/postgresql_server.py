"""A PostgreSQL server over TCP, which a test starts as another user than root and may kill."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest


def program(name):
    """Where a program of the server is; the newest, where several are installed."""
    adjacent = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return shutil.which(name) or (adjacent[-1] if adjacent else None)


def foreign_user():
    """A user that is not root, which the server refuses; None for the present one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.skip("PostgreSQL does not run as root, and there is no other user")
    return None


class TcpServer:
    """A server on a port of 127.0.0.1, with data that outlives its processes."""

    def __init__(self):
        if find_spec("adbc_driver_postgresql") is None:
            pytest.skip("adbc-driver-postgresql is not installed (extra sql)")
        if not (program("initdb") and program("postgres")):
            pytest.skip("PostgreSQL is not installed (initdb, postgres)")
        user = foreign_user()
        self.folder = Path(tempfile.mkdtemp(prefix="dpcore-pg-"))
        self.options = {"cwd": self.folder, "stdout": subprocess.DEVNULL}
        self.options["stderr"] = subprocess.DEVNULL
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.data = self.folder / "data"
        initial = [program("initdb"), "-D", self.data, "-U", "owner", "-A", "trust"]
        initial += ["--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(initial, check=True, timeout=120, **self.options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process, self.handles = None, {}

    def address(self, role="owner"):
        """Where a role connects."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/postgres"

    def start(self, *settings):
        """Start it, and wait until it answers."""
        command = [program("postgres"), "-D", self.data, "-p", self.port, "-k", self.folder]
        for setting in ("listen_addresses=127.0.0.1", "max_connections=100", *settings):
            command += ["-c", setting]
        self.process = subprocess.Popen([*map(str, command)], **self.options)
        for _ in range(600):
            with contextlib.suppress(Exception), self.connected():
                return
            time.sleep(0.1)
        pytest.fail("the server does not answer")

    def connected(self, role="owner"):
        """A connection of a role."""
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.address(role), autocommit=True)

    def execute(self, *statements, role="owner"):
        """A role's statements, one by one; the rows of the last."""
        # Connecting is most of the cost: each role's connection is kept.
        handle = self.handles.get(role) or self.handles.setdefault(role, self.connected(role))
        for statement in statements:
            with handle.cursor() as cursor:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def disconnect(self):
        """End the connections that are kept."""
        while self.handles:
            with contextlib.suppress(Exception):
                self.handles.popitem()[1].close()

    def kill(self):
        """Kill its first process; the others end when they notice."""
        self.disconnect()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)

    def stop(self):
        """End it and remove its data."""
        self.disconnect()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def tcp_server():
    """A server that was started, for as long as it is needed."""
    server = TcpServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
