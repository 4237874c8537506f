"""A stranger's plugin, as a stranger would use it: installed apart, not admitted, admitted, run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PLUGINS = Path(__file__).parents[2] / "examples" / "third-party"
PLUGIN = PLUGINS / "acme-bins"


@pytest.fixture(scope="module", params=[PLUGIN], ids=[PLUGIN.name])
def stranger(tmp_path_factory, request):
    """A runner of `dpcore` in an environment where the plugin is installed and nothing admitted."""
    home = tmp_path_factory.mktemp("stranger")
    quiet = ["-q", "--no-index", "--no-deps", "--no-build-isolation"]
    target = ["--target", str(home / "site"), str(request.param)]
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


@pytest.mark.slow
def test_a_strangers_plugin_is_admitted_tested_and_run(stranger):
    home, dpcore = stranger
    spec = home / "site" / "acme_bins" / "example.yaml"
    refused = dpcore("check", str(spec))
    assert refused.returncode == 2
    assert "acme-bins" in refused.stderr
    assert dpcore("plugins", "enable", "acme-bins", "--yes").returncode == 0
    assert "not tested yet" in dpcore("check", str(spec), "--explain").stdout

    tested = dpcore("test", "acme-bins", "--effort", "0.1", "--json")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    report = json.loads(tested.stdout)
    assert report["passed"]
    assert {v["law"] for v in report["verdicts"] if v["outcome"] == "passed"} > {
        "learner.statistic-pure",
        "bound.holds",
        "mechanism.event-matches-noise",
        "event.renyi",
    }
    for relation in ("replace_one", "add_remove", "replace_label"):
        name = f"Histogram / HistogramBound, {relation}, n=500"
        ratios = [a["worst_ratio"] for a in report["attacks"] if a["case"] == name]
        assert 0.99 < max(ratios) <= 1
    checked = dpcore("check", str(spec))
    assert checked.stdout.startswith("Proved: ")
    assert "attacked: " in dpcore("check", str(spec), "--explain").stdout

    rng = np.random.default_rng(0)
    hours, waits = rng.uniform(0, 24, 500), rng.uniform(0, 120, 500)
    lines = [f"{hour:.4f},{wait:.4f}" for hour, wait in zip(hours, waits, strict=True)]
    source = home / "waiting.csv"
    source.write_text("\n".join(["hour,minutes", *lines, ""]))
    ran = dpcore("run", str(spec), "--source", str(source))
    assert ran.returncode == 0, ran.stderr
    (folder,) = (home / "runs").iterdir()
    assert dpcore("replay", str(folder)).returncode == 0
    assert len(np.load(folder / "public" / "model.npz")["release.means"]) == 8


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


@pytest.mark.slow
@pytest.mark.parametrize("stranger", sorted(PLUGINS.iterdir()), indirect=True, ids=lambda p: p.name)
def test_a_readme_names_the_plugin_that_is_admitted(stranger, request):
    folder = request.node.callspec.params["stranger"]
    if folder.name == "opendp-noise":
        pytest.importorskip("opendp")
    readme = (folder / "README.md").read_text("utf-8")
    (name,) = {*re.findall(r"dpcore (?:plugins enable|test) (\S+)", readme)}
    done = stranger[1]("plugins", "enable", name, "--yes")
    assert done.returncode == 0, done.stderr
