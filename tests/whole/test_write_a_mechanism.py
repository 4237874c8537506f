"""The page on mechanisms, step by step, as its reader would."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest

from dpcore import REPLACE_ONE, Ledger, Query, Registry, SecretRandomness, Sensitivity
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.registry.kinds import MECHANISM
from dpcore.specs.spec import spec_of_text
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine

PAGE = (Path(__file__).parents[2] / "docs" / "write-a-mechanism.md").read_text()
FILE = re.compile(r"^File `([^`]+)`.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = re.findall(r"^\$ (.+)$", PAGE, re.MULTILINE)


def write_files(folder):
    """The page's files over those of the scaffold."""
    for name, content in FILE.findall(PAGE):
        path = folder / name
        assert path.parent.is_dir(), f"{path.parent} is not what the scaffold makes"
        path.write_text(content)


def people():
    rng = np.random.default_rng(0)
    heights = rng.uniform(150, 200, 200)
    weights = np.clip(heights - 100 + rng.normal(0, 8, 200), 40, 120)
    return {"height": heights, "weight": weights}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The package of the page, written by the scaffold and by the page, and imported."""
    assert LINES[0] == "dpcore plugins new logistic --kind mechanism"
    folder = write_plugin("logistic", PluginKind.MECHANISM, tmp_path)
    write_files(tmp_path)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield importlib.import_module("dpcore_logistic")
    for name in [name for name in sys.modules if name.split(".")[0] == "dpcore_logistic"]:
        del sys.modules[name]


def test_the_example_of_the_page_is_priced_run_and_useful(plugin):
    registry = Registry.of(plugin)
    (path,) = registry.load(plugin.__name__).examples.values()
    plan = spec_of_text(path.read_text(), path.name, registry).price()
    assert plan.guarantee.epsilon <= 1
    table = people()
    model = plan.run(table).model
    noise_distribution = (
        80 / 200 / plan.guarantee.epsilon
    )  # the sensitivity in the file's units, over epsilon
    (level,) = model.predict({"height": [170.0]})
    assert abs(level - table["weight"].mean()) < 50 * noise_distribution  # odds below 1e-20


def test_a_ledger_is_charged_with_the_event_of_the_page(plugin, tmp_path):
    registry = Registry.of(plugin)
    (path,) = registry.load(plugin.__name__).examples.values()
    plan = spec_of_text(path.read_text(), path.name, registry).price()
    place = tmp_path / "people.ledger"
    total = {"epsilon": 3.0, "delta": 1e-5, "adjacency": REPLACE_ONE}
    ledger = Ledger.create(place, **total, registry=registry)
    plan.run(people(), reservation=plan.reserve(ledger, "the example"))
    again = Ledger.open(place, registry=registry)
    assert again.faults() == []
    assert "logistic.one" in "".join(map(str, again.export()))
    assert again.left() == ledger.left()


def test_the_pages_own_tests_pass(plugin):
    page = {}
    exec(dict(FILE.findall(PAGE))["logistic/tests/test_curve.py"], page)
    for shift in (0.01, 0.5, 3.0, 40.0):
        for part in (0.0, 0.3, 0.9):
            page["test_the_curve_is_the_largest_difference_over_half_lines"](shift, part)


def test_the_noise_is_logistic(plugin):
    """Dvoretzky-Kiefer-Wolfowitz: 200,000 right draws fail with probability below 1e-6."""
    query = Query(name="q", shape=(200_000,), distance="l1")
    sensitivity = Sensitivity(value=3.0, distance="l1", adjacency=REPLACE_ONE, source="a test")
    mechanism = Registry.of(plugin).component(MECHANISM, "logistic.noise")(noise_scale=2.0)
    noise = SecretRandomness.rehearsal(1).noise(0, "q", 1)
    drawn = np.sort(mechanism.release(np.full(200_000, 5.0), query, sensitivity, noise))
    expected = 0.5 * (1 + np.tanh((drawn - 5.0) / 4.0))  # logistic of scale 2, by another formula
    ranks = np.arange(200_001) / 200_000
    distance = max(np.max(ranks[1:] - expected), np.max(expected - ranks[:-1]))
    assert distance < np.sqrt(np.log(2 / 1e-6) / (2 * 200_000))


@pytest.mark.slow
def test_the_mechanism_passes_the_kit_and_half_its_cost_does_not(plugin, monkeypatch):
    registry = Registry.of(plugin)
    report = examine(plugin.__name__, registry, Effort(pairs=100, samples=100))
    assert [verdict for verdict in report.verdicts if verdict.failed] == []

    mechanism = Registry.of(plugin).component(MECHANISM, "logistic.noise")
    honest = mechanism.event

    def cheap(self, query, sensitivity):
        return honest(self, query, attrs.evolve(sensitivity, value=0.5 * sensitivity.value))

    monkeypatch.setattr(mechanism, "event", cheap)
    report = examine(plugin.__name__, registry, Effort(pairs=100, samples=100))
    broken = {verdict.law.id for verdict in report.verdicts if verdict.failed}
    assert broken & {"mechanism.event-matches-noise", "mechanism.event-at-any-value"}


@pytest.mark.slow
def test_every_command_of_the_page_works(tmp_path):
    site = tmp_path / "site"
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PYTHONPATH": str(site),
    }

    def command(line):
        program, *arguments = line.split()
        if program == "pip":  # the reader's environment, without touching this one
            own = ["--no-deps", "--no-build-isolation", "--quiet", "--target", str(site)]
            full = [sys.executable, "-m", "pip", *arguments, *own]
        else:
            full = [sys.executable, "-c", "from dpcore.console import main; main()", *arguments]
        return subprocess.run(
            full,
            cwd=tmp_path,
            env=environment,
            input="y\n",
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    new, install, enable, test, *use = LINES
    command(new)
    write_files(tmp_path)
    for line in (install, enable, test):
        command(line)
    table = people()
    rows = "\n".join(f"{h:.1f},{w:.1f}" for h, w in zip(*table.values(), strict=True))
    (tmp_path / "people.csv").write_text(f"height,weight\n{rows}\n")
    shipped = tmp_path / "logistic" / "dpcore_logistic" / "level.yaml"
    spec = tmp_path / "level.yaml"
    spec.write_bytes(shipped.read_bytes())
    check, run, replay, falsify, audit, create, again, show, verify = use
    assert "(1, 1e-05)-differentially private" in " ".join(command(check).split())
    command(run)
    assert "identical bytes" in command(replay)
    command(falsify)
    command(audit)
    command(create)
    spec.write_text(spec.read_text() + "ledger: people\n")
    command(again)
    assert "level" in command(show)
    command(verify)
    quiet = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    own = tmp_path / "logistic"
    subprocess.run(quiet, cwd=own, env=environment, check=True, capture_output=True)
