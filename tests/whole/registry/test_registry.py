"""The gate: what is admitted, what is imported, and how faults are told."""

import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dpcore import Mechanism, Registry, hookimpl
from dpcore.cli.app import app
from dpcore.errors import RegistryError, SpecError
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.registry.consent import admit, candidate, inspect, withdraw
from dpcore.registry.index import Index
from dpcore.registry.installations import find, installed
from dpcore.registry.kinds import KINDS, LEARNER, MECHANISM
from dpcore.registry.user_folder import user_file

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def own_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Plant distributions on the import path: metadata and a module, no pip needed."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(name="stranger", code="", distribution=None, version="1.2", module=None):
        module = module or name.replace("-", "_") + "_module"
        distribution = distribution or f"dpcore-{name}"
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(f"[dpcore.plugins]\n{name} = {module}\n")
        (site / f"{module}.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(site))
        return module

    return make


GOOD = """
    import sys
    from dpcore import hookimpl
    from dpcore.mechanisms.gaussian import Gaussian
    sys.stranger_was_imported = True

    @hookimpl
    def dpcore_mechanisms():
        return {"stranger.gaussian": Gaussian}
"""


def test_the_index_equals_the_folders_and_their_entry_points():
    import tomllib

    index = Index.packaged().entries
    folders = {path.parent.name: path for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    assert list(index) == sorted(index)
    assert {*index} == {*folders}
    for name, path in folders.items():
        project = tomllib.loads(path.read_text())["project"]
        entry = index[name]
        assert project["name"] == entry.distribution
        assert project["entry-points"]["dpcore.plugins"] == {name: entry.entry_point}


def test_every_admitted_plugin_provides_what_the_index_says():
    registry = Registry.default()
    for name in registry.entries:
        registry.load(name)
    for kind in KINDS:
        for name in registry.names(kind):
            assert kind.accepts(registry.component(kind, name))


def test_the_core_registers_through_the_same_hooks():
    assert Registry.of().component(MECHANISM, "gaussian") is Gaussian


def test_modules_passed_in_python_need_no_gate():
    module = types.ModuleType("mine")

    class Mine(Gaussian):
        pass

    @hookimpl
    def dpcore_mechanisms():
        return {"mine.noise": Mine}

    module.dpcore_mechanisms = dpcore_mechanisms
    assert Registry.of(module).component(MECHANISM, "mine.noise") is Mine


def test_an_installed_plugin_is_not_imported_until_it_is_admitted_and_asked_for(plant):
    plant(code=GOOD)
    with pytest.raises(RegistryError, match="installed but not admitted"):
        Registry.default().component(MECHANISM, "stranger.gaussian")
    assert not hasattr(sys, "stranger_was_imported")
    plugin = candidate("stranger")
    provides = inspect(plugin)
    assert provides == {"mechanisms": ["stranger.gaussian"]}
    assert not hasattr(sys, "stranger_was_imported")
    admit(plugin, provides)
    registry = Registry.default()
    assert "stranger.gaussian" in registry.names(MECHANISM)
    assert not hasattr(sys, "stranger_was_imported")
    assert issubclass(registry.component(MECHANISM, "stranger.gaussian"), Mechanism)
    del sys.stranger_was_imported
    withdraw("stranger")
    with pytest.raises(RegistryError):
        Registry.default().component(MECHANISM, "stranger.gaussian")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("raise RuntimeError('x')", "cannot be imported: RuntimeError: x"),
        ("def f(:", "cannot be imported: SyntaxError"),
        (
            "from dpcore import hookimpl\n@hookimpl\ndef dpcore_mechanisms():\n    1 / 0",
            "hook dpcore_mechanisms failed: ZeroDivisionError",
        ),
        (
            "from dpcore import hookimpl\n@hookimpl\ndef dpcore_mechanisms():\n    return [1]",
            "must return a mapping",
        ),
        (
            "from dpcore import hookimpl\n@hookimpl\ndef dpcore_mechanisms():\n    return {'a': 1}",
            "'a' is no mechanism",
        ),
        (
            "from dpcore import hookimpl\n@hookimpl\ndef dpcore_mecanisms():\n    pass",
            "unknown hook",
        ),
        ("x = 1", "mechanisms missing: stranger.gaussian"),
        (
            GOOD.replace(
                '"stranger.gaussian": Gaussian', '"stranger.gaussian": Gaussian, "b": Gaussian'
            ),
            "mechanisms not admitted: b",
        ),
    ],
)
def test_a_broken_plugin_is_one_clear_line_and_disturbs_no_other(plant, code, message):
    plant(code=code, module=f"stranger_{abs(hash(code))}")
    plugin = candidate("stranger")
    admit(plugin, {"mechanisms": ["stranger.gaussian"]})
    registry = Registry.default()
    with pytest.raises(RegistryError) as caught:
        registry.component(MECHANISM, "stranger.gaussian")
    assert message in str(caught.value)
    assert "stranger" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert registry.component(MECHANISM, "gaussian") is Gaussian
    assert registry.component(LEARNER, "random_features.ridge").__name__ == "Ridge"


def test_another_distribution_may_not_take_an_admitted_name(plant):
    plant("random-features", distribution="dpcore-planted", module="planted_module")
    with pytest.raises(RegistryError, match=r"claimed by .*dpcore-planted.*dpcore-random-features"):
        Registry.default().component(LEARNER, "random_features.ridge")
    with pytest.raises(RegistryError, match="claimed by"):
        candidate("random-features")


def test_another_entry_point_or_version_is_not_what_was_admitted(plant):
    plant(code=GOOD)
    entry = {
        "distribution": "dpcore-stranger",
        "entry_point": "elsewhere",
        "version": ">=1",
        "provides": {"mechanisms": ["stranger.gaussian"]},
    }
    user_file().parent.mkdir(parents=True)
    for change, message in (
        ({}, "is installed under that name"),
        ({"entry_point": "stranger_module", "version": ">=2"}, "version >=2 is admitted, 1.2 is"),
        ({"distribution": "dpcore-other"}, "is installed under that name"),
    ):
        user_file().write_text(yaml.safe_dump({"stranger": {**entry, **change}}))
        with pytest.raises(RegistryError, match=message):
            Registry.default().component(MECHANISM, "stranger.gaussian")


def test_two_plugins_with_one_component_name_are_both_named(plant):
    plant(code=GOOD)
    plant("second", code=GOOD, module="second_module")
    for name in ("stranger", "second"):
        admit(candidate(name), {"mechanisms": ["stranger.gaussian"]})
    with pytest.raises(RegistryError, match=r"dpcore-second and distribution dpcore-stranger"):
        Registry.default().component(MECHANISM, "stranger.gaussian")


def test_the_user_may_not_redirect_a_packaged_name():
    user_file().parent.mkdir(parents=True)
    user_file().write_text(
        "random-features: {distribution: evil, entry_point: evil, version: '>=0', provides: {}}"
    )
    with pytest.raises(RegistryError, match="evil"):
        Registry.default()


def test_a_packaged_plugin_can_be_disabled_and_enabled_again():
    withdraw("random-features")
    with pytest.raises(RegistryError, match="is disabled"):
        Registry.default().component(LEARNER, "random_features.ridge")
    plugin = candidate("random-features")
    admit(plugin, inspect(plugin))
    assert Registry.default().component(LEARNER, "random_features.ridge")
    with pytest.raises(RegistryError, match="not admitted"):
        withdraw("nobody")


def test_a_file_in_the_working_directory_is_never_read(tmp_path, monkeypatch, plant):
    plant(code=GOOD)
    (tmp_path / "registry.yaml").write_text(
        "stranger: {distribution: dpcore-stranger, entry_point: stranger_module, "
        "version: '>=0', provides: {mechanisms: [stranger.gaussian]}}"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegistryError):
        Registry.default().component(MECHANISM, "stranger.gaussian")


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "a: 1",
        "a: {distribution: d}",
        "a: {distribution: d, entry_point: e, version: 'one', provides: {}}",
        "a: {distribution: d, entry_point: e, version: '>=1', provides: {learner: [x]}}",
    ],
)
def test_a_wrong_registry_file_is_a_located_error(text):
    user_file().parent.mkdir(parents=True)
    user_file().write_text(text)
    with pytest.raises(SpecError, match=r"registry.yaml:1:\d+"):
        Registry.default()


def test_a_plugin_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("dpcore.registry.installations.installed", lambda plugin: ())
    with pytest.raises(RegistryError, match=r"pip install \. \./plugins/\* in a clone"):
        find("random-features", Index.packaged().entries["random-features"])


def test_importing_the_registry_imports_no_plugin():
    code = (
        "import sys; from dpcore import Registry; r = Registry.default(); "
        "from dpcore.registry.installations import installed; installed(); "
        "assert 'dpcore_random_features' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_installed_plugins_are_listed_with_their_origin():
    (ours,) = [plugin for plugin in installed() if plugin.name == "random-features"]
    assert ours.distribution == "dpcore-random-features"
    assert ours.value == "dpcore_random_features"


def test_everything_that_the_core_names_is_there_and_of_its_kind():
    loaded = Registry.of().load("dpcore")
    for kind in KINDS:
        for name, component in loaded.of(kind).items():
            assert kind.accepts(component), name
    assert len(loaded.of(MECHANISM)) > 10


def test_a_name_of_the_core_is_checked_without_importing_what_it_names():
    code = (
        "import sys; from dpcore import Registry; from dpcore.registry.kinds import MECHANISM; "
        "assert 'l2_gamma' in Registry.default().names(MECHANISM); "
        "assert 'dpcore.mechanisms.l2_gamma' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("dpcore==0.2.*", r"needs dpcore==0.2.\*, 0.1.0 is installed: pip install"),
        ("dpcore-models==9", "needs dpcore-models==9, 0.1.0 is installed"),
        ("dpcore-sgd; extra == 'x'", None),
        ("numpy>=99", None),
    ],
)
def test_the_gate_refuses_siblings_of_other_versions(monkeypatch, line, told):
    monkeypatch.setattr("dpcore.registry.installations.metadata.requires", lambda name: [line])
    entry = Index.packaged().entries["linear"]
    if told is None:
        assert find("linear", entry).distribution == "dpcore-linear"
        return
    with pytest.raises(RegistryError, match=told):
        find("linear", entry)


TOOL = """
    from dpcore import hookimpl
    from dpcore.registry.evidence import Evidence

    def greet(name: str = "you") -> None:
        \"\"\"Greet somebody, politely.

        Nobody else is greeted.
        \"\"\"
        print(f"Good day, {name}.")

    class Rumour(Evidence):
        def of_bounds(self, plan, registry):
            yield f"heard of {len(plan.schedule.releases)} release"

        def of_runs(self, spec, lock):
            return ()

    @hookimpl
    def dpcore_commands():
        return {"greet": greet}

    @hookimpl
    def dpcore_evidence():
        return {"rumour": Rumour}
"""


def test_a_strangers_command_runs_once_it_is_admitted_and_help_imports_nothing(plant):
    plant("polite", TOOL)
    plugin = candidate("polite")
    provides = inspect(plugin)
    assert provides == {"commands": {"greet": "Greet somebody, politely."}, "evidence": ["rumour"]}
    assert CliRunner().invoke(app, ["greet"]).exit_code == 2
    admit(plugin, provides)
    assert Registry.default().entries["polite"].provides.commands == provides["commands"]
    sys.modules.pop("polite_module", None)
    listed = CliRunner().invoke(app, ["--help"]).output
    assert "greet" in listed
    assert "Greet somebody, politely." in listed
    assert "polite_module" not in sys.modules
    done = CliRunner().invoke(app, ["greet", "--name", "Ada"])
    assert (done.exit_code, done.output) == (0, "Good day, Ada.\n")
    withdraw("polite")
    assert CliRunner().invoke(app, ["greet"]).exit_code == 2


def test_what_a_stranger_knows_of_a_plan_stands_in_check(plant, tmp_path):
    plant("polite", TOOL)
    plugin = candidate("polite")
    admit(plugin, inspect(plugin))
    spec = (ROOT / "examples" / "quickstart.yaml").read_text()
    (tmp_path / "spec.yaml").write_text(spec)
    done = CliRunner().invoke(app, ["check", str(tmp_path / "spec.yaml")])
    assert "heard of 1 release\n" in done.output
    assert done.output.index("bound SumBound") < done.output.index("heard of 1 release")


@pytest.mark.parametrize("word", ["run", "audit"])
def test_a_command_that_dpcore_has_is_nobody_elses(plant, word):
    plant("polite", TOOL.replace('"greet": greet', f'"{word}": greet'))
    plugin = candidate("polite")
    with pytest.raises(RegistryError, match=f"commands that dpcore has already: {word}"):
        admit(plugin, inspect(plugin))


def test_a_command_given_twice_is_an_error_that_names_both(plant):
    plant("polite", TOOL)
    plant("rude", TOOL)
    for name in ("polite", "rude"):
        provides = {"commands": {"greet": ""}, "evidence": ["rumour"]}
        if name == "rude":
            with pytest.raises(RegistryError, match="already: greet"):
                admit(candidate(name), provides)
            text = user_file().read_text()
            user_file().write_text(text + text[text.index("polite:") :].replace("polite", "rude"))
        else:
            admit(candidate(name), provides)
    done = CliRunner().invoke(app, ["greet"])
    assert done.exit_code == 2
    assert "provided by distribution dpcore-polite and distribution dpcore-rude" in done.output


def test_a_command_whose_plugin_is_gone_is_no_entry_and_one_line(plant):
    user_file().parent.mkdir(parents=True)
    user_file().write_text(
        "gone: {distribution: gone-tool, entry_point: gone_tool, version: '==1', "
        "provides: {commands: {wave: Wave.}}}\n"
    )
    assert "wave" not in CliRunner().invoke(app, ["--help"]).output
    done = CliRunner().invoke(app, ["wave"])
    assert done.exit_code == 2
    assert done.output == "plugin gone is not installed: it is the distribution gone-tool\n"


def test_a_damaged_registry_file_leaves_help_alone_and_is_told_to_who_asks(plant):
    user_file().parent.mkdir(parents=True)
    for text in ("a: [", "[1]", "a: 1", "a: {provides: {commands: [x]}}"):
        user_file().write_text(text)
        assert "falsify" in CliRunner().invoke(app, ["--help"]).output
        done = CliRunner().invoke(app, ["falsify", "spec.yaml"])
        assert done.exit_code == 2
        assert "registry.yaml" in done.output
