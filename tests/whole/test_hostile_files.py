"""Pipes, devices, damaged counters, repeated keys and partial files in the place of right ones."""

import contextlib
import json
import os
import socket
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore import Ledger
from dpcore.adjacency import REPLACE_ONE
from dpcore.console.app import app
from dpcore.errors import LedgerError, RegistryError, ReplayError, SourceError
from dpcore.published.bounded_reading import read_json
from dpcore.published.files import locked_folder
from dpcore.published.lock import Lock, lock_path
from dpcore.registry.index import Index
from dpcore.registry.user_folder import user_file
from dpcore.sources.connections import connection, connections_file
from dpcore.yaml.located import open_regular

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes in folders")

SPEC = {
    "dpcore": 1,
    "data": {"source": "people.csv", "domain": {"records": 200, "columns": {"a": [0, 1]}}},
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "ledger": "./people.ledger",
    "releases": [
        {"name": "m", "learner": {"name": "statistics.mean", "column": "a"}},
    ],
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Ledger.create(tmp_path / "people.ledger", epsilon=5, delta=1e-4, adjacency=REPLACE_ONE)
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SPEC))
    return tmp_path


@pytest.fixture
def run(home):
    return dpcore.run(home / "s.yaml", table={"a": np.linspace(0, 1, 200)}).folder.resolve()


def call(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def put(kind, path):
    """Something that is no file at a path; what reads it as one waits, or touches a device."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "socket":
        # The name of a socket is short.
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
            server.bind(path.name)
        path.chmod(0o600)
    else:
        path.symlink_to("/dev/zero")


KINDS = ("pipe", "socket", "device")


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_opened(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(kind, tmp_path / "x")
    with pytest.raises(OSError, match=r"not a regular file|No such device"):  # of sockets
        open_regular(tmp_path / "x")
    (tmp_path / "y").write_bytes(b"content")
    (tmp_path / "z").symlink_to("y")
    with open_regular(tmp_path / "z") as file:
        assert file.read() == b"content"
    with pytest.raises(OSError, match="symbolic link"):
        open_regular(tmp_path / "z", os.O_NOFOLLOW)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["people.ledger", ".people.ledger.seen", "people.ledger-journal", "people.ledger-wal"]
)
def test_no_file_of_a_ledger_is_waited_for(home, kind, name):
    put(kind, home / name)
    with pytest.raises(LedgerError):
        Ledger.open(home / "people.ledger").left()


@pytest.mark.parametrize("kind", KINDS)
def test_no_configuration_is_waited_for(home, kind):
    put(kind, user_file())
    with pytest.raises(RegistryError, match="cannot be read"):
        Index.user()
    assert call("--help").exit_code == 0
    put(kind, connections_file())
    with pytest.raises(SourceError):
        connection("clinic")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["spec.lock.json", "guarantee.json", "guarantee.txt", "answers.npz"]
)
def test_no_file_of_a_run_is_waited_for(run, kind, name, monkeypatch):
    put(kind, run / "public" / name.replace(".lock", ".lock.json"))
    with pytest.raises(ReplayError):
        dpcore.replay(run)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_place_of_a_lock_beside_its_spec_is_replaced(home, kind):
    put(kind, lock_path(home / "s.yaml"))
    assert call("check", home / "s.yaml").exit_code == 0
    assert json.loads(lock_path(home / "s.yaml").read_text())["format"] == 4


@pytest.mark.parametrize("content", [b"", b"{", b"12", b'{"number": "one", "digest": ""}', b"\xff"])
def test_a_damaged_counter_is_never_a_missing_one(home, content):
    counter = home / ".people.ledger.seen"
    counter.write_bytes(content)
    for use in (lambda book: book.left(), lambda book: book.note("an evaluation")):
        with pytest.raises(LedgerError, match="damaged"):
            use(Ledger.open(home / "people.ledger"))
    counter.unlink()
    Ledger.open(home / "people.ledger").note("an evaluation")
    assert msgspec.json.decode(counter.read_bytes())["number"] == 2


def test_a_new_ledger_is_counted_over_whatever_was_left_behind(home):
    (home / ".other.ledger.seen").write_bytes(b"")
    Ledger.create(home / "other.ledger", epsilon=1, delta=1e-6, adjacency=REPLACE_ONE)
    assert msgspec.json.decode((home / ".other.ledger.seen").read_bytes())["number"] == 1


@pytest.mark.parametrize("name", ["guarantee.json", "spec.lock.json"])
@pytest.mark.parametrize("key", ["ledger", "premises"])
def test_a_key_that_stands_twice_is_refused(run, name, key):
    path = run / "public" / name
    text = path.read_text()
    assert f'"{key}":' in text
    path.write_text(text.replace(f'"{key}":', f'"{key}": {{"ledger": "another"}}, "{key}":', 1))
    with pytest.raises(ReplayError, match="a key occurs twice"):
        dpcore.load_run(run)
    if name == "guarantee.json":
        assert call("ledger", "verify", "./people.ledger", "--run", run).exit_code == 4


REPEATED = (
    '{"a": {"b": 1, "b": 2}}',
    '[{"a": 1, "a": 1}]',
    '{"a": 1, "\\u0061": 2}',
    f'{{"n": {"9" * 5000}, "n": 1}}',
)


@pytest.mark.parametrize("text", REPEATED)
def test_repeated_keys_are_found_at_any_depth_and_spelling(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ReplayError, match="a key occurs twice"):
        read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"a": {"b": 1}, "b": [1e400, -0.0]}')
    assert read_json(tmp_path / "x.json")


def test_a_ledger_confirms_the_run_that_it_paid_for(home, run):
    done = call("ledger", "verify", "./people.ledger", "--run", run)
    assert done.exit_code == 0, done.output


def test_a_ledger_does_not_confirm_a_lock_of_other_events(home, run):
    """The guarantee is as it was committed; the lock next to it claims less noise."""
    path = run / "public" / "spec.lock.json"
    said = json.loads(path.read_text())
    (query,) = said["plan"]["releases"]["m"]
    # More noise than was charged for: its epsilon is covered all the same, so that it replays.
    query["noise"] = query["mechanism"]["noise_multiplier"] = 2 * query["noise"]
    (claim,) = said["plan"]["claims"]["queries"]
    claim["mechanism"]["noise_multiplier"] = query["noise"].hex()
    claim["event"]["mu"] = (float.fromhex(claim["event"]["mu"]) / 2).hex()
    path.write_bytes(msgspec.convert(said, Lock).digested().encode())
    assert dpcore.load_run(run).guarantee.epsilon == pytest.approx(1)
    done = call("ledger", "verify", "./people.ledger", "--run", run)
    assert done.exit_code == 4
    assert "other events than the ledger" in " ".join(done.output.split())


COMMAND = "from dpcore.console import main; main()"
PLUGIN = """
from pathlib import Path
Path({mark!r}).touch()
import pluggy
hookimpl = pluggy.HookimplMarker("dpcore")
@hookimpl
def dpcore_learners():
    return {{}}
"""


@pytest.mark.parametrize("module", ["stranger", "stranger.inner"])
def test_no_code_of_a_plugin_runs_before_consent(tmp_path, module):
    """Its package touches a file as soon as any of it is imported."""
    package = tmp_path / "site" / "stranger"
    package.mkdir(parents=True)
    for file in ("__init__.py", "inner.py"):
        (package / file).write_text(PLUGIN.format(mark=str(tmp_path / "ran")))
    info = tmp_path / "site" / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dpcore.plugins]\nstranger = {module}\n")
    (info / "RECORD").write_text("stranger/__init__.py,,\nstranger/inner.py,,\n")

    def enable(answer):
        return subprocess.run(
            [sys.executable, "-c", COMMAND, "plugins", "enable", "stranger"],
            input=answer, text=True, capture_output=True, cwd=tmp_path, check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site"),
                 "XDG_CONFIG_HOME": str(tmp_path / "config")},
        )  # fmt: skip

    refused = enable("n\n")
    assert refused.returncode == 2
    assert "stranger 1.0" in refused.stdout
    assert not (tmp_path / "ran").exists()
    admitted = enable("y\n")
    assert admitted.returncode == 0, admitted.stderr
    assert (tmp_path / "ran").exists()
    # Help names the commands of admitted plugins, and imports none.
    (tmp_path / "ran").unlink()
    entry = yaml.safe_load((tmp_path / "config" / "dpcore" / "registry.yaml").read_text())
    entry["stranger"]["provides"] = {"commands": {"strange": "A command."}}
    (tmp_path / "config" / "dpcore" / "registry.yaml").write_text(yaml.safe_dump(entry))
    subprocess.run(
        [sys.executable, "-c", COMMAND, "--help"], cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"),
             "XDG_CONFIG_HOME": str(tmp_path / "config")},
    )  # fmt: skip
    assert not (tmp_path / "ran").exists()


def test_partial_files_of_a_killed_run_are_removed_by_the_next_one(home, run):
    """What was published stays as it is."""
    rests = [run / "operator" / ".run.json.partial-4711", run / ".public.partial" / "lock"]
    for rest in rests:
        rest.parent.mkdir(exist_ok=True)
        rest.write_text("half")
    kept = {path: path.read_bytes() for path in (run / "public").iterdir()}
    with locked_folder(run.parent, "s"):
        pass
    assert not any(rest.exists() for rest in rests)
    assert {path: path.read_bytes() for path in (run / "public").iterdir()} == kept
    assert (run / "operator" / "run.json").exists()
