"""A ledger in a folder that several users share, and the counter next to it."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import LedgerError
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge
from dpcore.ledger.sharing import remote

ONE = Charge.of(GaussianEvent(mu=0.01, adjacency=REPLACE_ONE))
posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")


@pytest.fixture
def folder(tmp_path):
    team = tmp_path / "team"
    team.mkdir()
    team.chmod(0o2770)
    return team


def made(folder, **options):
    return Ledger.create(
        folder / "a.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE, **options
    )


def counter(ledger):
    path = ledger.journal.path
    return path.with_name(f".{path.name}.seen")


def test_an_older_copy_is_noticed(folder):
    ledger = made(folder)
    ledger.spend(ONE)
    shutil.copy(ledger.journal.path, folder / "backup")
    ledger.spend(ONE)
    ledger.spend(ONE)
    assert ledger.faults() == []
    os.replace(folder / "backup", ledger.journal.path)
    for use in (ledger.left, lambda: ledger.spend(ONE), lambda: Ledger.open(ledger.journal.path)):
        with pytest.raises(LedgerError, match="row 4 was written, and this file ends before that"):
            use()
    assert "an older or another copy" in ledger.faults()[0]


def test_an_older_copy_that_went_on_is_noticed(folder):
    ledger = made(folder)
    shutil.copy(ledger.journal.path, folder / "backup")
    ledger.spend(ONE)
    before = counter(ledger).read_bytes()
    os.replace(folder / "backup", ledger.journal.path)
    counter(ledger).unlink()
    ledger.spend(Charge.of(GaussianEvent(mu=0.02, adjacency=REPLACE_ONE)))
    counter(ledger).write_bytes(before)
    with pytest.raises(LedgerError, match="has another one there"):
        ledger.left()


def test_a_counter_that_is_behind_or_missing_is_no_fault(folder):
    """A process may be killed between the row and the counter; old ledgers have none."""
    ledger = made(folder)
    before = counter(ledger).read_bytes()
    ledger.spend(ONE)
    counter(ledger).write_bytes(before)
    assert ledger.faults() == []
    counter(ledger).unlink()
    assert ledger.faults() == []
    ledger.spend(ONE)
    assert counter(ledger).exists()
    for content in (b"", b"?"):  # it is on disk before it has its name: a crash leaves neither
        counter(ledger).write_bytes(content)
        with pytest.raises(LedgerError, match=r"counter .* is damaged"):
            ledger.left()


def test_a_counter_that_cannot_be_written_stops_the_run_and_stays_spent(folder, monkeypatch):
    ledger = made(folder)
    before = ledger.left().mu
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(LedgerError, match="stays spent"):
        ledger.spend(ONE)
    monkeypatch.undo()
    assert ledger.left().mu < before
    assert sorted(path.name for path in folder.iterdir()) == [".a.ledger.seen", "a.ledger"]


@posix
def test_a_shared_ledger_is_its_groups_and_another_its_owners(folder):
    shared = made(folder, shared=True)
    shared.spend(ONE)
    for path in (shared.journal.path, counter(shared)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert path.stat().st_gid == folder.stat().st_gid
    own = Ledger.create(folder / "b.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    for path in (own.journal.path, counter(own)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize(
    ("mode", "why"),
    [(0o2777, "written by everybody"), (0o2750, "2770"), (0o3770, "2770"), (0o770, "2770")],
)
def test_a_folder_that_is_not_fit_for_sharing_is_refused(folder, mode, why):
    folder.chmod(mode)
    with pytest.raises(LedgerError, match=why):
        made(folder, shared=True)
    assert list(folder.iterdir()) == []


SPEND = """
import os, sys
from pathlib import Path
from dpcore import Ledger, REPLACE_ONE
from dpcore.ledger import Charge
from dpcore.errors import DpcoreError
from dpcore.registry.events import Catalogue
from dpcore.claims.events.gaussian import GaussianEvent
import scipy.special
path, user, group = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
os.setgroups([]); os.setgid(group); os.setuid(user)
try:
    ledger = Ledger.open(path)
    ledger.spend(Charge.of(GaussianEvent(mu=0.01, adjacency=REPLACE_ONE)))
    print("spent", ledger.faults())
except DpcoreError as error:
    print(error.exit_code, error)
"""


@posix
@pytest.mark.slow
@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="it changes the user")
def test_users_of_the_group_spend_and_others_are_told_why_not():
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        os.chmod(name, 0o755)
        team = os.path.join(name, "team")
        os.mkdir(team)
        os.chown(team, 0, 4242)
        os.chmod(team, 0o2775)
        path = os.path.join(team, "a.ledger")
        ledger = Ledger.create(
            Path(path), epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE, shared=True
        )
        output = []
        for user, group in ((5001, 4242), (5002, 4242), (5003, 5003)):
            done = subprocess.run(
                [sys.executable, "-c", SPEND, path, str(user), str(group)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            output.append(done.stdout.strip())
        assert output[:2] == ["spent []", "spent []"]
        assert output[2].startswith("4 ")
        assert "may not" in output[2]
        assert "--shared" in output[2]
        assert ledger.spent().charges == 2


def test_network_file_systems_are_known_by_the_longest_mount(tmp_path):
    mounts = (
        "proc /proc proc rw 0 0\n"
        "/dev/sda / ext4 rw 0 0\n"
        "server:/home /home nfs4 rw 0 0\n"
        "/dev/sdb /home/local\\040disk ext4 rw 0 0\n"
        "//s/share /mnt/share cifs rw 0 0\n"
    )
    assert remote(Path("/srv/a.ledger"), mounts) == ""
    assert remote(Path("/home/ann/a.ledger"), mounts) == "nfs4"
    assert remote(Path("/home/local disk/a.ledger"), mounts) == ""
    assert remote(Path("/mnt/share/x/a.ledger"), mounts) == "cifs"
    assert remote(Path("/home/ann/a.ledger"), "garbage\n\n") == ""


def test_a_ledger_on_a_network_file_system_is_refused(folder, monkeypatch):
    monkeypatch.setattr("dpcore.ledger.file_journal.remote", lambda path: "nfs4")
    with pytest.raises(LedgerError, match="network file system"):
        made(folder)
