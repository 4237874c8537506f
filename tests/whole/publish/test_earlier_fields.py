"""A published spec keeps its meaning where a later version of a plugin means something else."""

import importlib
import sys

import attrs
import pytest

import dpcore
import dpcore_statistics
from dpcore import Registry
from dpcore.errors import ReplayError
from dpcore.registry.distributions import earlier_fields
from dpcore.specs.spec import load_spec

SPEC = """\
dpcore: 1
data:
  source: table.csv
  domain:
    records: {at_most: 30}
    columns: {cost: [0, 100]}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - name: model
    learner: {name: madeup.count%s}
    mechanism: discrete_gaussian
"""
MODULE = """
import attrs
from dpcore import hookimpl
from dpcore_statistics.count import Count

@attrs.frozen(kw_only=True)
class Counted(Count):
    earlier = {earlier}
    times: int = {times}

    def tables(self, answer, public):
        tables = super().tables(answer, public)
        figures = tables.tables[""]
        return type(tables).of(attrs.evolve(figures, estimate=self.times * figures.estimate))

@hookimpl
def dpcore_learners():
    return {{"madeup.count": Counted}}
"""


class Plugin:
    """A plugin of which any version can be installed."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, version, times, earlier):
        text = MODULE.format(times=times, earlier=earlier)
        # A file of another length: compiled code of the same second would pass for the new one's.
        (self.folder / "dpcore_madeup.py").write_text(f"# {version}\n{text}")
        metadata = self.folder / "dpcore_madeup.egg-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "PKG-INFO").write_text(f"Name: dpcore-madeup\nVersion: {version}\n")
        sys.modules.pop("dpcore_madeup", None)
        importlib.invalidate_caches()
        return Registry.of(importlib.import_module("dpcore_madeup"), dpcore_statistics)


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "table.csv").write_text("cost\n" + "\n".join(map(str, range(20))) + "\n")
    yield Plugin(tmp_path)
    sys.modules.pop("dpcore_madeup", None)


def publish(plugin, registry, fields=""):
    path = plugin.folder / "spec.yaml"
    path.write_text(SPEC % fields)
    return dpcore.run(load_spec(path, registry), runs=plugin.folder / "runs")


def test_a_field_that_a_spec_leaves_out_keeps_what_it_meant_at_the_version_of_the_lock(plugin):
    made = publish(plugin, plugin.install("1.9", 1, {}))
    # 1.10 is above 1.9 as a version, and below it as a text.
    later = plugin.install("1.10", 2, {"1.10": {"times": 1}})
    again = dpcore.replay(made.folder, later)
    assert again.lock.versions["dpcore-madeup"] == "1.9"
    assert again.models["model"].tables[""].estimate == made.models["model"].tables[""].estimate
    # A run of the later version means what that version says, and so does its replay.
    made = publish(plugin, later)
    assert made.spec.request.releases[0].learner.times == 2
    assert dpcore.replay(made.folder, later).spec.request.releases[0].learner.times == 2


def test_without_it_the_replay_fails(plugin):
    made = publish(plugin, plugin.install("1.9", 1, {}))
    with pytest.raises(ReplayError, match=r"tables|figures|model"):
        dpcore.replay(made.folder, plugin.install("1.10", 2, {}))


def test_what_a_spec_says_stands_at_every_version(plugin):
    made = publish(plugin, plugin.install("1.9", 1, {}), ", times: 3")
    again = dpcore.replay(made.folder, plugin.install("1.10", 2, {"1.10": {"times": 1}}))
    assert again.spec.request.releases[0].learner.times == 3


@attrs.frozen
class Older:
    earlier = {"1.10": {"way": "second"}, "1.9": {"way": "first", "side": "left"}}  # noqa: RUF012


@attrs.frozen
class Newer(Older):
    earlier = {"2.0": {"way": "third"}}  # noqa: RUF012


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("1.8", {"way": "third", "side": "left"}),
        ("1.9", {"way": "third"}),
        ("1.10.post1", {"way": "third"}),
        ("2.0", {}),
        ("of no distribution", {}),
        (None, {}),
    ],
)
def test_of_several_changes_the_first_after_the_lock_decides(version, fields):
    name = __name__.partition(".")[0].replace("_", "-")
    versions = {"numpy": "2.0"} if version is None else {name: version}
    assert earlier_fields(Newer, Registry({}, locked=versions)) == fields
    first = {"1.8": "first", "1.9": "second"}.get(version)
    assert earlier_fields(Older, Registry({}, locked=versions)).get("way") == first


def test_without_a_lock_nothing_has_an_earlier_meaning():
    assert earlier_fields(Newer, Registry({})) == {}
