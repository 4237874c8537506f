"""The page on other toolkits, and the plugin that brings one of them into specs, with the hosts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "embedding.md"
PLUGIN = ROOT / "examples" / "third-party" / "opendp-noise"
HOSTS = ("opendp", "dp_accounting", "diffprivlib")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [  # the adapter for Opacus needs no host: test_opacus runs its example
    code for code in FENCE.findall(PAGE.read_text()) if "dpcore_bridges.opacus" not in code
]


def host_of(code):
    (host,) = {name for name in HOSTS if re.search(rf"^(from|import) {name}\b", code, re.MULTILINE)}
    return host


def test_every_host_has_an_example_in_both_directions():
    assert sorted(map(host_of, BLOCKS)) == sorted([*HOSTS, *HOSTS])


@pytest.mark.parametrize("code", BLOCKS, ids=[f"{host_of(c)}:{i}" for i, c in enumerate(BLOCKS)])
def test_an_example_runs(code, tmp_path, monkeypatch):
    pytest.importorskip(host_of(code))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own page


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A runner of `dpcore` in an environment where the plugin is installed and nothing admitted."""
    pytest.importorskip("opendp")
    home = tmp_path_factory.mktemp("stranger")
    quiet = ["-q", "--no-index", "--no-deps", "--no-build-isolation"]
    target = ["--target", str(home / "site"), str(PLUGIN)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, *target], check=True, capture_output=True
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(home / "site"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
    }

    def dpcore(*words):
        return subprocess.run(
            [sys.executable, "-c", "from dpcore.console import main; main()", *words],
            env=environment,
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )

    return home, dpcore


def test_opendps_noise_is_admitted_and_runs_from_a_spec(stranger):
    home, dpcore = stranger
    assert dpcore("plugins", "enable", "opendp-noise", "--yes").returncode == 0
    rng = np.random.default_rng(0)
    ages, costs = rng.uniform(18, 90, 2000), rng.uniform(0, 10_000, 2000)
    lines = [f"{age:.3f},{cost:.2f}" for age, cost in zip(ages, costs, strict=True)]
    source = home / "costs.csv"
    source.write_text("\n".join(["age,cost", *lines, ""]))
    spec = home / "site" / "opendp_noise" / "example.yaml"
    ran = dpcore("run", str(spec), "--source", str(source))
    assert ran.returncode == 0, ran.stderr
    (folder,) = (home / "runs").iterdir()
    assert dpcore("replay", str(folder)).returncode == 0
    assert json.loads((folder / "public" / "guarantee.json").read_text())["epsilon"] <= 1


@pytest.mark.slow
def test_its_own_tests_pass(stranger):
    home, _ = stranger
    own = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        env={**os.environ, "PYTHONPATH": str(home / "site")},
        cwd=PLUGIN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert own.returncode == 0, own.stdout
