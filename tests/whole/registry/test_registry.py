"""The gate: what is admitted, what is imported, and how faults are reported."""

import base64
import hashlib
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dpcore import Mechanism, Registry, hookimpl
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore.errors import RegistryError, SpecError
from dpcore.registry.consent import admit, candidate, inspect, withdraw
from dpcore.registry.index import Index
from dpcore.registry.installations import find, installed
from dpcore.registry.kinds import KINDS, LEARNER, MECHANISM
from dpcore.registry.plugin_files import shipped
from dpcore.registry.user_folder import user_file
from dpcore.specs.schema import json_schema
from dpcore.specs.spec import spec_of_text

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
        write_record(site, info.name, f"{module}.py")
        monkeypatch.setenv("PYTHONPATH", str(site))
        return module

    return make


def write_record(site, info, *files):
    """List the files with their hashes, as an installer does."""
    lines = [f"{info}/RECORD,,"]
    for file in (f"{info}/METADATA", f"{info}/entry_points.txt", *files):
        content = (site / file).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{file},sha256={digest},{len(content)}")
    (site / info / "RECORD").write_text("\n".join([*lines, ""]))


GOOD = """
    import sys
    from dpcore import hookimpl
    from dpcore.claims.mechanisms.gaussian import Gaussian
    sys.stranger_was_imported = True

    @hookimpl
    def dpcore_mechanisms():
        return {"stranger.gaussian": Gaussian}
"""

TABLE = "provides = {{'mechanisms': {{'stranger.gaussian': '{}'}}}}"


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


def test_a_table_and_hooks_provide_the_same():
    module = types.ModuleType("mine")
    module.provides = {
        "mechanisms": {
            "mine.noise": "dpcore.claims.mechanisms.gaussian:Gaussian",
            "mine.own": Gaussian,
        },
        "theory": "dpcore_models.theorems.statements:STATEMENTS",
    }
    registry = Registry.of(module)
    assert registry.component(MECHANISM, "mine.noise") is Gaussian
    assert registry.component(MECHANISM, "mine.own") is Gaussian
    assert registry.load("mine").theory == Registry.default().load("models").theory


def test_files_of_a_table_are_found_beside_its_module(tmp_path):
    (tmp_path / "specs").mkdir()
    for name in ("b.yaml", "a.yaml", "table.csv"):
        (tmp_path / "specs" / name).touch()
    module = types.ModuleType("mine")
    module.__file__ = str(tmp_path / "mine.py")
    module.provides = {"examples": {"mine": "one.yaml", "mine.*": "specs/*.yaml"}}
    specs = tmp_path / "specs"
    files = {"mine": tmp_path / "one.yaml", "mine.a": specs / "a.yaml", "mine.b": specs / "b.yaml"}
    assert Registry.of(module).load("mine").examples == files


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
        ("provides = {'mecanisms': {}}", "unknown hook 'dpcore_mecanisms'"),
        ("provides = {'mechanisms': {'a': 1}}", "'a' is no mechanism"),
        ("provides = {'mechanisms': ['a']}", "must return a mapping"),
        ("provides = {'mechanisms': 'nowhere:ALL'}", "cannot be imported: ModuleNotFoundError"),
        (TABLE.format("nowhere:Gaussian"), "cannot be imported: ModuleNotFoundError"),
        (TABLE.format("dpcore:Registry"), "'stranger.gaussian' is no mechanism"),
        (GOOD + "    provides = {'mechanisms': {}}", "give dpcore_mechanisms once"),
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


def write_by_hand(**provides):
    """Admit planted plugins as a text editor would: no rule of `enable` is asked."""
    user_file().parent.mkdir(parents=True, exist_ok=True)
    entries = {
        name: {
            "distribution": f"dpcore-{name}",
            "entry_point": f"{name}_module",
            "version": "==1.2",
            "provides": {"mechanisms": [provided]},
        }
        for name, provided in provides.items()
    }
    user_file().write_text(yaml.safe_dump(entries))


def test_two_plugins_with_one_component_name_are_both_named(plant):
    plant(code=GOOD)
    plant("second", code=GOOD, module="second_module")
    write_by_hand(stranger="stranger.gaussian", second="stranger.gaussian")
    message = r"dpcore-second and distribution dpcore-stranger: .*`dpcore plugins disable second`"
    with pytest.raises(RegistryError, match=message):
        Registry.default().component(MECHANISM, "stranger.gaussian")


@pytest.mark.parametrize(
    ("plugin", "name", "message"),
    [
        ("stranger", "gaussian", "its own names are 'stranger' and those that begin with"),
        ("stranger", "strangers.gaussian", "its own names are"),
        ("stranger", "Stranger.gaussian", "its own names are"),
        ("stranger", "random_features.ridge", "its own names are"),
        ("gaussian", "gaussian", "mechanisms that dpcore has already: gaussian"),
        ("my-noise", "my_noise", None),
        ("my-noise", "my_noise.fine", None),
    ],
)
def test_a_plugin_provides_its_own_name_or_names_under_it(plant, plugin, name, message):
    plant(plugin, code=GOOD.replace("stranger.gaussian", name))
    provides = {"mechanisms": [name]}
    if message is None:
        admit(candidate(plugin), provides)
        assert plugin in Index.user().entries
        return
    with pytest.raises(RegistryError, match=message):
        admit(candidate(plugin), provides)
    assert plugin not in Index.user().entries


def test_no_command_and_no_estimator_of_another_is_taken(plant):
    plant(code=GOOD)
    for kind, name in (("commands", "test"), ("commands", "run"), ("estimators", "KernelRidge")):
        names = {name: "Help."} if kind == "commands" else [name]
        with pytest.raises(RegistryError, match=f"dpcore has already: {name}"):
            admit(candidate("stranger"), {kind: names})


SPEC = """
dpcore: 1
data:
  source: a.csv
  target: y
  domain: {{records: 40, columns: {{a: [-1, 1]}}, target: [-1, 1]}}
adjacency: replace_one
budget: {{epsilon: 1, delta: 1e-5}}
release:
  learner: {{name: random_features.ridge, regularization: 1.0, features: identity}}
  {rest}
"""


def test_a_clash_that_was_admitted_by_hand_blocks_the_specs_that_name_it_alone(plant):
    plant(code=GOOD.replace("stranger.gaussian", "laplace"), module="stranger_module")
    write_by_hand(stranger="laplace")
    price_of = lambda rest: spec_of_text(SPEC.format(rest=rest), "s.yaml").price()  # noqa: E731
    assert price_of("mechanism: gaussian").guarantee.epsilon > 0
    with pytest.raises(SpecError, match=r"'laplace' is provided by .*plugins disable stranger"):
        price_of("mechanism: laplace")
    assert json_schema(Registry.default())["title"] == "dpcore spec"


def test_code_that_changed_under_its_version_is_seen(plant, tmp_path):
    module = plant(code=GOOD)
    admit(candidate("stranger"), {"mechanisms": ["stranger.gaussian"]})
    site, info = tmp_path / "site", "dpcore_stranger-1.2.dist-info"
    entry = Index.user().entries["stranger"]
    assert entry.digest == hashlib.sha256((site / info / "RECORD").read_bytes()).hexdigest()
    assert find("stranger", entry)
    # A file that was edited in place, then one that was installed anew with its hashes.
    (site / f"{module}.py").write_text(textwrap.dedent(GOOD) + "changed = True\n")
    with pytest.raises(RegistryError, match=rf"{module}.py .* is not as it was installed"):
        Registry.default().component(MECHANISM, "stranger.gaussian")
    with pytest.raises(RegistryError, match="is not as it was installed"):
        admit(candidate("stranger"), {"mechanisms": ["stranger.gaussian"]})
    write_record(site, info, f"{module}.py")
    with pytest.raises(RegistryError, match=r"changed since version 1\.2.*plugins enable stranger"):
        Registry.default().component(MECHANISM, "stranger.gaussian")
    admit(candidate("stranger"), {"mechanisms": ["stranger.gaussian"]})
    assert Registry.default().component(MECHANISM, "stranger.gaussian")
    # A lost file is a change too.
    (site / info / "RECORD").unlink()
    with pytest.raises(RegistryError, match="changed since version"):
        find("stranger", Index.user().entries["stranger"])


@pytest.mark.parametrize("in_place", [False, True])
def test_code_whose_changes_nobody_sees_is_admitted_for_development_alone(
    plant, tmp_path, in_place
):
    plant(code=GOOD)
    info = tmp_path / "site" / "dpcore_stranger-1.2.dist-info"
    if in_place:  # as `pip install -e` leaves it
        (info / "direct_url.json").write_text(
            '{"url": "file:///x", "dir_info": {"editable": true}}'
        )
    else:
        (info / "RECORD").unlink()
    with pytest.raises(RegistryError, match="plugins enable --editable stranger"):
        admit(candidate("stranger"), {"mechanisms": ["stranger.gaussian"]})
    output = CliRunner().invoke(app, ["plugins", "enable", "--editable", "--yes", "stranger"])
    assert output.exit_code == 0, output.output
    assert not Index.user().entries["stranger"].digest


@pytest.mark.parametrize("editable", [False, True])
def test_a_guarantee_says_that_it_rests_on_code_that_may_change(plant, editable):
    module = plant(code=GOOD, module=f"marked_{editable}")
    admit(candidate("stranger"), {"mechanisms": ["stranger.gaussian"]}, editable=editable)
    spec = spec_of_text(SPEC.format(rest="mechanism: stranger.gaussian"), "s.yaml")
    plan = spec.price()
    marks = [text for text in plan.guarantee.basis.premises if "plugin stranger" in text]
    assert bool(marks) is editable, module
    # Locks hold what a bound takes for granted: a replay says the same in any registry.
    queries = [
        planned_query
        for release in plan.schedule.releases
        for planned_query in release.queries.values()
    ]
    assert all({*marks} <= {*planned_query.sensitivity.premises} for planned_query in queries)
    unused = spec_of_text(SPEC.format(rest="mechanism: gaussian"), "s.yaml").price()
    assert not any("plugin" in text for text in unused.guarantee.basis.premises)


def test_examples_of_each_plugin_are_read_by_themselves(plant, tmp_path):
    good = tmp_path / "good.yaml"
    good.write_text("# Shows that the others do no harm.\n")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for name, path in (("missing", tmp_path / "none"), ("folder", tmp_path), ("binary", binary),
                       ("good", good), ("number", 3)):  # fmt: skip
        value = repr(path) if name == "number" else f"Path({str(path)!r})"
        hook = f"@hookimpl\ndef dpcore_examples():\n    return {{'of_{name}': {value}}}\n"
        plant(name, code=f"from pathlib import Path\nfrom dpcore import hookimpl\n{hook}")
        admit(candidate(name), {})
    output = CliRunner().invoke(app, ["examples", "list"], env={"COLUMNS": "300"})
    assert output.exit_code == 0, output.output
    lines = {line.split()[0]: line for line in output.output.splitlines() if line.strip()}
    assert "Shows that the others do no harm." in lines["of_good"]
    for name in ("missing", "folder", "binary"):
        assert "its plugin ships no readable file" in lines[f"of_{name}"]
        assert CliRunner().invoke(app, ["examples", "show", f"of_{name}"]).exit_code == 2
    assert "linear.classification" in lines
    assert "of_number" not in lines
    with pytest.raises(RegistryError, match="must map names to paths"):
        Registry.default().load("number")


def test_an_example_of_a_stranger_replaces_none_that_ships_with_dpcore(plant, tmp_path):
    examples = {"linear.classification": "/elsewhere.yaml"}
    hook = f"@hookimpl\ndef dpcore_examples():\n    return {examples}\n"
    plant("zzz", code=f"from dpcore import hookimpl\n{hook}")
    plant("aaa", code=f"from dpcore import hookimpl\n{hook}")
    for name in ("zzz", "aaa"):
        admit(candidate(name), {})
    assert "linear" in str(shipped(Registry.default(), "examples")["linear.classification"])


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
    assert len(loaded.of(MECHANISM)) > 5


def test_a_name_of_the_core_is_checked_without_importing_what_it_names():
    code = (
        "import sys; from dpcore import Registry; from dpcore.registry.kinds import MECHANISM; "
        "assert 'l2_gamma' in Registry.default().names(MECHANISM); "
        "assert 'dpcore.claims.mechanisms.l2_gamma' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("dpcore==0.2.*", r"needs dpcore==0.2.\*, 0.1.0 is installed: pip install"),
        ("dpcore-models==9", "needs dpcore-models==9, 0.1.0 is installed"),
        ("dpcore-sgd; extra == 'x'", None),
        ("numpy>=99", None),
    ],
)
def test_the_gate_refuses_siblings_of_other_versions(monkeypatch, line, caught):
    monkeypatch.setattr("dpcore.registry.installations.metadata.requires", lambda name: [line])
    entry = Index.packaged().entries["linear"]
    if caught is None:
        assert find("linear", entry).distribution == "dpcore-linear"
        return
    with pytest.raises(RegistryError, match=caught):
        find("linear", entry)


TOOL = """
    import click
    from dpcore import hookimpl
    from dpcore.registry.evidence import Evidence

    @click.command()
    @click.option("--name", default="you")
    def greet(name: str) -> None:
        \"\"\"Greet somebody, politely.

        No one else is greeted.
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


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize(
    "text", ["def greet(): pass", "class Typer: info = None\n    greet = Typer()"]
)
def test_what_is_no_click_command_is_refused_by_name_with_the_way_out(plant, text, is_lazy):
    """A function or a `typer.Typer`, at consent and when it is called."""
    words = "plugin polite: 'greet' is no command: a click.Command was needed: write @click.command"
    old = TOOL[TOOL.index("    @click.command") : TOOL.index("    class Rumour")]
    module = TOOL.replace(old, f"    {text}\n\n")
    if is_lazy:
        module = module.replace('{"greet": greet}', '{"greet": "polite_module:greet"}')
    plant("polite", module)
    plugin = candidate("polite")
    with pytest.raises(RegistryError, match=re.escape(words)):
        inspect(plugin)
    admit(plugin, {"commands": {"greet": "Greet."}, "evidence": ["rumour"]})
    sys.modules.pop("polite_module", None)
    done = CliRunner().invoke(app, ["greet"])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert done.output.startswith(words)
    sys.modules.pop("polite_module", None)


def test_what_a_stranger_knows_of_a_plan_stands_in_check(plant, tmp_path):
    plant("polite", TOOL)
    plugin = candidate("polite")
    admit(plugin, inspect(plugin))
    spec = (ROOT / "examples" / "quickstart.yaml").read_text()
    (tmp_path / "spec.yaml").write_text(spec)
    done = CliRunner().invoke(app, ["check", str(tmp_path / "spec.yaml"), "--explain"])
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
