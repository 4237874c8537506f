"""Imports point down, plugins import what they name, and `import dpcore` loads nothing heavy."""

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

import pytest
from upward_imports import UPWARD

import dpcore
from dpcore.registry.index import Index

ROOT = Path(__file__).parents[2]
PACKAGE = Path(dpcore.__file__).parent
MOST_NAMES = 60  # at the top of the core
MOST_NAMES = 60  # at the top of the core

# From the bottom: what is in a line may import from the lines above it, and from its own folder.
LAYERS = """
errors
shown
checks exact interval single_use rounding siblings
adjacency randomness
event
accountant domain
source records sampling sensitivity
query
mechanism
learner
bound summing guarantee
functions
claims
encoding
models metrics
learners
transcript
resources yaml
sources
registry
specs
private published
ledger
runs
views
console sklearn
""".strip().splitlines()

DOTTED = r"dpcore[a-z_]*(\.[a-z_0-9]+)+"  # a module's name in a string


def packages():
    """Every distribution's name and folder of modules: the core, and each plugin."""
    yield "dpcore", ROOT / "dpcore"
    for path in sorted((ROOT / "plugins").glob("*/dpcore_*")):
        yield path.parent.name, path


PACKAGES = dict(packages())


def names_in(tree, package):
    """Dotted names of every import, whenever it happens: typed only, lazy, or from a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import in {package}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(DOTTED, str(node.value)):
            yield node.value


def modules(folder):
    """Every module of a package by its dotted name."""
    paths = {}
    for path in folder.glob("**/*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        paths[".".join(parts).removesuffix(".__init__")] = path
    return paths


ALL = {name: path for folder in PACKAGES.values() for name, path in modules(folder).items()}


@cache
def tree_of(path):
    """The syntax tree of a file, parsed once."""
    return ast.parse(path.read_text())


@cache
def imports(folder):
    """(module, imported module of ours) for every import; a name is its module's."""
    pairs = []
    for module, path in modules(folder).items():
        for name in names_in(tree_of(path), module):
            while name not in ALL and "." in name:
                name = name.rpartition(".")[0]
            if name in ALL and name != module and (module, name) not in UPWARD:
                pairs.append((module, name))
    return pairs


def test_imports_point_down():
    level = {name: depth for depth, line in enumerate(LAYERS) for name in line.split()}
    room = {module: module.split(".")[1] for module in modules(PACKAGE) if module != "dpcore"}
    assert {*room.values()} == {*level}
    upward = [
        f"{module} imports {name}"
        for module, name in imports(PACKAGE)
        if module != "dpcore"
        and name != "dpcore"
        and room[module] != room[name]
        and level[room[name]] >= level[room[module]]
    ]
    assert upward == []


def test_the_core_imports_no_plugin():
    assert [pair for pair in imports(PACKAGE) if pair[1].split(".")[0] != "dpcore"] == []


@pytest.mark.parametrize("plugin", [name for name in PACKAGES if name != "dpcore"])
def test_a_plugin_imports_what_its_own_project_names(plugin):
    folder = PACKAGES[plugin]
    project = tomllib.loads((folder.parent / "pyproject.toml").read_text())["project"]
    named = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in project["dependencies"]}
    used = {name.split(".")[0] for _, name in imports(folder)} - {folder.name}
    assert used <= named
    ours = {line for line in project["dependencies"] if line.startswith("dpcore")}
    pins = {line.partition("==")[0].replace("-", "_"): line.partition("==")[2] for line in ours}
    assert pins == {name: pin_of(name) for name in used}


@pytest.mark.parametrize("depth", [1, 2, None])
@pytest.mark.parametrize("package", PACKAGES)
def test_no_rooms_import_one_another_in_a_circle(package, depth):
    """Rooms are the files and folders at the top, those a level deeper, or all modules."""

    def room(module):
        inner = module.split(".")[1:]
        return ".".join(inner[:depth])

    needs = {}
    for module, name in imports(PACKAGES[package]):
        same = name.split(".")[0] == module.split(".")[0]
        if same and room(module) and room(name) and room(module) != room(name):
            needs.setdefault(room(module), set()).add(room(name))
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError with the circle


PATHS = {folder.name: folder for folder in PACKAGES.values()}


def version_of(package):
    """The version that a distribution's own project states."""
    project = tomllib.loads((PATHS[package].parent / "pyproject.toml").read_text())["project"]
    return project["version"]


def pin_of(package):
    """What admits a distribution: its major and minor version."""
    return f"{version_of(package).rpartition('.')[0]}.*"


def test_every_distribution_has_the_version_that_the_registry_admits():
    for plugin in Index.packaged().entries.values():
        assert plugin.version == f"=={pin_of(plugin.entry_point)}"
    versions = {name: version_of(name) for name in PATHS}
    # Their numbers changed: locks have to say the versions before from those after.
    changed = {name: versions.pop(name) for name in ("dpcore_statistics", "dpcore_tables")}
    assert changed == {"dpcore_statistics": "0.2.1", "dpcore_tables": "0.2.0"}
    assert {*versions.values()} == {dpcore.__version__}


@pytest.mark.parametrize("name", ["attack", "audit_mechanism", "GaussianDP"])
def test_a_name_of_a_sibling_that_is_missing_says_what_to_install(monkeypatch, name):
    def missing(module):
        raise ModuleNotFoundError(name=module.partition(".")[0])

    monkeypatch.setattr("dpcore.siblings.import_module", missing)
    with pytest.raises(ImportError, match=rf"dpcore.{name} is brought by dpcore-\w+, which is not"):
        getattr(dpcore, name)


def test_importing_dpcore_loads_nothing_heavy():
    code = (
        "import sys, dpcore\n"
        "heavy = {'scipy', 'click', 'rich', 'numpy', 'yaml', 'pluggy'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_installed_one_and_is_looked_up_when_asked_for():
    code = (
        "import sys, dpcore\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "print(dpcore.__version__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == metadata.version("dpcore")


def test_every_public_name_is_importable_and_no_module():
    taken = {path.stem for path in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir()}
    for name in dpcore.__all__:
        assert getattr(dpcore, name) is not None
        assert name not in taken
    assert len(dpcore.__all__) <= MOST_NAMES


@pytest.mark.parametrize("module", dpcore._IN_MODULES)
def test_a_public_name_that_a_module_has_is_asked_for_there(module):
    for name in dpcore._IN_MODULES[module].split():
        assert getattr(import_module(module), name) is not None
        with pytest.raises(ImportError, match=f"^dpcore.{name} is {module}.{name}: from {module} "):
            getattr(dpcore, name)


LAZY = [
    "dpcore",
    *sorted(
        f"dpcore.{path.parent.name}"
        for path in PACKAGE.glob("*/__init__.py")
        if "lazy_names" in path.read_text()
    ),
]


@pytest.mark.parametrize("package", LAZY)
def test_the_lazy_names_and_the_typed_names_are_the_same(package):
    module = import_module(package)
    typed = {
        node.target.id if isinstance(node, ast.AnnAssign) else alias.asname
        for guard in ast.parse(Path(module.__file__).read_text()).body
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for node in guard.body
        for alias in getattr(node, "names", [None])
    }
    lazy = {*dir(module)} - {*vars(module)}
    assert typed == lazy
    assert all(getattr(module, name) is not None for name in lazy)
    with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute 'Lineal"):
        module.LinealModel  # noqa: B018


def test_a_close_name_of_a_package_is_suggested():
    with pytest.raises(AttributeError, match="'LinealModel'; did you mean 'LinearModel'"):
        import_module("dpcore.models").LinealModel  # noqa: B018
