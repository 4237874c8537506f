"""What public facts could have refused is not charged: disk and memory, before the ledger."""

import contextlib
import shutil
import subprocess

import numpy as np
import pytest
import yaml

from dpcore import REPLACE_ONE, Ledger
from dpcore.engines.local import LocalEngine
from dpcore.errors import NotPublishedError, ReleaseError, ResourceError
from dpcore.publish import whole_run
from dpcore.records.source import TableSource
from dpcore.specs.spec import load_spec

RECORDS = 100_000
SPEC = {
    "dpcore": 1,
    "ledger": "people",
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {
            "records": RECORDS,
            "columns": {"a": [-1, 1], "b": [-1, 1]},
            "target": [-1, 1],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "release": {
        "learner": {"name": "linear.sufficient_statistics", "features": "identity"},
        "mechanism": "gaussian",
    },
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Ledger.create("people", epsilon=20.0, delta=1e-3, adjacency=REPLACE_ONE)
    return tmp_path


@pytest.fixture
def write(home):
    """Write a spec with other keys, and as many records as there are meant to be."""

    def write(rows, records=RECORDS, **keys):
        spec = {**SPEC, **keys}
        spec["data"] = {**SPEC["data"], "domain": {**SPEC["data"]["domain"], "records": records}}
        if spec.get("sealed"):
            spec["on_invalid"] = "project"
        (home / "s.yaml").write_text(yaml.safe_dump(spec))
        if rows:
            numbers = np.random.default_rng(0).uniform(-1, 1, (rows, 3)).round(4)
            lines = "\n".join(",".join(map(str, row)) for row in numbers.tolist())
            (home / "people.csv").write_text("a,b,y\n" + lines + "\n")
        return home / "s.yaml"

    return write


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def charges():
    return Ledger.open("people").spent().charges


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("rows", [0, 10, RECORDS])
def test_a_disk_that_is_too_small_costs_no_budget_whatever_the_source_holds(
    home, write, sealed, rows
):
    """2.4 MB of records and two replicas of them do not fit on 2 MB: the declared number says so,
    and the source, which may be missing, is not looked at."""
    path = write(rows, sealed=sealed)
    with small_disk(home / "disk", "2m") as disk:
        with pytest.raises(ResourceError, match="of disk") as error:
            whole_run.run(path, runs=disk / "runs")
        assert [*disk.rglob("*")] in ([], [disk / "runs"])
    assert "no record was opened" in str(error.value)
    assert error.value.exit_code == 2
    assert charges() == 0
