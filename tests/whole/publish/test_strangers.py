"""Replaying a stranger's folder: bounded in time, memory and kinds of files."""

import io
import json
import os
import shutil
import zipfile

import msgspec
import numpy as np
import pytest
import yaml

from dpcore.errors import DpcoreError, ReplayError
from dpcore.published.replay import replay
from dpcore.runs import run_spec

from doubles import table

SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {
            "records": 40,
            "columns": {"a": [-1, 1], "b": [-1, 1]},
            "target": [-1, 1],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 2, "delta": 1e-5},
    "release": {
        "learner": {"name": "random_features.ridge", "features": "identity", "regularization": 0.5},
        "mechanism": "gaussian",
    },
    "evaluate": {"holdout": 0.2, "metrics": ["rmse"]},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.yaml").write_text(yaml.safe_dump(SPEC))
    return run_spec.run(folder / "s.yaml", table=table(), runs=folder / "runs").folder


@pytest.fixture
def stranger(made, tmp_path):
    shutil.copytree(made / "public", tmp_path / "run" / "public")
    return tmp_path / "run"


def bomb(path):
    name = zipfile.ZipFile(path).namelist()[0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(200 << 20))


def many(path):
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(50_000):
            archive.writestr(f"release.{number:06d}.x.npy", b"")


def huge_shape(path):
    name = zipfile.ZipFile(path).namelist()[0]
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(file, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, file.getvalue() + bytes(8))


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def link(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def long(path):
    with path.open("ab") as file:
        file.truncate(200 << 20)


def folder(path):
    path.unlink()
    path.mkdir()


def neurons(path):
    lock = json.loads(path.read_text())
    lock["spec"]["release"]["learner"] = {"name": "ntk.central", "neurons": 10**12}
    path.write_text(json.dumps(lock))


def deep(path):
    path.write_text('{"spec": ' + '{"a": ' * 100_000 + "1" + "}" * 100_000 + "}")


CASES = [
    ("spec.lock.json", deep), ("guarantee.json", deep),
    ("answers.npz", bomb), ("answers.npz", many), ("answers.npz", huge_shape),
    ("spec.lock.json", neurons),
    *((name, how) for name in ("answers.npz", "spec.lock.json", "guarantee.json", "model.npz")
      for how in (fifo, link, long, folder)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoil"), CASES)
def test_a_strangers_folder_is_refused_at_little_cost(stranger, name, spoil):
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF)
    spoil(stranger / "public" / name)
    with pytest.raises(DpcoreError):
        replay(stranger)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 10  # the 50,000 members are written here, too
    assert after.ru_maxrss - before.ru_maxrss < 400_000  # kB; the bomb is made here, too


def test_many_files_are_refused(stranger):
    for number in range(10_001):
        (stranger / "public" / f"{number}.txt").touch()
    with pytest.raises(ReplayError, match="more than 10000 files"):
        replay(stranger)


def test_the_folder_as_it_was_made_replays(stranger):
    assert replay(stranger).files


@pytest.mark.parametrize("spoil", [fifo, link, long, folder, deep])
def test_a_lock_beside_a_spec_that_is_no_lock_is_not_waited_for(tmp_path, spoil):
    """A folder stays; anything else is replaced by a lock."""
    from dpcore.published.lock import Lock, lock_of, locked
    from dpcore.specs.spec import load_spec

    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SPEC))
    spec = load_spec(tmp_path / "s.yaml")
    adjacent = spec.path.with_name(f"{spec.path.stem}.lock.json")
    assert locked(spec).note == ""
    spoil(adjacent)
    again = locked(spec)
    assert bool(again.note) == (spoil is folder)
    if not again.note:
        found = msgspec.json.decode(adjacent.read_bytes(), type=Lock)
        assert found == lock_of(spec, again.plan, again.plan.randomness)
