"""What an import costs, and that imports point down."""

import ast
import graphlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent

# From the bottom: what is in a line may import from the lines above it, and from its own folder.
LAYERS = """
errors
markup
checks exact interval fingerprint once rounding siblings
adjacency distance randomness
events
accountant
accounting
records
sampling domain
sensitivity query
mechanism
learner
bound
functions
mechanisms guarantee
learning
engines
strict_yaml
sources
registry
ledger
running
pricing
spec
publish
bridges
conformance
cli sklearn
""".strip().splitlines()

DOTTED = r"dpcore(\.[a-z_]+)+"  # a module's name in a string
MOST = 22  # files and folders: a stranger finds the room of any idea from the tree alone


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


def modules():
    """Every module of the package by its dotted name."""
    found = {}
    for path in PACKAGE.glob("**/*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports():
    """(module, imported module of the package) for every import; a name is its module's."""
    known = modules()
    for module, path in known.items():
        for name in names_in(ast.parse(path.read_text()), module):
            while name not in known and "." in name:
                name = name.rpartition(".")[0]
            if name.startswith("dpcore."):
                yield module, name


def test_imports_point_down():
    level = {name: depth for depth, line in enumerate(LAYERS) for name in line.split()}
    tops = {module.split(".")[1] for module in modules() if module != "dpcore"}
    assert tops == {*level}
    room = {module: module.split(".")[1] for module in modules() if module != "dpcore"}
    wrong = [
        f"{module} imports {name}"
        for module, name in imports()
        if module != "dpcore"
        and room[module] != room[name]
        and level[room[name]] >= level[room[module]]
    ]
    assert wrong == []


def test_no_modules_import_one_another_in_a_circle():
    needs = {module: set() for module in modules()}
    for module, name in imports():
        if module not in ("dpcore", name):
            needs[module].add(name)
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError with the circle


def test_the_package_has_a_room_for_every_idea_and_few_doors():
    tracked = [p for p in PACKAGE.iterdir() if p.name != "__pycache__"]
    assert sum(p.suffix == ".py" for p in tracked) <= MOST
    assert sum(p.is_dir() for p in tracked) <= MOST
    long = [p.name for p in PACKAGE.glob("**/*.py") if len(p.read_text().splitlines()) >= 440]
    assert long == []


def test_importing_dpcore_loads_nothing_heavy():
    code = (
        "import sys, dpcore\n"
        "heavy = {'scipy', 'typer', 'rich', 'numpy', 'yaml', 'pluggy'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_installed_one_and_is_looked_up_when_asked_for():
    code = (
        "import sys, dpcore\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "print(dpcore.__version__)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == metadata.version("dpcore")


def test_every_public_name_is_importable_and_no_module():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir()}
    for name in dpcore.__all__:
        assert getattr(dpcore, name) is not None
        assert name not in modules


def test_the_lazy_names_and_the_typed_names_are_the_same():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpcore.")
        for alias in node.names
        if alias.asname
    }
    assert typed == {*dpcore._HOME}
